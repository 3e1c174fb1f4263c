"""The project's own checks."""

from __future__ import annotations

import shlex
import subprocess

from xbtasks.errors import ExitCode, UsageError
from xbtasks.source import SOURCE

__all__ = ["run_tests"]


def run_tests(options: str) -> ExitCode:
    """Run pytest with ``options``, a line of words; returns whether all passed.

    Raises:
        UsageError: this is an installed package without its tests, or ``options`` has an open quote.
    """
    from xbtasks.bootstrap import ensure

    if SOURCE is None:
        raise UsageError("the tests are not here", hint="they come with the source checkout")
    try:
        words = shlex.split(options)
    except ValueError as error:
        raise UsageError(f"--options {options!r}: {error}") from error
    python = ensure("dev")
    done = subprocess.run([str(python), "-m", "pytest", *words], check=False, cwd=SOURCE)
    return ExitCode.PASSED if done.returncode == 0 else ExitCode.FAILED
