"""What a container answered: its document, its log, and how it ended."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.backends.nvidia.hami_log import HamiLog, parse_log
from xbtasks.backends.nvidia.probe.report import Report, parse_report
from xbtasks.hostprobe import one_line

if TYPE_CHECKING:
    from xbtasks.backends.nvidia.probe.report import Event, Process
    from xbtasks.rig import Outcome

__all__ = ["Answer", "ending", "read_answer"]

_KILLED = 128


@dataclass(frozen=True, slots=True)
class Answer:
    """What the probe in a container said. ``report`` is None where there is no whole document."""

    outcome: Outcome
    report: Report | None
    log: HamiLog

    def process(self, name: str) -> Process | None:
        """Return a group's process, or None."""
        return self.report.process(name) if self.report else None

    def event(self, name: str, op: str, place: int = 0) -> Event | None:
        """Return an operation of a group, or None where it wasn't reached."""
        process = self.process(name)
        return process.event(op, place) if process else None

    @property
    def trouble(self) -> str:
        """Why it didn't come to a good end, or an empty text."""
        said = ending(self.outcome, self.log)
        if said:
            return said
        return "" if self.report else "it ended with 0, but printed no document"


def read_answer(outcome: Outcome) -> Answer:
    """Return what the probe's container answered."""
    return Answer(outcome, parse_report(outcome.stdout), parse_log(outcome.stderr))


def ending(outcome: Outcome, log: HamiLog) -> str:
    """Return why a container didn't end with 0, or an empty text."""
    last = f" in {log.last}" if log.last else ""
    if outcome.timed_out:
        blocked = f", blocked: {log.blocked}" if log.blocked else ""
        return f"no end within {outcome.seconds} s{last}{blocked}"
    status = outcome.exit_status
    if status == 0:
        return ""
    if log.loader:
        return f"the loader can't start the program (exit status {status}): {log.loader}"
    if status > _KILLED:
        return f"crashed{last}: {_signal(status - _KILLED)}, exit status {status}{_said(log)}"
    return f"exit status {status}{last}{_said(log)}"


def _said(log: HamiLog) -> str:
    said = log.errors[-1] if log.errors else log.said
    return f": {one_line(said)}" if said else ""


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
