"""NVIDIA: HAMi-core's libvgpu.so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.knobs.table import Group
from xbtasks.tasks.command import BUSY_OK, NO_THROTTLE, OUTPUTS, REDACT, STAGE, Call, command

if TYPE_CHECKING:
    from xbtasks.errors import ExitCode

__all__ = ["case1", "case2", "case3"]

_GROUPS = (Group.HOST, Group.BUILD, Group.NVIDIA)


@command(STAGE, REDACT, *OUTPUTS, groups=_GROUPS)
def case1(call: Call) -> ExitCode:
    """Build artifacts + linking (needs no GPU)."""
    from xbtasks.tasks.running import run_case

    return run_case(call, "nvidia", 1)


@command(STAGE, NO_THROTTLE, BUSY_OK, REDACT, *OUTPUTS, groups=_GROUPS)
def case2(call: Call) -> ExitCode:
    """Single-card inject + nvidia-smi (needs 1 GPU)."""
    from xbtasks.tasks.running import run_case

    return run_case(call, "nvidia", 2)


@command(STAGE, BUSY_OK, REDACT, *OUTPUTS, groups=_GROUPS)
def case3(call: Call) -> ExitCode:
    """Multi-card per-device limits (needs 2 GPUs)."""
    from xbtasks.tasks.running import run_case

    return run_case(call, "nvidia", 3)
