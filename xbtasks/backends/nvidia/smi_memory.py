"""``nvidia-smi`` in a container: each card's memory, from stdout alone.

Layout: nvidia-smi(1), "Selective query options". HAMi-core writes lines of its own on stderr whenever
nvidia-smi ends; one that writes them on stdout spoils what programs read there.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import Final

__all__ = ["COMMAND", "SmiCard", "SmiMemory", "parse_memory"]

_FIELDS: Final = ("index", "uuid", "memory.total", "memory.used", "memory.free")
COMMAND: Final = ("nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")
"""What asks for that which :func:`parse_memory` reads."""


@dataclass(frozen=True, slots=True)
class SmiCard:
    """A card as the container's nvidia-smi shows it. Sizes in MiB; None where ``text`` has no number."""

    index: int
    uuid: str
    total: int | None
    used: int | None
    free: int | None
    text: str


@dataclass(frozen=True, slots=True)
class SmiMemory:
    """The cards in the order they stand, and the lines that are no card's."""

    cards: tuple[SmiCard, ...]
    foreign: tuple[str, ...]

    def card(self, uuid: str) -> SmiCard | None:
        """Return the one card of that UUID, or None."""
        found = [card for card in self.cards if card.uuid.casefold() == uuid.casefold()]
        return found[0] if len(found) == 1 else None


def parse_memory(stdout: str) -> SmiMemory:
    """Return what nvidia-smi printed."""
    cards: list[SmiCard] = []
    foreign: list[str] = []
    for line in stdout.splitlines():
        card = _card(line)
        if card is not None:
            cards.append(card)
        elif line.strip():
            foreign.append(line.strip())
    return SmiMemory(tuple(cards), tuple(foreign))


def _card(line: str) -> SmiCard | None:
    try:
        row = next(csv.reader([line], skipinitialspace=True, strict=True), [])
    except csv.Error:
        return None
    if len(row) != len(_FIELDS):
        return None
    index, uuid, total, used, free = (field.strip() for field in row)
    if _number(index) is None or not uuid.startswith("GPU-"):
        return None
    return SmiCard(int(index), uuid, _number(total), _number(used), _number(free), line.strip())


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else None
