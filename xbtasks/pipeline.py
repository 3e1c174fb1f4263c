"""The main job: preflight, then each stage of the plan, over any host.

What goes wrong in one stage doesn't stop the next, unless the host itself is gone or the user stops.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Protocol

from xbtasks import preflight, staging
from xbtasks.backends.base import Platform
from xbtasks.errors import EngineDown, HostUnreachable, Interrupted, XbError
from xbtasks.host.step import Step
from xbtasks.stagejob import StageJob
from xbtasks.turns import unshared

if TYPE_CHECKING:
    from collections.abc import Callable

    from xbtasks.checks import CaseReport, Check
    from xbtasks.host.step import Host
    from xbtasks.host.transfer import StreamPayload
    from xbtasks.hostfacts import HostFacts
    from xbtasks.plan import RunPlan, StagePlan
    from xbtasks.result import Result
    from xbtasks.turns import Turn

__all__ = ["Permission", "Reporter", "Tools", "look_at", "perform"]


class Reporter(Protocol):
    """Where a run says what it is doing."""

    def say(self, text: str = "") -> None:
        """Take a line for a person."""

    def live(self, chunk: bytes) -> None:
        """Take raw progress of a build."""

    def begins(self, stage: str) -> None:
        """Take that what follows is about ``stage``."""

    def doing(self, stage: str, case: int, what: str) -> None:
        """Take what is done now for ``case`` of ``stage`` (0: for all its cases); nothing: it has ended."""

    def judged(self, report: CaseReport) -> None:
        """Take what became of a case."""


class Permission(Protocol):
    """Asks the user before something that SPEC 7.2 names."""

    def __call__(self, what: str, *, accelerator: bool = False) -> None:
        """Return when ``what`` may be done; ``accelerator`` says that it runs a container on one.

        Raises:
            Refused: the user said no, or can't be asked.
        """


@dataclass(frozen=True, slots=True)
class Tools:
    """What a run has beside its plan.

    ``run_id`` names everything the run makes on the host. ``contexts`` makes a stage's build context, and is
    asked only when it has to be sent. ``keep`` stores a file with the evidence and returns its path. One
    ``turn`` is held while a stage's image is looked at and built, another one while the staging directory and
    the cards are used: from staging to the last case.
    """

    run_id: str
    host: Host
    contexts: Callable[[StagePlan], StreamPayload]
    permission: Permission
    keep: Callable[[str, bytes], str]
    reporter: Reporter
    turn: Turn = unshared


def perform(plan: RunPlan, tools: Tools, empty: Result) -> Result:
    """Run ``plan`` and return ``empty`` filled with what was found.

    Nothing that a run can meet is raised: it stands in the result, beside all that was done before.
    """
    result = empty
    try:
        tools.reporter.doing("", 0, "looking at the host")
        facts = look_at(plan, tools.host)
        result = replace(
            result, simulated=facts.simulated, engine=facts.engine_name, preflight=_rows(plan, facts)
        )
        if plan.stages and facts.engine_problem:
            raise EngineDown(f"the container engine can't be used: {facts.engine_problem}")
        gone: XbError | None = None
        for stage in _chosen(plan, tools, facts):
            if gone is not None:
                job = StageJob(tools, plan, stage, facts)
                job.give_up(gone, "not reached: ")
                result = replace(result, cases=result.cases + tuple(job.cases))
            else:
                result, gone = _with_stage(result, plan, tools, stage, facts)
        if gone is not None:
            raise gone
    except XbError as error:
        result = _with_error(result, error)
    return result


def look_at(plan: RunPlan, host: Host) -> HostFacts:
    """Ask the host what it can do: the first step of every run.

    Raises:
        CannotJudge: it doesn't say.
    """
    directories = dict(plan.directories)
    usual = preflight.Deadlines()
    deadlines = preflight.Deadlines(*(min(each, plan.step_deadline) for each in astuple(usual)))
    step = preflight.preflight_step(
        plan.engine, directories, builder=plan.builder or None, deadlines=deadlines
    )
    return preflight.read_preflight(host.run(step))


def _rows(plan: RunPlan, facts: HostFacts) -> tuple[Check, ...]:
    platform = Platform(plan.platform) if plan.platform else None
    return preflight.preflight_checks(facts, platform=platform)


def _with_stage(
    result: Result, plan: RunPlan, tools: Tools, stage: StagePlan, facts: HostFacts
) -> tuple[Result, XbError | None]:
    """Return ``result`` with what was found of ``stage``, and the error after which no other can follow."""
    job = StageJob(tools, plan, stage, facts)
    gone: XbError | None = None
    try:
        job.perform()
    except XbError as error:
        for line in (f"  {error}", *job.details):
            tools.reporter.say(line)
        job.give_up(error)
        if isinstance(error, (EngineDown, HostUnreachable, Interrupted)):
            gone = error
        elif not plan.cases:
            result = _with_error(result, error)
    finally:
        tools.reporter.doing(stage.stage, 0, "")
    result = replace(
        result,
        builds=result.builds + tuple(job.builds),
        cases=result.cases + tuple(job.cases),
        artifacts=result.artifacts + tuple(job.artifacts),
    )
    return result, gone


def _with_error(result: Result, error: XbError) -> Result:
    return replace(result, errors=(*result.errors, (error.exit_code, str(error))))


def _chosen(plan: RunPlan, tools: Tools, facts: HostFacts) -> tuple[StagePlan, ...]:
    """Return the stages to do: the plan's, or the one of them that suits the host where none was named."""
    if not plan.choose or len(plan.stages) < 2:
        return plan.stages
    backend, directory = plan.stages[0].backend, plan.stages[0].staging_directory
    reply = tools.host.run(Step("choose", (staging.state_section(backend, directory, plan.step_deadline),)))
    manifest = staging.read_state(backend, reply["staged"]).manifest
    chips = facts.chips(backend.name)
    fitting = [stage for stage in plan.stages if any(stage.suffix.endswith(f"-{chip}") for chip in chips)]
    on_card = any(case.cards for case in map(backend.case, plan.cases) if case)
    last = next((each for each in plan.stages if manifest and manifest.stage == each.stage), None)
    if last and (last in fitting or not (fitting and on_card)):
        tools.reporter.say(f"no stage was named: {last.stage}, the last one staged on this host")
        return (last,)
    best = max(fitting or plan.stages, key=lambda stage: _toolkit(stage.suffix))
    why = f"the newest toolkit for {', '.join(chips)}" if fitting else "the newest toolkit in the Dockerfile"
    passed_over = f" ({last.stage}, the last one staged, is for another chip)" if last else ""
    tools.reporter.say(f"no stage was named: {best.stage}, {why}{passed_over}")
    return (best,)


def _toolkit(suffix: str) -> tuple[int, ...]:
    """Return the toolkit version that a suffix leads with: ``9-910c`` → (9,)."""
    return tuple(int(part) for part in suffix.partition("-")[0].split(".") if part.isdigit())
