"""The project's own checks."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING

from xbtasks.errors import ExitCode, UsageError
from xbtasks.source import SOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["run_tests", "side_by_side"]


_MOST = 4
"""Each process of pytest has a simulated host of its own."""


def side_by_side(words: Sequence[str]) -> tuple[str, ...]:
    """Return the options that let pytest run files side by side, unless ``words`` say how many."""
    if any(word.startswith(("-n", "--numprocesses", "--pdb")) for word in words):
        return ()
    # in their order: the end-to-end tests, which take longest, first
    count = min(os.cpu_count() or 1, _MOST)
    return ("-n", str(count), "--dist", "loadfile", "--no-loadscope-reorder")


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
    done = subprocess.run(
        [str(python), "-m", "pytest", *side_by_side(words), *words], check=False, cwd=SOURCE
    )
    return ExitCode.PASSED if done.returncode == 0 else ExitCode.FAILED
