"""`--list` for people: tasks by what they are for, in the order of a day's work."""

from __future__ import annotations

from typing import Any, Final

from invoke.program import Program

from xbtasks.typed import command

__all__ = ["GROUPS", "install"]

GROUPS: Final = (
    ("Every day", ("changed", "verify", "matrix", "build", "stages")),
    ("One case of a stage", (".case",)),
    ("Past runs", ("report.", "explain", "replay", "bundle")),
    ("The host and the settings", ("preflight", "knobs", "clean")),
    ("Without an accelerator", ("demo", "sim.")),
    ("The operator's repository", ("hooks.",)),
    ("This project itself", ("",)),
)
"""Titles, and the tasks under them: names, with a dot at the end a collection's, with one before it parts."""

_flat: Final = Program.list_flat


def install() -> None:
    """Make Invoke list tasks as this module says; safe to call twice."""
    Program.list_flat = _list  # type: ignore[method-assign,assignment]


def _list(program: Program) -> None:
    if program.list_root or program.list_depth:  # a part of them was asked for
        _flat(program)
        return
    left: dict[str, Any] = dict(program._make_pairs(program.scoped_collection))  # noqa: SLF001
    width = max(map(len, left))
    for title, members in GROUPS:
        chosen = [name for member in members for name in left if _is(name, member)]
        if chosen:
            print(f"{title}:\n")
            program.print_columns([(name.ljust(width), left.pop(name)) for name in chosen])
    print(f"{command('TASK')} --help shows its flags; a STAGE is one that `stages` lists.")


def _is(name: str, member: str) -> bool:
    if member.startswith("."):
        return member in name
    return name.startswith(member) if member.endswith(".") or not member else name == member
