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
        ((), 1, "a check failed (exit code 1)"),
        (("--platform", "linux/riscv64"), 2, "refused, or wrong usage (exit code 2)"),
        (("--cases", "2"), 3, "nothing was measured (exit code 3)"),
        (("--stage-dir", "/proc/x"), 4, "could not judge (exit code 4)"),
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
