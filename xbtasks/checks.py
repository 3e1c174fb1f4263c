"""Checks, cases and verdicts: the one place where rows become a verdict.

A case declares its required checks beforehand. Its verdict is PASS only if every required check
has a PASS row and no row FAILs; a required check that was not reached becomes a FAIL row that says
so. Text never decides: only typed rows do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["CaseReport", "Check", "Status", "Verdict", "exit_code_of", "judge"]


class Status(StrEnum):
    """Status of one check. WARN, SKIP and INFO never change a verdict."""

    PASS = "PASS"  # noqa: S105 - a status, not a secret
    FAIL = "FAIL"
    WARN = "WARN"
    SKIP = "SKIP"
    INFO = "INFO"


class Verdict(StrEnum):
    """Verdict of a case or of a whole run."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a secret
    FAIL = "FAIL"
    SKIP = "SKIP"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Check:
    """One row.

    ``id`` is stable (``nvidia.case1.mode``), ``detail`` is what a person reads; a FAIL also gives
    ``expected`` and ``observed``. ``host`` is whom a row of preflight is about, empty where the whole run had
    one; a case's rows are about the case's.
    """

    id: str
    status: Status
    detail: str = ""
    expected: str = ""
    observed: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class CaseReport:
    """A case that was judged, skipped or could not be judged.

    ``seconds`` is what its steps took; ``exit_code`` tells a refusal from what could not be judged. ``host``
    is empty where the whole run had one.
    """

    id: str
    title: str
    stage: str
    verdict: Verdict
    reason: str
    seconds: float
    exit_code: ExitCode
    checks: tuple[Check, ...] = field(default=())
    host: str = ""

    @property
    def number(self) -> int:
        """The case's number among those of its backend."""
        return int(self.id.rpartition("case")[2])


def judge(required: Sequence[str], checks: Iterable[Check]) -> tuple[Verdict, tuple[Check, ...]]:
    """Return the verdict over ``checks`` and the rows, with a FAIL row for each required check not reached.

    A required check may have several rows (one per artifact); each must PASS. A required check whose
    only rows are WARN, SKIP or INFO was not shown to hold, so it FAILs as not reached.

    Raises:
        ValueError: ``required`` is empty, which would pass anything.
    """
    if not required:
        raise ValueError("a case without required checks can't be judged")
    rows = tuple(checks)
    passed = {row.id for row in rows if row.status is Status.PASS}
    failed = {row.id for row in rows if row.status is Status.FAIL}
    missing = tuple(
        Check(check_id, Status.FAIL, "not reached: this required check has no PASS row", "a PASS row", "none")
        for check_id in dict.fromkeys(required)
        if check_id not in passed | failed
    )
    verdict = Verdict.FAIL if failed or missing else Verdict.PASS
    return verdict, rows + missing


_EXIT = {
    Verdict.PASS: ExitCode.PASSED,
    Verdict.FAIL: ExitCode.FAILED,
    Verdict.SKIP: ExitCode.SKIPPED,
    Verdict.ERROR: ExitCode.CANNOT_JUDGE,
}


def exit_code_of(verdict: Verdict) -> ExitCode:
    """Return the exit code that stands for ``verdict``."""
    return _EXIT[verdict]
