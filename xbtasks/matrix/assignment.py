"""Which host takes which stage and case, decided on what the looks at the hosts showed.

A host takes every stage that it is for and can build or has, with the cases that it has the cards for. One
whose cards are of another chip leaves the stage to those that have the chip, if there are any. With several
hosts a cell that none can take is not run, and its reason tells of each; a single host's own run says why it
skips one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.backends import backend_of
from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode
from xbtasks.matrix.model import Cell, NotRun, Unit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from xbtasks.backends.base import Backend, Case
    from xbtasks.matrix.model import View

__all__ = ["assign", "new_folder", "why_not_case", "why_not_stage"]


def assign(
    views: Sequence[View],
    stages: Sequence[str],
    cases: Sequence[int],
    *,
    done: Collection[Cell] = (),
    taken: Collection[str] = (),
) -> tuple[tuple[Unit, ...], tuple[NotRun, ...]]:
    """Return the units to run, and the cells that are not.

    Cells that are ``done`` are in neither. ``taken`` are names of evidence directories that exist.
    """
    units: list[Unit] = []
    idle: list[NotRun] = []
    measured = {(cell.stage, cell.case) for cell in done}
    for stage in stages:
        backend = backend_of(stage)
        numbers = [number for number in cases if backend and backend.case(number)]
        able = [view for view in views if _takes(view, stage, alone=len(views) == 1)]
        right = [view for view in able if not _other_chip(view, stage)]
        takers = right or able
        idle += _problems(views, stage, numbers)
        asked: dict[str, list[int]] = {view.host: [] for view in takers}
        for number in numbers:
            hosts = _hosts_of(takers, stage, number, alone=len(views) == 1)
            for host in hosts:
                asked[host].append(number)
            if not hosts and (stage, number) not in measured:
                idle += _taken_by_none(views, stage, number)
        for host, chosen in asked.items():
            left = tuple(number for number in chosen if Cell(host, stage, number) not in done)
            if left:
                units.append(Unit(host, stage, left, new_folder(f"{host}.{stage}", taken)))
    return tuple(units), tuple(each for each in idle if each.cell not in done)


def why_not_stage(view: View, stage: str) -> str:
    """Return why a host can't take a stage, or nothing."""
    seen = view.stage(stage)
    backend = backend_of(stage)
    if seen is None:
        return f"it is not for {backend.name if backend else stage}"
    return view.problem or seen.obstacle


def why_not_case(view: View, stage: str, case: Case, backend: Backend) -> str:
    """Return why a host that takes a stage can't take one of its cases, or nothing."""
    if not case.cards:
        return ""
    found = dict(view.cards).get(backend.name, 0)
    if found < case.cards:
        return f"needs {case.cards} {backend.card}, the host has {found}"
    return _other_chip(view, stage)


def _takes(view: View, stage: str, *, alone: bool) -> bool:
    """Return whether a host takes a stage; of a single one its own run says what it can't build."""
    seen = view.stage(stage)
    return not view.problem and seen is not None and (alone or not seen.obstacle)


def _other_chip(view: View, stage: str) -> str:
    """Return that the host's cards are of another chip than the stage is for, or nothing."""
    backend = backend_of(stage)
    chips = dict(view.chips).get(backend.name, ()) if backend else ()
    if not chips or any(stage.endswith(f"-{chip}") for chip in chips):
        return ""
    return f"the stage is for another chip than {', '.join(chips)}"


def _hosts_of(takers: Iterable[View], stage: str, number: int, *, alone: bool) -> list[str]:
    backend = backend_of(stage)
    case = backend.case(number) if backend else None
    if backend is None or case is None:
        return []
    return [view.host for view in takers if alone or not why_not_case(view, stage, case, backend)]


def _problems(views: Iterable[View], stage: str, numbers: Iterable[int]) -> Iterable[NotRun]:
    """Return the cells of the hosts that can't be used at all: what they could have taken isn't known."""
    for view in views:
        if view.problem and view.stage(stage) is not None:
            for number in numbers:
                yield NotRun(Cell(view.host, stage, number), Verdict.ERROR, view.problem, view.exit_code)


def _taken_by_none(views: Sequence[View], stage: str, number: int) -> Iterable[NotRun]:
    """Yield the cell that no host can take, unless none can be used and those that are for it tell of it."""
    looked_at = [view for view in views if not view.problem]
    if not looked_at and any(view.stage(stage) for view in views):
        return
    views = looked_at or views
    backend = backend_of(stage)
    case = backend.case(number) if backend else None
    whys = []
    for view in views:
        why = why_not_stage(view, stage)
        if not why and backend and case:
            why = why_not_case(view, stage, case, backend)
        whys.append(f"{view.host}: {why}" if len(views) > 1 else why)
    alone = len(views) == 1
    reason = whys[0] if alone else f"no host can take it: {'; '.join(whys)}"
    cell = Cell(views[0].host if alone else "", stage, number)
    yield NotRun(cell, Verdict.SKIP, reason, ExitCode.SKIPPED)


def new_folder(name: str, taken: Collection[str]) -> str:
    """Return ``name``, or ``name.2`` and so on where it is taken."""
    attempt = 1
    while (chosen := name if attempt == 1 else f"{name}.{attempt}") in taken:
        attempt += 1
    return chosen
