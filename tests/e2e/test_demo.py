"""The README's first command, from nothing that a simulated host leaves but its downloads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.guides import FOLLOWED, commands
from tests.markdown import read_page
from tests.workplace import PROJECT
from xbtasks.sessions import FIELD_STAGES

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.engine

# what the README and the first guide say to type first
(DEMO,) = {tuple(commands(read_page(PROJECT / page), "demo")[0]) for page in FOLLOWED["demo"]}


def xb(state: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XB_")}
    variables = {**kept, "XDG_STATE_HOME": str(state), "NO_COLOR": "1", "COLUMNS": "160", **changes}
    return subprocess.run(
        [sys.executable, PROJECT / "xb", *arguments],
        cwd=state,
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )


def test_the_demo_verifies_seven_stages_and_builds_nothing_twice(tmp_path: Path) -> None:
    try:
        # no knob of the user's points it elsewhere
        first = xb(tmp_path, *DEMO[1:], "--json=first.json", XB_HOST="nobody@nowhere.invalid")
        assert first.returncode == 0, first.stderr
        assert "SIMULATED" in first.stdout
        assert "Next:" in first.stdout
        document = json.loads((tmp_path / "first.json").read_text())
        assert document["simulated"] is True
        assert [(case["stage"], case["verdict"]) for case in document["cases"]] == [
            (stage, "PASS") for stage in FIELD_STAGES
        ]
        assert {build["outcome"] for build in document["builds"]} == {"built"}
        again = xb(tmp_path, "demo", "--cases", "1", "--json")
        assert again.returncode == 0, again.stderr
        assert "SIMULATED" in again.stderr
        outcomes = {build["outcome"] for build in json.loads(again.stdout)["builds"]}
        assert outcomes == {"up to date"}
        wrong = xb(tmp_path, "demo", "--cases", "4")
        assert (wrong.returncode, "--cases '4'" in wrong.stderr) == (2, True)
    finally:
        down = xb(tmp_path, "sim.down")
    assert down.returncode == 0, down.stderr
