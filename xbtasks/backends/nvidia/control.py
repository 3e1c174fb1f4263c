"""The run without limits, which shows that the limits are what is measured.

Without it a total may be small for another reason, and a refusal may be the card's own. Where it doesn't show
the card as it is, nothing can be judged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from xbtasks.backends.nvidia import judging, questions
from xbtasks.backends.nvidia.contract import LIBRARY, MIB
from xbtasks.backends.nvidia.probe.operations import Family
from xbtasks.backends.nvidia.rows import size_text
from xbtasks.backends.nvidia.smi_memory import parse_memory
from xbtasks.checks import Status
from xbtasks.hardware import Unjudged
from xbtasks.hostprobe import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.backends.nvidia.answers import Answer
    from xbtasks.backends.nvidia.probe.report import Event
    from xbtasks.backends.nvidia.rig import Rig
    from xbtasks.backends.nvidia.rows import Rows
    from xbtasks.backends.nvidia.smi import Gpu
    from xbtasks.backends.nvidia.smi_memory import SmiMemory
    from xbtasks.rig import Outcome

__all__ = ["control_event", "inconclusive", "judge_control", "judge_reachable"]


def judge_reachable(rows: Rows, rig: Rig, bare: Outcome, cards: Sequence[Gpu]) -> SmiMemory:
    """A container sees exactly the cards that it was given; returns what its nvidia-smi shows.

    Raises:
        Unjudged: it doesn't.
    """
    shown = parse_memory(bare.stdout)
    asked = {gpu.uuid.casefold() for gpu in cards}
    seen = {card.uuid.casefold() for card in shown.cards}
    names = ", ".join(card.uuid for card in shown.cards)
    names = names or one_line(bare.stdout or bare.stderr) or "nothing"
    if bare.exit_status != 0 or seen != asked:
        observed = names if bare.exit_status == 0 else f"exit status {bare.exit_status}: {names}"
        detail = f"a container with {rig.access} doesn't see what it was given"
        rows.failed("reachable", detail, ", ".join(sorted(asked)), observed)
        raise Unjudged(f"the engine doesn't bring the GPU into a container: {observed}")
    rows.passed("reachable", f"{rig.access} brings {names} into a container, and nothing else")
    return shown


def control_event(control: Answer, family: Family, *, looked_up: bool = False) -> Event | None:
    """Return how taking memory in that way went without limits; ``looked_up``: by cuGetProcAddress."""
    families = (Family.ALLOC, *questions.FAMILIES)
    place = families.index(family) + (len(families) if looked_up else 0)
    return control.event("control", "take", place)


def judge_control(rows: Rows, control: Answer, card: Gpu, above: int) -> int:
    """Without the preload the card is seen as it is, and ``above`` bytes are granted.

    Returns what a context takes of the card, in bytes.

    Raises:
        Unjudged: that isn't so.
    """
    if control.trouble:
        inconclusive(rows, f"without the preload the probe fails: {control.trouble}")
    mapped, init = control.event("control", "maps"), control.event("control", "init")
    before, nvml = (control.event("control", "nvml", place) for place in range(2))
    info, granted = control.event("control", "info"), control_event(control, Family.ALLOC)
    if mapped is None or mapped.mapped:
        inconclusive(rows, f"the workload image preloads {LIBRARY} by itself")
    if init is None or not init.ok:
        inconclusive(rows, f"CUDA doesn't start without the preload: {_why(init)}")
    if [device.uuid.casefold() for device in init.devices] != [card.uuid.casefold()]:
        seen = ", ".join(device.uuid for device in init.devices) or "none"
        inconclusive(rows, f"CUDA lists other devices than the GPU that was given: {seen}")
    one = before.card(card.uuid) if before else None
    other = nvml.card(card.uuid) if nvml else None
    if one is None or other is None or info is None or info.dlsym is None:
        inconclusive(rows, f"without the preload NVML doesn't list the GPU: {_why(nvml)}")
    if other.v1.total // MIB != card.memory_mib:
        there = f"the host {card.memory_mib} MiB"
        inconclusive(rows, f"without the preload NVML shows {size_text(other.v1.total)}, {there}")
    if granted is None or not granted.ok:
        said = judging.result_text(granted)
        hint = "a lower --mem leaves the card room for it, or another card"
        inconclusive(rows, f"without the preload {size_text(above)} are not granted: {said}", hint)
    for family in questions.FAMILIES:
        own, looked_up = control_event(control, family), control_event(control, family, looked_up=True)
        if judging.unsupported(own):
            continue
        if own is None or not own.ok:
            inconclusive(rows, f"without the preload {size_text(above)} are not granted by {family.function}")
        if looked_up is None or not looked_up.ok:
            said = judging.result_text(looked_up)
            inconclusive(rows, f"without the preload cuGetProcAddress has no {family.function}: {said}")
    pair = [control.event(name, "take") for name in ("pair-a", "pair-b")]
    if not all(event is not None and event.ok for event in pair):
        said = ", ".join(judging.result_text(event) for event in pair)
        inconclusive(rows, f"without the preload two processes don't get memory at a time: {said}")
    rows.passed(
        "control",
        f"without the preload NVML shows {card.memory_mib} MiB; {size_text(above)} are granted in every way",
    )
    context = other.v1.used - one.v1.used
    return context if context > 0 else info.dlsym.total - info.dlsym.free


def _why(event: Event | None) -> str:
    if event is None:
        return "not reached"
    return event.why or judging.result_text(event)


def inconclusive(rows: Rows, why: str, hint: str = "") -> NoReturn:
    """Say why the control shows nothing.

    Raises:
        Unjudged: always.
    """
    rows.note("control", Status.WARN, why)
    raise Unjudged(why, hint=hint)
