"""Rows about one card's limits, from what the containers answered. Nothing is asked here.

Contract: HAMi-core 8f3a89c and 52f33fc7: totals are the limit to the byte, a context counts against it,
what would cross it is refused with CUDA_ERROR_OUT_OF_MEMORY (2) before the driver is asked, exactly the limit
is granted, and all processes on one cache share it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends.nvidia.contract import LIBRARY, MIB
from xbtasks.backends.nvidia.probe.operations import Family
from xbtasks.backends.nvidia.probe.report import ABSENT, Memory
from xbtasks.backends.nvidia.questions import CROSSING, SLACK
from xbtasks.backends.nvidia.rows import size_text
from xbtasks.checks import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xbtasks.backends.nvidia.answers import Answer
    from xbtasks.backends.nvidia.hami_log import HamiLog
    from xbtasks.backends.nvidia.probe.report import Card, Device, Event, Process
    from xbtasks.backends.nvidia.rows import Rows
    from xbtasks.backends.nvidia.smi_memory import SmiMemory

__all__ = [
    "OUT_OF_MEMORY",
    "judge_context",
    "judge_family",
    "judge_loading",
    "judge_memory",
    "judge_nvml",
    "judge_plausible",
    "judge_shared",
    "judge_sm_limit",
    "judge_smi",
    "judge_totals",
    "result_text",
    "unsupported",
]

OUT_OF_MEMORY: Final = 2
"""CUDA_ERROR_OUT_OF_MEMORY."""
_NOT_SUPPORTED: Final = 801
_HIDDEN_RESULT: Final = -1
_RESULTS: Final = {
    0: "granted",
    OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY (2)",
    _NOT_SUPPORTED: "CUDA_ERROR_NOT_SUPPORTED (801)",
    ABSENT: "no such function",
}


def result_text(event: Event | None) -> str:
    """Return an operation's result for a person."""
    if event is None:
        return "not reached"
    return _RESULTS.get(event.rc, f"result {event.rc}")


def unsupported(event: Event | None) -> bool:
    """Whether a driver says that it doesn't have what was asked for."""
    return event is not None and event.rc in (_NOT_SUPPORTED, ABSENT)


def judge_loading(rows: Rows, answer: Answer) -> None:
    """The injected library is mapped in the probe, and the loader ignored no preload entry."""
    event = answer.event("look", "maps")
    if answer.log.ignored:
        rows.failed(
            "preload-mapped", "the loader ignored the preload", f"{LIBRARY} mapped", answer.log.ignored
        )
    elif answer.log.loader:
        rows.failed("preload-mapped", "no program starts under the preload", "a program", answer.log.loader)
    elif event is not None:
        rows.require(
            "preload-mapped",
            f"{LIBRARY} is mapped in the probe",
            f"{LIBRARY} in /proc/self/maps",
            "it isn't there",
            holds=event.mapped,
        )


def judge_smi(rows: Rows, name: str, memory: SmiMemory, known: Iterable[str], uuid: str, mib: int) -> None:
    """nvidia-smi shows the card at its limit, and nothing else stands on its stdout.

    ``known`` are lines that nvidia-smi prints without the preload too.
    """
    foreign = [line for line in memory.foreign if line not in set(known)]
    card = memory.card(uuid)
    if foreign:
        rows.failed(name, "nvidia-smi's stdout holds more than its rows", "rows alone", foreign[0])
    elif card is None or card.total is None:
        rows.failed(
            name, "nvidia-smi doesn't show the card", f"a row of {uuid}", card.text if card else "none"
        )
    else:
        rows.require(
            name,
            "nvidia-smi memory.total",
            f"{mib} MiB",
            f"{card.total} MiB",
            holds=card.total == mib,
            good=f"nvidia-smi memory.total is {card.total} MiB",
        )


def judge_totals(
    rows: Rows, info: Event | None, device: Device | None, limit: int, *, control: Event | None
) -> None:
    """CUDA tells the limit as the card's total; ``device`` is how it lists the card.

    ``control`` is what it tells without limits: a way to ask that this driver lacks isn't judged.
    """
    _total(rows, "total", "cuMemGetInfo", info.dlsym if info else None, limit)
    _total(rows, "getproc-total", "cuMemGetInfo by cuGetProcAddress", info.lookup if info else None, limit)
    looked_up = info.lookup_total if info else None
    _total(rows, "getproc-total", "cuDeviceTotalMem by cuGetProcAddress", looked_up, limit)
    if info is not None and control is not None:
        for told, without, how in (
            (info.lookup_old, control.lookup_old, "CUDA 11's cuGetProcAddress"),
            (info.lookup_second, control.lookup_second, "the cuGetProcAddress that it gives out itself"),
        ):
            if without is not None and without.rc == 0:
                _total(rows, "getproc-total", f"cuMemGetInfo by {how}", told, limit)
    listed = Memory(device.total_rc, 0, device.total) if device else None
    _total(rows, "device-total", "cuDeviceTotalMem", listed, limit)


def judge_nvml(rows: Rows, card: Card | None, limit: int, *, has_v2: bool) -> None:
    """NVML tells the limit as the card's total; ``has_v2`` tells whether the driver has the second call."""
    _total(rows, "nvml-v1", "nvmlDeviceGetMemoryInfo", card.v1 if card else None, limit)
    if has_v2:
        _total(rows, "nvml-v2", "nvmlDeviceGetMemoryInfo_v2", card.v2 if card else None, limit)
    else:
        rows.note("nvml-v2", Status.SKIP, "this driver has no nvmlDeviceGetMemoryInfo_v2")


def _total(rows: Rows, name: str, function: str, memory: Memory | None, limit: int) -> None:
    observed = "not reached"
    if memory is not None:
        observed = size_text(memory.total) if memory.rc == 0 else f"result {memory.rc}"
    rows.require(
        name,
        f"{function} total",
        size_text(limit),
        observed,
        holds=memory is not None and memory.rc == 0 and memory.total == limit,
        good=f"{function} total is {observed}",
    )


def judge_context(rows: Rows, info: Event | None, log: HamiLog, limit: int, context: int) -> bool:
    """The context counts against the limit; ``context`` is about what it takes without limits.

    Returns whether that could be measured: not where the library can't find its own process on the card.
    """
    told = info.dlsym if info is not None else None
    booked = told.total - told.free if told is not None and told.rc == 0 else None
    if booked == 0 and log.host_pid_error:
        rows.note("context", Status.SKIP, "the library can't find its process on the card (host pid error)")
        return False
    rows.require(
        "context",
        "the context counts against the limit",
        f"about {context // MIB} MiB taken",
        "not reached" if booked is None else f"{size_text(booked)} taken",
        holds=booked is not None and context // 4 <= booked <= 2 * context + 256 * MIB,
        good=f"the context counts: it takes {size_text(booked or 0)} of {size_text(limit)}",
    )
    return True


def judge_plausible(rows: Rows, answer: Answer, memory: SmiMemory, card_mib: int) -> None:
    """No value is more than there is: an underflow shows as thousands of terabytes."""
    info, nvml = answer.event("look", "info"), answer.event("look", "nvml")
    values: list[tuple[str, int, int]] = []
    if info is not None:
        for name, known in (("cuMemGetInfo", info.dlsym), ("cuMemGetInfo by cuGetProcAddress", info.lookup)):
            if known is not None and known.rc == 0:
                values += [
                    (f"{name} total", known.total, card_mib * MIB),
                    (f"{name} free", known.free, known.total),
                ]
    for card in nvml.cards if nvml else ():
        for version, told in (("v1", card.v1), ("v2", card.v2)):
            if told.rc == 0:
                values += [
                    (f"NVML {version} total", told.total, card_mib * MIB),
                    (f"NVML {version} free", told.free, told.total),
                    (f"NVML {version} used", told.used, told.total),
                ]
    for shown in memory.cards:
        if shown.total is not None:
            values += [
                ("nvidia-smi memory.free", (shown.free or 0) * MIB, shown.total * MIB),
                ("nvidia-smi memory.used", (shown.used or 0) * MIB, shown.total * MIB),
            ]
    wrong = next(((name, value, most) for name, value, most in values if value > most), None)
    if wrong is not None:
        name, value, most = wrong
        rows.failed("plausible", f"{name} can't be", f"at most {size_text(most)}", size_text(value))
    elif values:
        rows.passed("plausible", f"{len(values)} sizes are within what there is")


def judge_sm_limit(rows: Rows, name: str, log: HamiLog, sm: int, devices: int = 1) -> None:
    """The log says the compute limit of every device, in either wording, and no other."""
    limits = log.limits
    if log.loader:
        return
    if not limits:
        if log.unread:
            rows.doubt(name, f"log format not recognised: {log.unread[:200]}")
        elif log.lines == 0 and log.other:
            rows.doubt(name, f"log format not recognised: none of {log.other} lines is in HAMi-core's form")
        else:
            rows.failed(
                name, "no log line says the compute limit", f"{sm} %", f"{log.lines} lines of HAMi-core"
            )
        return
    wrong = [limit for limit in limits if limit.percent != sm]
    named = {limit.device for limit in limits}
    missing = [device for device in range(devices) if not named & {device, None}]
    observed = ", ".join(
        f"{'every device' if limit.device is None else f'device {limit.device}'}: {limit.percent} %"
        for limit in dict.fromkeys(wrong or limits)
    )
    rows.require(
        name,
        "the compute limit in the log",
        f"{sm} % for {devices} device(s)",
        observed + (f"; none for device {missing[0]}" if missing else ""),
        holds=not wrong and not missing,
        good=f"the log says {observed}",
    )


def judge_memory(rows: Rows, process: Process | None) -> None:
    """A card can be filled up to its limit, what crosses it is refused, and what was freed fits again.

    Each of the three has its row, also where it wasn't reached.
    """
    marked = process.event("mark") if process else None
    part, rest, crossing, again = (process.event("take", place) if process else None for place in range(4))
    freed = process.event("give") if process else None
    room = marked.size if marked else 0
    granted = sum(event.size for event in (part, rest) if event is not None and event.ok)
    full = part is not None and part.ok and rest is not None and rest.ok
    refused = rest if part is not None and part.ok else part
    rows.require(
        "alloc-under",
        f"allocations up to {SLACK // MIB} MiB below the limit",
        f"{size_text(max(room - SLACK, 0))} granted",
        f"{size_text(granted)} granted, then {result_text(refused)}",
        holds=full,
        good=f"{size_text(granted)} in two parts are granted, {SLACK // MIB} MiB below the limit",
    )
    crosses = crossing is not None and granted + crossing.size > room
    rows.require(
        "alloc-over",
        f"{size_text(CROSSING)} more, which cross the limit",
        _RESULTS[OUT_OF_MEMORY],
        result_text(crossing) if crosses else "the limit wasn't reached",
        holds=crosses and crossing is not None and crossing.rc == OUT_OF_MEMORY,
        good=f"{size_text(CROSSING)} more, which cross the limit, are refused as out of memory",
    )
    credited = freed is not None and freed.ok
    observed = result_text(again) if full else "the limit wasn't reached"
    rows.require(
        "free-credit",
        "as much as was freed",
        "granted",
        observed if credited or freed is None else f"the free gave result {freed.rc}",
        holds=full and credited and again is not None and again.ok,
        good="what was freed fits again",
    )


def judge_family(
    rows: Rows, family: Family, process: Process | None, *, control: Event | None, early: bool
) -> bool:
    """A family of allocation is held to the limit as cuMemAlloc is; returns whether it must be.

    ``early`` tells that the source may be before 52f33fc7: then cuMemAllocAsync past the limit gives -1, and
    cuMemAllocFromPoolAsync isn't counted.
    """
    name = family.value
    if unsupported(control):
        rows.note(name, Status.SKIP, f"this device has no {family.function}: {result_text(control)}")
        return False
    required = not (family is Family.POOL and early)
    part, crossing, looked_up, again = (
        process.event("take", place) if process else None for place in range(4)
    )
    freed = process.event("give") if process else None
    if part is None:
        return required
    function = family.function
    if not part.ok:
        rows.failed(name, f"{function} below the limit", "granted", result_text(part))
        return required
    if crossing is None or looked_up is None:
        return required
    hidden = crossing.rc == _HIDDEN_RESULT and family is Family.ASYNC and early
    if crossing.ok and not required:
        rows.note(name, Status.WARN, f"{function} past the limit is granted, as before HAMi-core 52f33fc7")
    elif crossing.rc != OUT_OF_MEMORY and not hidden:
        detail = f"{function} past the limit isn't refused as out of memory"
        rows.failed(name, detail, _RESULTS[OUT_OF_MEMORY], result_text(crossing))
    elif looked_up.rc != crossing.rc:
        detail = f"{function} by cuGetProcAddress past the limit isn't refused as out of memory"
        rows.failed(name, detail, result_text(crossing), result_text(looked_up))
    elif freed is not None and (not freed.ok or again is None or not again.ok):
        observed = result_text(again) if freed.ok else f"the free gave result {freed.rc}"
        rows.failed(name, f"{function} once its memory was freed", "granted", observed)
    else:
        how = " (with -1, as before HAMi-core 52f33fc7)" if hidden else ""
        rows.passed(name, f"{function} is granted below the limit, refused past it{how}, credited when freed")
    return required


def judge_shared(rows: Rows, answer: Answer, limit: int) -> None:
    """Two living processes, their contexts counted, are held to the limit together."""
    first, second = answer.process("shared-a"), answer.process("shared-b")
    marks = [process.event("mark") if process else None for process in (first, second)]
    one = first.event("take") if first else None
    fill, crossing = (second.event("take", place) if second else None for place in range(2))
    if one is None or fill is None or crossing is None or marks[0] is None or marks[1] is None:
        return
    contexts = (marks[0].total - marks[0].free) * (1 if answer.log.host_pid_error else 2)
    granted = sum(event.size for event in (one, fill, crossing) if event.ok)
    text = f"one has {one.size // MIB} MiB, the other {fill.size // MIB} MiB"
    if not one.ok or not fill.ok:
        refused = one if not one.ok else fill
        rows.failed("shared", f"{text} below the limit", "both granted", result_text(refused))
        return
    seen = marks[1].free + one.size <= limit
    rows.require(
        "shared",
        f"two processes on one limit: {text}",
        f"at most {size_text(limit)} with their contexts, then {_RESULTS[OUT_OF_MEMORY]}",
        f"{size_text(granted + contexts)}, then {result_text(crossing)}",
        holds=seen and granted + contexts <= limit and crossing.rc == OUT_OF_MEMORY,
        good=f"{text}, and {size_text(CROSSING)} more are refused",
    )
