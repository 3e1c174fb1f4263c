"""The cases of one stage, each from what was read of its image to a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from xbtasks import build
from xbtasks.backends.linking import accepted_by_profile, judge_linking
from xbtasks.backends.profiles import profile_for
from xbtasks.checks import Check, Status, Verdict, exit_code_of, judge
from xbtasks.errors import CannotJudge, EngineDown, ExitCode, HostUnreachable
from xbtasks.hardware import CaseRun, Findings, Skipped, Unjudged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xbtasks.artifacts import ArtifactSet
    from xbtasks.backends.base import Case, Platform
    from xbtasks.engine import Engine
    from xbtasks.host.step import Reply, Step
    from xbtasks.hostfacts import HostFacts
    from xbtasks.plan import RunPlan, StagePlan
    from xbtasks.staging import StagedSet

__all__ = ["CaseJob", "Outcome", "Subject"]


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: the artifacts of an image, what is staged of them, and the platform they are for.

    ``recorded`` are the ids of the images that xbtasks itself built on this host.
    """

    artifacts: ArtifactSet
    staged: StagedSet
    platform: Platform
    recorded: frozenset[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case."""

    verdict: Verdict
    reason: str
    exit_code: ExitCode
    checks: tuple[Check, ...] = ()

    @classmethod
    def of(cls, verdict: Verdict, reason: str, checks: Iterable[Check] = ()) -> Outcome:
        """Return an outcome whose exit code is the verdict's own."""
        return cls(verdict, reason, exit_code_of(verdict), tuple(checks))


@dataclass(frozen=True, slots=True)
class CaseJob:
    """Judges the cases of one stage. ``ask`` runs a step on the host, ``permission`` asks the user."""

    plan: RunPlan
    stage: StagePlan
    facts: HostFacts
    engine: Engine
    run_id: str
    ask: Callable[[Step], Reply]
    say: Callable[[str], None]
    permission: Callable[[str], None]

    def judge(self, case: Case, subject: Subject) -> Outcome:
        """Return what became of ``case``; what keeps this one from being judged leaves the next ones alone.

        Raises:
            EngineDown, HostUnreachable: no case can be judged any more.
            XbError: it was refused.
        """
        try:
            return self._hardware(case, subject) if case.cards else self._linking(case, subject)
        except (EngineDown, HostUnreachable):
            raise
        except Skipped as skipped:
            return Outcome.of(Verdict.SKIP, skipped.reason, skipped.checks)
        except Unjudged as unjudged:
            # an image of yesterday is a likely reason, so what it was built from is told here too
            rows = (self._image_row(case, subject), *unjudged.checks)
            return Outcome(Verdict.ERROR, str(unjudged), unjudged.exit_code, rows)
        except CannotJudge as error:
            return Outcome.of(Verdict.ERROR, str(error))

    def without_cards(self, case: Case) -> Outcome | None:
        """Return the skip of a case for which the host has too few cards, or None where it has enough."""
        backend = self.stage.backend
        found = self.facts.cards(backend.name)
        if found >= case.cards:
            return None
        reason = f"needs {case.cards} {backend.card}, the host has {found}"
        return Outcome.of(Verdict.SKIP, reason, [Check(self._id(case, "cards"), Status.WARN, reason)])

    def _linking(self, case: Case, subject: Subject) -> Outcome:
        """Judge case 1: it needs no card and runs nothing."""
        artifacts = subject.artifacts
        required, found = judge_linking(
            self.stage.backend,
            artifacts.files,
            subject.staged.files,
            platform=subject.platform,
            profile=profile_for(self.stage.backend_name, self.stage.pin, self.stage.profile),
            pin=self.stage.pin,
            max_glibc=self.plan.max_glibc or None,
            image_glibc=artifacts.glibc,
            foreign=subject.platform is not self.facts.platform,
        )
        rows = [self._image_row(case, subject), *found]
        if artifacts.glibc is None:
            detail = "the image's glibc can't be found: whether it is new enough was not judged"
            rows.append(Check(self._id(case, "glibc-image"), Status.WARN, detail))
        verdict, judged = judge(required, rows)
        terms = [row.detail for row in judged if row.id.endswith(".image") and row.status is Status.WARN]
        accepted = accepted_by_profile(judged)
        note = "; ".join([*terms, accepted] if accepted else terms)
        return Outcome.of(verdict, _failures(judged) or note, judged)

    def _hardware(self, case: Case, subject: Subject) -> Outcome:
        """Judge a case that needs cards; skipped, unasked, where they are absent."""
        backend = self.stage.backend
        absent = self.without_cards(case)
        if absent is not None:
            return absent
        if subject.platform is not self.facts.platform:
            reason = f"the image is for {subject.platform}, the host is {self.facts.platform}"
            raise Skipped(reason, Check(self._id(case, "platform"), Status.WARN, reason))
        missing = [file.path for file in subject.artifacts.missing]
        if missing:
            detail = f"the image lacks {', '.join(missing)}"
            row = Check(self._id(case, "artifact"), Status.FAIL, detail, "a file", "none")
            return Outcome.of(Verdict.FAIL, detail, [row])
        image = subject.artifacts.image.id
        run = CaseRun(
            run_id=self.run_id,
            stage=self.stage,
            platform=subject.platform,
            image=image,
            workload=self.plan.knobs.workload_image or image,
            artifacts=subject.artifacts.digests(backend),
            knobs=self.plan.knobs,
            facts=self.facts,
            engine=self.engine,
            deadline=self.plan.step_deadline,
            ask=self.ask,
            say=self.say,
            permission=self.permission,
        )
        findings: Findings = import_module(case.module).judge(run)
        verdict, rows = judge(findings.required, (self._image_row(case, subject), *findings.checks))
        return Outcome.of(verdict, _failures(rows) or findings.note, rows)

    def _image_row(self, case: Case, subject: Subject) -> Check:
        """Say whether the image that is judged is what the checkout would build."""
        stage, image = self.stage, subject.artifacts.image
        why = build.why_build(stage, subject.platform, image, subject.recorded, rebuild=False)
        if why:
            detail = f"{stage.image} is judged as it is, but {why}; `inv build {stage.stage}` renews it"
            return Check(self._id(case, "image"), Status.WARN, detail)
        detail = f"{stage.image} ({image.id[:19]}) was built from the inputs of this checkout"
        return Check(self._id(case, "image"), Status.INFO, detail)

    def _id(self, case: Case, name: str) -> str:
        return f"{self.stage.backend_name}.case{case.number}.{name}"


def _failures(rows: Iterable[Check], most: int = 3) -> str:
    """Return the ids of the first rows that FAIL, and how many more there are."""
    names = list(dict.fromkeys(row.id for row in rows if row.status is Status.FAIL))
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
