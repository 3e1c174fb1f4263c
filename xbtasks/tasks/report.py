"""Past runs: list them, show one, compare two."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from xbtasks.errors import ExitCode, UsageError
from xbtasks.tasks.command import OUTPUTS, RUN, Call, Option, command

if TYPE_CHECKING:
    from xbtasks.runs import PastRun

__all__ = ["diff", "show"]


@command(
    Option("run", f"{RUN} (none: list the runs)", positional=True),
    Option("limit", "how many runs to list, the newest first; 0 lists all (default 20)"),
    *OUTPUTS,
)
def show(call: Call) -> ExitCode:
    """List past runs, or show one again.

    One that is shown looks as it did at its end, and the command ends with its exit code.
    """
    from xbtasks.evidence import runs_directory
    from xbtasks.runs import find_run, past_runs

    directory = runs_directory()
    name = call.text("run")
    if name:
        from xbtasks.tasks.running import finish

        found = find_run(name, directory)
        _warn(found)
        if found.result is None:
            raise UsageError(f"{found.directory} holds no result")
        where = str(found.directory)  # the folder may have moved since
        return finish(call, replace(found.result, evidence=where), summary=False)
    from xbtasks.reporting.history import run_documents, show_runs

    wanted = [form for form in call.outputs if form != "json"]
    if wanted:
        hint = f"`inv report last --{wanted[0]}={call.outputs[wanted[0]]}` takes the newest"
        raise UsageError(f"--{wanted[0]} is of one run, and none is named", hint=hint)
    runs, more = past_runs(directory, most=_limit(call))
    call.document(run_documents(runs, more))
    show_runs(runs, more, str(directory), call.console)
    return ExitCode.PASSED


@command(
    Option("before", f"{RUN} (default: last~1)", positional=True),
    Option("after", f"{RUN} (default: last)", positional=True),
    Option("markdown", "write the comparison to this file as GitHub's Markdown, for a pull request"),
    Option("exit_code", "end with 1 when something differs, as git diff does", switch=True),
)
def diff(call: Call) -> ExitCode:
    """Compare two runs: what did a change do?

    Verdicts and checks that changed, and for each artifact what the loader sees of it: hooks lost or gained,
    NEEDED, GLIBC need, RPATH, size.
    """
    from xbtasks.compare import compare
    from xbtasks.evidence import runs_directory
    from xbtasks.reporting.history import comparison_document, show_comparison
    from xbtasks.runs import find_run

    directory = runs_directory()
    before, after = (
        find_run(call.text(name) or default, directory)
        for name, default in (("before", "last~1"), ("after", "last"))
    )
    if before.directory == after.directory and not (call.text("before") and call.text("after")):
        raise UsageError(
            f"there is one run to compare, {after.name}, and no other is named",
            hint="report.diff BEFORE AFTER; `inv report` lists the runs",
        )
    _warn(after)
    if before.result is None or after.result is None:
        raise UsageError("a run without a result can't be compared")
    comparison = compare(before.result, after.result)
    if call.outputs.get("markdown"):
        from xbtasks.files import write_atomically
        from xbtasks.reporting.bump import render

        write_atomically(call.outputs["markdown"], render(comparison))
    call.document(comparison_document(comparison))
    show_comparison(comparison, call.console)
    return ExitCode.FAILED if comparison.changes and call.switch("exit_code") else ExitCode.PASSED


def _warn(found: PastRun) -> None:
    if found.note:
        from xbtasks.reporting.console import one_line

        print(f"note: {one_line(found.note)}", file=sys.stderr)


def _limit(call: Call) -> int:
    text = call.text("limit") or "20"
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise UsageError(f"--limit {text!r}: a whole number is accepted, 0 for all")
    return int(text)
