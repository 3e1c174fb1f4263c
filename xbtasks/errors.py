"""What can go wrong, each with its exit code.

::

    XbError
    ├── UsageError        2   wrong argument, configuration or input
    ├── Refused           2   would break a rule: no confirmation, a foreign file, a busy card
    ├── BuildFailed       1   a build step of the stage itself ended non-zero
    ├── CannotJudge       4   nothing wrong was shown, and nothing right either
    │   ├── HostUnreachable   the host can't be reached or its shell can't be used
    │   ├── EngineDown        the container engine doesn't answer
    │   ├── DeadlineExceeded  a step outlived its deadline
    │   └── LostReply         a reply is short, corrupt or missing
    └── Interrupted     130   Ctrl-C or SIGTERM

A message is one line that says what happened and where; the hint says what to do next.
"""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import Final

__all__ = [
    "BuildFailed",
    "CannotJudge",
    "DeadlineExceeded",
    "EngineDown",
    "ExitCode",
    "HostUnreachable",
    "Interrupted",
    "LostReply",
    "Refused",
    "UsageError",
    "XbError",
    "disk_error",
    "reason_of",
]


class ExitCode(IntEnum):
    """Exit codes of every command (SPEC 1)."""

    PASSED = 0
    FAILED = 1
    USAGE = 2
    SKIPPED = 3
    CANNOT_JUDGE = 4
    INTERRUPTED = 130


class XbError(Exception):
    """An error that a user can act on: one line, an optional hint, an exit code."""

    exit_code: ExitCode = ExitCode.CANNOT_JUDGE
    seconds: float = 0.0
    """How long the step took that ended so, if it was one."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(XbError):
    """A wrong argument, knob, file or stage name."""

    exit_code = ExitCode.USAGE


class Refused(XbError):
    """Something xbtasks could do but will not without being told to."""

    exit_code = ExitCode.USAGE


class BuildFailed(XbError):
    """A build step of the stage ended non-zero: the stage is broken."""

    exit_code = ExitCode.FAILED


class CannotJudge(XbError):
    """No verdict is possible: nothing was shown to be right or wrong."""


class HostUnreachable(CannotJudge):
    """The host can't be reached, or its shell can't be used."""


class EngineDown(CannotJudge):
    """The container engine is absent or doesn't answer."""


class DeadlineExceeded(CannotJudge):
    """A step outlived its deadline."""


class LostReply(CannotJudge):
    """A reply is short, corrupt or missing."""


class Interrupted(XbError):
    """Ctrl-C or SIGTERM."""

    exit_code = ExitCode.INTERRUPTED


_TROUBLE: Final = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
)
"""What no other name would help against."""


def reason_of(error: BaseException) -> str:
    """Return why something failed, in the system's own words without Python's number; else its text."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def disk_error(problem: str, error: OSError, *, hint: str = "") -> UsageError | CannotJudge:
    """Return the error for a file or folder that can't be used, ``problem`` and why.

    A full or broken disk is trouble (4); all else, such as a missing permission, is a wrong name (2).
    """
    kind = CannotJudge if error.errno in _TROUBLE else UsageError
    return kind(f"{problem}: {reason_of(error)}", hint=hint)
