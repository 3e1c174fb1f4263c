"""What the probe can be asked, as command line words. ``main.c`` is the other side of it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Final

__all__ = [
    "INFO",
    "INIT",
    "LOOKUP",
    "NEXT",
    "NVML",
    "Family",
    "command",
    "device",
    "give",
    "maps",
    "mark",
    "of_room",
    "rate",
    "sources",
    "take",
]

INIT: Final = "init"
"""Initialise CUDA."""
INFO: Final = "info"
"""Ask CUDA for the totals of the card."""
NVML: Final = "nvml"
"""Ask NVML for the same."""
NEXT: Final = "next"
"""Let the next process begin."""
LOOKUP: Final = "lookup"
"""From here on the driver's functions are those that cuGetProcAddress gives out."""


class Family(StrEnum):
    """A way to get device memory; the value is the probe's word."""

    ALLOC = "alloc"
    GETPROC = "getproc"
    MANAGED = "managed"
    PITCH = "pitch"
    ASYNC = "async"
    POOL = "pool"
    VMM = "vmm"

    @property
    def function(self) -> str:
        """The driver's function."""
        return _FUNCTIONS[self]


_FUNCTIONS: Final = {
    Family.ALLOC: "cuMemAlloc",
    Family.GETPROC: "cuMemAlloc by cuGetProcAddress",
    Family.MANAGED: "cuMemAllocManaged",
    Family.PITCH: "cuMemAllocPitch",
    Family.ASYNC: "cuMemAllocAsync",
    Family.POOL: "cuMemAllocFromPoolAsync",
    Family.VMM: "cuMemCreate",
}


def sources() -> list[tuple[str, Path]]:
    """Return the names and places of the probe's source files."""
    folder = Path(__file__).parent
    return [(path.name, path) for path in sorted(folder.glob("*.[ch]"))]


def command(program: str, *groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command line that runs ``groups``, each a process of its own: a name, then operations."""
    words = [program, *groups[0]]
    for group in groups[1:]:
        words += ["--", *group]
    return tuple(words)


def device(ordinal: int) -> str:
    """Make the primary context of a device current."""
    return f"device:{ordinal}"


def maps(path: str) -> str:
    """Tell whether the loader has mapped that file into the process."""
    return f"maps:{path}"


def mark(most: int, otherwise: int) -> str:
    """Remember the free memory as the room; ``otherwise`` where more than ``most`` is said to be free."""
    return f"mark:{most}:{otherwise}"


def of_room(numerator: int = 1, denominator: int = 1, plus: int = 0) -> str:
    """Return a size that is measured by the room: a fraction of it, and some bytes more or less."""
    fraction = "" if numerator == denominator else f"*{numerator}/{denominator}"
    return f"room{fraction}{plus:+d}" if plus else f"room{fraction}"


def take(family: Family, slot: int, size: int | str) -> str:
    """Allocate ``size`` bytes, or as :func:`of_room` says."""
    return f"take:{family}:{slot}:{size}"


def give(slot: int) -> str:
    """Give back what a slot holds."""
    return f"give:{slot}"


def rate(blocks: int, cycles: int, warm_ms: int, measure_ms: int, *, extended: bool = False) -> str:
    """Launch grids of ``blocks`` blocks that spin for ``cycles``, and count those after the warm-up.

    ``extended``: by cuLaunchKernelEx.
    """
    return f"rate{'-ex' if extended else ''}:{blocks}:{cycles}:{warm_ms}:{measure_ms}"
