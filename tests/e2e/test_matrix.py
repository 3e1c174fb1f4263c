"""A matrix on the simulated host, as a user types it: all stages, twice, replayed, and ended half way."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.test_interrupt import running, wait_for
from tests.workplace import BASE, cells, make_checkout
from xbtasks.sessions import FIELD_STAGES

if TYPE_CHECKING:
    from tests.workplace import Workplace

pytestmark = pytest.mark.engine

PASSING = "RUN mkdir /out; echo x >/out/libvgpu.so"


def outcomes(document: dict[str, Any]) -> list[str]:
    return [build["outcome"] for build in document["builds"]]


def test_all_stages_twice_the_second_time_nothing_is_built(place: Workplace) -> None:
    first = place.inv("matrix", "--cases", "1", "--rebuild", "--json", XB_IMAGE=None)
    assert first.code == 0, first.text
    assert [case["stage"] for case in first.document["cases"]] == list(FIELD_STAGES)
    assert outcomes(first.document) == ["built"] * 7
    assert all(f"[{stage}]   " in first.err for stage in FIELD_STAGES)
    second = place.inv("matrix", "--cases", "1", "--json", XB_IMAGE=None)
    assert second.code == 0, second.text
    assert outcomes(second.document) == ["up to date"] * 7
    assert place.left_over() == []
    # one evidence directory a stage, in one folder that is judged again as a whole
    (run,) = (path for path in place.evidence() if path.name == second.document["run"])
    assert {path.name for path in run.glob("local.*")} >= {f"local.{stage}" for stage in FIELD_STAGES}
    replayed = place.inv("replay", str(run), "--json")
    assert replayed.code == 0, replayed.text
    assert replayed.document["cases"] == second.document["cases"]


def test_a_build_that_fails_skips_its_cases_and_leaves_the_others(place: Workplace) -> None:
    stages = ("xbuild-nvidia-cuda-8", "xbuild-nvidia-cuda-9")
    text = f"FROM {BASE} AS {stages[0]}\nRUN exit 3\nFROM {BASE} AS {stages[1]}\n{PASSING}\n"
    checkout = make_checkout(place.folder / "checkout", text)
    done = place.inv("matrix", "--json", XB_REPO=str(checkout), XB_IMAGE=None)
    assert done.code == 1, done.text
    found = {(case["stage"], case["id"]): case for case in done.document["cases"]}
    for number in (1, 2, 3):
        case = found[stages[0], f"nvidia.case{number}"]
        assert case["verdict"] == "SKIP"
        assert case["reason"].startswith("the build failed: ")
    assert found[stages[1], "nvidia.case1"]["verdict"] == "FAIL"
    assert found[stages[1], "nvidia.case2"]["reason"] == "nvidia.case1 failed: it is not taken to a card"
    # the cases of the build share a line, as they share the reason
    (line,) = (row for row in cells(done.err) if row[:2] == ["SKIP", stages[0]])
    assert line[2] == "nvidia.case1, 2, 3"
    assert f"[{stages[0]}] {stages[0]}\n" not in done.err  # the prefix names it


def test_ctrl_c_during_two_builds_leaves_nothing(place: Workplace) -> None:
    marks = ("81177", "81178")
    stages = ("xbuild-nvidia-cuda-6", "xbuild-nvidia-cuda-7")
    text = "".join(
        f"FROM {BASE} AS {stage}\nRUN sleep {mark}\n" for stage, mark in zip(stages, marks, strict=True)
    )
    checkout = make_checkout(place.folder / "checkout", text)
    result = place.folder / "result.json"
    child = place.start("matrix", "--cases", "1", f"--json={result}", XB_REPO=str(checkout), XB_IMAGE=None)
    wait_for(lambda: all(running(mark) for mark in marks), child)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=90)
    assert child.returncode == 130, (out, err)
    document = json.loads(result.read_text())
    assert [case["verdict"] for case in document["cases"]] == ["ERROR", "ERROR"]
    assert all("interrupted" in case["reason"] for case in document["cases"])
    assert b"130" in out
    for _ in range(100):
        if not any(running(mark) for mark in marks):
            break
        signal.sigtimedwait([], 0.1)
    assert not any(running(mark) for mark in marks)
    assert place.left_over() == []
