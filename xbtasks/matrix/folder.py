"""The folder of a matrix: its note, an evidence directory for each unit, and one result of all of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from xbtasks.checks import CaseReport, Verdict
from xbtasks.errors import ExitCode, UsageError, XbError, reason_of
from xbtasks.files import write_atomically
from xbtasks.matrix.model import Cell, MatrixNote, NotRun, Unit
from xbtasks.result import Result, merge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from xbtasks.reporting.console import Console

__all__ = [
    "NOTE",
    "gather",
    "is_matrix",
    "keep",
    "read_note",
    "replay_folder",
    "replay_matrix",
    "replayed",
    "standing",
    "write_note",
]

NOTE: Final = "matrix.json"
"""The file in a matrix's folder that tells what it is made of."""


def is_matrix(directory: Path) -> bool:
    """Return whether ``directory`` is a matrix's."""
    return (directory / NOTE).is_file()


def write_note(directory: Path, note: MatrixNote) -> None:
    """Write the note.

    Raises:
        UsageError: it can't be written.
    """
    write_atomically(str(directory / NOTE), json.dumps(note.to_json(), indent=1, sort_keys=True) + "\n")


def keep(result: Result, write: Callable[[], None]) -> Result:
    """Return ``result`` once ``write`` has kept it; that it can't be kept takes nothing of it away."""
    try:
        write()
    except XbError as error:
        problem = (ExitCode.CANNOT_JUDGE, f"the evidence can't be kept: {error}")
        return replace(result, errors=(*result.errors, problem))
    return result


def read_note(directory: Path) -> MatrixNote:
    """Return the note.

    Raises:
        UsageError: there is none of this version.
    """
    try:
        return MatrixNote.from_json(json.loads((directory / NOTE).read_bytes()))
    except (OSError, RecursionError, ValueError) as error:
        raise UsageError(f"{directory} holds no matrix: {reason_of(error)}") from error


def replay_folder(directory: Path, console: Console) -> Result:
    """Judge the evidence in ``directory`` again: a run's, or all of a matrix.

    Raises:
        UsageError: it holds no evidence of this version.
    """
    from xbtasks.session import replay

    if is_matrix(directory):
        return replay_matrix(directory, lambda folder: replay(folder, console))
    return replay(directory, console)


def replay_matrix(directory: Path, replay: Callable[[Path], Result]) -> Result:
    """Judge all units of a matrix again with ``replay``, and return the one result.

    Raises:
        UsageError: the folder holds no matrix, or evidence that can't be read.
    """
    note = read_note(directory)
    return gather(note, replayed(directory, note, replay), str(directory))


def replayed(directory: Path, note: MatrixNote, replay: Callable[[Path], Result]) -> dict[str, Result]:
    """Return the results of the looks and units that have evidence, by folder."""
    folders = [name for _, name in note.looks] + [unit.folder for unit in note.units]
    return {name: replay(directory / name) for name in folders if (directory / name / "run.json").is_file()}


def standing(note: MatrixNote, results: Mapping[str, Result]) -> frozenset[Cell]:
    """Return the cells that have a verdict: PASS, FAIL, and what was skipped because another case failed.

    A verdict on other bytes than a later attempt was about is none of this stage any more.
    """
    done: set[Cell] = set()
    last: dict[tuple[str, str], Result] = {}
    for unit in note.units:
        place, result = (unit.host, unit.stage), results.get(unit.folder)
        if _judges_others(last.get(place), result):
            done -= {cell for cell in done if (cell.host, cell.stage) == place}
        if result is not None and result.artifacts:
            last[place] = result
        reports = dict(zip(unit.cells, _reports(unit, results.get(unit.folder)), strict=True))
        settled = {Verdict.PASS, Verdict.FAIL}
        if any(report.verdict is Verdict.FAIL for report in reports.values()):
            settled.add(Verdict.SKIP)
        done -= reports.keys()
        done |= {cell for cell, report in reports.items() if report.verdict in settled}
    return frozenset(done)


def gather(note: MatrixNote, results: Mapping[str, Result], evidence: str) -> Result:
    """Return one result of all looks and units, by stage, host and case. ``results`` are by folder.

    Of several attempts at a case the last one counts. Each cell has its report, run or not.
    """
    looks = [_look(results[name]) for name in dict(note.looks).values() if name in results]
    pairs = [(host, stage) for stage in note.stages for host in note.hosts]
    parts = [_part(note, results, host, stage) for host, stage in pairs]
    found = merge(
        (*looks, *(part for part in parts if part is not None)),
        run=note.run,
        command=note.command,
        evidence=evidence,
    )
    by_none = tuple(each.report() for each in note.not_run if not each.cell.host)
    order = {stage: place for place, stage in enumerate(note.stages)}
    cases = sorted((*found.cases, *by_none), key=lambda case: order.get(case.stage, len(order)))
    return replace(found, host=found.host or ", ".join(note.hosts), cases=tuple(cases))


def _look(result: Result) -> Result:
    """Return what a look tells of its host; what it could not do stands at each cell of the host."""
    return replace(result, errors=())


def _part(note: MatrixNote, results: Mapping[str, Result], host: str, stage: str) -> Result | None:
    """Return what was found of one stage on one host, all attempts in one; None where there is nothing."""
    attempts = [unit for unit in note.units if (unit.host, unit.stage) == (host, stage)]
    ours = [each for each in note.not_run if (each.cell.host, each.cell.stage) == (host, stage)]
    idle = {each.cell.case: each.report() for each in ours}
    reports: dict[int, CaseReport] = {}
    part = Result(note.run, note.command, host, "")
    for unit in attempts:
        result = results.get(unit.folder)
        if _judges_others(part, result):
            reports = {cell.case: _outdated(cell) for cell in (Cell(host, stage, n) for n in reports)}
        reports |= dict(zip(unit.cases, _reports(unit, result), strict=True))
        if result is not None:
            part = replace(result, artifacts=result.artifacts or part.artifacts)
    reports |= idle
    if not reports:
        return None
    cases = tuple(reports[number] for number in sorted(reports))
    said = {case.reason for case in cases}
    errors = tuple((code, text) for code, text in part.errors if text not in said)
    return replace(part, host=host, preflight=(), cases=cases, errors=errors)


def _judges_others(earlier: Result | None, later: Result | None) -> bool:
    """Return whether two attempts at a stage judged different bytes, as a build anew may give."""
    before, after = (
        {(each.path, each.sha256) for each in result.artifacts} if result else set()
        for result in (earlier, later)
    )
    return bool(before and after and before != after)


def _outdated(cell: Cell) -> CaseReport:
    reason = "it was judged on another build, the stage was built anew since"
    return NotRun(cell, Verdict.ERROR, reason, ExitCode.CANNOT_JUDGE).report()


def _reports(unit: Unit, result: Result | None) -> Iterable[CaseReport]:
    """Return a report for each case of a unit, also for those that it did not come to."""
    numbered = {} if result is None else {int(case.id.rpartition("case")[2]): case for case in result.cases}
    for cell in unit.cells:
        yield numbered.get(cell.case) or NotRun(cell, *_why_missing(result)).report()


def _why_missing(result: Result | None) -> tuple[Verdict, str, ExitCode]:
    if result is None:
        return Verdict.ERROR, "it was not run: the matrix ended before", ExitCode.CANNOT_JUDGE
    code, text = result.errors[-1] if result.errors else (ExitCode.CANNOT_JUDGE, "the run ended before")
    return Verdict.ERROR, text, code
