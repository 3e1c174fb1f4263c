"""Continuing a matrix: its folder, that nobody else is at it, and that it is about the same inputs still."""

from __future__ import annotations

import difflib
import fcntl
import json
import os
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError, disk_error
from xbtasks.evidence import ELSEWHERE
from xbtasks.matrix.folder import NOTE, is_matrix, read_note
from xbtasks.plan import RunPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from xbtasks.matrix.model import MatrixNote, View

__all__ = ["find_matrix", "locked", "require_same", "require_same_machines"]

_MAY_DIFFER: Final = frozenset(
    (
        *("command", "stages", "cases", "directories", "commit"),
        *("rebuild", "adopt", "builder", "step_deadline", "build_deadline"),
    )
)
"""What of a run's plan may be another one the next time, without other verdicts."""


def find_matrix(name: str, runs: Path) -> Path:
    """Return the folder of the matrix called ``name``: its id or the beginning of it, ``last``, or a folder.

    Raises:
        UsageError: there is none, or several.
    """
    given = Path(name) if os.sep in name or Path(name).is_dir() else runs / name
    if name and _can_go_on(given):
        return given.resolve()
    known = sorted(path.parent.name for path in runs.glob(f"*/{NOTE}") if _can_go_on(path.parent))
    fitting = known[-1:] if name == "last" else [each for each in known if name and each.startswith(name)]
    if len(fitting) == 1:
        return (runs / fitting[0]).resolve()
    near = difflib.get_close_matches(name, known, n=3) or known[-3:]
    hint = f"there is {', '.join(near)}" if near else f"no matrix is kept in {runs}"
    raise UsageError(f"--continue: {name!a} is no matrix", hint=hint)


def _can_go_on(directory: Path) -> bool:
    """Whether a folder is a matrix's: what one nox found lies in a folder of the same form."""
    try:
        return is_matrix(directory) and read_note(directory).command == "matrix"
    except UsageError:  # a note that is torn: whoever names it is told so
        return True


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the folder of a matrix, which is made if missing.

    Raises:
        UsageError: another process holds it, or it can't be made.
    """
    try:
        directory.mkdir(parents=True, mode=0o700, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise disk_error(f"the evidence can't be kept in {directory}", error, hint=ELSEWHERE) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"{directory}: another process is running this matrix") from None
    finally:
        os.close(handle)


def require_same_machines(note: MatrixNote, views: Iterable[View]) -> None:
    """Return when the hosts that an earlier run has verdicts of are the machines that they were.

    An alias may lead elsewhere by now, which its name doesn't tell.

    Raises:
        UsageError: one is another.
    """
    before, used = dict(note.machines), {unit.host for unit in note.units}
    for view in views:
        was = before.get(view.host, "")
        if view.host in used and was and view.machine and was != view.machine:
            raise UsageError(
                f"{view.host} is another engine than in {note.run}",
                hint="lead its name back there, or start a new matrix",
            )


def require_same(
    directory: Path, note: MatrixNote, plans: Mapping[str, RunPlan], places: Mapping[str, str]
) -> None:
    """Return when the verdicts of an earlier run are about the machines, inputs and knobs of today.

    ``plans`` and ``places``, where they are, are by host.

    Raises:
        UsageError: a host is another machine, a stage has other inputs, or a knob that counts was changed.
    """
    before_at = dict(note.places)
    for unit in note.units:
        path = directory / unit.folder / "run.json"
        if not path.is_file():
            continue
        here = places[unit.host]
        if before_at.get(unit.host, here) != here:
            raise UsageError(
                f"{unit.host} is {here} now, and was {before_at[unit.host]} in {note.run}",
                hint="name it as it was, or start a new matrix",
            )
        try:
            then = RunPlan.from_json(json.loads(path.read_bytes())["plan"])
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"{path} can't be read: {error!r}") from error
        now = plans[unit.host]
        before, after = (
            {stage.stage: stage for stage in plan.stages}.get(unit.stage) for plan in (then, now)
        )
        if before != after:
            raise UsageError(
                f"{unit.stage} has other inputs or knobs than in {note.run}", hint="start a new matrix"
            )
        fields = asdict(now)
        changed = [name for name, value in asdict(then).items() if value != fields[name]]
        changed = [name for name in changed if name not in _MAY_DIFFER]
        if changed:
            raise UsageError(
                f"{', '.join(changed)} on {unit.host} differs from {note.run}",
                hint="set it as it was, or start a new matrix",
            )
