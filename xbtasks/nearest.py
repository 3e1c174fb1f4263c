"""What may have been meant by a word that nothing is called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest"]

_LEAST: Final = 0.66
_BESIDE: Final = 0.04
"""How much less like the word than the best one a name may be; beyond that it only has the same beginning."""


def nearest(word: str, known: Iterable[str], *, most: int = 3) -> tuple[str, ...]:
    """Return the few of ``known`` that ``word`` may stand for, the likeliest first; none where none is near.

    Those that end in it as a part, else those that begin with it, else those that are spelled like it.
    """
    bare = word.lower().strip("-")
    names = {name: name.lower().lstrip("-") for name in known}
    ends = [name for name, text in names.items() if bare and re.search(rf"[.-]{re.escape(bare)}$", text)]
    begins = [name for name, text in names.items() if bare and text.startswith(bare)]
    if ends or begins:
        return tuple((ends or begins)[:most])
    alike = {
        name: max(_likeness(bare, text), _likeness(bare, text.rpartition(".")[2]))
        for name, text in names.items()
    }
    best = max(alike.values(), default=0.0)
    near = [name for name, likeness in alike.items() if likeness >= max(_LEAST, best - _BESIDE)]
    return tuple(sorted(near, key=lambda name: -alike[name])[:most])


def _likeness(word: str, name: str) -> float:
    """Return how much alike two words are, 0 to 1; where they begin otherwise, they are not by much."""
    from difflib import SequenceMatcher

    ratio = SequenceMatcher(None, word, name, autojunk=False).ratio()
    return ratio if word[:1] == name[:1] else ratio - 0.1
