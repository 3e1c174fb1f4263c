"""A host behind any transport: script out, frame in, evidence kept, nothing of a lost step left behind."""

from __future__ import annotations

import secrets
import signal
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xbtasks.errors import CannotJudge, HostUnreachable, Interrupted, XbError
from xbtasks.host import frame
from xbtasks.host.programs import program
from xbtasks.host.step import Host, LiveSink, Reply, Section, Step
from xbtasks.host.wire import Answer, Request, WireEnded, converse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from xbtasks.host.recording import Evidence
    from xbtasks.host.wire import Wire

__all__ = ["FramedHost", "Transport"]


class Transport(ABC):
    """A way to a host: one wire at a time, opened when it is needed, given up when a step on it is lost."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._wire: Wire | None = None
        self._proven = False

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The hosts and the users on the way that was taken, as evidence may name them."""
        return (), ()

    @abstractmethod
    def open(self, *, hurried: bool) -> Wire:
        """Return a new wire to the host; a ``hurried`` one is soon given up.

        Raises:
            HostUnreachable: no connection or no shell.
        """

    def exchange(self, request: Request, answer: Answer, *, hurried: bool = False) -> None:
        """Carry ``request`` to the host and fill ``answer``.

        Raises:
            Interrupted: Ctrl-C or SIGTERM before there was a connection; nothing was run.
            HostUnreachable: no connection or no shell; nothing was run.
            DeadlineExceeded: no whole answer within the deadline; the step was given up.
            LostReply: the wire ended before the answer was whole.
        """
        if self._wire is None:
            try:
                self._wire, self._proven = self.open(hurried=hurried), False
            except KeyboardInterrupt:
                raise Interrupted(f"interrupted while connecting to {self.label}") from None
        try:
            converse(self._wire, request, answer)
        except WireEnded:
            error = self._wire.why_ended(answer, proven=self._proven)
            self._give_up()
            raise error from None
        except BaseException:
            self._give_up()
            raise
        self._proven = True

    def close(self) -> None:
        """End the connection."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def _give_up(self) -> None:
        if self._wire is not None:
            wire, self._wire = self._wire, None
            wire.abandon()


class FramedHost(Host):
    """A host that answers in frames. Every step is recorded in ``evidence``."""

    def __init__(self, transport: Transport, evidence: Evidence | None = None) -> None:
        self._transport = transport
        self._evidence = evidence
        self._run = secrets.token_hex(12)
        self._count = 0
        self._spent = 0.0  # seconds, on the last exchange
        self.left_behind: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What a person calls the host."""
        return self._transport.label

    def run(self, step: Step, live: LiveSink | None = None) -> Reply:
        """Run ``step``; what a lost step may have left is removed before the error goes on."""
        marker = self._next_marker()
        number = self._count
        try:
            return self._exchange(step, marker, live)
        except HostUnreachable:
            raise  # nothing was run
        except CannotJudge as error:
            error.seconds = self._spent
            self._rescue(step, marker)
            error.hint = f"{error.hint}{self._leftovers()}".lstrip("; ")
            self._conclude(number, step, error)
            raise
        except KeyboardInterrupt:
            seconds = self._spent
            self._rescue(step, marker)
            interrupted = Interrupted(f"interrupted in step {step.name}{self._leftovers()}")
            interrupted.seconds = seconds
            self._conclude(number, step, interrupted)
            raise interrupted from None

    def close(self) -> None:
        """Close the connection."""
        self._transport.close()

    def _next_marker(self) -> str:
        self._count += 1
        return f"xb-{self._run}.{self._count}"

    def _exchange(self, step: Step, marker: str, live: LiveSink | None, *, hurried: bool = False) -> Reply:
        script = frame.script(step, marker).encode()
        takes_payload = any(section.payload for section in step.sections)
        request = Request(script, marker, step.deadline, step.payload_chunks() if takes_payload else None)
        answer, failure = Answer(marker, live), ""
        begun = time.monotonic()
        try:
            self._transport.exchange(request, answer, hurried=hurried)
            self._spent = round(time.monotonic() - begun, 3)
            return frame.parse(step, marker, answer.stdout, stderr=answer.stderr, seconds=self._spent)
        except (XbError, KeyboardInterrupt) as error:
            self._spent = round(time.monotonic() - begun, 3)
            failure = f"{type(error).__name__}: {error}"
            raise
        finally:
            if self._evidence is not None:
                self._evidence.record(self._count, step, marker, script, answer, self._spent, failure)

    def _conclude(self, number: int, step: Step, error: XbError) -> None:
        if self._evidence is not None:
            self._evidence.conclude(number, step, f"{type(error).__name__}: {error}")

    def _rescue(self, step: Step, marker: str) -> None:
        """End what still runs of a lost step, over a new connection, then remove what it may have left."""
        stop = Section("stop", program("stop", marker), deadline=30)
        cleanup = Step(f"{step.name}.cleanup", (stop, *step.on_loss))
        left = (f"step {step.name}, which may run on", *(section.argv[-1] for section in step.on_loss))
        with _uninterrupted():
            try:
                reply = self._exchange(cleanup, self._next_marker(), None, hurried=True)
            except CannotJudge:
                self.left_behind += left
            else:
                failed = zip(left, reply.sections, strict=True)
                self.left_behind += tuple(what for what, answer in failed if not answer.ok)

    def _leftovers(self) -> str:
        if not self.left_behind:
            return ""
        return f"; may be left on the host: {', '.join(self.left_behind)} (`inv clean` removes it)"


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C off for the few seconds that ending a step and removing a container take."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # not SIG_IGN, which children would inherit
    before = {number: signal.signal(number, _hold) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _hold(_number: int, _frame: FrameType | None) -> None:
    """Do nothing about a signal."""
