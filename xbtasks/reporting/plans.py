"""The plan of a matrix for people and programs: what is built, sent and run where, and what is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.reporting.table import grid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xbtasks.matrix.running import MatrixHost, MatrixPlan
    from xbtasks.reporting.console import Console

__all__ = ["plan_document", "show_plan"]


def show_plan(plan: MatrixPlan, hosts: Sequence[MatrixHost], console: Console, *, jobs: int) -> None:
    """Print a line for each unit, then what isn't run, and what would be asked."""
    rows = []
    for row in _rows(plan, hosts):
        cases = ", ".join(str(number) for number in row["cases"]) if isinstance(row["cases"], list) else ""
        build = f"build: {row['build']}" if row["build"] else "up to date"
        sends = "the context" if row["sends"] else ""
        rows.append((str(row["host"]), str(row["stage"]), cases, sends, str(row["staged_in"]), build))
    if rows:
        console.say(grid(["HOST", "STAGE", "CASES", "SENT", "STAGED IN", "BUILD"], rows))
        console.say(f"{len(rows)} runs, at most {jobs} at once")
    else:
        console.say("nothing to run")
    if plan.not_run:
        console.say()
        cells = (
            (each.cell.host or "any", each.report().id, each.cell.stage, each.reason) for each in plan.not_run
        )
        console.say(grid(["NOT RUN ON", "CASE", "STAGE", "REASON"], cells))
    console.say()
    if plan.asked:
        console.say("It would ask before it does this:")
        for doing in plan.asked:
            console.say(f"  {doing}")
    else:
        console.say("It would ask nothing.")


def plan_document(plan: MatrixPlan, hosts: Sequence[MatrixHost]) -> dict[str, object]:
    """Return the plan as JSON values."""
    return {
        "schema": 1,
        "command": "matrix",
        "dry_run": True,
        "units": list(_rows(plan, hosts)),
        "not_run": [
            {
                "host": each.cell.host,
                "stage": each.cell.stage,
                "case": each.cell.case,
                "verdict": each.verdict,
                "reason": each.reason,
            }
            for each in plan.not_run
        ],
        "asks": [{"host": doing.host, "what": doing.what} for doing in plan.asked],
    }


def _rows(plan: MatrixPlan, hosts: Sequence[MatrixHost]) -> Iterator[dict[str, object]]:
    views = {look.view.host: look.view for look in plan.looks}
    plans = {host.name: host.plan for host in hosts}
    for unit in plan.units:
        view = views[unit.host]
        seen = view.stage(unit.stage)
        stage = next(each for each in plans[unit.host].stages if each.stage == unit.stage)
        yield {
            "host": unit.host,
            "stage": unit.stage,
            "cases": list(unit.cases),
            "platform": str(view.platform or ""),
            "image": stage.image,
            "staged_in": stage.staging_directory,
            "build": seen.build if seen else "",
            "sends": bool(seen and seen.sends),
        }
