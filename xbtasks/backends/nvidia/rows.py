"""Rows of a case while they are collected, and what they leave open."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xbtasks.backends.nvidia.contract import MIB
from xbtasks.checks import Check, Status
from xbtasks.hardware import Findings, Unjudged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Rows", "size_text"]


def size_text(size: int) -> str:
    """Return a size in bytes for a person: in MiB, and in bytes too where those aren't whole."""
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size / MIB:.1f} MiB ({size} bytes)"


class Rows:
    """Collects the rows of one case; a row's id is the case's, a dot and its name."""

    def __init__(self, case: str) -> None:
        self._case = case
        self._label = ""
        self._rows: list[Check] = []
        self._doubts: dict[str, str] = {}

    def of(self, label: str) -> Rows:
        """Return these rows for one of several: what is added there says so, and is added here too."""
        view = Rows(self._case)
        view._label = f"{label}: "
        view._rows, view._doubts = self._rows, self._doubts
        return view

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
            raise type(error)(error.message, *self._rows, hint=error.hint) from error

    def passed(self, name: str, detail: str) -> None:
        """Add a PASS."""
        self.note(name, Status.PASS, detail)

    def failed(self, name: str, detail: str, expected: str, observed: str) -> None:
        """Add a FAIL."""
        row = Check(f"{self._case}.{name}", Status.FAIL, f"{self._label}{detail}", expected, observed)
        self._rows.append(row)

    def note(self, name: str, status: Status, detail: str) -> None:
        """Add a row of any status that needs no more than a detail."""
        self._rows.append(Check(f"{self._case}.{name}", status, f"{self._label}{detail}"))

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

    def fold(self, name: str, what: str, inner: Rows, needed: Mapping[str, int]) -> None:
        """Add one row for all of ``inner``, which needs so many PASS rows of each name, and no FAIL.

        What ``inner`` could not measure stays out of it: where it is needed, it isn't reached.
        """
        counts = Counter(row.id for row in inner.all if row.status is Status.PASS)
        missing = [
            key
            for key, count in needed.items()
            if counts[f"{inner._case}.{key}"] < count and f"{inner._case}.{key}" not in inner._doubts
        ]
        if not inner.wrong and not missing:
            self.passed(name, f"{what}: {', '.join(needed)} as in the first round")
            return
        named = [(row.id.rpartition(".")[2], row.expected, row.observed) for row in inner.wrong]
        known = {key for key, _, _ in named}
        named += [(key, "a PASS", "not reached") for key in missing if key not in known]
        expected = "; ".join(f"{key} {right}" for key, right, _ in named)
        self.failed(name, what, expected, "; ".join(f"{key} {found}" for key, _, found in named))

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
