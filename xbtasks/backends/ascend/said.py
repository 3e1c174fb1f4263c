"""A container that has ended, read: what its stderr, its maps and the probe in it say.

What ended a container is told by its exit status; text only explains it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend.contract import LIBRARY, PRELOAD
from xbtasks.backends.ascend.log import EnpuLog, parse_log
from xbtasks.backends.ascend.report import Report, parse_report
from xbtasks.checks import Check, Status
from xbtasks.hardware import Unjudged
from xbtasks.hostprobe import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.rig import Outcome

__all__ = ["MAPS", "Said", "failed", "mapped_row", "require_probe", "tries_text", "why"]

MAPS: Final = "xbtasks-maps "
"""Leads a line of ``/proc/self/maps`` of the monitor's container."""

_CRASHED: Final = 139


@dataclass(frozen=True)
class Said:
    """How a container ended, and what it said."""

    outcome: Outcome

    @cached_property
    def log(self) -> EnpuLog:
        """Its stderr."""
        return parse_log(self.outcome.stderr)

    @cached_property
    def report(self) -> Report:
        """Its stdout, where it was the probe."""
        return parse_report(self.outcome.stdout)

    @property
    def maps(self) -> bool:
        """Whether a process in the container had the library mapped."""
        lines = self.outcome.stdout.splitlines()
        return self.report.mapped(LIBRARY) or any(
            line.startswith(MAPS) and line.endswith(f" {LIBRARY}") for line in lines
        )


def mapped_row(case: str, where: str, said: Said) -> Check:
    """Return the row that tells whether the library was mapped in a container."""
    row = f"{case}.mapped"
    ignored = said.log.why_ignored(LIBRARY)
    if said.maps and not ignored:
        return Check(row, Status.PASS, f"{where}: libvruntime.so is mapped")
    detail = f"{where}: libvruntime.so isn't preloaded"
    reason = ignored or said.log.loader or f"/proc/self/maps doesn't list it; it {said.outcome.ended}"
    return failed(row, f"{detail}: {reason}", f"{LIBRARY} in /proc/self/maps", ignored or "none")


def tries_text(tries: Sequence[Said]) -> str:
    """Return how many tries there were, for a person."""
    return "1 try" if len(tries) == 1 else f"{len(tries)} tries"


def require_probe(said: Said, *rows: Check) -> None:
    """Return when the probe came to call ACL, or the library kept it from that.

    Raises:
        Unjudged: the workload image can't run the probe.
    """
    opened = said.report.event("open")
    if opened is not None and opened.rc == 0:
        return
    if opened is not None:
        raise Unjudged(f"the workload image has no ACL for Python: {one_line(opened.why)}", *rows)
    if said.outcome.exit_status in (1, 2, 126):
        last = said.outcome.stderr.strip().rpartition("\n")[2]
        raise Unjudged(f"the probe can't run in the workload image: {one_line(last)}", *rows)


def why(said: Said) -> str:
    """Return why a container ended as it did, as far as it tells."""
    if said.log.loader:
        hint = ": not a CANN image" if "libc_sec.so" in said.log.loader else ""
        return f"{said.log.loader}{hint}"
    if said.outcome.exit_status == _CRASHED and not said.log.aicore:
        missing = all(said.log.why_ignored(path) for path in PRELOAD if path != LIBRARY)
        cause = "no libdcmi was preloaded" if missing else "libdcmi isn't preloaded, or the library is broken"
        return f"it {said.outcome.ended}: {cause}"
    errors = f": {said.log.errors[0]}" if said.log.errors else ""
    return f"it {said.outcome.ended}{errors}"


def failed(row: str, detail: str, expected: str, observed: str) -> Check:
    """Return a FAIL row."""
    return Check(row, Status.FAIL, detail, expected, observed)
