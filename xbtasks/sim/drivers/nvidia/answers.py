"""What the node answers to the simulated NVIDIA libraries. ``common/node.h`` is the other side of it.

A question is a line of fields with tabs between them: an operation, then the card's index and numbers.
An answer starts with a :class:`Status`.

===========================  =====================================================================
question                     answer after the status
===========================  =====================================================================
hello                        fault, driver, library, CUDA version, number of cards; for each visible
                             card the fields of ``_card_fields``
memory CARD                  bytes in use
take / give CARD BYTES       nothing
enter / leave CARD           nothing; ``enter`` takes the context's memory, ``leave`` gives it back
ran CARD START END           no answer at all: a kernel that the timeline has, in nanoseconds of the
                             monotonic clock
processes CARD TYPE          for each process its id and bytes; TYPE is C (compute) or G (graphics)
load CARD                    how busy the card was in the last sample, in percent
utilization CARD SINCE       for each process that was busy its id, the sample's time (microseconds
                             of the real time clock), percent of the multiprocessors
busy CARD SINCE              the same, on cards too that don't support the older call
name PID                     the process's name
===========================  =====================================================================
"""

from __future__ import annotations

import time
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.sim.drivers.nvidia.cards import DRIVER_FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xbtasks.sim.drivers.ledger import Account, Ledger
    from xbtasks.sim.drivers.nvidia.cards import Card, Driver

__all__ = ["SAMPLE_NS", "Answerer", "Status"]

SAMPLE_NS: Final = 1_000_000_000 // 6
"""NVML's sample period for utilization: "between 1 second and 1/6 second, depending on the product"."""


class Status(IntEnum):
    """How a question went."""

    OK = 0
    NO_MEMORY = 1
    NO_CARD = 2
    UNSUPPORTED = 3
    INVALID = 4
    LOST = 5


class Answerer:
    """Answers the questions of one process. ``sees`` tells whether it can see a card's device file."""

    def __init__(self, ledger: Ledger, account: Account, sees: Callable[[int], bool]) -> None:
        self._ledger = ledger
        self._account = account
        self._sees = sees

    def answer(self, driver: Driver, question: Sequence[str]) -> list[str]:
        """Return the answer's fields."""
        operation, *values = question
        if operation == "hello" and not values:
            return self._hello(driver)
        if operation == "name" and len(values) == 1 and values[0].isdecimal():
            return self._name(driver, int(values[0]))
        if operation == "processes" and len(values) == 2:
            card = self._card(driver, values[0])
            return card if isinstance(card, list) else self._processes(card, values[1])
        if not values or not all(value.isdecimal() for value in values):
            return _only(Status.INVALID)
        card = self._card(driver, values[0])
        if isinstance(card, list):
            return card
        return self._card_answer(operation, card, [int(value) for value in values[1:]])

    def _card(self, driver: Driver, index: str) -> Card | list[str]:
        if not index.isdecimal() or int(index) >= len(driver.cards):
            return _only(Status.NO_CARD)
        card = driver.cards[int(index)]
        if card.lost:
            return _only(Status.LOST)
        return card if self._sees(card.index) else _only(Status.NO_CARD)

    def _card_answer(self, operation: str, card: Card, numbers: list[int]) -> list[str]:
        match operation, numbers:
            case "memory", []:
                return [str(Status.OK), str(self._used(card))]
            case "take", [size]:
                return _only(Status.OK if self._take(card, size) else Status.NO_MEMORY)
            case "give", [size]:
                given = self._ledger.give(self._account, card.uuid, size)
                return _only(Status.OK if given else Status.INVALID)
            case "enter", []:
                if not self._take(card, card.context):
                    return _only(Status.NO_MEMORY)
                self._ledger.enter(self._account, card.uuid)
                return _only(Status.OK)
            case "leave", []:
                if not self._ledger.leave(self._account, card.uuid):
                    return _only(Status.INVALID)
                self._ledger.give(self._account, card.uuid, card.context)
                return _only(Status.OK)
            case "ran", [start, end] if start <= end:
                self._ledger.note(self._account, card.uuid, start, end)
                return []
            case "load", []:
                busy = sum(self._ledger.busy(card.uuid, *_last_sample()).values())
                return [str(Status.OK), str(min(100, round(100 * busy / SAMPLE_NS)))]
            case "utilization", [_] if not card.process_utilization:
                return _only(Status.UNSUPPORTED)
            case (("utilization" | "busy"), [since]):
                return self._utilization(card, since)
            case _:
                return _only(Status.INVALID)

    def _hello(self, driver: Driver) -> list[str]:
        visible = [card for card in driver.cards if self._sees(card.index)]
        fault = str(DRIVER_FAULTS.index(driver.fault))
        cuda = str(driver.cuda[0] * 1000 + driver.cuda[1] * 10)
        fields = [str(Status.OK), fault, driver.version, driver.library, cuda, str(len(visible))]
        for card in visible:
            fields += _card_fields(card)
        return fields

    def _used(self, card: Card) -> int:
        return self._ledger.used(card.uuid) + sum(tenant.memory for tenant in card.tenants)

    def _take(self, card: Card, size: int) -> bool:
        others = sum(tenant.memory for tenant in card.tenants)
        return self._ledger.take(self._account, card.uuid, size, card.for_programs - others)

    def _processes(self, card: Card, kind: str) -> list[str]:
        found = {tenant.pid: tenant.memory for tenant in card.tenants if kind in tenant.type.split("+")}
        if kind == "C":
            found |= self._ledger.processes(card.uuid)
        return [str(Status.OK), *(str(value) for pair in sorted(found.items()) for value in pair)]

    def _utilization(self, card: Card, since: int) -> list[str]:
        start, end = _last_sample()
        sampled = (time.time_ns() - time.monotonic_ns() + end) // 1000
        fields = [str(Status.OK)]
        if sampled > since:
            for pid, busy in sorted(self._ledger.busy(card.uuid, start, end).items()):
                percent = round(100 * busy / SAMPLE_NS)
                if percent:
                    fields += [str(pid), str(sampled), str(percent)]
        return fields

    def _name(self, driver: Driver, pid: int) -> list[str]:
        for card in driver.cards:
            for tenant in card.tenants:
                if tenant.pid == pid:
                    return [str(Status.OK), tenant.name]
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes().partition(b"\0")[0]
        except OSError:  # it has ended
            command = b""
        name = command.decode("utf-8", "replace").replace("\t", " ")
        return [str(Status.OK), name] if name else _only(Status.INVALID)


def _only(status: Status) -> list[str]:
    return [str(status)]


def _card_fields(card: Card) -> list[str]:
    model = card.model
    numbers = (
        card.index,
        card.memory,
        card.reserved,
        card.context,
        model.multiprocessors,
        model.threads,
        model.blocks,
        *model.capability,
        model.clock_mhz,
        model.power_w,
        int(model.persistence),
        int(model.unified),
        int(model.mig) + int(card.mig),  # 0: the card has no MIG, 1: it is off, 2: it is on
        int(card.lost),
    )
    return [card.uuid, model.name, card.bus, *map(str, numbers)]


def _last_sample() -> tuple[int, int]:
    end = time.monotonic_ns() // SAMPLE_NS * SAMPLE_NS
    return end - SAMPLE_NS, end
