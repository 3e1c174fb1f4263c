"""The memory that ``enpu-monitor`` shows as used, as a judge: against what processes of known size hold.

Contract: ubs-virt 5c2eac5, 4d7e4b1, 9f8c779 and bac3d46, ``tools/monitor.c``: used is what dcmi says that all
processes of the container hold on the device, with their contexts, in MiB rounded down. It is the number that
the library counts against the quota, and that it takes from the total to tell a program what is free.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend.contract import MIB, odd_between
from xbtasks.backends.ascend.log import parse_log
from xbtasks.backends.ascend.quota import PAGE, code_text
from xbtasks.backends.ascend.said import failed, mapped_row, require_probe, why
from xbtasks.checks import Check, Status
from xbtasks.hardware import Unjudged

if TYPE_CHECKING:
    from xbtasks.backends.ascend.report import Event
    from xbtasks.backends.ascend.said import Said

__all__ = ["QUOTA_MIB", "Held", "judge_usage", "refused", "require_memory"]

QUOTA_MIB: Final = (8193, 12287)
"""Between which numbers the quota is: contexts and all that is taken have room in it on every card."""
_NEAR: Final = 2 * PAGE
"""How much less than was taken may be shown, and how far the monitor may be from the library's own count."""
_MORE: Final = 128 * MIB
"""How much more may be shown: a runtime may take some memory of its own once a process uses the device."""

_READING: Final = [("a", "memory"), ("a", "monitor")]
_ROUND: Final = [*_READING, ("a", "take"), *_READING, ("b", "take"), *_READING, ("a", "second")]
_HOLDING: Final = ("device", "take")
_OPERATIONS: Final = {operation for _, operation in _ROUND}


@dataclass(frozen=True, slots=True)
class Held:
    """What the two processes take, in bytes: whole pages, with the padding that aclrtMalloc adds to them."""

    first: int
    second: int

    @classmethod
    def of(cls, run_id: str) -> Held:
        """Return sizes of the run's own, so that no constant can be right."""
        pages = odd_between(f"{run_id} held", 81, 127, but=0), odd_between(f"{run_id} beside", 41, 63, but=0)
        return cls(*(count * PAGE - 32 for count in pages))

    @property
    def mib(self) -> int:
        """Both together, in MiB rounded up."""
        return -(-(self.first + self.second) // MIB)


def refused(said: Said) -> Event | None:
    """Return the first operation that a process was refused, or None."""
    return next((event for event in said.report.events if event.op in _HOLDING and event.rc != 0), None)


def require_memory(row: str, bare: Said) -> None:
    """Return when two processes get the device and the same memory without injection.

    Raises:
        Unjudged: they don't.
    """
    require_probe(bare)
    event = refused(bare)
    if event is not None or bare.report.event("take", "b") is None:
        wrong = f"two processes don't get the device's memory either: {code_text(event)}"
        raise Unjudged(
            f"inconclusive, without injection {wrong}",
            failed(row, wrong, "memory for two processes", "inconclusive"),
            hint="an idle NPU",
        )


def judge_usage(case: str, held: Held, said: Said) -> list[Check]:
    """Return the rows of the container in which the monitor ran beside processes that hold memory.

    Raises:
        Unjudged: the workload image can't run them.
    """
    require_probe(said)
    row = f"{case}.usage"
    rows = [mapped_row(case, "usage round", said)]
    trouble = _trouble(said)
    if trouble:
        return [*rows, failed(row, f"memory in use couldn't be shown: {trouble}", "three readings", trouble)]
    shown: list[int] = []
    for event, own in _readings(said):
        log = parse_log(event.why)
        text = " and ".join(log.usage) or "none"
        if event.rc != 0 or len(log.usage) != 1 or not (text.isascii() and text.isdecimal()):
            observed = f"{text}, exit status {event.rc}"
            return [*rows, failed(row, "enpu-monitor doesn't show the memory in use", "one number", observed)]
        shown.append(int(text) * MIB)
        counted = own.total - own.free
        if own.rc != 0 or abs(shown[-1] - counted) > _NEAR:
            observed = f"{text} MB, while the library counts " + (
                _mb(counted) if own.rc == 0 else code_text(own)
            )
            detail = "enpu-monitor shows other memory in use than aclrtGetMemInfo tells"
            return [*rows, failed(row, detail, "the same", observed)]
    alone, one, both = shown
    for what, grown, least, context in (
        ("a process took", one - alone, held.first, 0),
        ("a second process took", both - one, held.second, alone),
    ):
        if not least - _NEAR <= grown <= least + context + _MORE:
            detail = f"enpu-monitor doesn't show what {what}"
            expected = f"{_mb(least)} more{f', and a context of about {_mb(context)}' if context else ''}"
            return [*rows, failed(row, detail, expected, f"{_mb(grown)} more: {_list(shown)}")]
    detail = (
        f"enpu-monitor shows {_list(shown)} in use: a context, {_mb(held.first)} more that its process took, "
        f"and {_mb(held.second)} and a context of another; the library counts the same"
    )
    return [*rows, Check(row, Status.PASS, detail)]


def _trouble(said: Said) -> str:
    """Return what kept the processes from holding memory beside three readings of the monitor, or nothing."""
    event = refused(said)
    if event is not None:
        what = "the device can't be used" if event.op == "device" else "memory below the quota is refused"
        return f"{what}: {code_text(event)}"
    done = [(event.who, event.op) for event in said.report.events if event.op in _OPERATIONS]
    ended = said.report.event("second")
    if ended is not None and ended.rc != 0:
        return f"the second process ended with {ended.rc}"
    return "" if done == _ROUND and said.outcome.exit_status == 0 else why(said)


def _readings(said: Said) -> list[tuple[Event, Event]]:
    """Return each reading of the monitor, with what the library told just before it."""
    events = [event for event in said.report.events if event.op in ("memory", "monitor")]
    return [(monitor, memory) for memory, monitor in zip(events[::2], events[1::2], strict=True)]


def _list(sizes: list[int]) -> str:
    return f"{', '.join(str(size // MIB) for size in sizes[:-1])} and {sizes[-1] // MIB} MB"


def _mb(size: int) -> str:
    return f"{round(size / MIB)} MB"
