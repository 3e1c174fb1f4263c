"""Which stages, cases and hosts: comma lists of shell patterns; one that fits nothing is an error."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from xbtasks.errors import UsageError
from xbtasks.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["chosen_cases", "chosen_names"]


def chosen_names(flag: str, text: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``names``, in their order, that fit a pattern of ``text``; all for an empty text.

    Raises:
        UsageError: a pattern fits none; the nearest names are given.
    """
    if not text:
        return tuple(names)
    patterns = [word.strip() for word in text.split(",")]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = nearest(pattern.replace("*", ""), names)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(names) or 'none'}"
            raise UsageError(f"{flag}: nothing is called {pattern!a}", hint=hint)
    return tuple(name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns))


def chosen_cases(text: str, known: Sequence[int]) -> tuple[int, ...]:
    """Return the case numbers that fit a pattern of ``text`` (``1,2``, ``[23]``); all for an empty one.

    Raises:
        UsageError: a pattern fits none.
    """
    names = [str(number) for number in known]
    return tuple(int(name) for name in chosen_names("--cases", text, names))
