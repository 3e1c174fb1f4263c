"""Stages and cases as jobs of a CI engine: what any runner can do, and what needs one with cards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.backends.base import Platform
from xbtasks.source import SOURCE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from xbtasks.checkout.stages import Stage

__all__ = ["Job", "make_jobs", "why_no_job"]

_PROGRAM: Final = "./xb" if SOURCE else "xb"
"""How a job types this program: on a runner, with a checkout or an installation of its own."""


@dataclass(frozen=True, slots=True)
class Job:
    """One job: a stage and the cases that one runner gives a verdict on.

    ``platform`` is what the stage is built for; empty where that is the runner's own, as on one with cards.
    ``cards`` is how many accelerators the cases need at most; 0: none.
    """

    name: str
    stage: str
    backend: str
    cases: tuple[int, ...]
    platform: str
    arch: str
    cards: int

    @property
    def command(self) -> str:
        """The command line of the job. A stage's name is made of characters that mean nothing to a shell."""
        where = f" --platform {self.platform}" if self.platform else ""
        return f"{_PROGRAM} verify {self.stage} --cases {','.join(map(str, self.cases))}{where}"


def make_jobs(stages: Iterable[Stage], cases: Collection[int], platform: Platform | None) -> tuple[Job, ...]:
    """Return the jobs for ``stages`` in their order, on ``platform`` or, for None, on all of theirs.

    For each platform there is one with the cases that need no card, for each stage one with those that do.
    """
    return tuple(job for stage in stages for job in _jobs_of(stage, cases, platform))


def why_no_job(stage: Stage, cases: Collection[int], platform: Platform | None) -> str:
    """Return why :func:`make_jobs` has no job for ``stage``, or nothing where it has one."""
    if any(_jobs_of(stage, cases, platform)):
        return ""
    if not any(case.number in cases for case in stage.backend.cases):
        return f"{stage.backend.name} has none of these cases"
    return f"it builds nothing for {platform or ' or '.join(Platform)}"


def _jobs_of(stage: Stage, cases: Collection[int], platform: Platform | None) -> Iterator[Job]:
    wanted = [case for case in stage.backend.cases if case.number in cases]
    plain = tuple(case.number for case in wanted if not case.cards)
    carded = tuple(case.number for case in wanted if case.cards)
    backend = stage.backend.name
    for each in stage.platforms:
        if plain and platform in (None, each):
            name = f"{stage.name} {each.arch}"
            yield Job(name, stage.name, backend, plain, each.value, each.arch, 0)
    if carded and stage.platforms:
        name = f"{stage.name} {backend} cards"
        yield Job(name, stage.name, backend, carded, "", "", max(case.cards for case in wanted))
