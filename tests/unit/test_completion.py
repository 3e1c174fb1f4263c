"""What a shell is offered for the last word of a command line."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from invoke.parser.context import ParserContext
from invoke.program import Program

from tests.workplace import SAMPLE, make_checkout
from xbtasks.knobs.table import KNOBS
from xbtasks.sessions import FIELD_STAGES
from xbtasks.tasks import ns
from xbtasks.tasks.completion import candidates, names_of

if TYPE_CHECKING:
    from pathlib import Path

TASKS = names_of(ns.to_contexts())
CORE = ParserContext(args=Program().core_args())
NVIDIA = tuple(name for name in FIELD_STAGES if "nvidia" in name)


@pytest.fixture(autouse=True)
def checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("XB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XB_REPO", str(SAMPLE))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def offered(*words: str) -> tuple[str, ...]:
    return candidates(["xb", *words], TASKS, CORE)


def fitting(*words: str) -> list[str]:
    """Return what is offered and begins with the last word, as a shell filters it."""
    return [each for each in offered(*words) if each.startswith(words[-1].removeprefix("="))]


def test_tasks_at_the_start() -> None:
    assert set(offered("")) == set(TASKS)
    assert offered("ver") == ("verify",)
    assert fitting("nvidia.c") == ["nvidia.case1", "nvidia.case2", "nvidia.case3"]
    assert offered() == offered("")


def test_flags_of_the_task_and_before_it_of_the_program() -> None:
    assert fitting("verify", "--stage-") == ["--stage-dir"]
    assert fitting("verify", NVIDIA[0], "--no-t") == ["--no-throttle"]
    assert fitting("--list-") == ["--list-depth", "--list-format"]
    assert "--base" not in offered("verify", "-")


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (["verify", ""], FIELD_STAGES),
        (["verify", "xbuild-n"], NVIDIA),
        (["verify", "--mem", "1", ""], FIELD_STAGES),
        (["verify", "--rebuild", ""], FIELD_STAGES),
        (["verify", "--stage", ""], FIELD_STAGES),
        (["verify", "--stage", "=", "xb"], FIELD_STAGES),  # as bash cuts it
        (["verify", "--stage", "="], FIELD_STAGES),
        (["changed", "verify", ""], FIELD_STAGES),
        (["nvidia.case2", ""], NVIDIA),
        (["matrix", "--stages", ""], FIELD_STAGES),
        (["stages", "--backend", ""], ["ascend", "nvidia"]),
        (["verify", "--mode", ""], ["local", "ssh"]),
        (["verify", "--host-keys", ""], ["strict", "accept-new"]),
        (["verify", "--platform", ""], ["linux/amd64", "linux/arm64"]),
        (["verify", "--engine", ""], ["docker"]),
        (["verify", "--profile", "n"], ["needed"]),
        (["verify", "--gpu", ""], ["auto"]),
        (["verify", "--cases", ""], ["1", "2", "3"]),
        (["matrix", "--emit", ""], ["github", "gitlab", "json"]),
        (["verify", "--cases", "1,"], ["1,2", "1,3"]),
        (["matrix", f"--stages={NVIDIA[0]},xbuild-nv"], [f"--stages={NVIDIA[0]},{NVIDIA[1]}"]),
        (["verify", "--mode", "local,"], []),
        (["matrix", "--emit=git"], ["--emit=github", "--emit=gitlab"]),
        (["explain", "nvidia.case3"], ["nvidia.case3"]),
        (["verify", "--repo", ""], []),  # files
        (["verify", "--mem", ""], []),
        (["verify", "--mem", "--stage"], []),  # a value, whatever it looks like
    ],
)
def test_values(words: list[str], values: list[str]) -> None:
    assert fitting(*words) == list(values)


def test_a_whole_name_may_be_followed_by_a_blank_that_the_shell_dropped() -> None:
    assert set(offered("verify")) == {*TASKS, *FIELD_STAGES}
    assert offered("stages", "--backend") == ("--backend", "ascend", "nvidia")
    assert offered("verify", "--repo") == ()  # a file comes next


def test_after_its_stage_a_task_may_follow() -> None:
    assert set(offered("verify", NVIDIA[0], "")) == set(TASKS)
    assert offered("verify", NVIDIA[0], "bui") == ("build",)


def test_the_checkout_that_is_named_counts(tmp_path: Path) -> None:
    other = make_checkout(tmp_path / "other", "FROM a AS xbuild-nvidia-cuda-77\n")
    assert offered("verify", "--repo", str(other), "") == ("xbuild-nvidia-cuda-77",)
    assert offered("verify", f"--repo={other}", "--stage", "") == ("xbuild-nvidia-cuda-77",)


def test_hosts_of_the_ssh_configuration_and_of_a_hosts_file(tmp_path: Path) -> None:
    config = tmp_path / "ssh"
    config.write_text('Host a b.example *.lab !no\n  HostName x\nMatch host q\nhost=c\nHost "d e" $(id)\n')
    assert offered("verify", "--ssh-config", str(config), "--host", "") == ("a", "b.example", "c")
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("hosts:\n  - {name: one, ssh: a}\n  - {name: two, ssh: b}\n")
    assert offered("matrix", "--hosts-file", str(hosts), "--hosts", "") == ("one", "two")


def test_runs_are_offered_the_newest_first(tmp_path: Path) -> None:
    for at, name in enumerate(("older", "newer")):
        folder = tmp_path / "state/xbtasks/runs" / name
        folder.mkdir(parents=True)
        os.utime(folder, (at, at))
    assert offered("matrix", "--continue", "") == ("last", "newer", "older")
    assert offered("replay", "") == offered("bundle", "") == ("last", "newer", "older")
    assert offered("report", "o") == offered("report.show", "o") == ("last", "newer", "older")
    assert offered("report.diff", "newer", "o") == ("last", "newer", "older")
    assert offered("report.diff", "newer", "older", "bui") == ("build",)


@pytest.mark.parametrize("words", [["verify", ""], ["changed", "--base", ""], ["matrix", "--hosts", ""]])
def test_without_a_checkout_nothing_is_said(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XB_REPO", "/nonexistent")
    assert not set(offered(*words)) - set(TASKS)
    monkeypatch.setenv("XB_MODE", "nonsense")
    assert not set(offered(*words)) - set(TASKS)
    assert capfd.readouterr() == ("", "")


def test_every_knob_with_fixed_values_has_them() -> None:
    fixed = [
        knob for knob in KNOBS if knob.flag and re.search(r"\bone of\b|\bor\b.*lower case", knob.accepts)
    ]
    assert len(fixed) >= 2
    for knob in fixed:
        assert offered("verify", knob.flag, ""), knob.name


def test_no_candidate_means_anything_to_a_shell(tmp_path: Path) -> None:
    odd = make_checkout(tmp_path, "FROM a AS xbuild-nvidia-cuda-1\n")
    assert offered("verify", f"--repo={odd}", "") == ("xbuild-nvidia-cuda-1",)
    for name in ("$(id)", "a b", "`x`", "a;b", "a'b", "é"):
        (tmp_path / "state/xbtasks/runs" / name).mkdir(parents=True)
    assert offered("matrix", "--continue", "") == ("last",)


@given(
    st.lists(
        st.sampled_from(["verify", "--stage", "=", "-", "--", "", "x", "--json", "--x=y", "-l"]) | st.text()
    )
)
def test_any_words(words: list[str]) -> None:
    assert all(re.fullmatch(r"[\w./@:+=,-]+", each, re.ASCII) for each in offered(*words))
