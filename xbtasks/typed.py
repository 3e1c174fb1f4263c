"""How a command is typed by whoever started this program: ``inv``, ``xb``, ``./xb`` or a longer path.

What is kept, as evidence or in a result, names commands in one form whoever typed what: ``inv TASK …``, in
backticks. :func:`as_typed` makes them the reader's own where a person reads them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.source import SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["LAUNCHED_AS", "as_typed", "command", "note_call", "note_options", "note_task", "program"]

LAUNCHED_AS: Final = "xbtasks.typed"
"""The ``-X`` option of Python by which the launcher hands on how it was typed itself."""

_NEUTRAL: Final = re.compile(r"`inv ([a-z][^`]*)`")
_PROGRAMS: Final = ("xb", "inv", "invoke")

_tasks: dict[str, frozenset[str]] = {}
_options: list[str] = []
_flags: dict[str, str] = {}


def note_task(name: str, flags: frozenset[str]) -> None:
    """Take which flags a task has that say where it works: a command that names it gets those of the call."""
    _tasks[name] = flags


def note_options(words: Sequence[str]) -> None:
    """Take the options that stood before the task, as ``-f FILE``."""
    _options[:] = words


def note_call(flags: Mapping[str, str]) -> None:
    """Take the flags of the present call that say where it works, with their values."""
    _flags.clear()
    _flags.update(flags)


def command(line: str) -> str:
    """Return the command ``TASK …`` as it can be typed in this directory, to work where this call does.

    >>> command("build xbuild-nvidia-cuda-12")  # doctest: +SKIP
    './xb build xbuild-nvidia-cuda-12 --repo=/home/me/operator'
    """
    taken = _tasks.get(line.partition(" ")[0], frozenset())
    flags = [f"{flag}={shlex.quote(value)}" for flag, value in _flags.items() if flag in taken]
    return " ".join([program(), *map(shlex.quote, _options), line, *(f for f in flags if f not in line)])


def as_typed(text: str) -> str:
    """Return ``text`` with every command in it as :func:`command` has it; a second time changes nothing."""
    return _NEUTRAL.sub(lambda found: f"`{command(found[1])}`", text)


def program() -> str:
    """Return how this program can be typed: as it was, or by its own name where something else started it."""
    return _spelt(sys._xoptions.get(LAUNCHED_AS) or sys.argv[0])  # noqa: SLF001 - documented all the same


def _spelt(started: str | bool) -> str:  # noqa: FBT001 - what Python keeps of an option without a value
    path = Path(str(started))
    if path.name == "__main__.py" and path.parent.name == "invoke":
        return shlex.join([sys.orig_argv[0], "-m", "invoke"])
    if path.name in _PROGRAMS:
        return _short(path if os.sep in str(started) else Path.cwd() / path)
    own = SOURCE / "xb" if SOURCE else Path(sys.executable).with_name("xb")
    return _short(own) if own.exists() else shlex.join([sys.executable, "-P", "-m", "xbtasks"])


def _short(path: Path) -> str:
    """Return the shortest way to type the program at ``path``: its name, where the shell finds it by that."""
    if not path.is_absolute():
        return shlex.quote(str(path) if os.sep in str(path) else f"./{path}")
    found = shutil.which(path.name)
    if found and path.exists() and Path(found).samefile(path):
        return path.name
    return f"./{path.name}" if path.parent == Path.cwd() else shlex.quote(str(path))
