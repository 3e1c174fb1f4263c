"""Evidence: every step of a run on disk, and the host that answers from it.

Layout of an evidence directory (``$XDG_STATE_HOME/xbtasks/runs/<time>-<run id>/``)::

    run.json               what was asked, by whom, of which host; enough to judge again
    result.json            the result document
    steps/001-preflight/   script.sh · stdout.gz · stderr.gz · step.json
"""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING

from xbtasks.errors import (
    CannotJudge,
    DeadlineExceeded,
    EngineDown,
    HostUnreachable,
    Interrupted,
    LostReply,
    UsageError,
    XbError,
    reason_of,
)
from xbtasks.host import frame
from xbtasks.host.step import Host, LiveSink, Reply, Step

if TYPE_CHECKING:
    from pathlib import Path

    from xbtasks.host.wire import Answer

__all__ = ["Evidence", "RecordedHost"]


class Evidence:
    """Writes an evidence directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, mode=0o700, exist_ok=True)

    def record(
        self,
        number: int,
        step: Step,
        marker: str,
        script: bytes,
        answer: Answer,
        seconds: float,
        failure: str,
    ) -> None:
        """Keep one step as it crossed to the host and came back, whole or not."""
        folder = self.directory / "steps" / f"{number:03d}-{step.name}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "script.sh").write_bytes(script)
        for name, data in (("stdout.gz", answer.stdout), ("stderr.gz", answer.stderr)):
            # mtime=0: the same answer gives the same file
            (folder / name).write_bytes(gzip.compress(data, compresslevel=1, mtime=0))
        entry = {"step": step.name, "marker": marker, "seconds": seconds, "failure": failure}
        (folder / "step.json").write_text(json.dumps(entry, indent=1) + "\n")

    def conclude(self, number: int, step: Step, failure: str) -> None:
        """Keep how a recorded step failed in the end, after what was done about it."""
        path = self.directory / "steps" / f"{number:03d}-{step.name}" / "step.json"
        entry = {**json.loads(path.read_bytes()), "failure": failure}
        path.write_text(json.dumps(entry, indent=1) + "\n")

    def keep(self, name: str, data: bytes) -> str:
        """Store a file for people to read beside the evidence, and return its path."""
        path = self.directory / name
        path.write_bytes(data)
        return str(path)

    def write(self, name: str, document: object) -> None:
        """Write a JSON document of the run, whole or not at all."""
        target = self.directory / name
        fresh = target.with_suffix(".tmp")
        fresh.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        fresh.replace(target)


_FAILURES: dict[str, type[XbError]] = {
    kind.__name__: kind for kind in (DeadlineExceeded, EngineDown, HostUnreachable, Interrupted, LostReply)
}


class RecordedHost(Host):
    """Answers each step with what a host answered before; no host is touched.

    Frames are parsed and checked again, so evidence that was changed by hand is lost, not believed.
    """

    def __init__(self, directory: Path, label: str) -> None:
        self._label = label
        self._folders = sorted((directory / "steps").glob("[0-9]*-*"), key=_number)
        self._next = 0

    @property
    def label(self) -> str:
        """What the recorded host was called."""
        return self._label

    def run(self, step: Step, live: LiveSink | None = None) -> Reply:
        """Return the recorded reply of ``step``; there is nothing live about it.

        Raises:
            LostReply: the recording holds no whole answer to this step.
            CannotJudge: what the recorded step itself ended with.
            Interrupted: it was interrupted.
        """
        del live
        if self._next >= len(self._folders):
            raise LostReply(f"the evidence ends before step {step.name}")
        folder = self._folders[self._next]
        self._next += 1
        entry = _entry(folder)
        if entry["step"] != step.name:
            raise LostReply(f"the evidence holds step {entry['step']} where step {step.name} is asked for")
        if entry["failure"]:
            # a lost step may have been followed by its clean-up, which has nothing to say
            for following in self._folders[self._next : self._next + 1]:
                self._next += _entry(following)["step"] == f"{step.name}.cleanup"
            raise _failure(step, str(entry["failure"]), entry["seconds"])
        marker = str(entry["marker"])
        try:
            script = frame.script(step, marker).encode()
        except ValueError as error:
            raise LostReply(f"step {step.name} of the evidence can't be read: {error}") from error
        if script != _read(folder / "script.sh"):
            raise LostReply(
                f"step {step.name} of the evidence asked the host something else",
                hint="another version of xbtasks recorded it, and can judge it; or it was changed by hand",
            )
        try:
            stdout, stderr = (gzip.decompress(_read(folder / name)) for name in ("stdout.gz", "stderr.gz"))
            seconds = float(str(entry["seconds"]))
        except (EOFError, OSError, ValueError, zlib.error) as error:
            raise LostReply(f"step {step.name} of the evidence can't be read: {reason_of(error)}") from error
        return frame.parse(step, marker, stdout, stderr=stderr, seconds=seconds)

    def close(self) -> None:
        """Nothing is held."""


def _failure(step: Step, failure: str, seconds: object) -> XbError:
    """Return what a recorded step ended with."""
    kind, _, message = failure.partition(": ")
    error: XbError = _FAILURES.get(kind, CannotJudge)(message)
    if kind == KeyboardInterrupt.__name__:
        error = Interrupted(f"interrupted in step {step.name}")
    error.seconds = seconds if isinstance(seconds, float) else 0.0
    return error


def _number(folder: Path) -> tuple[int, str]:
    number, _, name = folder.name.partition("-")
    return int(number) if number.isdigit() else 0, name


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"evidence file {path} can't be read: {error.strerror}") from error


def _entry(folder: Path) -> dict[str, object]:
    path = folder / "step.json"
    try:
        entry = json.loads(_read(path))
    except ValueError as error:
        raise UsageError(f"evidence file {path} is not JSON: {error}") from error
    if not isinstance(entry, dict) or not {"step", "marker", "seconds", "failure"} <= entry.keys():
        raise UsageError(f"evidence file {path} is not one of ours: keys are missing")
    return dict(entry)
