"""Past runs for people: the list of them, and what changed from one to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.reporting.table import grid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.compare import Change, Comparison
    from xbtasks.reporting.console import Console
    from xbtasks.result import Result
    from xbtasks.runs import PastRun

__all__ = ["comparison_document", "run_documents", "show_comparison", "show_runs"]

_MOST_STAGES = 1
_DIGEST = 12
_LONGEST = 200


def run_documents(runs: Sequence[PastRun], more: int) -> dict[str, object]:
    """Return the list of runs as JSON values; ``more`` is how many older ones were left out."""
    return {
        "schema": 1,
        "more": more,
        "runs": [
            {
                "run": run.name,
                "directory": str(run.directory),
                "when": run.when.isoformat(timespec="seconds"),
                "command": run.command,
                "host": run.host,
                "stages": list(run.stages),
                "verdict": run.result.verdict if run.result else None,
                "exit_code": int(run.result.exit_code) if run.result else None,
                "simulated": run.result.simulated if run.result else None,
                "reason": run.result.reason if run.result else run.note,
            }
            for run in runs
        ],
    }


def show_runs(runs: Sequence[PastRun], more: int, directory: str, console: Console) -> None:
    """Print a line for each run, the newest first."""
    if not runs:
        console.say(f"no runs in {directory}; each verify, case or build leaves one")
        return
    headers = ["VERDICT", "RUN", "WHEN (UTC)", "COMMAND", "HOST", "STAGES", "REASON"]
    console.say(grid(headers, (_line(run) for run in runs), paint=console.status))
    if more:
        console.say(f"{more} older ones: --limit 0 lists all")


def _line(run: PastRun) -> Sequence[str]:
    result = run.result
    stages = ", ".join(run.stages[:_MOST_STAGES])
    if len(run.stages) > _MOST_STAGES:
        stages += f" and {len(run.stages) - _MOST_STAGES} more"
    reason = f"note: {run.note}" if result is None else result.reason
    if result is not None and result.simulated:
        reason = f"SIMULATED; {reason}" if reason else "SIMULATED"
    when = f"{run.when:%Y-%m-%d %H:%M}"
    return (result.verdict if result else "", run.name, when, run.command, run.host, stages, reason)


def comparison_document(comparison: Comparison) -> dict[str, object]:
    """Return what changed as JSON values."""
    return {
        "schema": 1,
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "compared": {"cases": comparison.cases, "artifacts": comparison.artifacts},
        "changes": [
            {
                "place": change.place,
                "subject": change.subject,
                "what": change.what,
                "trend": change.trend,
                "before": change.before,
                "after": change.after,
                "lost": list(change.lost),
                "gained": list(change.gained),
                "detail": change.detail,
            }
            for change in comparison.changes
        ],
    }


def _side(result: Result) -> dict[str, object]:
    return {"run": result.run, "command": result.command, "host": result.host, "verdict": result.verdict}


def show_comparison(comparison: Comparison, console: Console) -> None:
    """Print what changed, one line for each thing, and first what was compared."""
    if len(comparison.places) == 1:
        console.say(comparison.places[0])
        console.say()
    sides = (("before", comparison.before), ("after", comparison.after))
    rows = [(name, r.run, r.command, r.host, r.verdict) for name, r in sides]
    console.say(grid(["", "RUN", "COMMAND", "HOST", "VERDICT"], rows))
    console.say()
    if comparison.changes:
        several = len(comparison.places) > 1
        lines = ((c.trend.upper(), subject(c, several), c.what, _told(c)) for c in comparison.changes)
        console.say(grid(["TREND", "OF", "WHAT", "BEFORE → AFTER"], lines, paint=console.status))
        console.say()
    trends = [change.trend for change in comparison.changes]
    counts = ", ".join(f"{trends.count(trend)} {trend}" for trend in ("worse", "better", "changed"))
    compared = (
        f"compared: {_count(comparison.cases, 'case')} and {_count(comparison.artifacts, 'artifact')} of both"
    )
    if not comparison.cases and not comparison.artifacts:
        compared = "no case and no artifact is in both: nothing was compared"
    console.say(f"{counts if trends else 'no difference'}; {compared}")
    if comparison.before.simulated or comparison.after.simulated:
        console.say("SIMULATED: no accelerator was involved on the simulated side.")


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def subject(change: Change, several: bool) -> str:  # noqa: FBT001 - said by its name at each call
    """Return what changed, with its place where there are ``several``."""
    if not several or not change.place:
        return change.subject
    return change.place if change.subject == "the stage" else f"{change.subject} of {change.place}"


def _told(change: Change) -> str:
    before, after = change.before, change.after
    if change.what in ("sha256", "source pin"):
        before, after = before[:_DIGEST], after[:_DIGEST]
    parts = [f"{before} → {after}"]
    parts += [f"lost {', '.join(change.lost)}"] if change.lost else []
    parts += [f"gained {', '.join(change.gained)}"] if change.gained else []
    cut = "" if len(change.detail) <= _LONGEST else " …"
    parts += [f"{change.detail[:_LONGEST]}{cut}"] if change.detail else []
    return "; ".join(parts)
