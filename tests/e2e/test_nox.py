"""Nox as a user types it: the sessions' names, their ends, and what it says without a checkout."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.workplace import BASE, make_checkout

if TYPE_CHECKING:
    from tests.workplace import Done, Workplace
from xbtasks.sessions import FIELD_STAGES

pytestmark = pytest.mark.engine


def nox(place: Workplace, *words: str, **changes: str | None) -> Done:
    return place.run(place.program("nox"), *words, **changes)


def test_the_sessions_are_named_as_documented(place: Workplace) -> None:
    listed = nox(place, "--list", "--json")
    names = {session["session"] for session in json.loads(listed.out)}
    assert {f"verify(stage='{stage}')" for stage in FIELD_STAGES} <= names
    without = nox(place, "--list", "--json", XB_REPO=None)
    assert {session["session"] for session in json.loads(without.out)} == names
    text = nox(place, "--list").out
    assert all(name in text for name in ("demo", "tests", "lint", "types", "bench"))


def test_a_session_verifies_one_stage_with_flags_behind_it(place: Workplace) -> None:
    target = place.folder / "result.json"
    done = nox(place, "-s", "verify(stage='xbuild-nvidia-cuda-13')", "--", "--cases", "1", f"--json={target}")
    assert done.code == 0, done.text
    assert json.loads(target.read_text())["verdict"] == "PASS"


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        ((), 1, "a check failed: nvidia.case1."),
        (("--platform", "linux/riscv64"), 2, "refused, or wrong usage: platform from flag --platform"),
        (("--cases", "2"), 3, "nothing was measured: nvidia.case2 skipped: needs 1 GPU, the host has 0"),
        (("--stage-dir", "/proc/x"), 4, "could not judge: "),
    ],
)
def test_a_session_fails_for_every_other_verdict_and_says_which(
    place: Workplace, flags: tuple[str, ...], code: int, said: str
) -> None:
    stage = "xbuild-nvidia-cuda-x"
    artifact = "mkdir /out; echo x >/out/libvgpu.so"
    folder = make_checkout(place.folder / "checkout", f"FROM {BASE} AS {stage}\nRUN {artifact}\n")
    done = nox(
        *(place, "-s", f"verify(stage='{stage}')", "--", *flags),
        XB_REPO=str(folder),
        PATH=place.without_cards(),
    )
    assert done.code == 1, done.text
    assert f"{stage}: {said}" in done.text
    assert f"(exit code {code})" in done.text


def test_a_name_that_is_none_is_never_counted_as_run(place: Workplace) -> None:
    done = nox(place, "-s", "verify(stage='xbuild-nope')")
    assert done.code != 0
    assert "xbuild-nope" in done.text


def test_without_a_checkout_a_session_fails_and_says_what_to_do(place: Workplace) -> None:
    done = nox(place, "-s", "verify(stage='xbuild-nvidia-cuda-13')", XB_REPO=None)
    assert done.code == 1, done.text
    assert "XB_REPO" in done.text
    assert "nox -s demo" in done.text
    assert place.evidence() == []


def test_sessions_at_once_end_in_one_summary_and_one_folder(place: Workplace) -> None:
    stages = ("xbuild-nvidia-cuda-12", "xbuild-nvidia-cuda-13")
    cells = [f"case(stage='{stage}', case=1)" for stage in stages]
    done = nox(place, "-j", "2", "-s", *cells, f"case(stage='{stages[0]}', case=4)", XB_IMAGE=None)
    assert done.code != 0
    assert "case=4" in done.text  # no such cell is offered
    assert place.evidence() == []
    done = nox(place, "-j", "2", "-s", *cells, XB_IMAGE=None)
    assert done.code == 0, done.text
    summary = done.out.rpartition(" VERDICT ")[2]
    assert all(f"| {stage} " in summary for stage in stages)
    (folder,) = place.evidence()
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {f"{stage}.case1" for stage in stages}
    replayed = place.inv("replay", str(folder), "--json")
    assert [case["verdict"] for case in replayed.document["cases"]] == ["PASS", "PASS"], replayed.text


def test_the_matrix_is_a_session(place: Workplace) -> None:
    done = nox(place, "-s", "matrix", "--", "--stages", "*-cuda-13", "--cases", "1", XB_IMAGE=None)
    assert done.code == 0, done.text
    (folder,) = place.evidence()
    assert (folder / "matrix/matrix.json").is_file()
    assert "xbuild-nvidia-cuda-13" in done.out.rpartition(" VERDICT ")[2]
