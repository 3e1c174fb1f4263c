"""A few mutants and good variants on every run; ``nox -s mutants`` tries all of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.workplace import PROJECT, program

if TYPE_CHECKING:
    from tests.workplace import PrivateEngine

SUBSET: Final = (
    "build-vgpu-mode-0600",
    "build-vgpu-as-needed",
    "build-vgpu-release",
    "build-vcann-no-monitor",
    "build-vcann-monitor-script",
    "build-vcann-hook-hidden",
    "nvidia-own-limit",
    "ascend-monitor-constants",
    "ascend-chunk-late",
    "driver-one",
    "good-vgpu-relr",
    "good-cann-9-950",
    "good-npu-quota",
)


def test_the_cases_fail_what_is_broken_and_pass_what_is_right(engine: PrivateEngine) -> None:
    state = Path(engine.environment["DOCKER_CONFIG"]).parents[2]
    done = subprocess.run(
        [str(program("inv")), "sim.mutants", "--only", ",".join(SUBSET), "--json"],
        cwd=PROJECT,
        env={**os.environ, "XDG_STATE_HOME": str(state)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["summary"] == "10 mutants, 10 killed, 0 survived; 3 good, 0 failed"
    assert {trial["name"] for trial in document["trials"]} == set(SUBSET)
    assert done.stderr.strip().splitlines()[-1] == document["summary"]
    assert [trial["ending"] for trial in document["trials"]].count("killed") == 10
