"""Rows of a case while they are collected, and what they leave open."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from xbtasks.backends.nvidia.contract import MIB
from xbtasks.checks import Check, Status
from xbtasks.hardware import Findings, Unjudged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Rows", "size_text"]


def size_text(size: int) -> str:
    """Return a size in bytes for a person: in MiB, and in bytes too where those aren't whole."""
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size / MIB:.1f} MiB ({size} bytes)"


class Rows:
    """Collects the rows of one case; a row's id is the case's, a dot and its name."""

    def __init__(self, case: str) -> None:
        self._case = case
        self._rows: list[Check] = []
        self._doubts: dict[str, str] = {}

    @property
    def all(self) -> tuple[Check, ...]:
        """The rows so far."""
        return tuple(self._rows)

    @property
    def wrong(self) -> tuple[Check, ...]:
        """The rows that FAIL."""
        return tuple(row for row in self._rows if row.status is Status.FAIL)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Give an error about what could not be judged the rows so far."""
        try:
            yield
        except Unjudged as error:
            raise Unjudged(error.message, *self._rows, hint=error.hint) from error

    def passed(self, name: str, detail: str) -> None:
        """Add a PASS."""
        self._rows.append(Check(f"{self._case}.{name}", Status.PASS, detail))

    def failed(self, name: str, detail: str, expected: str, observed: str) -> None:
        """Add a FAIL."""
        self._rows.append(Check(f"{self._case}.{name}", Status.FAIL, detail, expected, observed))

    def note(self, name: str, status: Status, detail: str) -> None:
        """Add a row that changes no verdict."""
        self._rows.append(Check(f"{self._case}.{name}", status, detail))

    def require(
        self, name: str, subject: str, expected: str, observed: str, *, holds: bool, good: str = ""
    ) -> None:
        """Add a PASS if it ``holds``, else a FAIL. ``good`` is what a PASS says in place of the subject."""
        if holds:
            self.passed(name, good or subject)
        else:
            self.failed(name, subject, expected, observed)

    def doubt(self, name: str, why: str) -> None:
        """Add a row of what could not be measured: nothing is shown by it, neither right nor wrong."""
        self.note(name, Status.WARN, why)
        self._doubts[f"{self._case}.{name}"] = why

    def findings(self, required: Iterable[str], note: str = "") -> Findings:
        """Return what was found; ``required`` are names of rows.

        Raises:
            Unjudged: all that was measured is right, and something required could not be measured.
        """
        wanted = tuple(f"{self._case}.{name}" for name in required)
        passed = {row.id for row in self._rows if row.status is Status.PASS}
        certain = tuple(name for name in wanted if name not in self._doubts)
        open_ones = [why for name, why in self._doubts.items() if name in wanted and name not in passed]
        if open_ones and not self.wrong and passed.issuperset(certain):
            raise Unjudged("; ".join(open_ones), *self._rows)
        return Findings(certain if open_ones else wanted, self.all, note)
