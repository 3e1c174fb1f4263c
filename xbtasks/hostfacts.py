"""What preflight found out about a host, as values. Rows are made from them; decisions are taken on them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xbtasks.backends.ascend.hardware import AscendFacts
    from xbtasks.backends.ascend.smi import Die
    from xbtasks.backends.base import CardFacts, Platform
    from xbtasks.backends.nvidia.hardware import NvidiaFacts
    from xbtasks.backends.nvidia.smi import Gpu
    from xbtasks.hostprobe import Tool

__all__ = [
    "SIMULATED_LABEL",
    "BuilderNode",
    "BuildxFacts",
    "BuildxState",
    "DiskFacts",
    "EmulationFacts",
    "EngineFacts",
    "EngineState",
    "HostFacts",
    "StagingFacts",
]

SIMULATED_LABEL: Final = "xbtasks.simulated=true"
"""The engine label of the simulated accelerator host (SPEC 8). Printed, and no verdict depends on it."""


class EngineState(StrEnum):
    """Whether the container engine answers, and if not, why."""

    UP = "up"
    ABSENT = "absent"
    UNUSABLE = "its command can't be run"
    DOWN = "down"
    DENIED = "permission denied"
    FOREIGN = "not docker"
    TIMED_OUT = "timed out"
    UNREADABLE = "unreadable answer"


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """The container engine. ``reason`` is one line for a person; only ``state`` decides.

    ``platform`` is the engine's own; ``root`` its data directory as the engine names it; ``id`` what it calls
    itself, the same by whatever name and way it is reached.
    """

    state: EngineState
    reason: str = ""
    tool: Tool | None = None
    client_version: str = ""
    server_version: str = ""
    context: str = ""
    endpoint: str = ""
    id: str = ""
    node: str = ""
    platform: Platform | None = None
    root: str = ""
    storage_driver: str = ""
    containerd_store: bool = False
    runtimes: frozenset[str] = frozenset()
    default_runtime: str = ""
    labels: frozenset[str] = frozenset()
    cdi_directories: frozenset[str] = frozenset()
    cdi_devices: frozenset[str] = frozenset()
    rootless: bool = False

    @property
    def up(self) -> bool:
        """Whether the engine answers."""
        return self.state is EngineState.UP

    @property
    def machine(self) -> str:
        """Which engine of all this is, empty where it doesn't say; a copied machine copies the id alone."""
        return f"{self.id} {self.node}" if self.id else ""

    @property
    def simulated(self) -> bool:
        """Whether this is the simulated accelerator host."""
        return SIMULATED_LABEL in self.labels


class BuildxState(StrEnum):
    """Whether buildx can build stages, and if not, why."""

    READY = "ready"
    ENGINE_ABSENT = "no engine command"
    ABSENT = "absent"
    TOO_OLD = "too old"
    NO_BUILDER = "no such builder"
    NOT_RUNNING = "builder not running"
    NO_HEREDOCS = "BuildKit without heredocs"
    TIMED_OUT = "timed out"
    UNREADABLE = "unreadable answer"


@dataclass(frozen=True, slots=True)
class BuilderNode:
    """One node of a builder. ``buildkit`` is None where the node doesn't tell its version as numbers.

    ``versioned`` says whether it told any; a distribution's build may call itself ``v0.0.0+unknown``.
    """

    name: str
    endpoint: str
    status: str
    buildkit: tuple[int, ...] | None
    platforms: frozenset[str]
    versioned: bool = False

    @property
    def running(self) -> bool:
        """Whether the node takes builds now."""
        return self.status == "running"


@dataclass(frozen=True, slots=True)
class BuildxFacts:
    """buildx and the builder it would use. ``reason`` is one line for a person; only ``state`` decides."""

    state: BuildxState
    reason: str = ""
    version: tuple[int, ...] | None = None
    builder: str = ""
    driver: str = ""
    nodes: tuple[BuilderNode, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether stages can be built."""
        return self.state is BuildxState.READY

    @property
    def platforms(self) -> frozenset[str]:
        """The platforms that the running nodes name, in docker's spelling."""
        return frozenset().union(*(node.platforms for node in self.nodes if node.running))


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """Free space for images: ``path`` is the directory that was measured. None: it couldn't be measured."""

    path: str
    free_kib: int | None


@dataclass(frozen=True, slots=True)
class StagingFacts:
    """A backend's staging directory as this user sees it.

    ``nearest`` is the directory itself, or its nearest existing parent.
    """

    backend: str
    path: str
    nearest: str
    is_directory: bool
    writable: bool
    free_kib: int | None

    @property
    def exists(self) -> bool:
        """Whether the staging directory is already there."""
        return self.nearest == self.path and self.is_directory


@dataclass(frozen=True, slots=True)
class EmulationFacts:
    """Foreign platforms that the kernel hands to an emulator inside containers (binfmt_misc, flag F).

    ``visible`` tells whether binfmt_misc could be read at all; ``interpreters`` names the emulators found.
    """

    visible: bool
    platforms: frozenset[Platform] = frozenset()
    interpreters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Everything that preflight found out. ``platform`` is the engine's, else that of ``uname -m``."""

    machine: str
    kernel: str
    node: str
    user: str
    shell: str
    platform: Platform | None
    engine: EngineFacts
    buildx: BuildxFacts
    disk: DiskFacts
    staging: tuple[StagingFacts, ...]
    emulation: EmulationFacts
    accelerators: Mapping[str, CardFacts]
    noise: tuple[str, ...]

    @property
    def simulated(self) -> bool:
        """Whether the engine is the simulated accelerator host."""
        return self.engine.simulated

    @property
    def engine_is_here(self) -> bool:
        """Whether the engine runs on this host and not in a VM, another container or elsewhere.

        Only then are the host's files and disks the engine's: both must give the same host name.
        """
        return self.engine.up and self.engine.node == self.node

    @property
    def engine_name(self) -> str:
        """What the engine is, for a person: name and version, or an empty string where none answers."""
        return f"docker {self.engine.server_version}" if self.engine.up else ""

    @property
    def engine_problem(self) -> str:
        """Why the engine can't be used, or an empty string."""
        return "" if self.engine.up else self.engine.reason or self.engine.state.value

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The physical GPUs, in NVML's order; empty where nvidia-smi can't be used."""
        return self.nvidia.gpus

    @property
    def nvidia(self) -> NvidiaFacts:
        """What there is of NVIDIA, for its own cases."""
        return cast("NvidiaFacts", self.accelerators["nvidia"])

    @property
    def npus(self) -> tuple[Die, ...]:
        """The NPU dies, as ``npu-smi info -m`` maps them; empty where npu-smi can't be used."""
        return self.ascend.dies

    @property
    def ascend(self) -> AscendFacts:
        """What there is of Ascend, for its own cases."""
        return cast("AscendFacts", self.accelerators["ascend"])

    def runs(self, platform: Platform) -> bool:
        """Whether a RUN of a stage for ``platform`` can be executed by the builder."""
        if platform.value in self.buildx.platforms:
            return True
        # The host's processor and emulators serve the engine's own builder, and no builder elsewhere.
        own = self.buildx.driver in ("", "docker")
        return own and (platform is self.platform or platform in self.emulation.platforms)

    def cards(self, backend: str) -> int:
        """Return how many cards a case of ``backend`` can use: sliceable GPUs, or NPU dies.

        Raises:
            KeyError: no such backend.
        """
        return self.accelerators[backend].usable

    def chips(self, backend: str) -> tuple[str, ...]:
        """Return the chips of ``backend`` as stage suffixes spell them (``910b``), if they do.

        Raises:
            KeyError: no such backend.
        """
        return self.accelerators[backend].chips

    def why_not_build(self, platform: Platform, *, cross_compiles: bool) -> str:
        """Return why a stage for ``platform`` can't be built on the host, or an empty string if it can.

        ``cross_compiles`` tells that every RUN of the stage is executed on the builder's own platform
        (``FROM --platform=$BUILDPLATFORM``), which needs no emulation.
        """
        if not self.engine.up:
            return f"the container engine can't be used: {self.engine_problem}"
        if not self.buildx.ready:
            return f"buildx can't be used: {self.buildx.reason}"
        if cross_compiles or self.runs(platform):
            return ""
        own = self.platform.value if self.platform else f"of unknown architecture ({self.machine})"
        return (
            f"the host is {own} and has no emulation for {platform}: build on a host of that platform, "
            f"or have its administrator register qemu in binfmt_misc"
        )

    def can_build(self, platform: Platform, *, cross_compiles: bool) -> bool:
        """Return whether a stage for ``platform`` can be built on the host; see :meth:`why_not_build`."""
        return not self.why_not_build(platform, cross_compiles=cross_compiles)
