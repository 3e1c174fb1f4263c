from __future__ import annotations

import json
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workplace import SAMPLE
from xbtasks.errors import CannotJudge, Interrupted, Refused, UsageError
from xbtasks.evidence import runs_directory
from xbtasks.host.local import LocalTransport
from xbtasks.knobs.resolve import resolve
from xbtasks.ownside import OwnSide
from xbtasks.plan import CaseKnobs, RunPlan
from xbtasks.planning import discover_stages, make_plan, of_backend
from xbtasks.reporting.console import Console
from xbtasks.session import Place, _noted, _permission, replay, run
from xbtasks.turns import Turns

if TYPE_CHECKING:
    from xbtasks.knobs.settings import Settings


def settings(**variables: str) -> Settings:
    return resolve(
        {}, {"XB_REPO": str(SAMPLE), **variables}, user_file=None, explicit_user_file=False, project_file=None
    )


class Person(Console):
    """Somebody at a terminal who answers the same to everything."""

    def __init__(self, answer: str = "", *, there: bool = True) -> None:
        super().__init__()
        self.answer = answer
        self.there = there
        self.heard: list[str] = []

    @property
    def can_ask(self) -> bool:
        return self.there

    def ask(self, question: str) -> str:
        self.heard.append(question)
        return self.answer

    def say(self, text: str = "") -> None:
        self.heard.append(text)


# the plan


def test_a_plan_holds_what_the_knobs_say() -> None:
    chosen = settings(
        XB_PLATFORM="linux/arm64",
        XB_STAGE="/srv/a b",
        XB_REMOTE_CTX="/srv/ctx",
        XB_TIMEOUT="7",
        XB_BUILD_TIMEOUT="8",
        XB_MAX_GLIBC="2.28",
        XB_BUILDER="far",
        XB_PROFILE="as-needed",
    )
    discovery = discover_stages(chosen)
    stages = of_backend(discovery, "nvidia")
    plan = make_plan(chosen, "verify", discovery, stages, cases=(1, 2), build=True, rebuild=True, adopt=True)
    assert (plan.platform, plan.context_directory, plan.builder) == ("linux/arm64", "/srv/ctx", "far")
    assert (plan.step_deadline, plan.build_deadline, plan.max_glibc) == (7, 8, (2, 28))
    assert (plan.cases, plan.build, plan.rebuild, plan.adopt) == ((1, 2), True, True, True)
    assert plan.directories == (("nvidia", "/srv/a b"),)
    first = plan.stages[0]
    assert (first.stage, first.image, first.profile) == (
        "xbuild-nvidia-cuda-12",
        "vgpu-build:12",
        "as-needed",
    )
    assert first.cross_compiles
    assert [name for name, _ in first.digests] == ["linux/amd64", "linux/arm64"]
    assert RunPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_one_image_name_is_not_given_to_several_stages() -> None:
    chosen = settings(XB_IMAGE="mine:1")
    discovery = discover_stages(chosen)
    with pytest.raises(UsageError, match="names one image"):
        make_plan(chosen, "verify", discovery, discovery.stages, build=True)
    assert make_plan(chosen, "x", discovery, discovery.stages[:1]).stages[0].image == "mine:1"


@pytest.mark.parametrize(("name", "count"), [("", 7), ("ascend", 5), ("nvidia", 2)])
def test_stages_are_those_of_a_backend(name: str, count: int) -> None:
    assert len(of_backend(discover_stages(settings()), name)) == count
    with pytest.raises(UsageError, match="ascend, nvidia"):
        of_backend(discover_stages(settings()), "amd")


# permission


BUILD = RunPlan("verify", (), (1,), build=True)


def test_a_container_on_a_local_accelerator_needs_a_yes() -> None:
    person = Person("n")
    ask = _permission(settings(), "local", replace(BUILD, cases=(1, 2)), person)
    ask("build x")
    assert person.heard == []
    with pytest.raises(Refused, match="not confirmed"):
        ask("run containers of x on GPU 0, for about a minute", accelerator=True)
    assert "run containers of x on GPU 0, for about a minute on local" in person.heard[0]
    assert any("case 2" in line for line in person.heard)
    assert person.heard[-1] == "Go on? [y/N]"


def test_one_yes_covers_the_build_and_the_cards() -> None:
    person = Person("y")
    ask = _permission(settings(), "me@far", replace(BUILD, cases=(1, 2)), person)
    ask("build x")
    ask("run containers of x", accelerator=True)
    assert sum("[y/N]" in line for line in person.heard) == 1


def test_without_a_terminal_a_local_accelerator_is_refused() -> None:
    person = Person(there=False)
    with pytest.raises(Refused, match="XB_YES=1"):
        _permission(settings(), "local", BUILD, person)("run containers", accelerator=True)
    _permission(settings(XB_YES="1"), "local", BUILD, person)("run containers", accelerator=True)


# evidence


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"XDG_STATE_HOME": "/srv/state"}, "/srv/state/xbtasks/runs"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/me"}, "/home/me/.local/state/xbtasks/runs"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/state/xbtasks/runs"),
    ],
)
def test_where_evidence_is_kept(
    variables: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert runs_directory() == Path(expected)


def test_evidence_that_can_not_be_kept_is_said_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(UsageError, match="evidence can't be kept"):
        run(settings(), RunPlan("preflight", (), (), build=False), None, Person())


def test_a_disk_that_fills_up_is_no_verdict(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("xbtasks.host.recording.Evidence.record", full)
    with pytest.raises(CannotJudge, match="No space left"):
        run(settings(), RunPlan("preflight", (), (), build=False), None, Person())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 100_000,
        "{",
        "[]",
        "{}",
        '{"schema": 1}',
        '{"schema": 1, "run": "x", "host": "h", "plan": 1}',
    ],
)
def test_another_note_is_no_evidence(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UsageError):
        replay(tmp_path, Person())


def test_knobs_of_the_hardware_cases_travel_in_the_plan() -> None:
    plan = RunPlan("x", (), (2,), build=False, knobs=CaseKnobs(gpu="GPU-1", gpus=("0", "1"), mem=4096))
    assert RunPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_turn_that_was_not_had_is_noted_for_a_replay() -> None:
    noted: dict[str, tuple[str, str, str]] = {}
    own = OwnSide(keep=noted.update)
    stop = threading.Event()
    turns = Turns(stop)
    place = Place(Path("/nowhere"), LocalTransport(), lambda what, *, accelerator=False: None)
    place = replace(place, turn=turns.turn)
    with _noted(own, place, "m", "image", "a:1"):
        with _noted(own, place, "m", "image", "b:1"):
            stop.set()
        with pytest.raises(Interrupted), _noted(own, place, "m", "image", "a:1"):
            raise AssertionError
    assert list(noted) == ["turn at the image a:1"]
    again = OwnSide(noted)
    with pytest.raises(Interrupted, match="another stage was at work"):
        again.call(next(iter(noted)), nullcontext)
    with _noted(OwnSide(), place, "m", "image", "a:1"):
        pass
