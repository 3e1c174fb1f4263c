"""What the node answers to the simulated Ascend libraries. ``common/board.h`` is the other side of it.

A question is a line of fields with tabs between them: ``ascend``, an operation, then a die's physical id and
numbers. An answer starts with a :class:`Status`.

===========================  =====================================================================
question                     answer after the status
===========================  =====================================================================
hello                        fault, driver, firmware, layout, soc, number of visible dies, number of
                             known ones; for each known die, the visible first, its chip's names and
                             the fields of ``_die_fields``
start                        nothing; BUSY where a visible die is another container's alone
memory DIE                   bytes in use, bytes that programs can have in all, bytes that are free
take / give DIE BYTES        nothing; who has no context can't take any
enter / leave DIE            nothing; ``enter`` takes the context's memory, ``leave`` gives it back
run DIE NANOSECONDS          when the kernel ends (monotonic clock)
load DIE                     how busy its cores were in the last second, in percent
processes DIE                for each process that the asking one may know its id and bytes
share DIE                    1 where several containers may use the die, else 0
share DIE VALUE              nothing
name PID                     the process's name
===========================  =====================================================================
"""

from __future__ import annotations

import time
from collections import Counter
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.sim.drivers.ascend.cards import DRIVER_FAULTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.sim.drivers.ascend.cards import Die, Driver
    from xbtasks.sim.drivers.ascend.peer import Peer
    from xbtasks.sim.drivers.ledger import Account, Ledger

__all__ = ["Answerer", "Status"]

_LOAD_NS: Final = 1_000_000_000
_MANAGER: Final = "davinci_manager"


class Status(IntEnum):
    """How a question went. The first ones are those that ``node.h`` has for every vendor."""

    OK = 0
    NO_MEMORY = 1
    NO_CARD = 2
    INVALID = 4
    BUSY = 16
    DENIED = 17


class Answerer:
    """Answers the questions of one process. ``shares`` has the sharing modes that were set, by phy id."""

    def __init__(self, ledger: Ledger, account: Account, shares: dict[int, bool], peer: Peer) -> None:
        self._ledger = ledger
        self._account = account
        self._shares = shares
        self._peer = peer
        self._contexts: Counter[str] = Counter()

    def answer(self, driver: Driver, question: Sequence[str]) -> list[str]:
        """Return the answer's fields; ``question`` is without its first field."""
        operation, *values = question or [""]
        if not all(value.isdecimal() for value in values):
            return _only(Status.INVALID)
        numbers = [int(value) for value in values]
        match operation, numbers:
            case "hello", []:
                return self._hello(driver)
            case "start", []:
                taken = any(self._is_anothers(die) for die in self._visible(driver))
                return _only(Status.BUSY if taken else Status.OK)
            case "name", [pid]:
                return self._name(driver, pid)
            case _, [phy_id, *rest]:
                die = next((die for die in driver.dies if die.phy_id == phy_id), None)
                known = die is not None and (driver.other_cards or self._peer.sees(die.device))
                return self._die_answer(operation, die, rest) if die and known else _only(Status.NO_CARD)
            case _:
                return _only(Status.INVALID)

    def _die_answer(self, operation: str, die: Die, numbers: list[int]) -> list[str]:
        used = self._ledger.used(die.account)
        match operation, numbers:
            case "memory", []:
                taken = die.memory - die.for_programs + used
                sizes = (taken, die.memory - die.system, die.for_programs - used)
                return [str(Status.OK), *map(str, sizes)]
            case "take", [size]:
                return _only(self._take(die, size) if self._contexts[die.account] else Status.INVALID)
            case "give", [size]:
                given = self._ledger.give(self._account, die.account, size)
                return _only(Status.OK if given else Status.INVALID)
            case "enter", []:
                return _only(self._enter(die))
            case "leave", []:
                if not self._ledger.leave(self._account, die.account):
                    return _only(Status.INVALID)
                self._contexts[die.account] -= 1
                self._ledger.give(self._account, die.account, die.context)
                return _only(Status.OK)
            case "run", [duration]:
                end = self._ledger.run(self._account, die.account, time.monotonic_ns(), duration)
                return [str(Status.OK), str(end)]
            case "load", []:
                now = time.monotonic_ns()
                busy = sum(self._ledger.busy(die.account, now - _LOAD_NS, now).values())
                return [str(Status.OK), str(min(100, round(100 * busy / _LOAD_NS)))]
            case "processes", []:
                return self._processes(die)
            case "share", []:
                return [str(Status.OK), str(int(self._shared(die)))]
            case "share", [value]:
                return _only(self._set_shared(die, enable=value != 0))
            case _:
                return _only(Status.INVALID)

    def _visible(self, driver: Driver) -> list[Die]:
        return [die for die in driver.dies if self._peer.sees(die.device)]

    def _hello(self, driver: Driver) -> list[str]:
        visible = self._visible(driver)
        known = visible + [die for die in driver.dies if driver.other_cards and die not in visible]
        fault = driver.fault if self._peer.sees(_MANAGER) else "not-loaded"
        if fault == "board-type" and self._peer.on_host:
            fault = "none"
        fields = [str(Status.OK), str(DRIVER_FAULTS.index(fault)), driver.version, driver.firmware]
        fields += [str(int(driver.model.layout)), driver.model.soc, str(len(visible)), str(len(known))]
        for die in known:
            fields += [driver.model.chip, driver.model.npu, *_die_fields(die)]
        return fields

    def _take(self, die: Die, size: int) -> Status:
        taken = self._ledger.take(self._account, die.account, size, die.for_programs)
        return Status.OK if taken else Status.NO_MEMORY

    def _enter(self, die: Die) -> Status:
        if self._is_anothers(die):
            return Status.BUSY
        status = self._take(die, die.context)
        if status is Status.OK:
            self._ledger.enter(self._account, die.account)
            self._contexts[die.account] += 1
        return status

    def _processes(self, die: Die) -> list[str]:
        everybody = self._peer.sees_everybody
        found = {
            self._peer.number_of(pid): size
            for pid, size in self._ledger.processes(die.account).items()
            if everybody or self._peer.shares_mounts_with(pid)
        }
        if everybody:
            found |= {tenant.pid: tenant.memory for tenant in die.tenants}
        return [str(Status.OK), *(str(value) for pair in sorted(found.items()) for value in pair)]

    def _shared(self, die: Die) -> bool:
        return self._shares.get(die.phy_id, die.device_share)

    def _set_shared(self, die: Die, *, enable: bool) -> Status:
        """Set the sharing mode, which only the host and privileged containers may."""
        if not self._peer.sees_everybody:
            return Status.DENIED
        self._shares[die.phy_id] = enable
        return Status.OK

    def _is_anothers(self, die: Die) -> bool:
        """Tell whether another container has the die and doesn't share it."""
        if self._peer.on_host or self._shared(die):
            return False
        users = self._ledger.processes(die.account)
        return bool(die.tenants) or not all(map(self._peer.shares_mounts_with, users))

    def _name(self, driver: Driver, pid: int) -> list[str]:
        for tenant in (tenant for die in driver.dies for tenant in die.tenants):
            if tenant.pid == pid:
                return [str(Status.OK), tenant.name]
        try:
            name = Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
        except OSError:  # it has ended
            name = ""
        return [str(Status.OK), name.replace("\t", " ")] if name else _only(Status.INVALID)


def _only(status: Status) -> list[str]:
    return [str(int(status))]


def _die_fields(die: Die) -> list[str]:
    numbers = (die.npu_id, die.chip_id, die.chips, die.logic_id, die.phy_id, die.memory)
    return [die.die_id, die.ndie_id, die.bus, die.health, *map(str, numbers)]
