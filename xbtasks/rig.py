"""What a hardware case sets up on a host and takes down again: a test directory, containers on held cards.

A card is held by one run at a time: its lock is taken before a container starts and given back when it has
ended. What is mounted lies in the run's own directory, copied there out of the image that case 1 judges: what
another run stages meanwhile is nothing to this one. A
vendor's rig says what lies there, what a container gets injected, and what it means that one doesn't start.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from xbtasks.errors import HostUnreachable, Interrupted, LostReply, XbError
from xbtasks.hardware import Skipped, Unjudged
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step
from xbtasks.hostprobe import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xbtasks.checks import Check
    from xbtasks.engine import ContainerRequest
    from xbtasks.hardware import CaseRun
    from xbtasks.host.step import SectionReply
    from xbtasks.host.transfer import StreamPayload

__all__ = ["HELD", "WAIT", "Outcome", "Rig", "hold", "not_started"]

WAIT: Final = 300
"""For how many seconds a case waits for another run to give its cards back."""
HELD: Final = 75
"""The exit status of what waited in vain."""

_LEAST: Final = 120  # seconds; HAMi-core of 2025 may wait a minute for its lock
_MARGIN: Final = 30  # seconds
_ENGINE: Final = 125
_NOT_STARTED: Final = (_ENGINE, 126, 127)
"""The engine's own exit statuses; the last two are a program's too, then without the daemon's words."""
_DAEMON: Final = re.compile(r"^\w+: Error response from daemon: ", re.MULTILINE)
_TIME_OVER: Final = (124, 137)
_SIGNALS: Final = 128
_CRASHES: Final = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV"}


class Role(Protocol):
    """A container to run; ``role`` names what it plays in its case."""

    @property
    def role(self) -> str:
        """The name."""


C = TypeVar("C", bound=Role)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a container ended, with its command's status; ``timed_out``: it was stopped after ``seconds``."""

    role: str
    exit_status: int
    timed_out: bool
    seconds: int
    stdout: str
    stderr: str

    @property
    def ended(self) -> str:
        """How it ended, for a person."""
        if self.timed_out:
            return f"was stopped after {self.seconds} s"
        name = _CRASHES.get(self.exit_status - _SIGNALS)
        return f"crashed by {name} ({self.exit_status})" if name else f"ended with {self.exit_status}"


class Rig(ABC, Generic[C]):
    """The rig of one case. ``prefix`` goes before the roles in its containers' names."""

    def __init__(self, run: CaseRun, prefix: str = "") -> None:
        self._run = run
        self._prefix = prefix
        self._limit = max(_LEAST, run.deadline)
        self._set = False

    @property
    def limit(self) -> int:
        """How many seconds a container may take."""
        return self._limit

    def run(self, step: str, *containers: C) -> dict[str, Outcome]:
        """Run containers one after another; returns how each ended, by role.

        Raises:
            Unjudged: one couldn't be started.
            CannotJudge: the cards are held by another run.
        """
        sections = tuple(self._section(container) for container in containers)
        reply = self._run.ask(Step(step, sections, on_loss=self._on_loss(*containers)))
        return {item.role: self._outcome(item, reply[item.role]) for item in containers}

    @abstractmethod
    def _request(self, container: C, name: str) -> ContainerRequest:
        """Return what the engine is asked to run."""

    @abstractmethod
    def _held(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        """Return the argv that runs ``argv`` while the cards are held."""

    @abstractmethod
    def _require_held(self, answer: SectionReply) -> None:
        """Return unless the cards could not be held.

        Raises:
            CannotJudge: they could not.
        """

    @abstractmethod
    def _cannot_start(self, container: C, said: str) -> XbError:
        """Return what it means that the engine didn't start a container."""

    @abstractmethod
    def _left_behind(self, what: str) -> None:
        """Take note that the test directory could not be removed, and why."""

    @contextmanager
    def _kept(self) -> Iterator[None]:
        """Remove the test directory at the end, which is made within.

        Raises:
            Unjudged: somebody else removed it before, so that what was seen of the containers means nothing.
        """
        try:
            yield
        except (HostUnreachable, Interrupted, LostReply):
            raise  # what the lost step left is removed with it, as far as the host can be reached
        except (XbError, Skipped) as error:
            try:
                self._remove(*error.checks if isinstance(error, Unjudged) else ())
            except Unjudged:
                raise
            except XbError:
                pass  # why the case ended is what counts
            raise
        if left := self._remove():
            self._left_behind(f"left on the host: {left}")

    def _set_out(
        self, make: Callable[[tuple[str, ...]], tuple[str, ...]], payload: StreamPayload | None = None
    ) -> SectionReply:
        """Make the test directory by ``make``, and return what its program printed.

        ``make`` gets the words that tell the program where the artifacts are: the engine, a container of the
        image, which never starts, and for each artifact its path there and the mode that it is to have.

        Raises:
            Unjudged: it can't be made.
        """
        run, container = self._run, self._name("files")
        files = [
            word for each in run.stage.backend.artifacts for word in (each.image_path, f"{each.mode:04o}")
        ]
        argv = make((run.engine.binary, container, *files))
        sections = (
            Section(
                "create", run.engine.create(container, run.image, run.platform, run.run_id), run.deadline
            ),
            Section("prepare", argv, run.deadline, payload=payload is not None),
            Section("remove", run.engine.remove_container(container), run.deadline),
        )
        step = Step("prepare", sections, payload or b"", on_loss=(sections[-1], self._removal()))
        reply = run.ask(step)
        for name in ("create", "prepare"):
            if not reply[name].ok:
                raise Unjudged(f"the test directory can't be made: {one_line(reply[name].error_text)}")
        self._set = True
        return reply["prepare"]

    def _directory(self, name: str) -> str:
        """Return the path of what is called ``name`` in the test directory."""
        return f"{self._run.test_directory}/{name}"

    def _name(self, role: str) -> str:
        return self._run.container(f"{self._prefix}{role}")

    def _contained(self, request: ContainerRequest) -> tuple[str, ...]:
        """Return the argv that runs a container and stops it when its time is over."""
        engine = self._run.engine
        return program("contained", engine.binary, request.name, str(self._limit), *engine.run(request))

    def _contained_section(self, name: str, request: ContainerRequest) -> Section:
        """Return a section that runs a container on no card."""
        return Section(name, self._contained(request), self._limit + _MARGIN)

    def _section(self, container: C) -> Section:
        argv = self._held(self._contained(self._request(container, self._name(container.role))))
        return Section(container.role, argv, WAIT + self._limit + _MARGIN)

    def _on_loss(self, *containers: Role) -> tuple[Section, ...]:
        engine, deadline = self._run.engine, self._run.deadline
        return (
            *(
                Section(f"remove-{place}", engine.remove_container(self._name(item.role)), deadline)
                for place, item in enumerate(containers)
            ),
            self._removal(),
        )

    def _removal(self) -> Section:
        return Section("removal", program("remove_test", self._run.test_directory), self._run.deadline)

    def _remove(self, *checks: Check) -> str:
        """Remove the test directory and return why it can't be; ``checks`` are rows of the case until now."""
        answer = self._run.ask(Step("remove", (self._removal(),)))["removal"]
        if self._set and answer.text.strip() == "gone":
            raise Unjudged(
                "what this run had on the host was removed while it was at work",
                *checks,
                hint="somebody typed clean there, run it again",
            )
        return "" if answer.ok else one_line(answer.error_text)

    def _outcome(self, container: C, answer: SectionReply) -> Outcome:
        self._require_held(answer)
        if not_started(answer):
            raise self._cannot_start(container, one_line(answer.error_text))
        return Outcome(
            container.role,
            answer.exit_status,
            answer.exit_status in _TIME_OVER and answer.seconds >= self._limit,
            answer.seconds,
            answer.text,
            answer.error_text,
        )


def not_started(answer: SectionReply) -> bool:
    """Whether it was the engine that failed, and not a program in a container."""
    said_so = _DAEMON.search(answer.error_text) is not None
    return answer.exit_status == _ENGINE or (answer.exit_status in _NOT_STARTED and said_so)


def hold(locks: tuple[str, ...], argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argv that runs ``argv`` while it holds ``locks``, which are taken in the order given."""
    return program("hold", str(WAIT), *locks, "--", *argv)
