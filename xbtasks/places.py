"""A result by place: what was found of each stage on each host, in the order it was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xbtasks.checks import CaseReport
    from xbtasks.result import ArtifactRecord, BuildRecord, Result

__all__ = ["Place", "case_numbers", "places"]


@dataclass(frozen=True, slots=True)
class Place:
    """A stage on a host, and what was found there; ``number`` tells it from the others of its result."""

    number: int
    host: str
    stage: str
    builds: tuple[BuildRecord, ...]
    cases: tuple[CaseReport, ...]
    artifacts: tuple[ArtifactRecord, ...]

    def numbered(self, number: str) -> tuple[CaseReport, ...]:
        """Return the reports of the case of this number."""
        return tuple(case for case in self.cases if _number(case) == number)


def case_numbers(found: Iterable[Place]) -> tuple[str, ...]:
    """Return the numbers of the cases that were reported, in their order."""
    return tuple(
        sorted({_number(case) for place in found for case in place.cases}, key=lambda n: (len(n), n))
    )


def _number(case: CaseReport) -> str:
    return case.id.rpartition(".case")[2]


def places(result: Result) -> tuple[Place, ...]:
    """Return each stage on each host of ``result`` once."""
    found: tuple[BuildRecord | CaseReport | ArtifactRecord, ...]
    found = (*result.cases, *result.builds, *result.artifacts)
    keys = dict.fromkeys((each.host or result.host, each.stage) for each in found)

    def at(number: int, host: str, stage: str) -> Place:
        def here(each: BuildRecord | CaseReport | ArtifactRecord) -> bool:
            return (each.host or result.host, each.stage) == (host, stage)

        return Place(
            number,
            host,
            stage,
            tuple(filter(here, result.builds)),
            tuple(filter(here, result.cases)),
            tuple(filter(here, result.artifacts)),
        )

    return tuple(at(number, *key) for number, key in enumerate(keys))
