"""What the nox sessions are made of: the stages of the checkout, else those of the field, and their cases.

All sessions of one nox keep their runs in one folder, ``$XDG_STATE_HOME/xbtasks/runs/<time>-<id>/``, and the
nox that was typed puts them together at its end. The sessions that ``nox -j`` runs in processes of its own
find the folder in a variable.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Final

from xbtasks import streams
from xbtasks.errors import ExitCode, UsageError
from xbtasks.typed import as_typed

if TYPE_CHECKING:
    from collections.abc import Iterable, MutableMapping
    from pathlib import Path

    from xbtasks.matrix.model import NotRun
    from xbtasks.result import Result

__all__ = [
    "FIELD_STAGES",
    "case_cells",
    "close_group",
    "group_folder",
    "meaning",
    "put_together",
    "stage_names",
    "why_unproven",
]

FIELD_STAGES: Final = (
    "xbuild-ascend-cann-8-910b",
    "xbuild-ascend-cann-8-910c",
    "xbuild-ascend-cann-9-910b",
    "xbuild-ascend-cann-9-910c",
    "xbuild-ascend-cann-9-950",
    "xbuild-nvidia-cuda-12",
    "xbuild-nvidia-cuda-13",
)
"""The seven stages of the operator's public Dockerfile, listed where there is no checkout."""

_GROUP: Final = "XBTASKS_NOX"


_MEANINGS = {
    ExitCode.FAILED: "a check failed",
    ExitCode.USAGE: "refused, or wrong usage",
    ExitCode.SKIPPED: "nothing was measured",
    ExitCode.CANNOT_JUDGE: "could not judge",
    ExitCode.INTERRUPTED: "interrupted",
}


def meaning(code: int | None, folder: Path | None = None) -> str:
    """Return what an exit code of ours that isn't 0 means, for nox, which knows only good and bad.

    The result in ``folder``, if there is one, gives the reason.
    """
    known = next((text for each, text in _MEANINGS.items() if each == code), "did not run to its end")
    reason = ""
    if folder is not None:
        from xbtasks.reporting.console import one_line
        from xbtasks.resultfile import read_result

        with contextlib.suppress(UsageError):  # a run that was killed left none
            reason = as_typed(one_line(read_result(folder / "result.json").reason))
    return f"{known}: {reason} (exit code {code})" if reason else f"{known} (exit code {code})"


def why_unproven(folder: Path, case: int = 0) -> str:
    """Return why the result in ``folder`` is no PASS, of ``case`` if one is named; nothing where it is one.

    A task that ends well need not have measured anything: ``-- --help`` doesn't.
    """
    from xbtasks.checks import Verdict
    from xbtasks.resultfile import read_result

    try:
        result = read_result(folder / "result.json")
    except UsageError:
        return "nothing was measured: it left no result"
    if result.exit_code is not ExitCode.PASSED:
        return f"its result is {result.verdict}: {as_typed(result.reason)}"
    passed = {each.number for each in result.cases if each.verdict is Verdict.PASS}
    if case and case not in passed:
        return f"nothing was measured: case {case} was not run"
    return "" if passed else "nothing was measured: no case was run"


def stage_names(environ: MutableMapping[str, str], cwd: Path) -> tuple[str, ...]:
    """Return the builder stages of the checkout that ``XB_REPO`` or the current directory names.

    Raises:
        UsageError: there is none, or a knob is wrong.
    """
    from xbtasks.checkout.stages import discover
    from xbtasks.checkout.tree import find_repo
    from xbtasks.knobs.resolve import default_user_file, resolve

    settings = resolve(
        {}, environ, user_file=default_user_file(environ), explicit_user_file=False, project_file=None
    )
    dockerfile = str(settings.dockerfile)
    explicit = str(settings.repo) if settings.repo else None
    return tuple(stage.name for stage in discover(find_repo(explicit, dockerfile, cwd), dockerfile).stages)


def case_cells(stages: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return each stage with each case that its backend has."""
    from xbtasks.backends import backend_of

    found = ((stage, backend_of(stage)) for stage in stages)
    return tuple((stage, case.number) for stage, backend in found if backend for case in backend.cases)


def group_folder(environ: MutableMapping[str, str]) -> tuple[Path, bool]:
    """Return the folder of this nox, and whether this is the nox that was typed, not a child of it."""
    from pathlib import Path

    from xbtasks.evidence import new_run_id, runs_directory

    parent, _, folder = environ.setdefault(_GROUP, "").partition(":")
    if folder and parent == str(os.getppid()):
        return Path(folder), False
    made = runs_directory() / new_run_id()
    environ[_GROUP] = f"{os.getpid()}:{made}"
    return made, True


def close_group(folder: Path) -> None:
    """Put the runs of all sessions together, if there were any, and print the summary."""
    result = put_together(folder)
    if result is None:
        return
    from xbtasks.reporting.console import Console
    from xbtasks.reporting.table import show_summary

    streams.install()
    console = Console()
    show_summary(result, console)
    idle = [name for name, each in _results(folder).items() if each.exit_code is ExitCode.SKIPPED]
    if idle:
        console.say(f"  counted as failed, nothing was measured: {', '.join(idle)}")


def put_together(folder: Path) -> Result | None:
    """Return one result of the runs in ``folder`` and write it there; None where there are none.

    Runs of one stage can be judged again together (``inv replay``), where the others stand as not judged.
    """
    import json
    from dataclasses import replace

    from xbtasks.files import write_atomically
    from xbtasks.matrix.folder import write_note
    from xbtasks.matrix.model import MatrixNote, Unit
    from xbtasks.result import merge

    results = _results(folder)
    if not results and not _lost(folder, results):
        return None
    begun = {name: result for name, result in results.items() if result.cases}
    found = merge(begun.values(), run=folder.name, command="nox", evidence=str(folder))
    others = [
        (code, f"{name}: {text}")
        for name, result in results.items()
        if name not in begun
        for code, text in result.errors
    ]
    lost = [(ExitCode.CANNOT_JUDGE, f"{name}: it left no result") for name in _lost(folder, results)]
    found = replace(found, host=found.host or "none", errors=(*found.errors, *others, *lost))
    units = []
    for name, result in begun.items():
        stages = tuple(dict.fromkeys(case.stage for case in result.cases))
        if len(stages) == 1 and (folder / name / "run.json").is_file():
            cases = tuple(int(case.id.rpartition("case")[2]) for case in result.cases)
            units.append(Unit(result.host, stages[0], cases, name))
    if units:
        judged = {unit.folder for unit in units}
        note = MatrixNote(
            run=folder.name,
            command="nox",
            stages=tuple(dict.fromkeys(unit.stage for unit in units)),
            cases=tuple(sorted({case for unit in units for case in unit.cases})),
            hosts=tuple(dict.fromkeys(unit.host for unit in units)),
            units=tuple(units),
            not_run=tuple(
                _not_judged_again(name, results.get(name))
                for name in (*results, *_lost(folder, results))
                if name not in judged
            ),
        )
        write_note(folder, note)
    write_atomically(str(folder / "result.json"), json.dumps(found.to_json(), indent=1) + "\n")
    return found


def _not_judged_again(name: str, result: Result | None) -> NotRun:
    """Return how a session that isn't one run of one stage stands where the others are judged again."""
    from xbtasks.checks import Verdict
    from xbtasks.matrix.model import Cell, NotRun
    from xbtasks.result import verdict_of

    cell = Cell("", name, 0)
    if result is None:
        return NotRun(cell, Verdict.ERROR, "it left no result", ExitCode.CANNOT_JUDGE)
    if result.exit_code is ExitCode.PASSED:
        return NotRun(cell, Verdict.SKIP, "it passed; it is not judged again here", ExitCode.SKIPPED)
    return NotRun(cell, verdict_of(result.exit_code), result.reason, result.exit_code)


def _lost(folder: Path, results: Iterable[str]) -> list[str]:
    """Return the names of the sessions that began and left no result, as one that was killed."""
    begun = (path.name for path in folder.glob("[!.]*") if path.is_dir())
    return sorted(set(begun).difference(results))


def _results(folder: Path) -> dict[str, Result]:
    """Return the results of the sessions by their folders' names; of one that was killed there is none."""
    from xbtasks.resultfile import read_result

    found: dict[str, Result] = {}
    for path in sorted(folder.glob("*/result.json")):
        with contextlib.suppress(UsageError):
            found[path.parent.name] = read_result(path)
    return found
