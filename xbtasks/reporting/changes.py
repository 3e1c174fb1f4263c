"""What a branch touches, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.history.touched import State
from xbtasks.reporting.console import one_line
from xbtasks.typed import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.history.touched import Touched, TouchedStage
    from xbtasks.reporting.console import Console

__all__ = ["show_commands", "show_touched", "touched_document"]

_MOST = 6  # reasons that a person reads of one stage; the JSON document has all
_HEADLINES = {
    State.TOUCHED: "touched, their build reads something else now:",
    State.OFFERED: "offered, their build reads nothing that changed, but a change is close by:",
}


def touched_document(touched: Touched) -> dict[str, object]:
    """Return what a branch touches as JSON values."""
    divergence = touched.divergence
    return {
        "schema": 1,
        "repo": str(touched.repo),
        "dockerfile": touched.dockerfile,
        "base": {
            "ref": divergence.base.ref,
            "commit": divergence.base.commit,
            "default": divergence.base.default,
            "merge_base": divergence.merge_base,
        },
        "head": divergence.head,
        "stages": [
            {
                "name": stage.name,
                "backend": stage.backend,
                "state": stage.state,
                "reasons": [
                    {"because": each.because, "subject": each.subject, "text": each.text}
                    for each in stage.reasons
                ],
                "platforms": [str(platform) for platform in stage.platforms],
                "digests": {
                    str(platform): {"before": before or None, "now": now or None}
                    for platform, before, now in stage.digests
                },
                "missing": list(stage.missing),
            }
            for stage in touched.stages
        ],
        "untouched": list(touched.untouched),
        "removed": list(touched.removed),
        "files": [
            {"path": each.path, "how": each.how, "stages": list(each.stages)} for each in touched.files
        ],
        "notes": list(touched.notes),
        "commands": _commands(touched),
    }


def show_touched(touched: Touched, console: Console, *, commands: bool = True) -> None:
    """Print the stages with their reasons, what else is to be said, and with ``commands`` what to run."""
    base = touched.divergence.base
    chosen = " (the default)" if base.default else ""
    merge_base = touched.divergence.merge_base[:12]
    what = f"commit {touched.divergence.tip[:12]}" if touched.divergence.tip else "the working tree"
    console.say(f"{what} against {base.ref}{chosen}, from the merge base {merge_base}")
    for state, headline in _HEADLINES.items():
        groups = _alike([stage for stage in touched.stages if stage.state is state])
        if groups:
            console.say()
            console.say(headline)
        for stages in groups:
            for stage in stages:
                console.say(f"  {stage.name}")
            _show_reasons(stages[0], console)
    notes = [*touched.notes, *(f"{name} is gone: no command is left for it" for name in touched.removed)]
    if notes:
        console.say()
    for note in notes:
        console.say(f"note: {one_line(note)}")
    if not touched.to_verify:
        console.say()
        console.say("nothing to do: no stage is touched")
    if not touched.to_verify or not commands:
        return
    console.say()
    console.say("to run:")
    for line in _commands(touched):
        console.say(f"  {line}")


def show_commands(touched: Touched, console: Console) -> None:
    """Print the commands to run, and nothing where there is nothing to do."""
    for line in _commands(touched):
        console.say(line)


def _commands(touched: Touched) -> list[str]:
    """Return what to run, as it can be typed here."""
    return [command(f"verify {name}") for name in touched.to_verify]


def _alike(stages: Sequence[TouchedStage]) -> list[list[TouchedStage]]:
    """Return the stages grouped by their reasons, in order."""
    groups: dict[object, list[TouchedStage]] = {}
    for stage in stages:
        groups.setdefault((stage.reasons, stage.missing), []).append(stage)
    return list(groups.values())


def _show_reasons(stage: TouchedStage, console: Console) -> None:
    for reason in stage.reasons[:_MOST]:
        console.say(f"      {one_line(reason.text)}")
    if len(stage.reasons) > _MOST:
        console.say(f"      and {len(stage.reasons) - _MOST} more, which --json lists")
    for path in stage.missing:
        console.say(f"      {one_line(path)} is missing: the build will fail")
