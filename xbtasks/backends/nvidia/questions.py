"""What the containers of a case are asked: groups of the probe's operations, and their sizes.

A group is a process of its own, so that what one leaves behind doesn't spoil the next. HAMi-core counts a
context against the limit, so sizes are measured by the room that is left once there is one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends.nvidia.contract import LIBRARY, MIB
from xbtasks.backends.nvidia.probe import operations as op
from xbtasks.backends.nvidia.probe.operations import Family

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ABOVE",
    "CROSSING",
    "FAMILIES",
    "LAUNCHES",
    "LOOKED_UP_LAUNCHES",
    "SLACK",
    "control_card",
    "control_group",
    "control_pair",
    "family_group",
    "look_group",
    "memory_group",
    "rate_group",
    "shared_groups",
    "together_group",
]

FAMILIES: Final = (Family.GETPROC, Family.MANAGED, Family.PITCH, Family.ASYNC, Family.POOL, Family.VMM)
"""The ways to get memory beside cuMemAlloc."""

SLACK: Final = 8 * MIB
"""How near to the limit memory is still granted."""

CROSSING: Final = 24 * MIB
"""What crosses the limit once all but the slack is taken: the limit is tight to three times the slack."""

ABOVE: Final = 64 * MIB
"""How far above all limits the control goes, which is far below what the card has."""

_BLOCKS: Final = 200_000
_CYCLES: Final = 75_000  # some 40 microseconds a block, so that a grid takes milliseconds
_WARM_MS: Final = 2_000
_MEASURE_MS: Final = 5_000
LAUNCHES: Final = (
    op.rate(_BLOCKS, _CYCLES, _WARM_MS, _MEASURE_MS),
    op.rate(_BLOCKS, _CYCLES, _WARM_MS // 4, _MEASURE_MS // 2, extended=True),
)
"""How fast kernels run, launched in both forms.

HAMi-core counts a launch by its blocks: small grids are never held back (8f3a89c, ``rate_limiter``).
"""
LOOKED_UP_LAUNCHES: Final = (
    op.rate(_BLOCKS, _CYCLES, _WARM_MS // 4, _MEASURE_MS // 2),
    op.rate(_BLOCKS, _CYCLES, _WARM_MS // 4, _MEASURE_MS // 2, extended=True),
)
"""The same, in less time, for the functions that cuGetProcAddress gives out."""


def look_group() -> tuple[str, ...]:
    """Ask in every way how much memory there is, of the first card once it has a context."""
    return ("look", op.maps(LIBRARY), op.INIT, op.device(0), op.NVML, op.INFO)


def control_group(size: int) -> tuple[str, ...]:
    """Without limits: the same questions, and ``size`` bytes in every way, which is above all limits.

    Each way is taken once by the driver's own names, and once by what cuGetProcAddress gives out.
    """
    takes = [word for family in (Family.ALLOC, *FAMILIES) for word in _take_and_give(family, size)]
    looks = (op.maps(LIBRARY), op.INIT, op.NVML, op.device(0), op.NVML, op.INFO)
    return ("control", *looks, *takes, op.LOOKUP, *takes)


def control_card(ordinal: int, size: int) -> tuple[str, ...]:
    """Without limits: one card of several, and ``size`` bytes of it."""
    name = f"card-{ordinal}"
    return (name, op.INIT, op.NVML, op.device(ordinal), op.NVML, op.INFO, *_take_and_give(Family.ALLOC, size))


def _take_and_give(family: Family, size: int) -> tuple[str, str]:
    return op.take(family, 0, size), op.give(0)


def control_pair(size: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Without limits: two processes at a time take ``size`` bytes together."""
    half = op.take(Family.ALLOC, 0, size // 2)
    return ("pair-a", op.INIT, op.device(0), half, op.NEXT), ("pair-b", op.INIT, op.device(0), half)


def memory_group(limit: int, context: int, ordinal: int = 0, name: str = "alloc") -> tuple[str, ...]:
    """Fill a card up to its limit in two parts, cross it, and take the first part again once it is free.

    ``limit`` and ``context`` are in bytes; the context's size is only used where the library's answer is
    more than the limit.
    """
    part = op.take(Family.ALLOC, 0, op.of_room(3, 4))
    return (
        *_begin(name, limit, context, ordinal),
        op.INFO,
        part,
        op.take(Family.ALLOC, 1, op.of_room(1, 4, -SLACK)),
        op.take(Family.ALLOC, 2, CROSSING),
        op.give(0),
        part,
    )


def family_group(family: Family, limit: int, context: int) -> tuple[str, ...]:
    """Take three quarters of the room, cross the limit with another half, and take the first again.

    The limit is crossed by the driver's own name and by what cuGetProcAddress gives out.
    """
    part = op.take(family, 0, op.of_room(3, 4))
    return (
        *_begin(family, limit, context),
        part,
        op.take(family, 1, op.of_room(1, 2)),
        op.LOOKUP,
        op.take(family, 2, op.of_room(1, 2)),
        op.give(0),
        part,
    )


def shared_groups(limit: int, context: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """One process takes more than half of the room; while it lives another fills the rest and crosses."""
    part = (limit - 2 * context) * 5 // 8
    first = (*_begin("shared-a", limit, context), op.take(Family.ALLOC, 0, part), op.NEXT)
    second = (
        *_begin("shared-b", limit, context),
        op.take(Family.ALLOC, 0, op.of_room(plus=-SLACK)),
        op.take(Family.ALLOC, 1, CROSSING),
    )
    return first, second


def together_group(limits: Sequence[int], contexts: Sequence[int]) -> tuple[str, ...]:
    """One process fills every card in turn and crosses each one's limit, the others being full or empty."""
    words = ["together", op.INIT, op.NVML]
    for ordinal, (limit, context) in enumerate(zip(limits, contexts, strict=True)):
        words += [
            op.device(ordinal),
            op.mark(limit, limit - context),
            op.take(Family.ALLOC, ordinal, op.of_room(plus=-SLACK)),
            op.NVML,
            op.take(Family.ALLOC, len(limits) + ordinal, CROSSING),
        ]
    return tuple(words)


def rate_group() -> tuple[str, ...]:
    """Count launches in both ways that a program has, by the driver's names and by cuGetProcAddress."""
    return ("rate", op.INIT, op.device(0), *LAUNCHES, op.LOOKUP, *LOOKED_UP_LAUNCHES)


def _begin(name: str, limit: int, context: int, ordinal: int = 0) -> tuple[str, ...]:
    return (name, op.INIT, op.device(ordinal), op.mark(limit, limit - context))
