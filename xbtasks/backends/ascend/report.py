"""What the probe printed, as values. ``probe.py`` is the other side of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

__all__ = ["Event", "Report", "parse_report"]

_LEAD: Final = "xbtasks-probe "


@dataclass(frozen=True, slots=True)
class Event:
    """One operation of process ``who`` and ACL's code for it; bytes. Only what belongs to it is filled."""

    who: str
    op: str
    rc: int
    why: str = ""
    size: int = 0
    chunk: int = 0
    free: int = 0
    total: int = 0
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What the processes did, in order; ``a`` is the first, ``b`` the second."""

    events: tuple[Event, ...]

    def event(self, op: str, who: str = "a") -> Event | None:
        """Return the last operation of that name, or None if it wasn't reached."""
        return next((event for event in reversed(self.events) if (event.op, event.who) == (op, who)), None)

    def mapped(self, path: str) -> bool:
        """Whether the first process had ``path`` mapped."""
        return any(path in event.paths for event in self.events if event.who == "a")

    def paths(self, folder: str) -> tuple[str, ...]:
        """Return what the first process had mapped below ``folder``, which ends with a slash."""
        events = (event for event in self.events if event.who == "a")
        return tuple(path for event in events for path in event.paths if path.startswith(folder))


def parse_report(stdout: str) -> Report:
    """Return the operations on ``stdout``; a line that isn't whole isn't one."""
    events = (_event(line.removeprefix(_LEAD)) for line in stdout.splitlines() if line.startswith(_LEAD))
    return Report(tuple(event for event in events if event))


def _event(text: str) -> Event | None:
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    words = {name: document.get(name, "") for name in ("who", "op", "why")}
    numbers = {name: document.get(name, 0) for name in ("rc", "size", "chunk", "free", "total")}
    paths = document.get("paths", [])
    if not all(isinstance(word, str) for word in words.values()) or "rc" not in document:
        return None
    if not all(type(number) is int for number in numbers.values()) or not isinstance(paths, list):
        return None
    return Event(
        who=str(words["who"]),
        op=str(words["op"]),
        why=str(words["why"]),
        paths=tuple(str(path) for path in paths),
        **{name: int(number) for name, number in numbers.items()},
    )
