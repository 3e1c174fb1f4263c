"""What `inv matrix` types: hosts, stages and cases chosen, the plan shown or run."""

from __future__ import annotations

import json
import shlex
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode, UsageError
from xbtasks.evidence import new_run_id, run_directory, runs_directory
from xbtasks.files import write_atomically
from xbtasks.matrix.folder import keep, read_note
from xbtasks.matrix.hostsfile import read_hosts
from xbtasks.matrix.resuming import find_matrix, locked, require_same
from xbtasks.matrix.running import MatrixHost, MatrixRun, Pace
from xbtasks.matrix.selection import chosen_cases, chosen_names
from xbtasks.planning import case_knobs, discover_stages, make_plan
from xbtasks.result import Result
from xbtasks.session import with_host
from xbtasks.source import SOURCE
from xbtasks.tasks.running import finish, redacted
from xbtasks.typed import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.checkout.stages import Discovery, Stage
    from xbtasks.knobs.settings import Settings
    from xbtasks.matrix.model import MatrixNote
    from xbtasks.tasks.command import Call

__all__ = ["run_matrix"]

_SELECTION = ("stages", "cases", "hosts")
_MOST_JOBS = 1024


@dataclass(frozen=True)
class _Target:
    """A host that was named, before its plan is made."""

    name: str
    settings: Settings
    backends: tuple[str, ...]


def run_matrix(call: Call) -> ExitCode:
    """Plan a matrix, show the plan or run it, and print its result."""
    if call.text("emit"):
        from xbtasks.tasks.emitting import emit_jobs

        return emit_jobs(call)
    pace = Pace(_jobs(call.text("jobs")), fail_fast=call.switch("fail_fast"))
    discovery = discover_stages(call.settings)
    before = _before(call)
    with ExitStack() as held:
        if before:
            held.enter_context(locked(before))
        note = read_note(before) if before else None
        only = _stages(call, discovery) if note is None else ()
        if call.switch("changed") and note is None and not only:
            nothing = ((ExitCode.SKIPPED, "this branch touches none of these stages"),)
            return finish(call, Result(run="", command="matrix", host="none", evidence="", errors=nothing))
        run_id = note.run if note else new_run_id()
        matrix = _matrix(call, discovery, note, only, run_id, before or run_directory(run_id))
        held.callback(matrix.close)
        if call.switch("dry_run"):
            return _dry_run(call, matrix, pace)
        if not before:
            held.enter_context(locked(matrix.directory))
        plan = matrix.plan(record=True)
        result = matrix.run(plan, pace, yes=call.settings.yes)
        text = json.dumps(result.to_json(), indent=1) + "\n"
        result = keep(result, lambda: write_atomically(str(matrix.directory / "result.json"), text))
    code = finish(call, redacted(result) if call.switch("redact") else result)
    if any(case.verdict in (Verdict.ERROR, Verdict.SKIP) for case in result.cases):
        name = run_id if matrix.directory.name == run_id else str(matrix.directory)
        call.console.say(f"  what has no verdict yet: {command(f'matrix --continue {shlex.quote(name)}')}")
    return code


def _dry_run(call: Call, matrix: MatrixRun, pace: Pace) -> ExitCode:
    from xbtasks.reporting.plans import plan_document, show_plan

    plan = matrix.plan(record=False)
    show_plan(plan, matrix.hosts, call.console, jobs=pace.at_once(len(matrix.hosts)))
    call.document(plan_document(plan, matrix.hosts))
    if any(look.view.problem for look in plan.looks):
        return ExitCode.CANNOT_JUDGE
    return ExitCode.PASSED if plan.units else ExitCode.SKIPPED


def _before(call: Call) -> Path | None:
    """Return the folder of the matrix to continue, if one was named."""
    name = call.text("continue_")
    if not name:
        return None
    given = [f"--{flag}" for flag in _SELECTION if call.text(flag)]
    given += ["--changed"] if call.switch("changed") else []
    if given:
        raise UsageError(
            f"--continue runs what is left of a matrix, {', '.join(given)} can't be given with it"
        )
    return find_matrix(name, runs_directory())


def _matrix(
    call: Call,
    discovery: Discovery,
    note: MatrixNote | None,
    only: tuple[str, ...],
    run_id: str,
    directory: Path,
) -> MatrixRun:
    names = [stage.name for stage in discovery.stages]
    if note is None:
        stages = only
        cases = chosen_cases(call.text("cases"), _case_numbers(discovery, stages))
    else:
        stages, cases = note.stages, note.cases
        gone = [stage for stage in stages if stage not in names]
        if gone:
            raise UsageError(f"the Dockerfile has no {', '.join(gone)} any more", hint="start a new matrix")
    file = call.text("hosts_file") or (note.hosts_file if note else "")
    targets = _targets(call, discovery, file, note)
    chosen = [stage for stage in discovery.stages if stage.name in stages]
    call.require_backends(dict.fromkeys(stage.backend.name for stage in chosen))
    hosts = [_host(call, discovery, target, chosen, cases) for target in targets]
    if note is not None:
        plans = {host.name: host.plan for host in hosts}
        require_same(directory, note, plans, {host.name: host.destination for host in hosts})
    return MatrixRun(
        run_id,
        hosts,
        stages,
        cases,
        discovery,
        call.console,
        directory,
        hosts_file=str(Path(file).resolve()) if file else "",
        before=note,
    )


def _targets(call: Call, discovery: Discovery, file: str, note: MatrixNote | None) -> tuple[_Target, ...]:
    """Return the hosts: those of the file that were chosen, else the one of the knobs."""
    if not file:
        if call.text("hosts"):
            raise UsageError("--hosts chooses hosts of a file", hint="--hosts-file names it")
        settings = with_host(call.settings, call.console)
        name = str(settings.host) if settings.host else "local"
        if note and (name,) != note.hosts:
            raise UsageError(f"the matrix ran on {', '.join(note.hosts)}, not on {name}")
        from xbtasks.backends import BACKENDS

        return (_Target(name, settings, tuple(BACKENDS)),)
    for flag in ("host", "mode"):
        if call.text(flag):
            raise UsageError(f"--{flag} and --hosts-file both say where to run", hint="give one of them")
    projects = [folder for folder in (SOURCE, discovery.repo) if folder]
    entries = {entry.name: entry for entry in read_hosts(Path(file), outside=projects)}
    if note is None:
        chosen: Sequence[str] = chosen_names("--hosts", call.text("hosts"), tuple(entries))
    else:
        chosen = note.hosts
        gone = [name for name in chosen if name not in entries]
        if gone:
            raise UsageError(f"{file} has no host {', '.join(gone)} any more")
    return tuple(
        _Target(name, call.settings_for(entries[name].values), entries[name].backends) for name in chosen
    )


def _host(
    call: Call, discovery: Discovery, target: _Target, stages: Sequence[Stage], cases: Sequence[int]
) -> MatrixHost:
    settings = target.settings
    plan = make_plan(
        settings,
        "matrix",
        discovery,
        [stage for stage in stages if stage.backend.name in target.backends],
        cases=cases,
        build=True,
        knobs=case_knobs(settings, throttle=not call.switch("no_throttle"), busy_ok=call.switch("busy_ok")),
        rebuild=call.switch("rebuild"),
        adopt=call.switch("adopt"),
    )
    return MatrixHost(target.name, settings, replace(plan, shared=True))


def _stages(call: Call, discovery: Discovery) -> tuple[str, ...]:
    """Return the stages that were chosen and, with ``--changed``, that the branch touches."""
    from xbtasks.tasks.emitting import touched_names

    chosen = chosen_names("--stages", call.text("stages"), [stage.name for stage in discovery.stages])
    return touched_names(call, chosen, call.console)


def _case_numbers(discovery: Discovery, stages: Sequence[str]) -> tuple[int, ...]:
    numbers = {
        case.number for stage in discovery.stages if stage.name in stages for case in stage.backend.cases
    }
    return tuple(sorted(numbers))


def _jobs(text: str) -> int:
    """Return how many runs go on at once, 0 where nothing was said.

    Raises:
        UsageError: it is no such number.
    """
    if not text:
        return 0
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= _MOST_JOBS):
        raise UsageError(f"--jobs {text!r}: a number from 1 to {_MOST_JOBS} is accepted")
    return int(text)
