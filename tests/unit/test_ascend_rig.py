"""Containers of an Ascend case: what they mount, and which of their ends are no verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from xbtasks.backends.ascend.contract import Slice
from xbtasks.backends.ascend.rig import Container, Rig
from xbtasks.backends.ascend.smi import Die
from xbtasks.backends.ascend.target import Target
from xbtasks.backends.base import Platform
from xbtasks.engine import Engine
from xbtasks.errors import CannotJudge
from xbtasks.hardware import CaseRun, Unjudged
from xbtasks.host.step import Reply, SectionReply, Step
from xbtasks.plan import CaseKnobs, StagePlan

if TYPE_CHECKING:
    from xbtasks.hostfacts import HostFacts
    from xbtasks.rig import Outcome

CASE = "ascend.case2"
NOT_MADE = (
    "docker: Error response from daemon: failed to create task for container: failed to create shim task: "
    "OCI runtime create failed: failed to get /dev/davinci3 info: no such file or directory: unknown.\n"
)


def rig(status: int = 0, stderr: str = "", seconds: int = 1) -> tuple[Rig, list[Step]]:
    asked: list[Step] = []

    def ask(step: Step) -> Reply:
        asked.append(step)
        answers = (
            SectionReply(section.name, status, b"", stderr.encode(), seconds, False)
            for section in step.sections
        )
        return Reply(step.name, tuple(answers))

    run = CaseRun(
        run_id="run-1",
        stage=StagePlan("xbuild-ascend-cann-9-910b", "ascend", "9-910b", "i:t", "/opt/a b", ()),
        platform=Platform.AMD64,
        image="sha256:1",
        workload="sha256:1",
        artifacts=(("lib/libvruntime.so", "1" * 64), ("tools/enpu-monitor", "2" * 64)),
        knobs=CaseKnobs(),
        facts=cast("HostFacts", None),
        engine=Engine(),
        deadline=300,
        ask=ask,
        say=lambda _: None,
        permission=lambda _: None,
    )
    target = Target(Die(0, 0, 0, None, "910B4"), 3, "A-B", ())
    return Rig(run, CASE, target, {"first": Slice(3, 0, 20, 1024, "A-B")}), asked


def outcome(container: Container, status: int, stderr: str = "", seconds: int = 1) -> Outcome:
    made, _ = rig(status, stderr, seconds)
    return made.run("rounds", container)[container.role]


MONITOR = Container("m", ("sh", "-c", "x"), "first")


def test_a_container_is_named_labelled_held_and_removed_when_it_is_lost() -> None:
    made, asked = rig()
    made.run("rounds", MONITOR)
    (step,) = asked
    words = step.sections[0].argv
    name = "xbtasks-run-1-case2-m"
    assert words[words.index("--name") + 1] == name
    assert "xbtasks.run=run-1" in words
    assert "/tmp/xbtasks-A-B.lock" in words
    assert words[words.index("--runtime") + 1] == "ascend"
    assert "ASCEND_VISIBLE_DEVICES=3" in words
    assert "ENPU_LOG_LEVEL=3" in words
    assert [section.argv[-1] for section in step.on_loss] == [name, "/opt/a b/test/run-1"]


def test_what_is_mounted_depends_on_the_injection() -> None:
    for part, wanted in ((None, 1), ("", 5), ("first", 6)):
        made, asked = rig()
        made.run("rounds", Container("m", ("x",), part))
        words = asked[0].sections[0].argv
        mounted = [words[place + 1] for place, word in enumerate(words) if word == "--mount"]
        assert len(mounted) == wanted
        assert all(option.startswith("type=bind,source=") for option in mounted)
        writable = [option for option in mounted if not option.endswith(",readonly")]
        assert writable == ["type=bind,source=/dev/shm,target=/dev/shm"] * (part is not None)


@pytest.mark.parametrize("status", [125, 127])
def test_a_container_that_cant_be_made_is_no_verdict(status: int) -> None:
    with pytest.raises(Unjudged, match="can't start a container") as caught:
        outcome(MONITOR, status, NOT_MADE)
    assert [row.id for row in caught.value.checks] == [f"{CASE}.reachable"]


def test_an_image_without_the_program_is_named() -> None:
    said = 'docker: Error response from daemon: exec: "python3": executable file not found in $PATH: unknown.'
    with pytest.raises(Unjudged, match="lacks python3"):
        outcome(Container("p", ("python3",), "first"), 127, said)


def test_a_program_of_the_container_that_ends_with_127_is_judged() -> None:
    ended = outcome(MONITOR, 127, "sh: error while loading shared libraries: libc_sec.so: cannot open")
    assert ended.ended == "ended with 127"


def test_a_crash_a_timeout_and_a_held_card() -> None:
    assert outcome(MONITOR, 139).ended == "crashed by SIGSEGV (139)"
    assert outcome(MONITOR, 124, seconds=300).timed_out
    assert not outcome(MONITOR, 124, seconds=5).timed_out
    with pytest.raises(CannotJudge, match="another run"):
        outcome(MONITOR, 75, "/tmp/xbtasks-A-B.lock: another run holds it")
