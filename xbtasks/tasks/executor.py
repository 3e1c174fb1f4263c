"""Runs the tasks of a command line: all of them, and the worst exit code wins.

Invoke stops at the first ``Exit``, even one with code 0, and ends 1 for anything uncaught. Here a task
reports its exit code instead, and the one ``Exit`` is raised after the last. Stock ``inv`` takes no
executor from a collection, so the method itself is replaced.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from invoke.config import Config
from invoke.exceptions import Exit
from invoke.executor import Executor

from xbtasks import streams
from xbtasks.errors import ExitCode
from xbtasks.interrupts import raised

__all__ = ["install", "report_exit", "user_file"]

_execute: Final = Executor.execute
_codes: list[ExitCode] = []
_user_file: list[str] = []


def install() -> None:
    """Make Invoke run tasks as this module says; safe to call twice."""
    # -f names a file of knobs, which xbtasks.knobs.resolve reads and checks. Invoke ignores a missing one
    # and dies of a broken one.
    Config.load_runtime = _load_nothing  # type: ignore[assignment,method-assign]
    Executor.execute = _run_all  # type: ignore[assignment,method-assign]


def report_exit(code: ExitCode) -> None:
    """Note a task's exit code; an interrupted one ends the command line at once."""
    _codes.append(code)
    if code is ExitCode.INTERRUPTED:
        raise Exit(code=code)


def user_file() -> str:
    """Return the file given with ``inv -f FILE``, or nothing."""
    return next((str(path) for path in _user_file if path), "")


def _run_all(executor: Executor, *tasks: Any) -> Any:
    _codes.clear()
    _user_file[:] = [executor.core[0].args["config"].value] if executor.core else []
    try:
        with raised():  # tasks of others have their own to end
            results = _execute(executor, *tasks)
    except KeyboardInterrupt:
        raise Exit(code=ExitCode.INTERRUPTED) from None
    from xbtasks.result import worst_exit

    if lost := streams.loss():
        print(f"error: {lost}", file=sys.stderr)
        _codes.append(lost.exit_code)
    code = ExitCode.SKIPPED if set(_codes) == {ExitCode.PASSED, ExitCode.SKIPPED} else worst_exit(_codes)
    if _codes and code:
        raise Exit(code=code)
    return results


def _load_nothing(_config: Config, merge: bool = True) -> None:  # noqa: FBT001, FBT002 - Invoke's
    del merge
