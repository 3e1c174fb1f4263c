"""Runs units side by side: so many at once, fairly over the hosts, and none on a host that is gone."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xbtasks.matrix.model import Unit

__all__ = ["Crew", "HostState", "Unrun"]

_T = TypeVar("_T")

_LONGEST_END: Final = 120.0  # seconds that a unit may take to end what it runs
_LOOK: Final = 0.2  # seconds


class HostState(Protocol):
    """What is known of a host while units run on it."""

    @property
    def gone(self) -> str:
        """Why it can't be reached any more, or nothing."""


@dataclass(frozen=True, slots=True)
class Unrun:
    """Why a unit was not run, or not to its end."""

    verdict: Verdict
    reason: str
    exit_code: ExitCode


@dataclass
class Crew(Generic[_T]):
    """Threads that take one unit after the other.

    ``perform`` does a unit, and ``connecting`` tells that one runs nothing on its host yet, so that nobody
    need wait for it. ``stop`` is set to end everything. Once ``ends_all`` is true of what a unit gave,
    nothing more is begun. ``stopping`` is called once when everything is being ended.
    """

    units: Sequence[Unit]
    hosts: Mapping[str, HostState]
    perform: Callable[[Unit], _T]
    connecting: Callable[[Unit], bool]
    stop: threading.Event
    at_once: int
    per_host: int
    ends_all: Callable[[_T], bool] = lambda _: False
    stopping: Callable[[], None] = lambda: None
    ended: dict[Unit, _T | Unrun] = field(default_factory=dict)
    broken: BaseException | None = None
    _running: list[Unit] = field(default_factory=list)
    _failed: str = ""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> dict[Unit, _T | Unrun]:
        """Return what became of each unit; everything that was begun has ended, or has nothing running."""
        count = min(self.at_once, len(self.units))
        threads = [
            threading.Thread(target=self._work, name=f"xbtasks-unit-{n}", daemon=True) for n in range(count)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads) and not self.stop.is_set():
            self._wait(_LOOK)
        if self.stop.is_set():
            self._let_end()
        if self.broken is not None:
            raise self.broken
        with self._changed:
            for unit in self.units:
                self.ended.setdefault(unit, self._unrun(unit))
            return {unit: self.ended[unit] for unit in self.units}

    def _let_end(self) -> None:
        """Wait until what runs on the hosts has been ended."""
        self.stopping()
        for _ in range(round(_LONGEST_END / _LOOK)):
            with self._changed:
                if all(self.connecting(unit) for unit in self._running):
                    return
            self._wait(_LOOK)

    def _wait(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait(seconds)

    def _work(self) -> None:
        while (unit := self._next()) is not None:
            try:
                found: list[_T] = [self.perform(unit)]
            except BaseException as error:  # noqa: BLE001 - raised again by run(), in the main thread
                found = []
                self.broken = self.broken or error
                self.stop.set()
            with self._changed:
                self._running.remove(unit)
                for each in found:
                    self.ended[unit] = each
                    if self.ends_all(each):
                        self._failed = self._failed or f"{unit.stage} on {unit.host}"
                self._changed.notify_all()

    def _next(self) -> Unit | None:
        """Return the next unit to run, or None at the end. A host that runs fewer now goes first."""
        with self._changed:
            while not self.stop.is_set() and not self._failed:
                waiting = [
                    unit for unit in self.units if unit not in self._running and unit not in self.ended
                ]
                for unit in waiting:
                    if self.hosts[unit.host].gone:
                        self.ended[unit] = self._unrun(unit)
                waiting = [unit for unit in waiting if unit not in self.ended]
                if not waiting:
                    return None
                load = Counter(unit.host for unit in self._running)
                free = [unit for unit in waiting if load[unit.host] < self.per_host]
                if free:
                    unit = min(free, key=lambda each: load[each.host])
                    self._running.append(unit)
                    return unit
                self._changed.wait(1.0)
            return None

    def _unrun(self, unit: Unit) -> Unrun:
        gone = self.hosts[unit.host].gone
        if unit in self._running:
            return Unrun(Verdict.ERROR, "interrupted before it had a connection", ExitCode.INTERRUPTED)
        if self.stop.is_set():
            return Unrun(Verdict.ERROR, "interrupted before it began", ExitCode.INTERRUPTED)
        if gone:
            return Unrun(Verdict.ERROR, gone, ExitCode.CANNOT_JUDGE)
        return Unrun(Verdict.SKIP, f"not run: --fail-fast, and {self._failed} failed", ExitCode.SKIPPED)
