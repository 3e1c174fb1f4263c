"""Runs that were recorded and committed are judged today as they were then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.recordings import RUNS, unpack
from tests.workplace import PROJECT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    unpack(folder)
    return folder


def judgement(document: dict[str, Any]) -> dict[str, Any]:
    """Return what a result says, without where it lies and how long it took."""
    cases = [{key: value for key, value in case.items() if key != "seconds"} for case in document["cases"]]
    kept = ("verdict", "exit_code", "reason", "preflight", "builds", "artifacts", "simulated")
    return {"cases": cases, **{key: document[key] for key in kept}}


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_is_judged_as_it_was(recorded: Path, name: str) -> None:
    code = RUNS[name][2]
    then = json.loads((recorded / name / "result.json").read_text())
    assert (then["exit_code"], then["simulated"]) == (code, True)
    assert any(case["checks"] for case in then["cases"])
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("XB_", "DOCKER_"))
    }
    done = subprocess.run(
        [sys.executable, "-m", "xbtasks", "replay", str(recorded / name), "--json"],
        cwd=PROJECT,
        env={**environment, "XDG_STATE_HOME": str(recorded / "state"), "PATH": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    assert judgement(json.loads(done.stdout)) == judgement(then)


def test_every_case_of_a_card_is_recorded_passing_and_each_vendors_failing(recorded: Path) -> None:
    told = {
        (case["id"], case["verdict"])
        for name in RUNS
        for case in json.loads((recorded / name / "result.json").read_text())["cases"]
    }
    cards = {f"{vendor}.case{number}" for vendor in ("ascend", "nvidia") for number in (2, 3)}
    assert told >= {(case, "PASS") for case in cards}
    assert {case.split(".")[0] for case, verdict in told if verdict == "FAIL"} == {"ascend", "nvidia"}
