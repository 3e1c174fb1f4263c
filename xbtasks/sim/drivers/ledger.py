"""Who uses which simulated card: memory and time, for one node. Values only; no clock, no socket.

Every user of cards is an *account*: one for each connection of a process to the node. An account that is
closed takes all it held with it: a killed process leaves nothing behind, as a kernel's driver would see to.

Time is in nanoseconds of the monotonic clock. A card runs one kernel after the other: a kernel starts when
the card has done what it was given before, whoever gave it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Account", "Ledger"]

_REMEMBERED_NS: Final = 3_000_000_000
"""How long it is remembered when a card was busy."""

_LATE_NS: Final = 9_000_000
"""How late a kernel may come and still follow the last one at once.

A process that waits for each of its kernels and launches the next is a few microseconds late on a real card;
here it is as late as this machine has other things to do, which is no idleness of the card. Runtimes that
hold launches back wait 10 ms at a time, so what they hold back stays held back.
"""


@dataclass(slots=True)
class _Use:
    """What an account does with one card. ``runs`` are spans of time in which its kernels run."""

    memory: int = 0
    contexts: int = 0
    runs: deque[tuple[int, int]] = field(default_factory=deque)

    @property
    def end(self) -> int:
        return self.runs[-1][1] if self.runs else 0


@dataclass(eq=False, slots=True)
class Account:
    """One user of cards; ``pid`` is its process id as the host sees it."""

    pid: int
    uses: dict[str, _Use] = field(default_factory=dict)


class Ledger:
    """The open accounts of a node. Cards are named by their UUIDs."""

    def __init__(self) -> None:
        self._accounts: set[Account] = set()

    def open(self, pid: int) -> Account:
        """Return a new account of process ``pid``."""
        account = Account(pid)
        self._accounts.add(account)
        return account

    def close(self, account: Account) -> None:
        """Free all that ``account`` holds; what it has queued is dropped."""
        self._accounts.discard(account)

    def used(self, card: str) -> int:
        """Return how many bytes of ``card`` are taken."""
        return sum(use.memory for _, use in self._users(card))

    def take(self, account: Account, card: str, size: int, capacity: int) -> bool:
        """Take ``size`` bytes of ``card``, of which ``capacity`` can be had in all; tell whether they fit."""
        if self.used(card) + size > capacity:
            return False
        _use(account, card).memory += size
        return True

    def give(self, account: Account, card: str, size: int) -> bool:
        """Give ``size`` bytes back; tell whether ``account`` had them."""
        use = _use(account, card)
        if size > use.memory:
            return False
        use.memory -= size
        return True

    def enter(self, account: Account, card: str) -> None:
        """Note that ``account`` has one more context on ``card``."""
        _use(account, card).contexts += 1

    def leave(self, account: Account, card: str) -> bool:
        """Note that it has one less; tell whether it had one."""
        use = _use(account, card)
        if use.contexts == 0:
            return False
        use.contexts -= 1
        return True

    def processes(self, card: str) -> dict[int, int]:
        """Return the processes that have a context on ``card``, and how many bytes each holds there."""
        found: dict[int, int] = {}
        for account, use in self._users(card):
            if use.contexts:
                found[account.pid] = found.get(account.pid, 0) + use.memory
        return found

    def run(self, account: Account, card: str, now: int, duration: int) -> int:
        """Queue a kernel of ``duration`` on ``card``; return when it ends."""
        end = self.last_end(card)
        start = end if now - end <= _LATE_NS else now
        self.note(account, card, start, start + duration)
        return start + duration

    def note(self, account: Account, card: str, start: int, end: int) -> None:
        """Note that kernels of ``account`` run on ``card`` between two points in time."""
        runs = _use(account, card).runs
        if runs and runs[-1][1] == start:
            runs[-1] = (runs[-1][0], end)
        else:
            runs.append((start, end))
        while runs[0][1] < end - _REMEMBERED_NS:
            runs.popleft()

    def last_end(self, card: str) -> int:
        """Return when ``card`` has done all that it was given; a time in the past where it has."""
        return max((use.end for _, use in self._users(card)), default=0)

    def busy(self, card: str, start: int, end: int) -> dict[int, int]:
        """Return how long the kernels of each process ran on ``card`` between two points in time."""
        found: dict[int, int] = {}
        for account, use in self._users(card):
            spent = sum(max(0, min(end, last) - max(start, first)) for first, last in use.runs)
            found[account.pid] = found.get(account.pid, 0) + spent
        return found

    def _users(self, card: str) -> Iterator[tuple[Account, _Use]]:
        for account in self._accounts:
            use = account.uses.get(card)
            if use is not None:
                yield account, use


def _use(account: Account, card: str) -> _Use:
    return account.uses.setdefault(card, _Use())
