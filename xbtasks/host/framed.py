"""A host behind any transport: script out, frame in, evidence kept, nothing of a lost step left behind."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from xbtasks.errors import CannotJudge, Interrupted, XbError
from xbtasks.host import frame
from xbtasks.host.step import Host, LiveSink, Reply, Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.host.recording import Evidence

__all__ = ["Exchange", "FramedHost", "Transport"]


class Exchange:
    """What a transport brought back: everything that came on stdout and stderr, and how it ended."""

    __slots__ = ("stderr", "stdout")

    def __init__(self, stdout: bytes, stderr: bytes) -> None:
        self.stdout = stdout
        self.stderr = stderr


class Transport(Protocol):
    """Carries a script and its payload to the host's ``sh`` and brings its output back."""

    @property
    def label(self) -> str:
        """What a person calls the host."""

    def exchange(self, script: bytes, payload: bytes, deadline: float, live: LiveSink | None) -> Exchange:
        """Run ``script`` with ``payload`` behind it on its stdin; stderr goes to ``live`` as it comes.

        Raises:
            HostUnreachable: no connection or no shell.
            DeadlineExceeded: not ended after ``deadline`` seconds; the local side has given up.
        """

    def close(self) -> None:
        """Close the connection."""


class FramedHost(Host):
    """A host that answers in frames. Every step is recorded in ``evidence``."""

    def __init__(self, transport: Transport, evidence: Evidence | None = None) -> None:
        self._transport = transport
        self._evidence = evidence
        self._run = secrets.token_hex(12)
        self._count = 0
        self.left_behind: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What a person calls the host."""
        return self._transport.label

    def run(self, step: Step, live: LiveSink | None = None) -> Reply:
        """Run ``step``; what a lost step may have left is removed before the error goes on."""
        try:
            return self._exchange(step, live)
        except CannotJudge as error:
            self._rescue(step)
            error.hint = f"{error.hint}{self._leftovers()}".lstrip("; ")
            raise
        except KeyboardInterrupt:
            self._rescue(step)
            raise Interrupted(f"interrupted in step {step.name}{self._leftovers()}") from None

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _exchange(self, step: Step, live: LiveSink | None) -> Reply:
        self._count += 1
        marker = f"xb-{self._run}.{self._count}"
        script = frame.script(step, marker).encode()
        answer, failure = Exchange(b"", b""), ""
        begun = time.monotonic()
        seconds = 0.0
        try:
            answer = self._transport.exchange(script, step.payload, step.deadline, live)
            seconds = round(time.monotonic() - begun, 3)
            return frame.parse(step, marker, answer.stdout, stderr=answer.stderr, seconds=seconds)
        except (XbError, KeyboardInterrupt) as error:
            failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            if self._evidence is not None:
                self._evidence.record(self._count, step, marker, script, answer, seconds, failure)

    def _rescue(self, step: Step) -> None:
        if not step.on_loss:
            return
        cleanup = Step(f"{step.name}.cleanup", step.on_loss)
        with _uninterrupted():
            try:
                reply = self._exchange(cleanup, None)
            except CannotJudge:
                self.left_behind += tuple(section.argv[-1] for section in step.on_loss)
            else:
                self.left_behind += tuple(
                    section.argv[-1]
                    for section, answer in zip(step.on_loss, reply.sections, strict=True)
                    if not answer.ok
                )

    def _leftovers(self) -> str:
        if not self.left_behind:
            return ""
        return f"; may be left on the host: {', '.join(self.left_behind)} (inv clean removes it)"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C off for the few seconds that removing a container takes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
