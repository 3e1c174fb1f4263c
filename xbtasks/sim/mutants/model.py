"""What a variant is: one change, where it is made, and what has to come of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from xbtasks.backends import backend_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["VENDORS", "Edit", "Kind", "Variant"]

VENDORS: Final = ("nvidia", "ascend")
"""The vendors whose cards the simulated host has, two each unless a variant says otherwise."""


class Kind(StrEnum):
    """What is changed."""

    LIBRARY = "library"
    MONITOR = "monitor"
    CONFIG = "config"
    PRELOAD = "preload"
    ENGINE = "engine"
    IMAGE = "image"
    DRIVER = "driver"


@dataclass(frozen=True, slots=True)
class Edit:
    """An exact change of a file, named from the Dockerfile's folder: ``old`` stands there once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a stage, and the case that judges it.

    ``rows`` are the names of the rows of which one has to FAIL; a variant without rows is good and must PASS,
    unless ``exit_code`` says that something else has to come. ``options`` are the case's flags.
    ``words`` are arms of a shell ``case`` over each ``word`` of docker's command line. ``cards`` is an
    inventory's part for the stage's vendor. ``says`` must stand in the result's reason.
    """

    name: str
    kind: Kind
    what: str
    stage: str
    case: int
    rows: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()
    exit_code: int = 0
    options: tuple[str, ...] = ()
    words: str = ""
    cards: Mapping[str, object] | None = None
    says: str = ""

    @property
    def vendor(self) -> str:
        """The backend of the stage."""
        backend = backend_of(self.stage)
        assert backend is not None, self.stage  # noqa: S101 - a stage of the sample
        return backend.name

    @property
    def good(self) -> bool:
        """Whether it must pass."""
        return not self.rows and not self.exit_code

    @property
    def wanted_exit(self) -> int:
        """The exit status that has to come."""
        return 1 if self.rows else self.exit_code

    @property
    def places(self) -> int:
        """How many of its vendor's two default cards it takes; all where it brings cards of its own."""
        if self.case == 1 or self.vendor not in VENDORS:
            return 0
        return 2 if self.cards is not None or (self.vendor, self.case) == ("nvidia", 3) else 1

    @property
    def judged_by(self) -> str:
        """The case, and what has to come of it, for a person."""
        wanted = f"FAIL in {' or '.join(self.rows)}" if self.rows else f"exit status {self.exit_code}"
        return f"{self.vendor}.case{self.case}, {'PASS' if self.good else wanted}"

    def document(self) -> dict[str, object]:
        """Return the variant as JSON values."""
        return {
            "name": self.name,
            "kind": self.kind,
            "what": self.what,
            "stage": self.stage,
            "case": f"{self.vendor}.case{self.case}",
            "rows": list(self.rows),
            "exit_code": self.wanted_exit,
        }
