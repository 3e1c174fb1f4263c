"""The one question of a matrix (SPEC 7.2): what is done on which host, asked before anything is done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.backends import BACKENDS
from xbtasks.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from xbtasks.matrix.model import Unit, View
    from xbtasks.pipeline import Permission
    from xbtasks.plan import RunPlan
    from xbtasks.reporting.console import Console

__all__ = ["Doing", "asked_of", "confirm", "permission_for"]


@dataclass(frozen=True, slots=True)
class Doing:
    """What is done on a host that somebody has to agree to."""

    host: str
    stage: str
    what: str
    accelerator: bool = False

    def __str__(self) -> str:
        return f"{self.host}: {self.what}"


def asked_of(
    units: Iterable[Unit],
    views: Mapping[str, View],
    plans: Mapping[str, RunPlan],
    remote: Mapping[str, bool],
) -> tuple[Doing, ...]:
    """Return what has to be confirmed, in the order of the units; nothing where nobody need be asked.

    A build on this machine and all that the simulated host does need no question.
    """
    doings: list[Doing] = []
    for unit in units:
        view, plan = views[unit.host], plans[unit.host]
        seen = view.stage(unit.stage)
        stage = next(each for each in plan.stages if each.stage == unit.stage)
        if view.simulated:
            continue
        if remote[unit.host] and seen is not None and seen.build:
            doings.append(Doing(unit.host, unit.stage, f"build {unit.stage} as image {stage.image}"))
        cards = [f"case {n} on {_cards(plan, stage.backend_name, n)}" for n in unit.cases if n > 1]
        if cards:
            what = f"run containers of {unit.stage} for {', '.join(cards)}, about a minute each"
            doings.append(Doing(unit.host, unit.stage, what, accelerator=True))
    return tuple(doings)


def confirm(doings: Sequence[Doing], console: Console, *, yes: bool) -> None:
    """Return when the user agrees to all of it.

    Raises:
        Refused: they don't, or can't be asked.
    """
    if not doings or yes:
        return
    if not console.can_ask:
        raise Refused(f"not confirmed: {'; '.join(map(str, doings))}", hint="--yes or XB_YES=1 confirms")
    console.say("This needs your word:")
    for line in doings:
        console.say(f"  {line}")
    console.say("Left there: the images, the builder's cache, build contexts and staged artifacts.")
    console.say("`inv clean --all` removes all of it but the builder's cache.")
    if console.ask("Go on? [y/N]").lower() not in ("y", "yes"):
        raise Refused("not confirmed: nothing was done")


def permission_for(unit: Unit, asked: Iterable[Doing], *, remote: bool, yes: bool) -> Permission:
    """Return what allows a unit all that was confirmed for it, and refuses what needs a word and got none."""
    confirmed = {doing.accelerator for doing in asked if (doing.host, doing.stage) == (unit.host, unit.stage)}

    def permit(what: str, *, accelerator: bool = False) -> None:
        if yes or accelerator in confirmed or not (remote or accelerator):
            return
        raise Refused(
            f"not confirmed: {what} on {unit.host}; it was not in the plan",
            hint="the host changed meanwhile, run it again or give --yes",
        )

    return permit


def _cards(plan: RunPlan, backend: str, case: int) -> str:
    knobs = plan.knobs
    if backend == "ascend":
        return f"NPU {knobs.npu} chip {knobs.chip}"
    if backend == "nvidia":
        return f"GPU {knobs.gpu}" if case == 2 else f"GPUs {', '.join(knobs.gpus)}"
    return BACKENDS[backend].card
