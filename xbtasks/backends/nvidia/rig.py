"""What a case sets up on the host: a test directory, the compiled probe, and containers on held cards.

Containers start one after another, because HAMi-core finds its own process by comparing the processes on a
card before and after (8f3a89c, ``utils.c``), and two at once are mistaken for each other.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks import rig
from xbtasks.backends.nvidia import contract
from xbtasks.backends.nvidia.probe import operations
from xbtasks.backends.nvidia.tenants import read_tenants, tenants_section
from xbtasks.checks import Status
from xbtasks.context import archive
from xbtasks.engine import ContainerRequest, Mount
from xbtasks.hardware import Unjudged
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step
from xbtasks.hostprobe import one_line
from xbtasks.rig import HELD, WAIT, hold, not_started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.backends.nvidia.contract import Limits
    from xbtasks.backends.nvidia.rows import Rows
    from xbtasks.backends.nvidia.smi import Gpu
    from xbtasks.backends.nvidia.tenants import Tenant
    from xbtasks.hardware import CaseRun
    from xbtasks.host.step import SectionReply

__all__ = ["PROBE", "Container", "Rig"]

PROBE: Final = "/xbtasks/probe"
"""Where a container has the probe."""

_LIBRARY: Final = "library.so"
_PRELOAD: Final = "ld.so.preload"
_SOURCES: Final = "source"
_PROGRAMS: Final = "bin"
_LOCK: Final = "lock"
_NO_COMPILER: Final = 96


@dataclass(frozen=True, slots=True)
class Container:
    """A container to run: what it plays, its command, and the limits that are injected; None: nothing is."""

    role: str
    command: tuple[str, ...]
    limits: Limits | None = None


class Rig(rig.Rig[Container]):
    """The rig of one case on its cards."""

    def __init__(self, run: CaseRun, rows: Rows, cards: tuple[Gpu, ...]) -> None:
        super().__init__(run)
        self._rows = rows
        self._cards = cards
        self._runtime = "nvidia" if "nvidia" in run.facts.engine.runtimes else ""

    @property
    def access(self) -> str:
        """How the engine reaches the cards, for a person."""
        return f"runtime {self._runtime}" if self._runtime else f"CDI devices {', '.join(self._devices())}"

    @contextmanager
    def set_up(self, roles: tuple[str, ...]) -> Iterator[None]:
        """Make the test directory and the probe; remove the directory at the end.

        ``roles`` are the containers that get limits, each with a cache of its own.

        Raises:
            Unjudged: they can't be made.
        """
        with self._kept():
            self._prepare(roles)
            self._compile()
            yield

    def tenants(self, name: str) -> tuple[Tenant, ...]:
        """Return who computes on the host's cards while no run of xbtasks does."""
        asked = tenants_section("tenants", self._run.deadline)
        section = Section("tenants", self._held(asked.argv), asked.deadline + WAIT)
        answer = self._run.ask(Step(name, (section,)))["tenants"]
        self._require_held(answer)
        return read_tenants(answer)

    def _cache(self, role: str) -> str:
        return f"cache-{role}"

    def _prepare(self, roles: tuple[str, ...]) -> None:
        """Make the test directory with a copy of the library, which must be what case 1 judges."""
        run = self._run
        ((staged, sha256),) = run.artifacts
        open_folders = (_PROGRAMS, _LOCK, *(self._cache(role) for role in roles))
        with archive(operations.sources(), run.say) as sources:
            answer = self._set_out(
                lambda files: program(
                    "prepare_test", run.test_directory, *files, contract.LIBRARY, *open_folders
                ),
                sources,
            )
        mode, _, found = answer.text.strip().partition(" ")
        if found != sha256:
            detail = "the copy of the library isn't what case 1 judges"
            self._rows.failed("artifact", detail, f"sha256 {sha256}", f"sha256 {found}")
            raise Unjudged(detail)
        self._rows.passed("artifact", f"{staged} is what case 1 judges: 0{mode}, sha256 {sha256[:12]}…")

    def _compile(self) -> None:
        """Compile the probe in the built image, with nothing preloaded."""
        run = self._run
        ((_, sha256),) = run.artifacts
        request = ContainerRequest(
            name=self._name("compile"),
            run_id=run.run_id,
            image=run.image,
            command=program("compile_probe", "/xbtasks/source", "/xbtasks/bin/probe", contract.LIBRARY),
            mounts=(
                Mount(self._directory(_SOURCES), "/xbtasks/source"),
                Mount(self._directory(_PROGRAMS), "/xbtasks/bin", read_only=False),
                Mount(self._directory(_LIBRARY), contract.LIBRARY),
            ),
        )
        section = self._contained_section("compile", request)
        step = Step("compile", (section,), on_loss=self._on_loss(Container("compile", ())))
        answer = run.ask(step)["compile"]
        said = one_line(answer.error_text)
        if not_started(answer):
            raise Unjudged(f"no container of the built image starts: {said}")
        if not answer.ok:
            detail = "the probe doesn't compile in the built image"
            if answer.exit_status == _NO_COMPILER:
                detail = "the probe can't be compiled: the built image has no C compiler"
            self._rows.failed("probe-build", detail, "exit status 0", f"{answer.exit_status}: {said}")
            raise Unjudged(detail)
        if answer.text.strip() != sha256:
            raise Unjudged("the engine mounts another file than the host has: is it on another machine?")
        self._rows.passed("probe-build", "the probe was compiled in the built image, without the preload")

    def _request(self, container: Container, name: str) -> ContainerRequest:
        return ContainerRequest(
            name=name,
            run_id=self._run.run_id,
            image=self._run.workload,
            command=container.command,
            runtime=self._runtime,
            devices=() if self._runtime else self._devices(),
            environment=self._environment(container),
            mounts=self._mounts(container),
        )

    def _environment(self, container: Container) -> tuple[tuple[str, str], ...]:
        # "void" where the devices come by CDI: a default runtime must not bring all of them in as well
        uuids = tuple(gpu.uuid for gpu in self._cards) if self._runtime else ("void",)
        cards = contract.visible(uuids)
        limits = contract.environment(container.limits) if container.limits else ()
        return (*cards, contract.CARD_ORDER, *limits)

    def _mounts(self, container: Container) -> tuple[Mount, ...]:
        probe = Mount(self._directory(f"{_PROGRAMS}/probe"), PROBE)
        if container.limits is None:
            return (probe,)
        return (
            probe,
            *contract.mounts(
                self._directory(_LIBRARY),
                self._directory(_PRELOAD),
                self._directory(self._cache(container.role)),
                self._directory(_LOCK),
            ),
        )

    def _devices(self) -> tuple[str, ...]:
        """Return the CDI names of the cards: by UUID where the engine knows such names, else by index."""
        known = self._run.facts.engine.cdi_devices
        names = []
        for gpu in self._cards:
            by_uuid = f"nvidia.com/gpu={gpu.uuid}"
            names.append(by_uuid if by_uuid in known else f"nvidia.com/gpu={gpu.index}")
        return tuple(names)

    def _held(self, argv: tuple[str, ...]) -> tuple[str, ...]:
        # In one order, so that two runs on the same cards never wait for each other. They are the engine's:
        # another engine here may have other cards of these names; on the same cards it is a tenant.
        engine = hashlib.sha256(self._run.facts.engine.root.encode()).hexdigest()[:12]
        locks = sorted(f"/tmp/xbtasks-{engine}-{gpu.uuid}.lock" for gpu in self._cards)  # noqa: S108 - any user's
        return hold(tuple(locks), argv)

    def _require_held(self, answer: SectionReply) -> None:
        if answer.exit_status == HELD:
            raise Unjudged(f"the GPU can't be held: {one_line(answer.error_text)}")

    def _cannot_start(self, container: Container, said: str) -> Unjudged:
        del container
        detail = f"no container starts with {self.access}"
        self._rows.failed("reachable", detail, "a container with the GPU", said)
        return Unjudged(f"the engine can't start a container on the GPU: {said}")

    def _left_behind(self, what: str) -> None:
        self._rows.note("removal", Status.WARN, what)
