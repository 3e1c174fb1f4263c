"""What a hardware case gets and gives: the seam between the pipeline and a backend's cases.

A case module has one function, ``judge(run: CaseRun) -> Findings``. It is straight-line Python: it asks
the host a few questions through ``run.ask`` and turns each answer into checks. It may raise `Skipped` where
its precondition is absent, `Unjudged` where it can't judge, `Unfit` where that is for what was asked, and any
other `XbError` where it must refuse.
All it decides on comes from the plan, the facts and the replies, so a recording gives the same rows; what has
to differ from run to run is derived from ``run.run_id``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from xbtasks.errors import CannotJudge, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from xbtasks.backends.base import Platform
    from xbtasks.checks import Check
    from xbtasks.engine import Engine
    from xbtasks.host.step import Reply, Step
    from xbtasks.hostfacts import HostFacts
    from xbtasks.plan import CaseKnobs, StagePlan

__all__ = ["CaseRun", "Findings", "Skipped", "Unfit", "Unjudged"]


class Skipped(Exception):
    """The case's precondition is absent on this host: nothing was measured (exit 3)."""

    def __init__(self, reason: str, *checks: Check) -> None:
        super().__init__(reason)
        self.reason = reason
        self.checks = checks


class Unjudged(CannotJudge):
    """The case could not be judged (exit 4); ``checks`` are the rows that it found before, and say why."""

    def __init__(self, message: str, *checks: Check, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.checks = checks

    def behind(self, *rows: Check) -> Self:
        """Return the same, with ``rows`` before its own."""
        return type(self)(self.message, *rows, *self.checks, hint=self.hint)


class Unfit(Unjudged):
    """What was asked for can't be judged on this card, as measuring it showed: wrong usage (exit 2)."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True, slots=True)
class Findings:
    """What a case found. ``required`` are the checks that must PASS; ``note`` stands behind a PASS."""

    required: tuple[str, ...]
    checks: tuple[Check, ...]
    note: str = field(default="")


@dataclass(frozen=True, slots=True)
class CaseRun:
    """One hardware case of one stage on one host.

    ``image`` is the id of the built image and ``workload`` what the case runs (the same unless the user said
    otherwise); ``artifacts`` maps staged paths to the sha256 that case 1 judges. ``permission`` asks the user
    before the first container on an accelerator.
    """

    run_id: str
    stage: StagePlan
    platform: Platform
    image: str
    workload: str
    artifacts: tuple[tuple[str, str], ...]
    knobs: CaseKnobs
    facts: HostFacts
    engine: Engine
    deadline: int
    ask: Callable[[Step], Reply]
    say: Callable[[str], None]
    permission: Callable[[str], None]

    @property
    def test_directory(self) -> str:
        """The run's own directory on the host, which goes with the run."""
        return f"{self.stage.staging_directory}/test/{self.run_id}"

    def container(self, role: str) -> str:
        """Return the name of the container that plays ``role``; names are the run's own."""
        return f"xbtasks-{self.run_id}-{role}"
