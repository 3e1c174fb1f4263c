"""What goes wrong on this side of a run: a refused permission, a build input that can't be read.

No host's answer tells of it, so it is kept with the evidence, for a replay to end as the run did.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeVar

from xbtasks.errors import CannotJudge, Interrupted, Refused, UsageError, XbError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["OwnSide", "read_notes"]

_T = TypeVar("_T")

_KINDS: dict[str, type[XbError]] = {
    kind.__name__: kind for kind in (CannotJudge, Interrupted, Refused, UsageError)
}


def read_notes(data: bytes) -> dict[str, tuple[str, str, str]]:
    """Return the notes of an earlier run: by subject, an error's kind, message and hint.

    Raises:
        ValueError: ``data`` holds no such notes.
    """
    document = json.loads(data)
    if not isinstance(document, dict):
        raise ValueError("the notes of our own side are no object")  # noqa: TRY004 - data, not an argument
    notes: dict[str, tuple[str, str, str]] = {}
    for subject, words in document.items():
        if not isinstance(words, list) or [type(word) for word in words] != [str, str, str]:
            raise ValueError(f"the note on {subject!r} is not one of ours")
        kind, message, hint = words
        notes[subject] = (kind, message, hint)
    return notes


class OwnSide:
    """Calls functions and notes their errors; what was noted before is raised again, without a call."""

    def __init__(
        self,
        noted: Mapping[str, tuple[str, str, str]] | None = None,
        keep: Callable[[dict[str, tuple[str, str, str]]], None] | None = None,
    ) -> None:
        self._noted = dict(noted or {})
        self._keep = keep

    def call(self, subject: str, function: Callable[[], _T]) -> _T:
        """Return what ``function`` returns. ``subject`` is what the call is about, and names it in the notes.

        Raises:
            XbError: its own, or the one that was noted.
        """
        if subject in self._noted:
            kind, message, hint = self._noted[subject]
            raise _KINDS.get(kind, CannotJudge)(message, hint=hint)
        try:
            return function()
        except XbError as error:
            self._noted[subject] = (type(error).__name__, error.message, error.hint)
            if self._keep is not None:
                self._keep(self._noted)
            raise
