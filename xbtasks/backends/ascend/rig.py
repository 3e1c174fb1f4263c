"""What a case sets up on the host: a test directory with all that is mounted, and containers on the held
die.

A die is held by one run at a time: its lock is taken before a container starts and given back when it has
ended. What is mounted are copies in the run's own directory, so that no other run can change them
meanwhile.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend import contract
from xbtasks.backends.ascend.target import RUNTIME, WAIT, held, require_held
from xbtasks.checks import Check, Status
from xbtasks.engine import ContainerRequest, Mount
from xbtasks.errors import HostUnreachable, Interrupted, LostReply, XbError
from xbtasks.hardware import Skipped, Unjudged
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step
from xbtasks.hostprobe import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.backends.ascend.contract import Slice
    from xbtasks.backends.ascend.target import Target
    from xbtasks.hardware import CaseRun
    from xbtasks.host.step import SectionReply

__all__ = ["Container", "Outcome", "Rig", "probe_command"]

_LIBRARY: Final = "libvruntime.so"
_MONITOR: Final = "enpu-monitor"
_PRELOAD: Final = "ld.so.preload"
_PROBE: Final = "probe.py"
_PROBE_INSIDE: Final = "/xbtasks/probe.py"
_LEAST: Final = 120
_MARGIN: Final = 30
_ENGINE: Final = 125
_NOT_STARTED: Final = (_ENGINE, 126, 127)
"""The engine's own, and a shell's, which it takes over where the runtime speaks of a missing file."""

_DAEMON: Final = re.compile(r"\w+: Error response from daemon: ")
_NO_PROGRAM: Final = "executable file not found"
_TIME_OVER: Final = (124, 137)


@dataclass(frozen=True, slots=True)
class Container:
    """A container to run. ``slice`` names its configuration, empty: none; None: nothing is injected."""

    role: str
    command: tuple[str, ...]
    slice: str | None = None


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
        if self.exit_status > _SIGNALS:
            number = self.exit_status - _SIGNALS
            name = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV"}.get(
                number
            )
            return f"crashed by {name} ({self.exit_status})" if name else f"ended with {self.exit_status}"
        return f"ended with {self.exit_status}"


_SIGNALS: Final = 128


def probe_command(mode: str, *sizes: int) -> tuple[str, ...]:
    """Return the command that runs the probe in a container."""
    return ("python3", "-B", _PROBE_INSIDE, mode, *map(str, sizes))


class Rig:
    """The rig of one case on its die."""

    def __init__(self, run: CaseRun, case: str, target: Target, slices: dict[str, Slice]) -> None:
        self._run = run
        self._case = case
        self._target = target
        self._slices = slices
        self._limit = max(_LEAST, run.deadline)

    @contextmanager
    def set_up(self) -> Iterator[list[Check]]:
        """Make the test directory, and remove it at the end. Yields the rows of what lies in it.

        Raises:
            Unjudged: it can't be made.
        """
        try:
            rows = self._prepare()
            yield rows
        except (HostUnreachable, Interrupted, LostReply):
            raise  # what the lost step left is removed with it, as far as the host can be reached
        except (XbError, Skipped):
            with suppress(XbError):  # why the case ended is what counts
                self._remove()
            raise
        left = self._remove()
        if left:
            rows.append(Check(f"{self._case}.removal", Status.WARN, f"left on the host: {left}"))

    def run(self, step: str, *containers: Container) -> dict[str, Outcome]:
        """Run containers one after another; returns how each ended, by role.

        Raises:
            Unjudged: one couldn't be started.
            CannotJudge: the die is held by another run.
        """
        sections = tuple(self._section(container) for container in containers)
        reply = self._run.ask(Step(step, sections, on_loss=self._on_loss(containers)))
        return {item.role: self._outcome(item, reply[item.role]) for item in containers}

    def _texts(self) -> dict[str, str]:
        """Return the files of the test directory that are made of text."""
        return {
            _PRELOAD: "".join(f"{path}\n" for path in contract.PRELOAD),
            _PROBE: Path(__file__).with_name("probe.py").read_text(encoding="utf-8"),
            **{f"{name}.config": part.config for name, part in self._slices.items()},
        }

    def _prepare(self) -> list[Check]:
        """Make the test directory, and tell whether what is mounted is what it should be."""
        run = self._run
        texts = self._texts()
        staged = [f"{run.stage.staging_directory}/{path}" for path, _ in run.artifacts]
        words = [word for pair in texts.items() for word in pair]
        argv = program("prepare_slices", run.test_directory, *staged, *words)
        step = Step("prepare", (Section("prepare", argv, run.deadline),), on_loss=(self._removal(),))
        answer = run.ask(step)["prepare"]
        if not answer.ok:
            raise Unjudged(f"the test directory can't be made: {one_line(answer.error_text)}")
        lines = [line.split(" ") for line in answer.text.splitlines()]
        found = {line[0]: " ".join(line[1:]) for line in lines}
        rows = [
            _same(f"{self._case}.artifact", path, sha256, found.get(name, "").partition(" ")[2])
            for (path, sha256), name in zip(run.artifacts, (_LIBRARY, _MONITOR), strict=True)
        ]
        rows.append(self._written("preload", _PRELOAD, texts, found, ", ".join(contract.PRELOAD)))
        rows += [
            self._written(
                "config", f"{name}.config", texts, found, f"{name} round: {' '.join(part.config.split())}"
            )
            for name, part in self._slices.items()
        ]
        return rows

    def _written(
        self, check: str, name: str, texts: dict[str, str], found: dict[str, str], detail: str
    ) -> Check:
        expected = f"644 {hashlib.sha256(texts[name].encode()).hexdigest()}"
        observed = found.get(name, "none")
        status = Status.PASS if observed == expected else Status.FAIL
        return Check(f"{self._case}.{check}", status, f"0644, {detail}", expected, observed)

    def _directory(self, name: str) -> str:
        return f"{self._run.test_directory}/{name}"

    def _removal(self) -> Section:
        return Section("removal", program("remove_test", self._run.test_directory), self._run.deadline)

    def _remove(self) -> str:
        answer = self._run.ask(Step("remove", (self._removal(),)))["removal"]
        return "" if answer.ok else one_line(answer.error_text)

    def _name(self, role: str) -> str:
        return self._run.container(f"{self._case.rpartition('.')[2]}-{role}")

    def _on_loss(self, containers: tuple[Container, ...]) -> tuple[Section, ...]:
        engine, deadline = self._run.engine, self._run.deadline
        return (
            *(
                Section(f"remove-{place}", engine.remove_container(self._name(item.role)), deadline)
                for place, item in enumerate(containers)
            ),
            self._removal(),
        )

    def _section(self, container: Container) -> Section:
        run = self._run
        name = self._name(container.role)
        request = ContainerRequest(
            name=name,
            run_id=run.run_id,
            image=run.workload,
            command=container.command,
            runtime=RUNTIME,
            environment=(
                *contract.visible(self._target.physical_id),
                *(() if container.slice is None else contract.environment()),
            ),
            mounts=(Mount(self._directory(_PROBE), _PROBE_INSIDE), *self._mounts(container)),
        )
        argv = program("contained", run.engine.binary, name, str(self._limit), *run.engine.run(request))
        return Section(container.role, held(self._target.shm_id, argv), WAIT + self._limit + _MARGIN)

    def _mounts(self, container: Container) -> tuple[Mount, ...]:
        if container.slice is None:
            return ()
        return contract.mounts(
            self._directory(_LIBRARY),
            self._directory(_MONITOR),
            self._directory(_PRELOAD),
            self._directory(f"{container.slice}.config") if container.slice else "",
        )

    def _outcome(self, container: Container, answer: SectionReply) -> Outcome:
        require_held(answer)
        said = one_line(answer.error_text)
        if answer.exit_status in _NOT_STARTED and (answer.exit_status == _ENGINE or _DAEMON.search(said)):
            if _NO_PROGRAM in said:
                raise Unjudged(f"the workload image lacks {container.command[0]}: {said}")
            detail = f"no container starts with runtime {RUNTIME}: {said}"
            failed = Check(f"{self._case}.reachable", Status.FAIL, detail, "a container with the NPU", "none")
            raise Unjudged(f"the engine can't start a container on the NPU: {said}", failed)
        return Outcome(
            container.role,
            answer.exit_status,
            answer.exit_status in _TIME_OVER and answer.seconds >= self._limit,
            answer.seconds,
            answer.text,
            answer.error_text,
        )


def _same(row: str, path: str, expected: str, observed: str) -> Check:
    if observed == expected:
        return Check(row, Status.PASS, f"{path} is what case 1 judges: sha256 {expected[:12]}…")
    return Check(row, Status.FAIL, f"{path} is staged, and isn't what case 1 judges", expected, observed)
