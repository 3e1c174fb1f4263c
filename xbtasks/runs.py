"""Past runs: the folders that keep their evidence, listed and found by name, whatever state they are in."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.errors import UsageError
from xbtasks.places import places
from xbtasks.result import started
from xbtasks.resultfile import read_file, read_result

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xbtasks.result import Result

__all__ = ["PastRun", "find_folder", "find_run", "past_runs"]

_RESULT, _NOTE, _MATRIX = "result.json", "run.json", "matrix.json"
_LAST = re.compile(r"last(?:~(\d{1,4}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class PastRun:
    """A folder of evidence. ``result`` is None where it holds none, and ``note`` says what is wrong then.

    Of a run that was found as the last, ``note`` names the newer one that was passed over, having no result.
    """

    directory: Path
    when: datetime
    result: Result | None
    command: str = ""
    host: str = ""
    stages: tuple[str, ...] = ()
    note: str = ""

    @property
    def name(self) -> str:
        """The run's id, as its folder is called."""
        return self.directory.name


def past_runs(directory: Path, *, most: int = 0) -> tuple[tuple[PastRun, ...], int]:
    """Return the newest ``most`` runs in ``directory`` (0: all of them), and how many more there are.

    Raises:
        UsageError: the directory can't be read; one that isn't there holds no runs.
    """
    folders = _folders(directory)
    chosen = folders[:most] if most else folders
    return tuple(_past_run(folder) for folder in chosen), len(folders) - len(chosen)


def find_run(name: str, directory: Path) -> PastRun:
    """Return the run called ``name``: its id or the beginning of it, ``last``, ``last~2`` or a folder.

    ``last`` is the newest that has a result, ``last~2`` the second before that.

    Raises:
        UsageError: there is none, several, or it holds no result that can be read.
    """
    match = _LAST.fullmatch(name)
    found = _last(directory, int(match[1] or 0)) if match else _past_run(_named(name, directory))
    if found.result is None:
        raise UsageError(f"{found.directory}: {found.note}")
    return found


def find_folder(name: str, directory: Path) -> Path:
    """Return the folder of the run called ``name``, as `find_run` does; a result need not be in it.

    Raises:
        UsageError: there is none, or several.
    """
    return find_run(name, directory).directory if _LAST.fullmatch(name) else _named(name, directory)


def _last(directory: Path, before: int) -> PastRun:
    skipped: list[PastRun] = []
    number = 0
    for run in map(_past_run, _folders(directory)):
        if run.result is None:
            skipped.append(run)
        elif number == before:
            newer = f"{skipped[0].name} is newer: {skipped[0].note}" if skipped else ""
            return replace(run, note=newer)
        else:
            number += 1
    few = "no run has a result" if not before else f"there are not {before + 1} runs with a result"
    raise UsageError(f"{few} in {directory}", hint="`inv report` lists what there is")


def _named(name: str, directory: Path) -> Path:
    if not name or "\0" in name:
        raise UsageError(f"{name!a} is no run", hint="`inv report` lists what there is")
    if "/" in name or name in (".", ".."):
        folder = Path(name)
        if not folder.is_dir():
            raise UsageError(f"there is no folder {name}")
        return folder.resolve()
    folders = _folders(directory)
    fitting = [folder for folder in folders if folder.name == name]
    fitting = fitting or [folder for folder in folders if folder.name.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(folder.name for folder in fitting[:3]) + (" …" if len(fitting) > 3 else "")
        raise UsageError(f"{name!r} is the beginning of {len(fitting)} runs: {names}")
    if Path(name).is_dir():
        return Path(name).resolve()
    raise UsageError(f"no run {name!r} in {directory}", hint="`inv report` lists what there is")


def _folders(directory: Path) -> list[Path]:
    """Return the folders of runs, the newest first; hidden ones are somebody's work in progress."""
    try:
        found = [each for each in directory.iterdir() if each.is_dir() and not each.name.startswith(".")]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"{directory} can't be read: {error.strerror}") from error
    return sorted(found, key=lambda folder: (_when(folder), folder.name), reverse=True)


def _when(folder: Path) -> datetime:
    """Return when a run began, or for a folder that was named by others when it last changed."""
    begun = started(folder.name)
    if begun is not None:
        return begun
    try:
        return datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    except (OSError, OverflowError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def _past_run(folder: Path) -> PastRun:
    """Return what ``folder`` holds; nothing that may lie there raises."""
    when = _when(folder)
    try:
        result = read_result(folder / _RESULT)
    except UsageError as error:
        command, host, stages = _planned(folder)
        if (folder / _RESULT).exists():
            note = error.message.replace(f"{folder}/", "")
        elif command or any(folder.glob("*/run.json")):
            note = "no result: the run was stopped, or goes on"
        else:
            note = "not a run: it holds neither run.json nor result.json"
        return PastRun(folder, when, None, command, host, stages, note)
    stages = tuple(dict.fromkeys(place.stage for place in places(result)))
    return PastRun(folder, when, result, result.command, result.host, stages)


def _planned(folder: Path) -> tuple[str, str, tuple[str, ...]]:
    """Return command, host and stages of a run that was begun; nothing where that can't be read."""
    try:
        if (folder / _MATRIX).exists():
            note = json.loads(read_file(folder / _MATRIX))
            return str(note["command"]), ", ".join(map(str, note["hosts"])), tuple(map(str, note["stages"]))
        note = json.loads(read_file(folder / _NOTE))
        plan = note["plan"]
        return str(plan["command"]), str(note["host"]), tuple(_stages(plan["stages"]))
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, UsageError, ValueError):
        return "", "", ()


def _stages(planned: Sequence[dict[str, object]]) -> Iterator[str]:
    for stage in planned:
        yield str(stage["stage"])
