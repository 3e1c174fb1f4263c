"""What a backend must say about itself: names, artifacts, staging directory and cases."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from xbtasks.checks import Check
    from xbtasks.host.step import Reply, Section
    from xbtasks.hostfacts import EngineFacts

__all__ = ["Artifact", "Backend", "CardFacts", "Case", "HostModule", "NoCards", "Platform"]


class Platform(StrEnum):
    """A platform that a stage can be built for, in the spelling of docker and OCI."""

    AMD64 = "linux/amd64"
    ARM64 = "linux/arm64"

    @property
    def arch(self) -> str:
        """The architecture alone, in docker's spelling: ``amd64`` or ``arm64``."""
        return self.value.removeprefix("linux/")

    @classmethod
    def from_machine(cls, machine: str) -> Platform | None:
        """Return the platform of a machine name (``uname -m`` or docker's spelling), or None if unknown."""
        return _MACHINES.get(machine.strip().lower())


_MACHINES = {
    "x86_64": Platform.AMD64,
    "amd64": Platform.AMD64,
    "aarch64": Platform.ARM64,
    "arm64": Platform.ARM64,
}


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that a stage produces: where it lies in the image, where it is staged, and its exact mode.

    ``image_path`` is absolute in the image; ``staged_path`` is relative to the staging directory;
    ``mode`` holds permission and special bits.
    """

    image_path: str
    staged_path: str
    mode: int

    @property
    def name(self) -> str:
        """The file's name."""
        return self.image_path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Case:
    """A numbered verification: its locked title, and how many cards it needs (0: none).

    ``module`` is where a hardware case is judged (:mod:`xbtasks.hardware`), imported when it is run. With
    ``rate`` it also measures the rate of compute, which ``--no-throttle`` leaves out.
    """

    number: int
    title: str
    cards: int
    module: str = ""
    rate: bool = False


class CardFacts(Protocol):
    """What a host has of a vendor's cards."""

    @property
    def usable(self) -> int:
        """How many cards a case can use."""

    @property
    def chips(self) -> tuple[str, ...]:
        """The chips as stage suffixes spell them (``910b``), or none where they don't."""


@dataclass(frozen=True, slots=True)
class NoCards:
    """The cards of a vendor whose cards nobody looks for."""

    usable: int = 0
    chips: tuple[str, ...] = ()


class HostModule(Protocol):
    """The module that looks at a host's cards: its part of the preflight step, as facts and as rows."""

    def sections(self, *, tool: int, look: int) -> tuple[Section, ...]:
        """Return the questions; deadlines in seconds for a vendor's tool and for a look at files."""

    def read(self, reply: Reply) -> CardFacts:
        """Return what the answers say."""

    def checks(self, facts: CardFacts, engine: EngineFacts) -> tuple[Check, ...]:
        """Return the rows of preflight; none of them FAILs."""


@dataclass(frozen=True, slots=True)
class Backend:
    """A vendor whose runtime the stages build.

    ``stage_prefix`` + suffix is a stage's name and ``image_repository`` : suffix the tag of its image.
    ``host`` is a `HostModule`, imported when a host is looked at; without one the host has no such cards.
    """

    name: str
    stage_prefix: str
    image_repository: str
    staging_directory: str
    artifacts: tuple[Artifact, ...]
    card: str
    cases: tuple[Case, ...]
    host: str = ""

    def case(self, number: int) -> Case | None:
        """Return the case of that number, or None."""
        return next((case for case in self.cases if case.number == number), None)
