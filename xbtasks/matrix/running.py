"""A matrix from its plan to its result: look at the hosts, decide, ask once, run, put together."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeVar

from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode, Interrupted, XbError
from xbtasks.evidence import evidence_kept, keep_evidence, new_run_id, note_names
from xbtasks.host.framed import FramedHost
from xbtasks.matrix.assignment import assign, new_folder
from xbtasks.matrix.connections import Connections
from xbtasks.matrix.folder import gather, keep, replayed, standing, write_note
from xbtasks.matrix.looking import Look, look_at, look_plan
from xbtasks.matrix.model import Cell, MatrixNote, NotRun, Unit
from xbtasks.matrix.question import Doing, asked_of, confirm, permission_for
from xbtasks.matrix.resuming import require_same_machines
from xbtasks.matrix.scheduler import Crew, Unrun
from xbtasks.reporting.console import Console
from xbtasks.reporting.watching import watch
from xbtasks.result import Result
from xbtasks.session import Place, replay, run, transport_to
from xbtasks.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import FrameType

    from xbtasks.checkout.stages import Discovery
    from xbtasks.knobs.settings import Settings
    from xbtasks.matrix.connections import UnitTransport
    from xbtasks.plan import RunPlan

__all__ = ["MatrixHost", "MatrixPlan", "MatrixRun", "Pace", "Silent"]

_PER_HOST: Final = 4
_MOST_AT_ONCE: Final = 64
_T = TypeVar("_T")


@dataclass(frozen=True)
class MatrixHost:
    """A host of a matrix: its name, its settings, and the plan of a run of all its stages."""

    name: str
    settings: Settings
    plan: RunPlan

    @property
    def remote(self) -> bool:
        """Whether it is another machine, as far as its settings say."""
        return self.settings.mode == "ssh"

    @property
    def destination(self) -> str:
        """Where it is, as its user names it."""
        return str(self.settings.host) if self.settings.host else "local"


@dataclass(frozen=True)
class Pace:
    """How many units run at once (0: four a host), and whether the first failure ends it."""

    jobs: int = 0
    fail_fast: bool = False

    def at_once(self, hosts: int) -> int:
        """Return how many units run at once on ``hosts`` hosts."""
        return self.jobs or min(_PER_HOST * hosts, _MOST_AT_ONCE)


@dataclass(frozen=True)
class MatrixPlan:
    """What a matrix is going to do: its units, the cells that aren't run, and what has to be confirmed."""

    looks: tuple[Look, ...]
    units: tuple[Unit, ...]
    not_run: tuple[NotRun, ...]
    asked: tuple[Doing, ...]


@dataclass
class MatrixRun:
    """One matrix. ``directory`` is where all evidence goes; ``before`` is the note of what is continued."""

    run_id: str
    hosts: Sequence[MatrixHost]
    stages: Sequence[str]
    cases: Sequence[int]
    discovery: Discovery
    console: Console
    directory: Path
    hosts_file: str = ""
    before: MatrixNote | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self._by_name = {host.name: host for host in self.hosts}
        self._connections = {host.name: self._connect(host) for host in self.hosts}
        self._turns = Turns(self.stop)
        self._watch = watch(self.console)
        self._transports: dict[Unit, UnitTransport] = {}
        self._over = threading.Event()
        self._looks: tuple[tuple[str, str], ...] = self.before.looks if self.before else ()
        self._results: dict[str, Result] = {}
        if self.before is not None:
            self._results = replayed(self.directory, self.before, lambda path: replay(path, Silent()))

    def plan(self, *, record: bool) -> MatrixPlan:
        """Look at all hosts and return what is to be done. With ``record`` the looks are kept as evidence.

        Raises:
            Interrupted: Ctrl-C or SIGTERM; nothing was done.
            UsageError: a host of what is continued is another machine.
        """
        done = standing(self.before, self._results) if self.before else frozenset[Cell]()
        taken = {path.name for path in self.directory.glob("*")}
        looks = self._look(record=record, taken=taken)
        views = [look.view for look in looks]
        if self.before:
            require_same_machines(self.before, views)
        units, not_run = assign(views, self.stages, self.cases, done=done, taken=taken)
        asked = asked_of(
            units,
            {view.host: view for view in views},
            {host.name: host.plan for host in self.hosts},
            {host.name: host.remote for host in self.hosts},
        )
        return MatrixPlan(looks, units, not_run, asked)

    def run(self, plan: MatrixPlan, pace: Pace, *, yes: bool) -> Result:
        """Ask, run the units and return one result of everything.

        Raises:
            Refused: the user doesn't agree; nothing was done, and it can be continued.
        """
        note = self._note(plan)
        write_note(self.directory, note)
        confirm(plan.asked, self.console, yes=yes)
        for unit in plan.units:
            self._watch.expect(unit.host, unit.stage, unit.cases)
        ended = self._crew(
            plan.units,
            lambda unit: self._perform(unit, plan.asked, yes=yes),
            at_once=pace.at_once(len(self.hosts)),
            per_host=pace.jobs or _PER_HOST,
            ends_all=lambda found: pace.fail_fast and found.exit_code is ExitCode.FAILED,
        )
        unrun = list(plan.not_run)
        for unit, end in ended.items():
            if isinstance(end, Unrun):
                unrun += [NotRun(cell, end.verdict, end.reason, end.exit_code) for cell in unit.cells]
            else:
                self._results[unit.folder] = end
        begun = {unit for unit, end in ended.items() if not isinstance(end, Unrun)}
        kept = tuple(unit for unit in note.units if unit not in plan.units or unit in begun)
        note = replace(note, units=kept, not_run=tuple(unrun))
        result = gather(note, self._results, str(self.directory))
        return keep(result, lambda: write_note(self.directory, note))

    def close(self) -> None:
        """End all connections."""
        for connections in self._connections.values():
            connections.close()

    def _note(self, plan: MatrixPlan) -> MatrixNote:
        return MatrixNote(
            run=self.run_id,
            command="matrix",
            stages=tuple(self.stages),
            cases=tuple(self.cases),
            hosts=tuple(host.name for host in self.hosts),
            hosts_file=self.hosts_file,
            looks=self._looks,
            units=(*(self.before.units if self.before else ()), *plan.units),
            not_run=plan.not_run,
            places=tuple(
                {
                    **(dict(self.before.places) if self.before else {}),
                    **{unit.host: self._by_name[unit.host].destination for unit in plan.units},
                }.items()
            ),
            machines=tuple(
                {
                    **(dict(self.before.machines) if self.before else {}),
                    **{look.view.host: look.view.machine for look in plan.looks if look.view.machine},
                }.items()
            ),
        )

    def _connect(self, host: MatrixHost) -> Connections:
        return Connections(lambda: transport_to(host.settings, self.console, host.name), self.stop)

    def _crew(
        self,
        units: Sequence[Unit],
        perform: Callable[[Unit], _T],
        *,
        at_once: int,
        per_host: int,
        ends_all: Callable[[_T], bool] = lambda _: False,
    ) -> dict[Unit, _T | Unrun]:
        """Run units side by side; a signal ends them all, and what they run on the hosts."""

        def stopping() -> None:
            self.console.say("stopping: what runs on the hosts is ended first")

        crew = Crew(
            units,
            self._connections,
            perform,
            self._is_connecting,
            self.stop,
            at_once=at_once,
            per_host=per_host,
            ends_all=ends_all,
            stopping=stopping,
        )
        with _signals_to(self.stop), self._watch:
            ended = crew.run()
        if self.stop.is_set():
            self._over.set()  # whoever still connects has nothing more to say
        return ended

    def _look(self, *, record: bool, taken: set[str]) -> tuple[Look, ...]:
        asked = [Unit(host.name, "", (), new_folder(f"{host.name}.look", taken)) for host in self.hosts]
        for unit in asked:
            self._watch.expect(unit.host, "", (0,))
        seen = self._crew(
            asked, lambda unit: self._look_at(unit, record=record), at_once=_MOST_AT_ONCE, per_host=1
        )
        if self.stop.is_set():
            raise Interrupted("interrupted while the hosts were looked at; nothing was done")
        looks = tuple(look for look in seen.values() if not isinstance(look, Unrun))
        if record:
            self._looks += tuple((unit.host, unit.folder) for unit in asked)
            self._results |= {unit.folder: look.result for unit, look in zip(asked, looks, strict=True)}
        return looks

    def _look_at(self, unit: Unit, *, record: bool) -> Look:
        host, run_id = self._by_name[unit.host], new_run_id()
        transport = self._transports[unit] = self._connections[unit.host].take()
        plan = look_plan(host.plan)
        folder = self.directory / unit.folder
        evidence = keep_evidence(folder, plan, run_id, host.name) if record else None
        empty = Result(run_id, plan.command, host.name, str(folder) if record else "")
        framed = FramedHost(transport, evidence)
        with evidence_kept(folder):
            try:
                with self._watch.look(host.name):
                    return look_at(host.name, host.plan, framed, empty)
            finally:
                framed.close()
                if evidence is not None:
                    note_names(evidence, transport)

    def _perform(self, unit: Unit, asked: Sequence[Doing], *, yes: bool) -> Result | Unrun:
        host = self._by_name[unit.host]
        stage = next(each for each in host.plan.stages if each.stage == unit.stage)
        directories = tuple(pair for pair in host.plan.directories if pair[0] == stage.backend_name)
        plan = replace(host.plan, stages=(stage,), cases=unit.cases, directories=directories)
        transport = self._transports[unit] = self._connections[unit.host].take()
        place = Place(
            self.directory / unit.folder,
            transport,
            permission_for(unit, asked, remote=host.remote, yes=yes),
            lambda machine, *name: self._turns.turn(machine or host.destination, *name),
        )
        name = unit.stage if len(self.hosts) == 1 else f"{unit.host} {unit.stage}"
        with self._watch.unit(unit.host, unit.stage, name, self._over) as console:
            try:
                return run(host.settings, plan, self.discovery, console, place)
            except XbError as error:  # it has no result; what others found counts all the same
                return Unrun(Verdict.ERROR, str(error), error.exit_code)

    def _is_connecting(self, unit: Unit) -> bool:
        transport = self._transports.get(unit)
        return transport is not None and transport.connecting


class Silent(Console):
    """Takes what is said in a replay of what was said before."""

    def say(self, text: str = "") -> None:
        """Take a line."""

    def live(self, chunk: bytes) -> None:
        """Take progress."""


@contextmanager
def _signals_to(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and a closed terminal set ``stop`` and do nothing else."""

    def take(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    taken = [number for number, handler in before.items() if handler is not signal.SIG_IGN]
    for number in taken:
        signal.signal(number, take)
    try:
        yield
    finally:
        for number in taken:
            signal.signal(number, before[number])
