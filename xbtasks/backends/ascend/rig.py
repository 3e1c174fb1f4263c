"""What a case sets up on the host: a test directory with all that is mounted, and containers on the die."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks import rig
from xbtasks.backends.ascend import contract
from xbtasks.backends.ascend.target import RUNTIME, held, require_held
from xbtasks.checks import Check, Status
from xbtasks.engine import ContainerRequest, Mount
from xbtasks.hardware import Unjudged
from xbtasks.host.programs import program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.backends.ascend.contract import Slice
    from xbtasks.backends.ascend.target import Target
    from xbtasks.hardware import CaseRun
    from xbtasks.host.step import SectionReply

__all__ = ["Container", "Rig", "probe_command"]

_LIBRARY: Final = "libvruntime.so"
_MONITOR: Final = "enpu-monitor"
_PRELOAD: Final = "ld.so.preload"
_PROBE: Final = "probe.py"
_PROBE_INSIDE: Final = "/xbtasks/probe.py"
_NO_PROGRAM: Final = "executable file not found"


@dataclass(frozen=True, slots=True)
class Container:
    """A container to run. ``slice`` names its configuration, empty: none; None: nothing is injected."""

    role: str
    command: tuple[str, ...]
    slice: str | None = None


def probe_command(mode: str, *sizes: int) -> tuple[str, ...]:
    """Return the command that runs the probe in a container."""
    return ("python3", "-B", _PROBE_INSIDE, mode, *map(str, sizes))


class Rig(rig.Rig[Container]):
    """The rig of one case on its die."""

    def __init__(self, run: CaseRun, case: str, target: Target, slices: dict[str, Slice]) -> None:
        super().__init__(run, prefix=f"{case.rpartition('.')[2]}-")
        self._case = case
        self._target = target
        self._slices = slices
        self._rows: list[Check] = []

    @contextmanager
    def set_up(self) -> Iterator[list[Check]]:
        """Make the test directory, and remove it at the end. Yields the rows of what lies in it.

        Raises:
            Unjudged: it can't be made.
        """
        with self._kept():
            self._rows = self._prepare()
            yield self._rows

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
        words = [word for pair in texts.items() for word in pair]
        answer = self._set_out(lambda files: program("prepare_slices", run.test_directory, *files, *words))
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

    def _request(self, container: Container, name: str) -> ContainerRequest:
        run = self._run
        return ContainerRequest(
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

    def _mounts(self, container: Container) -> tuple[Mount, ...]:
        if container.slice is None:
            return ()
        return contract.mounts(
            self._directory(_LIBRARY),
            self._directory(_MONITOR),
            self._directory(_PRELOAD),
            self._directory(f"{container.slice}.config") if container.slice else "",
        )

    def _held(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        return held(self._target.shm_id, argv)

    def _require_held(self, answer: SectionReply) -> None:
        require_held(answer)

    def _cannot_start(self, container: Container, said: str) -> Unjudged:
        if _NO_PROGRAM in said:
            return Unjudged(f"the workload image lacks {container.command[0]}: {said}")
        detail = f"no container starts with runtime {RUNTIME}: {said}"
        failed = Check(f"{self._case}.reachable", Status.FAIL, detail, "a container with the NPU", "none")
        return Unjudged(f"the engine can't start a container on the NPU: {said}", failed)

    def _left_behind(self, what: str) -> None:
        self._rows.append(Check(f"{self._case}.removal", Status.WARN, what))


def _same(row: str, path: str, expected: str, observed: str) -> Check:
    if observed == expected:
        return Check(row, Status.PASS, f"{path} is what case 1 judges: sha256 {expected[:12]}…")
    return Check(row, Status.FAIL, f"the copy of {path} isn't what case 1 judges", expected, observed)
