"""Cards as a user names them: by index, by UUID, or left to xbtasks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from xbtasks.knobs.values import BadValue, parse_integer

__all__ = ["Auto", "GpuId", "GpuIndex", "GpuUuid", "parse_gpu", "parse_gpus"]

MAX_GPUS: Final = 16  # CUDA_DEVICE_MEMORY_LIMIT_<i> exists for i = 0..15
MAX_INDEX: Final = 255
MAX_LIST: Final = 4096  # characters


class Auto(Enum):
    """Cards are picked among the idle ones."""

    AUTO = "auto"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class GpuIndex:
    """A card by its index on the host (nvidia-smi's order), which is no container slot."""

    index: int

    def __str__(self) -> str:
        return str(self.index)


@dataclass(frozen=True)
class GpuUuid:
    """A card by its UUID, as ``GPU-`` and lower-case hexadecimal digits."""

    uuid: str

    def __str__(self) -> str:
        return self.uuid


GpuId: TypeAlias = GpuIndex | GpuUuid
"""A card, as its user names it."""


def parse_gpu(text: str) -> GpuId | Auto:
    """Return one card: index, UUID or ``auto``."""
    if text == "auto":
        return Auto.AUTO
    hint = "one card here; several are given with --gpus" if "," in text else ""
    return _gpu_id(text, text, hint)


def parse_gpus(text: str) -> tuple[GpuId, ...] | Auto:
    """Return distinct cards from a comma list, blanks around items allowed, or ``auto``.

    An index and a UUID may still name one card: only the host can tell.
    """
    if text == "auto":
        return Auto.AUTO
    items = [item.strip(" \t") for item in text.split(",")] if len(text) <= MAX_LIST else []
    if not 1 <= len(items) <= MAX_GPUS:
        raise BadValue(text, f"a list of 1 to {MAX_GPUS} cards")
    cards = tuple(_gpu_id(item, text, "an empty item" if not item else "") for item in items)
    twice = next((card for place, card in enumerate(cards) if card in cards[:place]), None)
    if twice is not None:
        raise BadValue(text, "a list of distinct cards", hint=f"{twice} is named twice")
    return cards


def _gpu_id(item: str, text: str, hint: str) -> GpuId:
    prefix, dash, rest = item.partition("-")
    if dash and prefix.upper() == "GPU" and _is_uuid(rest):
        return GpuUuid(f"GPU-{rest.lower()}")
    if item.isascii() and item.isdigit():
        return GpuIndex(parse_integer(item, 0, MAX_INDEX, wanted="a card index"))
    if not hint:
        hint = _gpu_hint(item)
    raise BadValue(
        text, "a card index or GPU UUID" if item == text else "a list of card indices or GPU UUIDs", hint=hint
    )


def _gpu_hint(item: str) -> str:
    if item[:4].upper() == "MIG-":
        return "MIG slices are partitioned already: name the whole card"
    if _is_uuid(item):
        return f"write GPU-{item.lower()}"
    if item.lower() in ("all", "auto"):
        return "auto stands alone and in lower case; for all cards list them"
    return ""


def _is_uuid(text: str) -> bool:
    parts = text.split("-")
    digits = set("0123456789abcdefABCDEF")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and all(
        digits.issuperset(part) for part in parts
    )
