"""Runs whose output nobody reads any more: measured to their end, kept, and with their own exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.workplace import BASE, make_checkout

if TYPE_CHECKING:
    from tests.workplace import Done, Workplace

pytestmark = pytest.mark.engine

GOOD = "xbuild-nvidia-cuda-13"


def typed(place: Workplace, line: str, **changes: str) -> Done:
    """Type a command line of a shell, where ``xb`` is the launcher."""
    return place.run("bash", "-o", "pipefail", "-c", line.replace("xb ", "./xb ", 1), **changes)


def result(place: Workplace) -> dict[str, object]:
    return dict(json.loads((place.evidence()[-1] / "result.json").read_text()))


@pytest.mark.parametrize("reader", ["| head -1", "2>&1 | head -1", ">&-", ">&- 2>&-", "| :"])
@pytest.mark.parametrize("command", [f"verify {GOOD} --cases 1", f"matrix --stages {GOOD} --cases 1"])
def test_a_good_stage_passes(place: Workplace, command: str, reader: str) -> None:
    done = typed(place, f"xb {command} --junit {place.folder}/junit.xml {reader}")
    assert (done.code, "Traceback" in done.text) == (0, False), done.text
    assert result(place)["verdict"] == "PASS"
    assert "<testsuite" in (place.folder / "junit.xml").read_text()
    assert place.left_over() == []


@pytest.mark.parametrize("command", ["verify", "matrix --stages"])
def test_a_broken_stage_fails(place: Workplace, command: str) -> None:
    stage = f"xbuild-nvidia-cuda-{place.name}"
    text = f"FROM {BASE} AS {stage}\nRUN mkdir /out; echo x >/out/libvgpu.so\n"
    checkout = make_checkout(place.folder / "checkout", text)
    done = typed(place, f"xb {command} {stage} --cases 1 | head -1", XB_REPO=str(checkout))
    assert done.code == 1, done.text
    assert result(place)["verdict"] == "FAIL"


def test_what_is_lost_to_a_full_disk_is_told_at_the_end(place: Workplace) -> None:
    done = typed(place, f"xb verify {GOOD} --cases 1 >/dev/full")
    assert (done.code, done.err) == (4, "error: the output can't be written: No space left on device\n")
    assert result(place)["verdict"] == "PASS"
