"""What the forms for people say of a result in words."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from xbtasks.result import Result

__all__ = ["EXITS", "sentence"]

EXITS: Final = {
    ExitCode.PASSED: "passed",
    ExitCode.FAILED: "a check or a build failed",
    ExitCode.USAGE: "wrong usage or refused",
    ExitCode.SKIPPED: "nothing was measured",
    ExitCode.CANNOT_JUDGE: "could not judge",
    ExitCode.INTERRUPTED: "interrupted",
}
"""Exit codes in words."""
_ENDED: Final = {
    Verdict.PASS: "passed",
    Verdict.FAIL: "failed",
    Verdict.ERROR: "could not be judged",
    Verdict.SKIP: "not measured",
}


def sentence(result: Result) -> str:
    """Return how many cases ended how; a PASS without a case says what it is not."""
    counts = Counter(case.verdict for case in result.cases)
    total = len(result.cases)
    if total:
        parts = (f"{counts[each]} {word}" for each, word in _ENDED.items() if counts[each])
        return f"Of {total} case{'' if total == 1 else 's'}, {', '.join(parts)}."
    if result.command == "preflight":
        return "Only the host was looked at: no stage was judged."
    if result.builds:
        return "No case was run: this says nothing of what was built."
    return "No case was run."
