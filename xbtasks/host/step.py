"""What crosses to a host, as values: a step of sections goes there, a reply of sections comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from xbtasks.errors import LostReply

__all__ = ["Host", "LiveSink", "Payload", "Reply", "Section", "SectionReply", "Step"]

LiveSink = Callable[[bytes], None]
"""Takes chunks of live output, for a person to see. Nothing is ever decided from them."""


@dataclass(frozen=True, slots=True)
class Section:
    """One command of a step.

    ``argv`` runs on the host without a shell of its own, under ``deadline`` seconds. Its stdin is
    empty unless ``payload``, then it is the step's payload. With ``live`` its stderr is also passed on
    while it runs.
    """

    name: str
    argv: tuple[str, ...]
    deadline: int
    live: bool = False
    payload: bool = False


class Payload(Protocol):
    """Data too large to be held: made piece by piece while it is sent."""

    def chunks(self) -> Iterator[bytes]:
        """Yield the data.

        Raises:
            XbError: it can't be read.
        """


@dataclass(frozen=True, slots=True)
class Step:
    """A few sections that run one after another in one round trip. At most one takes the payload.

    ``on_loss`` is run over a new connection when the step was lost (deadline, Ctrl-C, dead link): it
    removes by name what the step may have left.
    """

    name: str
    sections: tuple[Section, ...]
    payload: bytes | Payload = b""
    on_loss: tuple[Section, ...] = ()

    def payload_chunks(self) -> Iterator[bytes]:
        """Return the payload piece by piece."""
        return iter((self.payload,)) if isinstance(self.payload, bytes) else self.payload.chunks()

    @property
    def deadline(self) -> int:
        """Seconds after which no answer can come any more: the sections' own deadlines, and a margin."""
        return sum(section.deadline for section in self.sections) + 15


@dataclass(frozen=True, slots=True)
class SectionReply:
    """What one command answered. ``seconds`` is measured on the host, in whole seconds."""

    name: str
    exit_status: int
    stdout: bytes
    stderr: bytes
    seconds: int
    timed_out: bool

    @property
    def ok(self) -> bool:
        """Whether the command ended with 0."""
        return self.exit_status == 0

    @property
    def text(self) -> str:
        """Standard output as text; bytes that aren't UTF-8 are replaced."""
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        """Standard error as text; bytes that aren't UTF-8 are replaced."""
        return self.stderr.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Reply:
    """The sections' answers, in order; ``noise`` is what came around the frame, ``seconds`` what it took."""

    step: str
    sections: tuple[SectionReply, ...]
    noise: tuple[str, ...] = field(default=())
    seconds: float = 0.0

    def __getitem__(self, name: str) -> SectionReply:
        for section in self.sections:
            if section.name == name:
                return section
        raise LostReply(f"step {self.step}: no section {name!r} in the reply")


class Host(Protocol):
    """Where docker and the accelerators are."""

    @property
    def label(self) -> str:
        """What a person calls the host: ``local`` or the ssh destination."""

    def run(self, step: Step, live: LiveSink | None = None) -> Reply:
        """Run ``step`` and return its reply.

        Raises:
            HostUnreachable: the host or its shell can't be used.
            DeadlineExceeded: no whole reply within the step's deadline.
            LostReply: the reply is short, corrupt or missing.
            Interrupted: Ctrl-C or SIGTERM while it ran.
        """

    def close(self) -> None:
        """Give back what the host holds."""
