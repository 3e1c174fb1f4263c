"""How a container is sliced: what the operator injects into it, and the quotas that a case sets.

Contract: ubs-virt 4d7e4b1, 9f8c779 and bac3d46 (``vcann-rt/src/utils/config.c``: the file's path, its six
keys and their ranges) and the operator's allocator, which renders them: policy 2, and the die id with
hyphens for spaces as the name of the shared memory. Everything but ``/dev/shm`` is mounted read-only.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from xbtasks.engine import Mount

__all__ = [
    "DEFAULT_MEMORY_MIB",
    "KEYS",
    "LIBRARY",
    "MIB",
    "MONITOR",
    "PRELOAD",
    "SHARED_MEMORY",
    "Slice",
    "environment",
    "mounts",
    "odd_between",
    "shm_name",
    "visible",
]

MIB: Final = 1 << 20
"""One MiB, in bytes."""
DEFAULT_MEMORY_MIB: Final = 1024
"""The memory quota of a slice where none was given, in MiB."""
LIBRARY: Final = "/opt/enpu/vcann-rt/lib/libvruntime.so"
"""Where the library lies in a workload."""
MONITOR: Final = "/opt/enpu/vcann-rt/tools/enpu-monitor"
"""Where the monitor lies in a workload."""
CONFIG: Final = "/etc/enpu/vcann-rt/npu_info.config"
PRELOAD_FILE: Final = "/etc/ld.so.preload"
SHARED_MEMORY: Final = "/dev/shm/"  # noqa: S108 - given by vcann-rt
"""Where the slice's shared memory lies; its name is the config's shm-id."""

PRELOAD: Final = (
    "/usr/local/dcmi/libdcmi.so",
    "/usr/local/Ascend/driver/lib64/driver/libdcmi.so",
    LIBRARY,
)
"""libdcmi lies in one of two places: the loader ignores the other entry, and says so."""

KEYS: Final = (
    "physical-npu-id",
    "virtual-npu-id",
    "aicore-quota",
    "memory-quota",
    "scheduling-policy",
    "shm-id",
)
"""The fields of the config, in their order."""

_ELASTIC: Final = 2
_LOG_LEVEL: Final = "3"  # INFO: the level at which the loaded configuration is logged


@dataclass(frozen=True, slots=True)
class Slice:
    """A container's slice of a die: compute in percent, memory in MiB."""

    physical_id: int
    virtual_id: int
    aicore: int
    memory_mib: int
    shm_id: str

    @property
    def memory(self) -> int:
        """The memory quota in bytes."""
        return self.memory_mib * MIB

    @property
    def fields(self) -> dict[str, str]:
        """The six fields of the configuration."""
        numbers = (self.physical_id, self.virtual_id, self.aicore, self.memory_mib, _ELASTIC)
        return dict(zip(KEYS, (*map(str, numbers), self.shm_id), strict=True))

    @property
    def config(self) -> str:
        """``npu_info.config``."""
        return "".join(f"{key}={value}\n" for key, value in self.fields.items())

    @property
    def text(self) -> str:
        """Both quotas, for a person."""
        return f"AICore {self.aicore} %, memory {self.memory_mib} MB"


def visible(physical_id: int) -> tuple[tuple[str, str], ...]:
    """Return the variable that makes a die visible through the Ascend runtime."""
    return (("ASCEND_VISIBLE_DEVICES", str(physical_id)),)


def environment() -> tuple[tuple[str, str], ...]:
    """Return the variables of a sliced container beside :func:`visible`."""
    return (("ENPU_LOG_LEVEL", _LOG_LEVEL),)


def mounts(library: str, monitor: str, preload: str, config: str) -> tuple[Mount, ...]:
    """Return the mounts of a sliced container. ``config`` may be empty: then there is no configuration."""
    return (
        Mount(preload, PRELOAD_FILE),
        Mount(library, LIBRARY),
        Mount(monitor, MONITOR),
        *((Mount(config, CONFIG),) if config else ()),
        Mount("/dev/shm", "/dev/shm", read_only=False),  # noqa: S108 - shared memory, given by the contract
    )


def shm_name(die_id: str) -> str:
    """Return the name of the shared memory of the die that npu-smi calls ``die_id``."""
    return die_id.replace(" ", "-")


def odd_between(seed: str, low: int, high: int, *, but: int) -> int:
    """Return an odd number from ``low`` to ``high`` that ``seed`` alone decides, and that isn't ``but``.

    Raises:
        ValueError: there is none.
    """
    choices = [number for number in range(low | 1, high + 1, 2) if number != but]
    if not choices:
        raise ValueError(f"no odd number from {low} to {high} but {but}")
    return choices[int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big") % len(choices)]
