"""`inv matrix --emit`: the jobs of a CI engine instead of a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from xbtasks.errors import ExitCode, UsageError
from xbtasks.matrix.jobs import make_jobs, why_no_job
from xbtasks.matrix.selection import chosen_cases, chosen_names
from xbtasks.planning import discover_stages
from xbtasks.reporting.ci import form
from xbtasks.reporting.console import Console
from xbtasks.tasks.changes import touched_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.tasks.command import Call

__all__ = ["emit_jobs", "touched_names"]

_OF_A_RUN = ("hosts", "hosts_file", "continue_", "jobs", "junit", "markdown", "html")


def emit_jobs(call: Call) -> ExitCode:
    """Print the jobs of the stages and cases that were chosen; what people read goes to stderr."""
    write = form(call.text("emit"))
    run_flags = [name.rstrip("_").replace("_", "-") for name in _OF_A_RUN if call.text(name)]
    if run_flags or call.wants_json:
        first = run_flags[0] if run_flags else "json"
        raise UsageError(f"--emit writes jobs and runs nothing, so --{first} can't be given with it")
    discovery = discover_stages(call.settings)
    names = chosen_names("--stages", call.text("stages"), [stage.name for stage in discovery.stages])
    stages = [stage for stage in discovery.stages if stage.name in names]
    numbers = sorted({case.number for stage in stages for case in stage.backend.cases})
    cases = chosen_cases(call.text("cases"), numbers)
    console = Console(sys.stderr)
    kept = touched_names(call, names, console)
    stages = [stage for stage in stages if stage.name in kept]
    platform = call.settings.platform
    for stage in stages:
        if why := why_no_job(stage, cases, platform):
            console.say(f"{stage.name} gets no job: {why}")
    print(write(make_jobs(stages, cases, platform)))
    return ExitCode.PASSED


def touched_names(call: Call, names: Sequence[str], console: Console) -> tuple[str, ...]:
    """Return those of ``names`` that the branch touches, and say why; all of them without ``--changed``.

    Raises:
        UsageError: a base is named and ``--changed`` is not.
    """
    if not call.switch("changed"):
        if call.text("base"):
            raise UsageError("--base is what --changed compares with", hint="give --changed too")
        return tuple(names)
    from xbtasks.reporting.changes import show_touched

    touched = touched_by(call)
    show_touched(touched, console, commands=False)
    found = {stage.name for stage in touched.stages}
    return tuple(name for name in names if name in found)
