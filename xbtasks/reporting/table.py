"""The table: every row of a run, or one line a case where many stages were run."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING

from xbtasks.checks import Status, Verdict
from xbtasks.explanations import advice
from xbtasks.reporting.console import one_line
from xbtasks.typed import as_typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xbtasks.checks import CaseReport, Check
    from xbtasks.reporting.console import Console
    from xbtasks.result import Result

__all__ = ["grid", "show_result", "show_summary"]

_NARROWEST = 30
_COUNTED = (Status.PASS, Status.FAIL, Status.WARN, Status.SKIP)


def grid(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    paint: Callable[[str], str] = str,
    width: int | None = None,
) -> str:
    """Return a table whose last column is wrapped to the terminal (``width`` columns, if given).

    Cells are shown as they are: never read as numbers, never on more lines than wrapping needs. ``paint``
    colours the first column.
    """
    from tabulate import tabulate

    cells = [[as_typed(one_line(cell)) for cell in row] for row in rows]
    taken = [max(len(row[column]) for row in [list(headers), *cells]) for column in range(len(headers) - 1)]
    room = (width or shutil.get_terminal_size((120, 24)).columns) - sum(taken) - 3 * len(headers) - 1
    for row in cells:
        row[0] = paint(row[0])
        row[-1] = "\n".join(textwrap.wrap(row[-1], max(room, _NARROWEST), break_on_hyphens=False))
    return str(tabulate(cells, headers=headers, tablefmt="presto", disable_numparse=True))


def show_result(result: Result, console: Console) -> None:
    """Print a run: its rows where one stage was run or a case failed, then a line for each case."""
    hosts = len({case.host for case in result.cases}) > 1
    several = hosts or len({case.stage for case in result.cases}) > 1
    _show_preflight(result, console)
    for case in result.cases:
        if case.checks and (not several or case.verdict in (Verdict.FAIL, Verdict.ERROR)):
            where = f"{case.stage} on {case.host}" if hosts else case.stage
            _show_rows(f"{case.id}  {case.title}  ({where})", case.checks, console)
    if several:
        console.say()
        console.say(_summary(result.cases, console, hosts=hosts))
    if result.artifacts and not several:
        artifacts = ((a.path, str(a.size), a.sha256) for a in result.artifacts)
        console.say()
        console.say(grid(["ARTIFACT", "BYTES", "SHA256"], artifacts))
    console.say()
    _show_verdict(result, _counted(result) if several else result.reason, console)


def show_summary(result: Result, console: Console) -> None:
    """Print a line for each case, and the verdict of all."""
    console.say()
    console.say(_summary(result.cases, console, hosts=len({case.host for case in result.cases}) > 1))
    console.say()
    _show_verdict(result, _counted(result), console)


def _show_preflight(result: Result, console: Console) -> None:
    """Print the preflight rows: all of them if they were asked for, else what failed, and a count."""
    asked = result.command == "preflight"
    found = result.preflights
    for host, rows in found.items():
        title = f"preflight of {host}" if len(found) > 1 else "preflight"
        _show_rows(title, [row for row in rows if asked or row.status is Status.FAIL], console)
    warned = [host for host, rows in found.items() for row in rows if row.status is Status.WARN]
    if warned and not asked and result.command != "demo":  # its host is no other command's
        hosts = len(set(warned))
        console.say()
        if len(found) == 1:
            console.say(f"preflight: {len(warned)} WARN about this host, `inv preflight` shows them")
        else:
            about = f"{hosts} host{'s' if hosts > 1 else ''}"
            console.say(f"preflight: {len(warned)} WARN about {about}, --html and --json show them")


def _show_rows(title: str, rows: Sequence[Check], console: Console) -> None:
    if not rows:
        return
    cells = ((row.status, row.id, _detail(row)) for row in rows)
    console.say()
    console.say(title)
    console.say(grid(["STATUS", "CHECK", "DETAIL"], cells, paint=console.status))
    for check_id in dict.fromkeys(row.id for row in rows if row.status is Status.FAIL):
        console.say(f"  {check_id}: {advice(check_id)}")


def _detail(row: Check) -> str:
    if row.status is not Status.FAIL or not (row.expected or row.observed):
        return row.detail
    return f"{row.detail} (expected {row.expected or 'nothing'}, observed {row.observed or 'nothing'})"


def _summary(cases: Sequence[CaseReport], console: Console, *, hosts: bool) -> str:
    """Return a table with a line for each case; those not begun for one reason share a line."""
    rows = []
    for (verdict, host, stage, _, reason), group in groupby(cases, _line_of):
        found = list(group)
        ids = [found[0].id, *(case.id.rpartition("case")[2] for case in found[1:])]
        seconds = sum(case.seconds for case in found)
        time = f"{seconds:.1f} s" if seconds or found[0].checks else ""
        where = [host or "none"] if hosts else []
        rows.append([verdict, *where, stage, ", ".join(ids), _counts(found[0].checks), time, reason])
    headers = ["VERDICT", *(["HOST"] if hosts else []), "STAGE", "CASE", "CHECKS", "TIME", "REASON"]
    return grid(headers, rows, paint=console.status)


def _line_of(case: CaseReport) -> tuple[str, str, str, str, str]:
    """Return what is the same in all cases of one line."""
    alone = case.id if case.checks or case.verdict is Verdict.PASS else ""
    return case.verdict, case.host, case.stage, alone, case.reason


def _counts(rows: Iterable[Check]) -> str:
    """Return how many rows of each status there are, INFO left out."""
    counts = Counter(row.status for row in rows)
    return ", ".join(f"{counts[status]} {status}" for status in _COUNTED if counts[status])


_WORDS = {Verdict.FAIL: "failed", Verdict.ERROR: "could not be judged", Verdict.SKIP: "skipped"}


def _counted(result: Result) -> str:
    """Return how many cases ended how, where a table tells the reasons, and on what terms others passed."""
    counts = Counter(case.verdict for case in result.cases)
    told = [f"{counts[verdict]} {word}" for verdict, word in _WORDS.items() if counts[verdict]]
    if told:
        told[0] += f" of {len(result.cases)} cases"
    terms = [case.reason for case in result.cases if case.reason and case.verdict is Verdict.PASS]
    known = {case.reason for case in result.cases}
    others = [text for _, text in result.errors if text not in known]
    parts = [", ".join(told), *dict.fromkeys(terms), *others]
    return "; ".join(part for part in parts if part)


def _show_verdict(result: Result, reason: str, console: Console) -> None:
    if result.simulated:
        console.say("SIMULATED: the engine is the simulated accelerator host; no accelerator was involved.")
    where = f"host {result.host}, engine {result.engine}" if result.engine else f"host {result.host}"
    reason = one_line(reason)
    if reason:
        # what stands behind a PASS are its terms: nothing is wrong
        reason = f" ({reason})" if result.verdict is Verdict.PASS else f": {reason}"
    console.say(f"{console.status(result.verdict)}{reason}")
    console.say(f"  {where}, exit code {int(result.exit_code)}")
    if result.evidence:
        console.say(f"  evidence: {result.evidence}")
