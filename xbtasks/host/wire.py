r"""The wire: bytes to a far ``sh`` and back, and the talk that carries one step over it.

The far end runs ``frame.LOOP`` as long as the wire lasts. For each step it is sent::

    <length of the script>\n<script>              always
    <length of a chunk>\n<chunk> ... 0\n          where the step has a payload

and answers with a frame. Nothing is sent ahead of a frame's last line.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from xbtasks.errors import CannotJudge, DeadlineExceeded, LostReply, XbError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xbtasks.host.step import LiveSink

__all__ = ["Answer", "Request", "Wire", "WireEnded", "converse"]

_CHUNK: Final = 256 * 1024
_TAIL: Final = 1024  # bytes; a frame's last line is shorter
_PATIENCE: Final = 2.0  # seconds that stderr may come later than stdout


class Wire(Protocol):
    """A way to a far shell that runs the loop. Any method may raise OSError once the wire has ended."""

    def send(self, data: bytes) -> None:
        """Send ``data``; returns when the near end has taken it. Called from a thread of its own."""

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        """Return what came on stdout and stderr, empty after ``seconds`` of silence; None at the end.

        Raises:
            LostReply: the wire is known to be dead.
        """

    def why_ended(self, answer: Answer, *, proven: bool) -> XbError:
        """Return what the end of the wire amid ``answer`` means; ``proven``: a step before it was whole."""

    def close(self) -> None:
        """End the far shell, which is idle."""

    def abandon(self) -> None:
        """End the far shell and the step that runs in it, and wait for neither for long."""


@dataclass(frozen=True, slots=True)
class Request:
    """What crosses for one step. ``payload`` is None where the script takes none; ``deadline``: seconds."""

    script: bytes
    marker: str
    deadline: float
    payload: Iterable[bytes] | None = None

    def messages(self) -> Iterator[bytes]:
        """Yield the bytes to send. Where the payload raises, its end is sent all the same, then it raises.

        Raises:
            XbError: the payload's own.
        """
        yield b"%d\n%s" % (len(self.script), self.script)
        if self.payload is None:
            return
        try:
            for data in self.payload:
                for start in range(0, len(data), _CHUNK):
                    chunk = data[start : start + _CHUNK]
                    yield b"%d\n%s" % (len(chunk), chunk)
        except XbError:
            yield b"0\n"
            raise
        except OSError as error:
            yield b"0\n"
            raise CannotJudge(f"the payload can't be read: {reason_of(error)}") from error
        yield b"0\n"


class Answer:
    """Everything that came back for one step. Lines of stderr are passed to ``live`` as they come."""

    def __init__(self, marker: str = "", live: LiveSink | None = None) -> None:
        self._ends = tuple(f"\n{marker} {word} ".encode() for word in ("end", "abort"))
        self._over = f"{marker} over".encode()
        self._live = live
        self._stdout: list[bytes] = []
        self._stderr: list[bytes] = []
        self._tail = b"\n"
        self._line = b""
        self._begin = f"\n{marker} begin ".encode()
        self.begun = False
        self.whole = False
        self.stderr_whole = False

    @property
    def stdout(self) -> bytes:
        """All of standard output so far."""
        return b"".join(self._stdout)

    @property
    def stderr(self) -> bytes:
        """All of standard error so far."""
        return b"".join(self._stderr)

    def take(self, stdout: bytes, stderr: bytes) -> None:
        """Add what arrived.

        ``begun`` says whether the first line of the frame has; ``whole`` and ``stderr_whole`` say whether the
        last lines of the two streams have.
        """
        if stdout:
            self._stdout.append(stdout)
            seen = self._tail + stdout
            self.begun = self.begun or self._begin in seen
            for end in self._ends:
                start = seen.find(end)
                self.whole = self.whole or (start >= 0 and b"\n" in seen[start + 1 :])
            self._tail = seen[-_TAIL:]
        if stderr:
            self._stderr.append(stderr)
            *lines, self._line = (self._line + stderr).split(b"\n")
            for line in lines:
                if line == self._over:
                    self.stderr_whole = True
                elif self._live is not None:
                    self._live(line + b"\n")


class WireEnded(Exception):
    """The far end is gone amid an answer."""


def converse(wire: Wire, request: Request, answer: Answer) -> None:
    """Carry ``request`` over ``wire`` and fill ``answer``, until it is whole.

    Raises:
        DeadlineExceeded: it is not whole after the deadline.
        WireEnded: the wire ended before.
        LostReply: the wire is dead.
        XbError: what the payload itself raised.
    """
    until = time.monotonic() + request.deadline
    feeder = _Feeder(wire, request)
    feeder.start()
    while not answer.whole:
        left = until - time.monotonic()
        if left <= 0:
            raise DeadlineExceeded("the step was stopped: no answer within its deadline")
        if not _arrived(wire, answer, left):
            raise WireEnded
    # The far shell has read all that was sent, so the thread is at its end.
    feeder.join(_PATIENCE)
    if feeder.failure is not None:
        raise feeder.failure
    until = time.monotonic() + _PATIENCE
    while not answer.stderr_whole and time.monotonic() < until:
        if not _arrived(wire, answer, _PATIENCE):
            break


def _arrived(wire: Wire, answer: Answer, seconds: float) -> bool:
    """Add what arrives within ``seconds``, at most one, to ``answer``; false when the wire has ended."""
    try:
        arrived = wire.receive(min(seconds, 1.0))
    except OSError as error:
        raise LostReply(f"the link was lost: {reason_of(error)}") from error
    if arrived is not None:
        answer.take(*arrived)
    return arrived is not None


class _Feeder(threading.Thread):
    """Sends a request while its answer is read, so that neither side can wait for the other."""

    def __init__(self, wire: Wire, request: Request) -> None:
        super().__init__(name="xbtasks-feeder", daemon=True)
        self._wire = wire
        self._request = request
        self.failure: XbError | None = None

    def run(self) -> None:
        try:
            for message in self._request.messages():
                self._wire.send(message)
        except XbError as error:
            self.failure = error
        except OSError:
            pass  # the reader meets the end of the wire too, and says what it means
