"""What a matrix is made of, as values: hosts that were looked at, units to run, cells that are not run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

from xbtasks.backends import backend_of
from xbtasks.checks import CaseReport, Verdict
from xbtasks.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xbtasks.backends.base import Platform

__all__ = ["SCHEMA", "Cell", "MatrixNote", "NotRun", "StageView", "Unit", "View"]

SCHEMA = 1
"""The version of the note's form."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One case of one stage on one host; ``host`` is empty where no host can take it."""

    host: str
    stage: str
    case: int


@dataclass(frozen=True, slots=True)
class StageView:
    """What a host has of a stage. ``build`` says why it has to be built there, or nothing.

    ``obstacle`` says why the host can't take the stage at all, ``sends`` whether the build context is sent.
    """

    stage: str
    build: str = ""
    obstacle: str = ""
    sends: bool = False


@dataclass(frozen=True, slots=True)
class View:
    """What a look at a host showed. ``problem`` says why it can take nothing, with the exit code of that.

    ``machine`` is which engine it is, as a digest; empty where it doesn't say. ``cards`` and ``chips`` are by
    backend; ``stages`` are those that the host is for.
    """

    host: str
    machine: str = ""
    platform: Platform | None = None
    simulated: bool = False
    cards: tuple[tuple[str, int], ...] = ()
    chips: tuple[tuple[str, tuple[str, ...]], ...] = ()
    stages: tuple[StageView, ...] = ()
    problem: str = ""
    exit_code: ExitCode = ExitCode.CANNOT_JUDGE

    def stage(self, name: str) -> StageView | None:
        """Return what the host has of a stage, or None where it isn't for it."""
        return next((each for each in self.stages if each.stage == name), None)


@dataclass(frozen=True, slots=True)
class Unit:
    """One host and one stage with its cases; ``folder`` is the name of its evidence directory."""

    host: str
    stage: str
    cases: tuple[int, ...]
    folder: str

    @property
    def cells(self) -> tuple[Cell, ...]:
        """What it is to give a verdict on."""
        return tuple(Cell(self.host, self.stage, case) for case in self.cases)


@dataclass(frozen=True, slots=True)
class NotRun:
    """A cell that is not run, and why."""

    cell: Cell
    verdict: Verdict
    reason: str
    exit_code: ExitCode

    def report(self) -> CaseReport:
        """Return the cell as a case's report without rows."""
        backend = backend_of(self.cell.stage)
        case = backend.case(self.cell.case) if backend else None
        return CaseReport(
            id=f"{backend.name}.case{self.cell.case}" if backend else f"case{self.cell.case}",
            title=case.title if case else "",
            stage=self.cell.stage,
            verdict=self.verdict,
            reason=self.reason,
            seconds=0.0,
            exit_code=self.exit_code,
            host=self.cell.host,
        )


@dataclass(frozen=True, slots=True)
class MatrixNote:
    """What stands in ``matrix.json``: enough to judge all units again, and to run what has no verdict yet.

    ``stages`` and ``hosts`` are the names in their order, ``looks`` pairs of a host and the folder of a look
    at it. A later unit of a host and stage is another attempt: its cases replace the earlier ones'.
    ``places`` are pairs of a host that has units and where it is, ``machines`` of a host and its engine.
    """

    run: str
    command: str
    stages: tuple[str, ...]
    cases: tuple[int, ...]
    hosts: tuple[str, ...]
    hosts_file: str = ""
    looks: tuple[tuple[str, str], ...] = ()
    units: tuple[Unit, ...] = ()
    not_run: tuple[NotRun, ...] = ()
    places: tuple[tuple[str, str], ...] = ()
    machines: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return the note as JSON values."""
        return {"schema": SCHEMA, **asdict(self)}

    @classmethod
    def from_json(cls, document: object) -> MatrixNote:
        """Return the note that :meth:`to_json` wrote.

        Raises:
            UsageError: the document is no such note.
        """
        try:
            note = dict(cast("Mapping[str, object]", document))
            if note["schema"] != SCHEMA:
                raise UsageError(
                    f"the matrix was recorded in form {note['schema']}, this version reads {SCHEMA}"
                )
            return cls(
                run=_text(note["run"]),
                command=_text(note["command"]),
                stages=_texts(note["stages"]),
                cases=_numbers(note["cases"]),
                hosts=_texts(note["hosts"]),
                hosts_file=_text(note["hosts_file"]),
                looks=tuple((host, _folder(name)) for host, name in _pairs(note["looks"])),
                units=tuple(_unit(each) for each in cast("list[dict[str, object]]", note["units"])),
                not_run=tuple(_not_run(each) for each in cast("list[dict[str, object]]", note["not_run"])),
                places=_pairs(note.get("places", [])),
                machines=_pairs(note.get("machines", [])),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(f"this is no matrix of this version: {error!r}") from error


def _unit(document: dict[str, object]) -> Unit:
    return Unit(
        host=_text(document["host"]),
        stage=_text(document["stage"]),
        cases=_numbers(document["cases"]),
        folder=_folder(document["folder"]),
    )


def _not_run(document: dict[str, object]) -> NotRun:
    cell = cast("dict[str, object]", document["cell"])
    return NotRun(
        Cell(_text(cell["host"]), _text(cell["stage"]), _number(cell["case"])),
        Verdict(_text(document["verdict"])),
        _text(document["reason"]),
        ExitCode(_number(document["exit_code"])),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _folder(value: object) -> str:
    """Return the name of a folder inside the matrix's own; nothing else is ever read."""
    name = _text(value)
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is no name of a folder")
    return name


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is no number")
    return value


def _texts(value: object) -> tuple[str, ...]:
    return tuple(_text(each) for each in cast("list[object]", value))


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    return tuple((_text(one), _text(other)) for one, other in cast("list[list[object]]", value))


def _numbers(value: object) -> tuple[int, ...]:
    return tuple(_number(each) for each in cast("list[object]", value))
