"""Lists for people: stages, knobs, the simulated host."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from xbtasks.reporting.table import grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.checkout.stages import Discovery, Stage
    from xbtasks.knobs.settings import KnobRow
    from xbtasks.reporting.console import Console
    from xbtasks.sim.daemon import SimStatus

__all__ = ["show_knobs", "show_sim", "show_stages", "stage_documents"]


def stage_documents(discovery: Discovery, stages: Sequence[Stage], built: Sequence[str]) -> dict[str, object]:
    """Return the stages as JSON values; ``built`` says for each what the host has of it."""
    from xbtasks.checkout.stages import input_digest

    return {
        "schema": 1,
        "repo": str(discovery.repo),
        "dockerfile": discovery.dockerfile,
        "stages": [
            {
                "name": stage.name,
                "backend": stage.backend.name,
                "suffix": stage.suffix,
                "line": stage.line,
                "base_images": list(stage.base_images),
                "pin": stage.pin,
                "pins": dict(stage.pins),
                "platforms": [str(platform) for platform in stage.platforms],
                "inputs": [{"path": each.path, "kind": each.kind} for each in stage.inputs],
                "missing": [each.path for each in stage.missing],
                "digests": {
                    str(platform): input_digest(stage, platform, discovery.repo)
                    for platform in stage.platforms
                },
                "built": state,
            }
            for stage, state in zip(stages, built, strict=True)
        ],
        "others": list(discovery.others),
    }


def show_stages(
    discovery: Discovery, stages: Sequence[Stage], built: Sequence[str], console: Console
) -> None:
    """Print a line for each stage, and what is wrong with its inputs."""
    from xbtasks.checkout.stages import input_digest

    rows = []
    for stage, state in zip(stages, built, strict=True):
        digest = input_digest(stage, stage.platforms[0], discovery.repo)[:12] if stage.platforms else ""
        platforms = ", ".join(platform.arch for platform in stage.platforms) or "none"
        pin, inputs = (stage.pin or "none")[:12], str(len(stage.inputs))
        rows.append((stage.name, pin, platforms, inputs, digest, state, stage.base_image))
    console.say(grid(["STAGE", "PIN", "PLATFORMS", "INPUTS", "DIGEST", "BUILT", "BASE IMAGE"], rows))
    for stage in stages:
        for each in stage.missing:
            console.say(f"missing: {stage.name} needs {each.path}, which the checkout doesn't have")
    if discovery.others:
        console.say(f"no backend here knows: {', '.join(discovery.others)}")
    if not stages:
        console.say(f"no builder stage in {discovery.repo / discovery.dockerfile}")


def show_knobs(rows: Sequence[KnobRow], console: Console) -> None:
    """Print every knob."""
    cells = ((row.env, row.flag, row.value, row.origin, row.accepts) for row in rows)
    console.say(grid(["VARIABLE", "FLAG", "VALUE", "FROM", "ACCEPTS"], cells))


def show_sim(status: SimStatus, console: Console, *, env: bool) -> None:
    """Print how the simulated host stands, or with ``env`` the lines for a shell that point at it."""
    if env:
        for name, value in status.environment().items():
            console.say(f"export {name}={shlex.quote(value)}")
    elif status.running:
        console.say(f"running: engine {status.engine_version}, pid {status.pid} (SIMULATED)")
        console.say(f"  socket {status.socket}")
        console.say(f"  sample checkout {status.repo}")
        console.say(f"  log {status.log}")
    else:
        console.say("not running; `inv sim.up` starts it")
