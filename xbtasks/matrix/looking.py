"""A look at a host before anything is decided: preflight, and what it has of each stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from xbtasks import build, context, images, provenance
from xbtasks.backends import BACKENDS
from xbtasks.backends.base import Platform
from xbtasks.engine import Engine
from xbtasks.errors import UsageError, XbError
from xbtasks.host.step import Section, Step
from xbtasks.matrix.model import StageView, View
from xbtasks.pipeline import look_at as ask_preflight
from xbtasks.preflight import preflight_checks

if TYPE_CHECKING:
    from xbtasks.host.step import Host, Reply
    from xbtasks.hostfacts import HostFacts
    from xbtasks.plan import RunPlan, StagePlan
    from xbtasks.result import Result

__all__ = ["Look", "look_at", "look_plan", "no_look"]


@dataclass(frozen=True, slots=True)
class Look:
    """What a look showed: the view that decisions are taken on, and the result of its preflight."""

    view: View
    result: Result


def look_plan(plan: RunPlan) -> RunPlan:
    """Return what a look asks of a host, as a run of its own that can be judged again."""
    return replace(plan, command="preflight", stages=(), cases=(), build=False)


def look_at(name: str, plan: RunPlan, host: Host, empty: Result) -> Look:
    """Look at ``host``, called ``name``, for all stages of ``plan``. What goes wrong stands in the view."""
    try:
        facts = ask_preflight(plan, host)
    except XbError as error:
        return no_look(name, plan, error, empty)
    named = Platform(plan.platform) if plan.platform else None
    rows = preflight_checks(facts, platform=named)
    result = replace(empty, simulated=facts.simulated, engine=facts.engine_name, preflight=rows)
    machine = facts.engine.machine.encode()
    view = View(
        name,
        machine=sha256(machine).hexdigest()[:16] if machine else "",
        platform=named or facts.platform,
        simulated=facts.simulated,
        cards=tuple((backend, facts.cards(backend)) for backend in BACKENDS),
        chips=tuple((backend, facts.chips(backend)) for backend in BACKENDS),
        stages=tuple(StageView(stage.stage) for stage in plan.stages),
    )
    if facts.engine_problem:
        return Look(
            replace(view, problem=f"the container engine can't be used: {facts.engine_problem}"), result
        )
    try:
        return Look(replace(view, stages=_stages(plan, facts, view.platform, host)), result)
    except XbError as error:
        return no_look(name, plan, error, result)


def no_look(name: str, plan: RunPlan, error: XbError, empty: Result) -> Look:
    """Return the look at a host that can't be looked at."""
    stages = tuple(StageView(stage.stage) for stage in plan.stages)
    view = View(name, stages=stages, problem=str(error), exit_code=error.exit_code)
    return Look(view, replace(empty, errors=((error.exit_code, str(error)),)))


def _stages(plan: RunPlan, facts: HostFacts, platform: Platform | None, host: Host) -> tuple[StageView, ...]:
    if platform is None:
        why = f"no platform is known for a host of {facts.machine}, XB_PLATFORM names one"
        return tuple(StageView(stage.stage, obstacle=why) for stage in plan.stages)
    engine, deadline = Engine(plan.engine), plan.step_deadline
    sections = [provenance.recorded_section(plan.context_directory, deadline)]
    for stage in plan.stages:
        sections.append(Section(f"image-{stage.suffix}", engine.inspect_image(stage.image), deadline))
        if platform in stage.platforms:
            ask = context.state_section(plan.context_directory, stage.digest(platform), deadline)
            sections.append(replace(ask, name=f"context-{stage.suffix}"))
    reply = host.run(Step("look", tuple(sections)))
    recorded = frozenset(provenance.read_record(reply["recorded"]))
    return tuple(_stage(plan, stage, platform, facts, reply, recorded) for stage in plan.stages)


def _stage(
    plan: RunPlan,
    stage: StagePlan,
    platform: Platform,
    facts: HostFacts,
    reply: Reply,
    recorded: frozenset[str],
) -> StageView:
    try:
        stage.digest(platform)
    except UsageError as error:
        return StageView(stage.stage, obstacle=str(error))
    image = images.read_image(reply[f"image-{stage.suffix}"])
    why = build.why_build(stage, platform, image, recorded, rebuild=plan.rebuild)
    if not why:
        return StageView(stage.stage)
    obstacle = facts.why_not_build(platform, cross_compiles=stage.cross_compiles)
    _, present = context.read_state(reply[f"context-{stage.suffix}"])
    return StageView(stage.stage, build=why, obstacle=obstacle, sends=not present)
