"""How a container is sliced: what the operator injects into it, and the limits that a case sets.

Contract: the operator's NVIDIA sliced injection (commit 55a903b) and HAMi-core 8f3a89c and 52f33fc7, which
read it: ``CUDA_DEVICE_MEMORY_LIMIT_<i>`` is for the card at place ``i`` in the container, and only the last
character of its value gives the unit. The first process that makes the shared cache fixes the limits, so a
container gets a cache of its own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.engine import Mount

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = [
    "CACHE_FOLDER",
    "CARD_ORDER",
    "DEFAULT_MEMORY_MIB",
    "LIBRARY",
    "LOCK_FOLDER",
    "MIB",
    "Limits",
    "environment",
    "mounts",
    "odd_between",
    "visible",
]

MIB: Final = 1 << 20
"""One MiB, in bytes."""
DEFAULT_MEMORY_MIB: Final = 4096
"""The memory limit of a card where none was given, in MiB."""
LIBRARY: Final = "/usr/local/vgpu/libvgpu.so"
"""Where the library lies in a workload."""
PRELOAD_FILE: Final = "/etc/ld.so.preload"
CACHE_FOLDER: Final = "/tmp/vgpu"  # noqa: S108 - a path in the container, given by the contract
"""Where the library keeps its shared region, in the container."""
LOCK_FOLDER: Final = "/tmp/vgpulock"  # noqa: S108 - the same
"""Where the library keeps its locks, in the container."""
CARD_ORDER: Final = ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
"""CUDA numbers cards as NVML does, also where they aren't all of one model."""

_LOG_LEVEL: Final = "3"  # Info: the level at which the compute limit is logged


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a container: memory in MiB by place of the card in the container, compute in percent."""

    memory_mib: tuple[int, ...]
    sm: int

    @property
    def memory(self) -> int:
        """The memory limit of the first card, in bytes."""
        return self.memory_mib[0] * MIB

    @property
    def text(self) -> str:
        """Both, for a person."""
        return f"{', '.join(str(mib) for mib in self.memory_mib)} MiB, SM {self.sm} %"


def visible(uuids: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Return the variables that make cards visible through the NVIDIA runtime."""
    return (
        ("NVIDIA_VISIBLE_DEVICES", ",".join(uuids)),
        # utility brings NVML and nvidia-smi, compute libcuda: a libvgpu.so that NEEDs both needs both
        ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility"),
    )


def environment(limits: Limits) -> tuple[tuple[str, str], ...]:
    """Return the variables that set ``limits``."""
    return (
        *((f"CUDA_DEVICE_MEMORY_LIMIT_{place}", f"{mib}m") for place, mib in enumerate(limits.memory_mib)),
        ("CUDA_DEVICE_SM_LIMIT", str(limits.sm)),
        ("CUDA_DEVICE_MEMORY_SHARED_CACHE", f"{CACHE_FOLDER}/cudevshr.cache"),
        ("LIBCUDA_LOG_LEVEL", _LOG_LEVEL),
    )


def mounts(library: str, preload: str, cache: str, lock: str) -> tuple[Mount, ...]:
    """Return the mounts of the library, of its preload file, and of the folders that it writes to."""
    return (
        Mount(library, LIBRARY),
        Mount(preload, PRELOAD_FILE),
        Mount(cache, CACHE_FOLDER, read_only=False),
        # HAMi-core before 2026 waits for this folder, for ever or for a minute
        Mount(lock, LOCK_FOLDER, read_only=False),
    )


def odd_between(seed: str, low: int, high: int, *, but: Collection[int]) -> int:
    """Return an odd number from ``low`` to ``high`` that ``seed`` alone decides, and that isn't in ``but``.

    Raises:
        ValueError: there is none.
    """
    choices = [number for number in range(low | 1, high + 1, 2) if number not in but]
    if not choices:
        raise ValueError(f"no odd number from {low} to {high} but {', '.join(map(str, but))}")
    return choices[int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8]) % len(choices)]
