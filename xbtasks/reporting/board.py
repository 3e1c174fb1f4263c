"""The board: a row for each cell (host, stage, case) of what is going on, as values; screen.py draws it."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

from xbtasks.reporting.text import one_line
from xbtasks.typed import as_typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["RUNNING", "WAITING", "Board", "Line", "Row", "View", "clock"]

WAITING = "wait"
"""A row that has not begun."""
RUNNING = "run"
"""A row that is at work."""
OVER = "end"
_URGENCY = {RUNNING: 0, "FAIL": 1, "ERROR": 2, WAITING: 3, "SKIP": 4, OVER: 5, "PASS": 6}


@dataclass(frozen=True, slots=True)
class Row:
    """A cell: its state (a verdict once it has one), what is done for it now, and since when.

    ``case`` is 0 for a stage that is only built, ``stage`` empty for a host that is only looked at.
    """

    host: str
    stage: str
    case: int
    state: str = WAITING
    what: str = ""
    percent: int | None = None
    begun: float | None = None
    ended: float | None = None

    @property
    def open(self) -> bool:
        """Whether it has no end yet."""
        return self.ended is None


@dataclass(frozen=True, slots=True)
class Line:
    """A row as a person sees it; ``seconds`` is None before it has begun."""

    state: str
    seconds: float | None
    name: str
    percent: int | None
    what: str


@dataclass(frozen=True, slots=True)
class View:
    """The lines for which there is room, and a last one about all rows where there are many."""

    lines: tuple[Line, ...]
    footer: str


@dataclass
class Board:
    """Keeps the rows; called from the threads of all runs. Names and texts are made harmless here."""

    now: Callable[[], float] = monotonic
    _rows: list[Row] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._begun = self.now()

    def expect(self, host: str, stage: str, cases: Iterable[int]) -> None:
        """Add rows for what is going to be done; those of looks at hosts go when there are stages."""
        with self._lock:
            self._rows = [row for row in self._rows if row.stage or not stage]
            self._rows += [Row(one_line(host), stage, case) for case in cases]

    def doing(self, host: str, stage: str, case: int, what: str) -> None:
        """Note what is done now: for ``case`` of ``stage``, or for the first of its cases that is open.

        Nothing being done ends what has no verdict by then.
        """
        with self._lock:
            if not what:
                self._change(host, stage, 0, lambda row: self._end(row, OVER, ""))
                return
            if stage and not self._of(host, stage):  # now it is known which one it is
                for nameless in [row for row in self._of(host, "") if not row.stage]:
                    self._put(nameless, replace(nameless, stage=stage))
            rows = [row for row in self._of(host, stage) if row.open]
            row = next((row for row in rows if row.case == case), rows[0] if rows else None)
            if row is not None:
                self._put(row, self._begin(row, one_line(what)))

    def building(self, host: str, stage: str, step: str, percent: int | None) -> None:
        """Note how far the build of ``stage`` is."""
        with self._lock:
            row = next((row for row in self._of(host, stage) if row.state == RUNNING), None)
            if row is not None and row.what.startswith("building"):  # else what comes late of a build
                self._put(row, replace(row, what=f"building {one_line(step)}".strip(), percent=percent))

    def judged(self, host: str, stage: str, case: int, verdict: str, reason: str) -> None:
        """Note what became of a case."""
        with self._lock:
            self._change(host, stage, case, lambda row: self._end(row, verdict, as_typed(one_line(reason))))

    def view(self, room: int) -> View:
        """Return what fits in ``room`` lines, the most urgent rows of all, in the order of the plan."""
        with self._lock:
            rows, now = list(self._rows), self.now()
        footer = ""
        if len(rows) > min(room, _FEW):
            footer = f"{_counts(rows)}, {clock(now - self._begun)}"
            room -= 1
        urgent = sorted(range(len(rows)), key=lambda at: (_URGENCY.get(rows[at].state, 0), at))
        chosen = sorted(urgent[: max(room, 0)])
        several = len({row.host for row in rows}) > 1
        return View(tuple(self._line(rows[at], now, several=several) for at in chosen), footer)

    def _line(self, row: Row, now: float, *, several: bool) -> Line:
        seconds = None if row.begun is None else (row.ended or now) - row.begun
        case = f"case {row.case}" if row.case else ""
        name = " ".join(word for word in (case, row.host if several else "", row.stage) if word)
        what = row.what
        if row.state == WAITING:
            ahead = next((each for each in self._of(row.host, row.stage) if each.state == RUNNING), None)
            what = f"waits for case {ahead.case}" if ahead and ahead.case else "waits"
        return Line(row.state, seconds, name or row.host, row.percent if row.open else None, what)

    def _of(self, host: str, stage: str) -> list[Row]:
        host = one_line(host)
        return [row for row in self._rows if row.host == host and (not stage or row.stage == stage)]

    def _change(self, host: str, stage: str, case: int, change: Callable[[Row], Row]) -> None:
        for row in self._of(host, stage):
            if row.open and (not case or row.case == case):
                self._put(row, change(row))

    def _put(self, row: Row, other: Row) -> None:
        self._rows[self._rows.index(row)] = other

    def _begin(self, row: Row, what: str) -> Row:
        begun = self.now() if row.begun is None else row.begun
        return replace(row, state=RUNNING, what=what, percent=None, begun=begun)

    def _end(self, row: Row, state: str, what: str) -> Row:
        return replace(row, state=state, what=what, percent=None, ended=self.now())


_FEW = 6
"""So many rows need no line about all of them."""


def _counts(rows: Iterable[Row]) -> str:
    counts = Counter(row.state for row in rows)
    words = {RUNNING: "running", WAITING: "waiting", OVER: "ended"}
    return ", ".join(f"{counts[state]} {words.get(state, state)}" for state in _URGENCY if counts[state])


def clock(seconds: float) -> str:
    """Return a time as ``m:ss`` or ``h:mm:ss``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
