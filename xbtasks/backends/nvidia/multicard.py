"""Rows about several cards in one container. Nothing is asked here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends.nvidia import judging
from xbtasks.backends.nvidia.contract import LIBRARY, MIB
from xbtasks.backends.nvidia.control import inconclusive
from xbtasks.backends.nvidia.questions import CROSSING
from xbtasks.backends.nvidia.rows import size_text
from xbtasks.backends.nvidia.smi_memory import parse_memory
from xbtasks.hardware import Unfit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.backends.nvidia.answers import Answer
    from xbtasks.backends.nvidia.contract import Limits
    from xbtasks.backends.nvidia.probe.report import Event
    from xbtasks.backends.nvidia.rows import Rows
    from xbtasks.backends.nvidia.smi import Gpu
    from xbtasks.backends.nvidia.smi_memory import SmiMemory
    from xbtasks.rig import Outcome

__all__ = [
    "LEAST_ROOM_MIB",
    "judge_cards",
    "judge_contexts",
    "judge_control",
    "judge_isolated",
    "judge_visible",
    "require_room",
]

LEAST_ROOM_MIB: Final = 128
"""What a limit must leave beside a context."""


def judge_control(rows: Rows, control: Answer, cards: Sequence[Gpu], above: Sequence[int]) -> tuple[int, ...]:
    """Without the preload each card is seen as it is, and so many bytes of it are granted.

    Returns what a context takes of each card, in bytes.

    Raises:
        Unjudged: that isn't so.
    """
    if control.trouble:
        inconclusive(rows, f"without the preload the probe fails: {control.trouble}")
    mapped, init = control.event("look", "maps"), control.event("look", "init")
    if mapped is None or mapped.mapped:
        inconclusive(rows, f"the workload image preloads {LIBRARY} by itself")
    uuids = [card.uuid.casefold() for card in cards]
    listed = [device.uuid.casefold() for device in init.devices] if init else []
    if listed != uuids:
        inconclusive(
            rows, f"CUDA lists {', '.join(listed) or 'no device'} where {', '.join(uuids)} were given"
        )
    contexts = []
    for place, (card, size) in enumerate(zip(cards, above, strict=True)):
        before, after = (control.event(f"card-{place}", "nvml", turn) for turn in range(2))
        granted, info = control.event(f"card-{place}", "take"), control.event(f"card-{place}", "info")
        one = before.card(card.uuid) if before else None
        other = after.card(card.uuid) if after else None
        if one is None or other is None or info is None or info.dlsym is None:
            inconclusive(rows, f"without the preload NVML doesn't list GPU {card.index}")
        if other.v1.total // MIB != card.memory_mib:
            there = f"the host {card.memory_mib} MiB"
            inconclusive(rows, f"without the preload NVML shows {size_text(other.v1.total)}, {there}")
        if granted is None or not granted.ok:
            said = judging.result_text(granted)
            hint = "a lower --mem leaves the card room for it"
            inconclusive(
                rows, f"GPU {card.index}: {size_text(size)} are not granted without limits: {said}", hint
            )
        context = other.v1.used - one.v1.used
        contexts.append(context if context > 0 else info.dlsym.total - info.dlsym.free)
        rows.of(f"GPU {card.index}").passed(
            "control", f"without the preload NVML shows {card.memory_mib} MiB; {size_text(size)} are granted"
        )
    return tuple(contexts)


def require_room(limits: Limits, contexts: Sequence[int]) -> None:
    """Return when each limit leaves room beside a context.

    Raises:
        Unfit: one doesn't.
    """
    lowest = min(limits.memory_mib)
    for mib, context in zip(limits.memory_mib, contexts, strict=True):
        least = context // MIB + 2 * LEAST_ROOM_MIB
        if mib < least:
            raise Unfit(
                f"{mib} MiB leave no room: a context alone takes {context // MIB} MiB",
                hint=f"--mem {-(-least * lowest // mib)} or more",
            )


def judge_visible(rows: Rows, answer: Answer, smi: Outcome, cards: Sequence[Gpu]) -> None:
    """Under the preload nvidia-smi, NVML and CUDA show exactly the cards that were asked for."""
    init, nvml = answer.event("look", "init"), answer.event("look", "nvml")
    if init is None or nvml is None:
        return
    asked = sorted(card.uuid.casefold() for card in cards)
    views = {
        "nvidia-smi": [card.uuid for card in parse_memory(smi.stdout).cards],
        "NVML": [card.uuid for card in nvml.cards],
        "CUDA": [device.uuid for device in init.devices],
    }
    wrong = {
        name: uuids for name, uuids in views.items() if sorted(uuid.casefold() for uuid in uuids) != asked
    }
    rows.require(
        "visible",
        "the cards that the container sees",
        ", ".join(asked),
        "; ".join(f"{name}: {', '.join(uuids) or 'none'}" for name, uuids in wrong.items()),
        holds=not wrong,
        good=f"nvidia-smi, NVML and CUDA see exactly the {len(cards)} GPUs that were asked for",
    )


def judge_contexts(
    rows: Rows, answer: Answer, cards: Sequence[Gpu], limits: Limits, contexts: Sequence[int]
) -> bool:
    """A context on each card counts against that card's limit; returns whether that could be measured."""
    measured = True
    for place, (card, mib) in enumerate(zip(cards, limits.memory_mib, strict=True)):
        own, info = rows.of(f"GPU {card.index}"), answer.event(f"card-{place}", "info")
        measured &= judging.judge_context(own, info, answer.log, mib * MIB, contexts[place])
    return measured


def judge_cards(
    rows: Rows,
    answer: Answer,
    smi: Outcome,
    cards: Sequence[Gpu],
    limits: Limits,
    known: SmiMemory,
    control: Answer,
) -> None:
    """Each card tells its own limit, and is held to it; a row for every card, whatever was reached."""
    unlimited = control.event("look", "nvml")
    shown = parse_memory(smi.stdout)
    init, nvml = answer.event("look", "init"), answer.event("look", "nvml")
    for place, (card, mib) in enumerate(zip(cards, limits.memory_mib, strict=True)):
        own = rows.of(f"GPU {card.index}")
        judging.judge_smi(own, "smi-total", shown, known.foreign, card.uuid, mib)
        listed = nvml.card(card.uuid) if nvml else None
        without = unlimited.card(card.uuid) if unlimited else None
        has_v2 = without is None or without.v2.rc == 0
        judging.judge_nvml(own, listed, mib * MIB, has_v2=has_v2)
        device = init.device(card.uuid) if init else None
        process = answer.process(f"card-{place}")
        info, told = process.event("info") if process else None, control.event(f"card-{place}", "info")
        judging.judge_totals(own, info, device, mib * MIB, control=told)
        judging.judge_memory(own, process)


def judge_isolated(
    rows: Rows, answer: Answer, cards: Sequence[Gpu], limits: Limits, contexts: Sequence[int]
) -> None:
    """A card that is full takes nothing from another, and is the only one that NVML says to be in use."""
    process = answer.process("together")
    before = process.event("nvml") if process else None
    for place, card in enumerate(cards):
        own = rows.of(f"GPU {card.index}")
        marked = process.event("mark", place) if process else None
        fill, crossing = (process.event("take", 2 * place + turn) if process else None for turn in range(2))
        after = process.event("nvml", place + 1) if process else None
        if before is None or marked is None or fill is None or crossing is None or after is None:
            own.failed("isolated", "a card that is filled beside the others", "an answer", "not reached")
            return
        why = _mixed_up(cards, place, marked, fill, crossing, (before, after), limits, contexts)
        own.require(
            "isolated",
            "a card that is filled beside the others",
            "its own limit, and NVML's use of no other card",
            why,
            holds=not why,
            good=f"beside {place} full one(s) {size_text(fill.size)} are granted and no more;"
            " NVML counts them on no other card",
        )
        before = after


def _mixed_up(
    cards: Sequence[Gpu],
    place: int,
    marked: Event,
    fill: Event,
    crossing: Event,
    nvml: tuple[Event, Event],
    limits: Limits,
    contexts: Sequence[int],
) -> str:
    """Return what of a card's limit or use isn't its own, or an empty text."""
    limit = limits.memory_mib[place] * MIB
    if not marked.ok or not limit - 2 * contexts[place] - 256 * MIB <= marked.free <= limit:
        return f"{size_text(marked.free)} free before anything was taken of it"
    if not fill.ok:
        return f"{size_text(fill.size)} below the limit: {judging.result_text(fill)}"
    if crossing.rc != judging.OUT_OF_MEMORY:
        return f"{size_text(CROSSING)} past the limit: {judging.result_text(crossing)}"
    for other, card in enumerate(cards):
        one, two = (event.card(card.uuid) for event in nvml)
        if one is None or two is None:
            return f"NVML doesn't list GPU {card.index}"
        grown = two.v1.used - one.v1.used
        if other == place and grown < fill.size:
            return f"NVML's use of GPU {card.index} grew by {size_text(grown)} of {size_text(fill.size)}"
        if other != place and grown > MIB:
            return f"NVML's use of GPU {card.index} grew by {size_text(grown)}"
    return ""
