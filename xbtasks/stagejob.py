"""One stage of a run: is its image up to date, build it, stage its artifacts, judge its cases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks import build, context, images, provenance, staging
from xbtasks.artifacts import ArtifactSet, read_step
from xbtasks.casejob import CaseJob, Outcome, Subject
from xbtasks.checks import CaseReport, Verdict
from xbtasks.engine import BuildRequest, Engine
from xbtasks.errors import BuildFailed, CannotJudge, DeadlineExceeded, ExitCode, Refused, UsageError, XbError
from xbtasks.host.step import Section, Step
from xbtasks.result import ArtifactRecord, BuildRecord

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from xbtasks.backends.base import Case, Platform
    from xbtasks.host.step import Reply
    from xbtasks.hostfacts import HostFacts
    from xbtasks.images import Image
    from xbtasks.pipeline import Tools
    from xbtasks.plan import RunPlan, StagePlan
    from xbtasks.staging import StagedSet

__all__ = ["StageJob"]

_ATTEMPTS = 5
"""How often staging starts anew because another run changed the directory meanwhile."""
_DOING = {
    "state": "looking at its image and files",
    "context": "sending the build context",
    "build": "building",
    "read": "reading the artifacts",
    "stage": "staging the artifacts",
    "again": "looking at what is staged",
    "workload": "looking at the workload image",
    "tenants": "looking who uses the cards",
    "prepare": "preparing test files",
    "compile": "compiling the probe",
    "remove": "removing test files",
}
"""The steps on the host in a person's words; another goes by its name."""


class StageJob:
    """Does one stage and keeps what was found, so that an error half way loses nothing."""

    def __init__(self, tools: Tools, plan: RunPlan, stage: StagePlan, facts: HostFacts) -> None:
        self._tools = tools
        self._plan = plan
        self._stage = stage
        self._facts = facts
        self._engine = Engine(plan.engine)
        self._deadline = plan.step_deadline
        self._seconds = 0.0
        self._recorded: frozenset[str] = frozenset()
        self._case = 0
        self.details: tuple[str, ...] = ()
        """Lines that tell more of the error that :meth:`perform` raised, for below it."""
        self.builds: list[BuildRecord] = []
        self.cases: list[CaseReport] = []
        self.artifacts: list[ArtifactRecord] = []

    def perform(self) -> None:
        """Do everything that the plan asks of the stage.

        Raises:
            XbError: what could not be done; :meth:`give_up` turns it into case reports.
        """
        stage = self._stage
        self._doing("begins")
        self._tools.reporter.begins(stage.stage)
        if self._skip_all():
            return
        platform = self._platform()
        with self._turn("image", stage.image):
            state = self._run(self._state_step(platform))
            image = images.read_image(state["image"])
            self._recorded = frozenset(provenance.read_record(state["recorded"]))
            staged = staging.read_state(stage.backend, state["staged"])
            if self._plan.build:
                image = self._up_to_date(image, platform, state)
        if image is None:
            raise UsageError(
                f"stage {stage.stage} is not built on this host", hint=f"`inv build {stage.stage}` builds it"
            )
        self._require_own(image, platform)
        artifacts = self._read_artifacts(image, platform)
        with self._turn("staging directory", stage.backend_name, stage.staging_directory):
            if self._plan.shared:
                staged = self._staged_now()
            staged = self._staged(artifacts, staged, platform)
            self._judge(self._plan.cases, Subject(artifacts, staged, platform, self._recorded))

    def _turn(self, *name: str) -> AbstractContextManager[object]:
        """Return the turn at what is called ``name``, on the machine that the engine says it is."""
        if self._plan.shared:
            self._doing("waits for its turn on this host")
        return self._tools.turn(self._facts.engine.machine, *name)

    def give_up(self, error: XbError, what: str = "") -> None:
        """Turn ``error`` into a report for each case that it left without one; ``what`` leads the reason."""
        skipped = isinstance(error, BuildFailed)
        if skipped:
            self.builds.append(BuildRecord(self._stage.stage, "failed", error.message, self._seconds))
        verdict = Verdict.SKIP if skipped else Verdict.ERROR
        code = ExitCode.SKIPPED if skipped else error.exit_code
        reason = f"the build failed: {error.message}" if skipped else f"{what}{error}"
        for number in self._plan.cases[len(self.cases) :]:
            case = self._stage.backend.case(number)
            if case is not None:
                self._report(case, Outcome(verdict, reason, code))

    def _skip_all(self) -> bool:
        """Skip all cases, with nothing asked or built, where the host has the cards for none of them."""
        cases = [self._stage.backend.case(number) for number in self._plan.cases]
        skips = [(case, self._case_job().without_cards(case)) for case in cases if case is not None]
        if not skips or len(skips) < len(cases) or not all(outcome for _, outcome in skips):
            return False
        for case, outcome in skips:
            if outcome is not None:
                self._report(case, outcome)
        return True

    def _platform(self) -> Platform:
        from xbtasks.backends.base import Platform

        platform = Platform(self._plan.platform) if self._plan.platform else self._facts.platform
        if platform is None:
            raise UsageError(
                f"no platform is known for a host of {self._facts.machine}", hint="set XB_PLATFORM"
            )
        self._stage.digest(platform)
        return platform

    # build

    def _state_step(self, platform: Platform) -> Step:
        stage = self._stage
        sections = [
            Section("image", self._engine.inspect_image(stage.image), self._deadline),
            provenance.recorded_section(self._plan.context_directory, self._deadline),
            self._staging_state(),
        ]
        if self._plan.build:
            sections.append(
                context.state_section(self._plan.context_directory, stage.digest(platform), self._deadline)
            )
        return Step("state", tuple(sections))

    def _up_to_date(self, image: Image | None, platform: Platform, state: Reply) -> Image:
        """Return the stage's image, built if it is out of date."""
        stage = self._stage
        why = build.why_build(stage, platform, image, self._recorded, rebuild=self._plan.rebuild)
        if image is not None and not why:
            self._tools.reporter.say(f"  up to date: {stage.image} has these inputs, nothing was built")
            self.builds.append(BuildRecord(stage.stage, "up to date", "", 0.0))
            return image
        build.refuse_foreign(stage, image, adopt=self._plan.adopt)
        obstacle = self._facts.why_not_build(platform, cross_compiles=stage.cross_compiles)
        if obstacle:
            # Without an engine nothing can be said of the stage; without emulation it is the wrong host.
            kind = Refused if self._facts.buildx.ready else CannotJudge
            raise kind(f"{stage.stage} can't be built here: {obstacle}")
        self._permission(f"build {stage.stage} for {platform} as {stage.image}")
        slow = "" if stage.cross_compiles or platform is self._facts.platform else ", emulated and slow"
        self._tools.reporter.say(f"  building for {platform}{slow}: {why}")
        begun = self._seconds
        directory, present = context.read_state(state["context"])
        if not present:
            with self._tools.contexts(stage) as payload:
                answer = self._run(context.send_step(directory, payload, self._deadline))["put-context"]
            if not answer.ok:
                raise CannotJudge(f"the build context did not arrive: {answer.error_text.strip()[:300]}")
        request = BuildRequest(
            context=directory,
            dockerfile=self._plan.dockerfile,
            stage=stage.stage,
            platform=platform,
            image=stage.image,
            input_digest=stage.digest(platform),
            commit=self._plan.commit,
            builder=self._plan.builder,
        )
        record = self._plan.context_directory
        step = build.build_step(self._engine, request, record, self._plan.build_deadline, self._deadline)
        reply = self._run(step)
        log = self._tools.keep(f"{stage.stage}.log", reply["build"].stderr)
        try:
            built = build.built_image(stage, reply)
        except XbError:
            self.details = (
                *(f"    {line}" for line in build.excerpt(reply["build"].error_text)),
                f"  full log: {log}",
            )
            raise
        self._recorded = frozenset(provenance.read_record(reply["recorded"]))
        if built.id not in self._recorded:
            self._tools.reporter.say(f"  the build can't be recorded in {record}, the next run builds again")
        took = round(self._seconds - begun, 3)
        self.builds.append(BuildRecord(stage.stage, "built", why, took))
        self._tools.reporter.say(f"  built {stage.image} ({built.id[:19]}) in {took:.1f} s")
        return built

    def _require_own(self, image: Image, platform: Platform) -> None:
        """Refuse to judge an image that is another stage's, or for another platform."""
        stage = self._stage
        if image.ours and image.stage != stage.stage:
            raise Refused(f"image {stage.image} is of stage {image.stage}, not of {stage.stage}")
        if image.platform != platform:
            raise Refused(
                f"image {stage.image} is for {image.platform}, not for {platform}",
                hint=f"--platform chooses; `inv build {stage.stage} --platform {platform}` builds it",
            )

    # artifacts

    def _read_artifacts(self, image: Image, platform: Platform) -> ArtifactSet:
        """Return what the image holds of its artifacts; no container starts."""
        container, backend = f"xbtasks-{self._tools.run_id}-read", self._stage.backend
        create = self._create(container, image, platform)
        reply = self._run(read_step(self._engine, backend, container, create, self._deadline))
        artifacts = ArtifactSet.from_reply(image, backend, reply)
        self.artifacts += artifacts.records(self._stage)
        return artifacts

    def _staged(self, artifacts: ArtifactSet, staged: StagedSet, platform: Platform) -> StagedSet:
        """Return what is staged, which is the image's own files unless the image lacks one."""
        stage = self._stage
        if artifacts.missing:
            names = ", ".join(f"{file.path} is {file.kind}" for file in artifacts.missing)
            if not self._plan.cases:
                raise BuildFailed(f"{stage.stage} was built but is incomplete, nothing was staged: {names}")
            self._tools.reporter.say(f"  not staged: {names}")
            return staged
        for _ in range(_ATTEMPTS):
            why = staged.why_stage(stage, artifacts.image.id)
            if not why:
                return staged
            done = self._stage_files(artifacts, staged, platform)
            if done is not None:
                self._tools.reporter.say(f"  staged in {stage.staging_directory}: {why}")
                return done
            staged = self._staged_now()
        raise CannotJudge(f"others keep changing the files in {stage.staging_directory}")

    def _stage_files(self, artifacts: ArtifactSet, staged: StagedSet, platform: Platform) -> StagedSet | None:
        """Put the image's files in place and return what is staged then; None where others were quicker."""
        stage, image = self._stage, artifacts.image
        manifest = staging.Manifest(
            stage=stage.stage,
            platform=platform,
            inputs=image.inputs,
            image=image.id,
            run=self._tools.run_id,
            files=artifacts.digests(stage.backend),
        )
        container = f"xbtasks-{self._tools.run_id}-stage"
        step = staging.stage_step(
            self._engine,
            stage,
            manifest,
            artifacts.files,
            staged,
            container,
            self._create(container, image, platform),
            adopt=self._plan.adopt,
            deadline=self._deadline,
        )
        return staging.staged_set(stage.backend, self._run(step))

    def _staged_now(self) -> StagedSet:
        reply = self._run(Step("again", (self._staging_state(),)))
        return staging.read_state(self._stage.backend, reply["staged"])

    def _staging_state(self) -> Section:
        stage = self._stage
        return staging.state_section(stage.backend, stage.staging_directory, self._deadline)

    def _create(self, container: str, image: Image, platform: Platform) -> Section:
        argv = self._engine.create(container, image.id, platform, self._tools.run_id)
        return Section("create", argv, self._deadline)

    # cases

    def _judge(self, numbers: Iterable[int], subject: Subject) -> None:
        """Judge the cases one after another; each takes its own time.

        What fails a case that needs no card is broken, and is not taken to one.
        """
        job = self._case_job()
        for number in numbers:
            case = self._stage.backend.case(number)
            if case is None:
                raise UsageError(f"{self._stage.backend_name} has no case {number}")
            self._case = number
            self._doing("judging")
            broken = next((each.id for each in self.cases if each.verdict is Verdict.FAIL), "")
            if case.cards and broken:
                self._report(case, Outcome.of(Verdict.SKIP, f"{broken} failed: it is not taken to a card"))
            else:
                self._report(case, job.judge(case, subject))

    def _case_job(self) -> CaseJob:
        return CaseJob(
            plan=self._plan,
            stage=self._stage,
            facts=self._facts,
            engine=self._engine,
            run_id=self._tools.run_id,
            ask=self._run,
            say=self._tools.reporter.say,
            permission=lambda what: self._permission(what, accelerator=True),
        )

    def _permission(self, what: str, *, accelerator: bool = False) -> None:
        """Ask the user before ``what``; the simulated host never asks."""
        if not self._facts.simulated:
            self._doing("waits for your word")
            self._tools.permission(what, accelerator=accelerator)

    def _report(self, case: Case, outcome: Outcome) -> None:
        """Keep a case's report; its time is all that passed since the build or the case before it."""
        passed = sum(each.seconds for each in self.builds) + sum(each.seconds for each in self.cases)
        self.cases.append(
            CaseReport(
                id=f"{self._stage.backend_name}.case{case.number}",
                title=case.title,
                stage=self._stage.stage,
                verdict=outcome.verdict,
                reason=outcome.reason,
                seconds=round(self._seconds - passed, 3),
                exit_code=outcome.exit_code,
                checks=outcome.checks,
            )
        )
        self._tools.reporter.say(f"  {self.cases[-1].id}: {outcome.verdict}")
        self._tools.reporter.judged(self.cases[-1])

    def _doing(self, what: str) -> None:
        self._tools.reporter.doing(self._stage.stage, self._case, what)

    def _run(self, step: Step) -> Reply:
        self._doing(_DOING.get(step.name, f"step {step.name}"))
        try:
            reply = self._tools.host.run(step, self._tools.reporter.live)
        except XbError as error:
            self._seconds += error.seconds
            raise
        self._seconds += reply.seconds
        late = next((section for section in reply.sections if section.timed_out), None)
        if late is not None:
            knob = "XB_BUILD_TIMEOUT" if late.name == "build" else "XB_TIMEOUT"
            message = f"step {step.name}: {late.name} was stopped, it did not end within {late.seconds} s"
            raise DeadlineExceeded(message, hint=f"{knob} gives it more time")
        return reply
