"""All variants, in the order in which they are run."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError
from xbtasks.sim.mutants import ascend, builds, good, hosts, nvidia, nvidia_memory

if TYPE_CHECKING:
    from xbtasks.sim.mutants.model import Variant

__all__ = ["VARIANTS", "chosen"]

VARIANTS: Final = (
    *nvidia.MUTANTS,
    *nvidia_memory.MUTANTS,
    *ascend.MUTANTS,
    *builds.MUTANTS,
    *hosts.MUTANTS,
    *good.GOOD,
)
"""All variants, broken and good, in the order in which they are tried."""


def chosen(pattern: str) -> tuple[Variant, ...]:
    """Return the variants whose names fit ``pattern``, a shell pattern or several with commas; all for none.

    Raises:
        UsageError: none does.
    """
    patterns = [word for word in pattern.split(",") if word] or ["*"]
    found = tuple(v for v in VARIANTS if any(fnmatchcase(v.name, each) for each in patterns))
    if not found:
        raise UsageError(f"no variant is called {pattern}", hint="`inv sim.mutants --list` names them")
    return found
