from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

from tests.workplace import PROJECT, PrivateEngine, Workplace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# What a CI engine is told and how wide a terminal is are tested where a test asks for it.
for variable in ("COLUMNS", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITLAB_CI", "LINES"):
    os.environ.pop(variable, None)
# Whoever started the tests may ignore these, and so would all that they start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
set_hypothesis_home_dir(PROJECT / ".venv/.cache/hypothesis")


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateEngine]:
    """Run a private engine for the test session; downloads come from the user's own cache, and stay there."""
    state = tmp_path_factory.mktemp("engine")
    variables = {**os.environ, "XDG_STATE_HOME": str(state)}

    def xbtasks(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "xbtasks", *arguments],
            cwd=PROJECT,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    try:
        up = xbtasks("sim.up")
        assert up.returncode == 0, up.stderr
        environment = json.loads(xbtasks("sim.status", "--json").stdout)["environment"]
        kept = {name: value for name, value in environment.items() if not name.startswith("XB_")}
        yield PrivateEngine(kept)
    finally:
        down = xbtasks("sim.down")
        assert down.returncode == 0, down.stderr


@pytest.fixture
def place(engine: PrivateEngine, tmp_path: Path) -> Workplace:
    """Return a place of this test's own on the engine of the session."""
    folder = tmp_path / "place"
    folder.mkdir()
    return Workplace(folder, engine, re.sub(r"[^a-z0-9]+", "-", tmp_path.name.lower()).strip("-"))
