"""How a run, or several at once, are followed while they go on: plain lines, a board, or a folding log."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xbtasks.reporting.board import Board
from xbtasks.reporting.console import Console, PrefixedConsole
from xbtasks.reporting.folding import GitHubLog, GitLabLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xbtasks.checks import CaseReport
    from xbtasks.plan import RunPlan

__all__ = ["Watch", "followed", "watch"]


class Watch:
    """Plain lines. With it as a context, something is going on; it may be entered again."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def expect(self, host: str, stage: str, cases: Iterable[int]) -> None:
        """Take what is going to be done: case 0 is a stage that is only built, a host that is looked at."""

    def alone(self) -> Console:
        """Return where the only run reports."""
        return self._console

    @contextmanager
    def look(self, host: str) -> Iterator[None]:
        """Show that ``host`` is looked at meanwhile."""
        del host
        yield

    @contextmanager
    def unit(self, host: str, stage: str, name: str, ended: threading.Event) -> Iterator[Console]:
        """Lend where one of several runs reports; nothing more is shown once everything has ``ended``."""
        del host, stage
        yield PrefixedConsole(self._console, f"[{name}]", ended)


def watch(console: Console) -> Watch:
    """Return what suits the place that ``console`` writes to."""
    if isinstance(console, (GitHubLog, GitLabLog)):
        return _Folded(console)
    return _OnScreen(console) if console.can_draw else Watch(console)


@contextmanager
def followed(console: Console, plan: RunPlan) -> Iterator[Console]:
    """Follow the one run of ``plan``, and lend where it reports."""
    with watch(console) as watching:
        stages = [""] if plan.choose or not plan.stages else [stage.stage for stage in plan.stages]
        for stage in stages:
            watching.expect("", stage, plan.cases or (0,))
        yield watching.alone()


class _OnScreen(Watch):
    """The board, below what is said."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._board = Board()

    def __enter__(self) -> Watch:
        from xbtasks.reporting.screen import Screen

        self._console.draw(Screen(self._board, self._console.out, colour=self._console.colour))
        return self

    def __exit__(self, *_: object) -> None:
        self._console.draw(None)

    def expect(self, host: str, stage: str, cases: Iterable[int]) -> None:
        self._board.expect(host, stage, cases)

    def alone(self) -> Console:
        return _BoardConsole(self._console, self._board)

    @contextmanager
    def unit(self, host: str, stage: str, name: str, ended: threading.Event) -> Iterator[Console]:
        self._board.doing(host, stage, 0, "begins")
        try:
            yield _BoardUnit(self._console, f"[{name}]", ended, self._board, host)
        finally:
            self._board.doing(host, stage, 0, "")

    @contextmanager
    def look(self, host: str) -> Iterator[None]:
        self._board.doing(host, "", 0, "looking at the host")
        try:
            yield
        finally:
            self._board.doing(host, "", 0, "")


class _BoardConsole(Console):
    """Puts what a run does on the board, and its lines above."""

    def __init__(self, base: Console, board: Board, host: str = "") -> None:
        super().__init__(base.out, base.hide)
        self._base = base
        self._board = board
        self._host = host

    def say(self, text: str = "") -> None:
        self._base.say(text)

    def ask(self, question: str) -> str:
        return self._base.ask(question)

    def live(self, chunk: bytes) -> None:
        super().live(chunk)
        _show_build(self._board, self._host, self)

    def doing(self, stage: str, case: int, what: str) -> None:
        super().doing(stage, case, what)
        self._board.doing(self._host, stage, case, what)

    def judged(self, report: CaseReport) -> None:
        self._board.judged(self._host, report.stage, report.number, report.verdict, report.reason)


class _BoardUnit(PrefixedConsole):
    """One of several runs on the board; the steps of its build are shown there alone."""

    def __init__(self, base: Console, prefix: str, ended: threading.Event, board: Board, host: str) -> None:
        super().__init__(base, prefix, ended)
        self._board = board
        self._host = host

    def live(self, chunk: bytes) -> None:
        self.progress.take(chunk)
        _show_build(self._board, self._host, self)

    def doing(self, stage: str, case: int, what: str) -> None:
        super().doing(stage, case, what)
        self._board.doing(self._host, stage, case, what)

    def judged(self, report: CaseReport) -> None:
        self._board.judged(self._host, report.stage, report.number, report.verdict, report.reason)


def _show_build(board: Board, host: str, console: Console) -> None:
    (step, *_) = (*console.shown([console.progress.step]), "")
    board.building(host, console.stage, step, console.progress.percent)


class _Folded(Watch):
    """Sections of a CI engine's log: a stage each, and where several runs go on at once, a run each."""

    def __init__(self, console: GitHubLog | GitLabLog) -> None:
        super().__init__(console)
        self._log = console
        self._lock = threading.Lock()
        self._units: list[_FoldedUnit] = []

    def __exit__(self, *_: object) -> None:
        for unit in tuple(self._units):  # what never came to its end
            self._show(unit)

    def alone(self) -> Console:
        return _FoldedConsole(self._log)

    @contextmanager
    def unit(self, host: str, stage: str, name: str, ended: threading.Event) -> Iterator[Console]:
        del host, stage
        unit = _FoldedUnit(self._log, name, ended)
        self._log.say(f"[{name}] begins")
        self._units.append(unit)
        try:
            yield unit
        finally:
            self._show(unit)

    def _show(self, unit: _FoldedUnit) -> None:
        with self._lock:
            if unit not in self._units:
                return
            self._units.remove(unit)
            self._log.begin(unit.name)
            for line in tuple(unit.lines):
                self._log.say(line)
            self._log.end()
            for line in unit.verdicts:
                self._log.say(f"[{unit.name}] {line}")


class _FoldedConsole(Console):
    """A section for each stage, with the verdicts below, where they are seen without unfolding it."""

    def __init__(self, log: GitHubLog | GitLabLog) -> None:
        super().__init__(log.out, log.hide)
        self._log = log
        self._open = False
        self._verdicts: list[str] = []

    def say(self, text: str = "") -> None:
        self._log.say(text)

    def begins(self, stage: str) -> None:
        """Print nothing: the section is called so."""

    def doing(self, stage: str, case: int, what: str) -> None:
        super().doing(stage, case, what)
        if stage and what and not self._open:
            self._log.begin(stage)
            self._open = True
        elif not what and self._open:
            self._log.end()
            self._open = False
            for line in self._verdicts:
                self._log.say(line)
            self._verdicts = []

    def judged(self, report: CaseReport) -> None:
        self._verdicts.append(f"{report.stage} {_verdict(report)}")


class _FoldedUnit(PrefixedConsole):
    """Keeps the lines of one of several runs until it has ended."""

    def __init__(self, log: Console, name: str, ended: threading.Event) -> None:
        super().__init__(log, "", ended)
        self.name = name
        self.lines: list[str] = []
        self.verdicts: list[str] = []

    def say(self, text: str = "") -> None:
        self.lines.append(text)

    def judged(self, report: CaseReport) -> None:
        self.verdicts.append(_verdict(report))


def _verdict(report: CaseReport) -> str:
    return f"{report.id}: {report.verdict}" + (f", {report.reason}" if report.reason else "")
