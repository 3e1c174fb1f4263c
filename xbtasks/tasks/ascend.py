"""Ascend: vcann-rt's libvruntime.so and enpu-monitor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.knobs.table import Group
from xbtasks.tasks.command import BUSY_OK, OUTPUTS, REDACT, STAGE, Call, command

if TYPE_CHECKING:
    from xbtasks.errors import ExitCode

__all__ = ["case1", "case2", "case3"]

_GROUPS = (Group.HOST, Group.BUILD, Group.ASCEND)


@command(STAGE, REDACT, *OUTPUTS, groups=_GROUPS)
def case1(call: Call) -> ExitCode:
    """Build artifacts + linking (needs no NPU)."""
    from xbtasks.tasks.running import run_case

    return run_case(call, "ascend", 1)


@command(STAGE, BUSY_OK, REDACT, *OUTPUTS, groups=_GROUPS)
def case2(call: Call) -> ExitCode:
    """Inject + enpu-monitor (needs 1 NPU)."""
    from xbtasks.tasks.running import run_case

    return run_case(call, "ascend", 2)


@command(STAGE, BUSY_OK, REDACT, *OUTPUTS, groups=_GROUPS)
def case3(call: Call) -> ExitCode:
    """Memory-quota enforcement (needs 1 NPU)."""
    from xbtasks.tasks.running import run_case

    return run_case(call, "ascend", 3)
