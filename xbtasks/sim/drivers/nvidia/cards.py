"""The NVIDIA cards of the simulated host, and how its driver is.

The inventory's part ``nvidia``::

    {"driver": "570.195.03", "library": "", "cuda": "12.8", "fault": "none", "runtime": "legacy",
     "cards": [{"model": "rtx-4090", "uuid": "", "memory_mib": 0, "context_mib": 0, "mig": false,
                "fault": "none", "process_utilization": true,
                "processes": [{"pid": 4242, "name": "python3", "memory_mib": 900, "type": "C"}]}]}

All of it is optional; what is empty or 0 is the model's. Memory sizes are those that NVML reports; CUDA
reports less by what the driver keeps for itself.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.errors import Refused
from xbtasks.sim.drivers.inventory import Part, read_part

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CARD_FAULTS", "DRIVER_FAULTS", "MODELS", "Card", "Driver", "Model", "Tenant", "read_driver"]

MIB: Final = 1 << 20

DRIVER_FAULTS: Final = ("none", "not-loaded", "mismatch", "unknown-error")
"""Not loaded: no kernel module. Mismatch: the libraries are of another version than the kernel module.
Unknown error: the container has lost its devices."""

CARD_FAULTS: Final = ("none", "lost")
"""Lost: the card has fallen off the bus."""

_RUNTIMES: Final = ("legacy", "cdi")
_TENANT_TYPES: Final = ("C", "G", "C+G")


@dataclass(frozen=True, slots=True)
class Model:
    """A kind of card. ``blocks`` is how many thread blocks a multiprocessor holds at a time."""

    name: str
    memory_mib: int
    reserved_mib: int
    context_mib: int
    multiprocessors: int
    threads: int
    blocks: int
    capability: tuple[int, int]
    clock_mhz: int
    power_w: int
    kind: str = "desktop"

    @property
    def mig(self) -> bool:
        """Whether it can be split into instances."""
        return self.kind == "server"

    @property
    def unified(self) -> bool:
        """Whether it has no memory of its own: NVML doesn't report any, and CUDA reports the system's."""
        return self.kind == "unified"

    @property
    def persistence(self) -> bool:
        """Whether its driver stays initialised while nobody uses it."""
        return self.kind != "desktop"


MODELS: Final = {
    "rtx-4090": Model("NVIDIA GeForce RTX 4090", 49140, 628, 386, 128, 1536, 24, (8, 9), 2520, 450),
    "a100": Model("NVIDIA A100-SXM4-80GB", 81920, 693, 412, 108, 2048, 32, (8, 0), 1410, 400, "server"),
    "h200": Model("NVIDIA H200", 143771, 604, 516, 132, 2048, 32, (9, 0), 1980, 700, "server"),
    "gb10": Model("NVIDIA GB10", 122570, 0, 456, 48, 1536, 24, (12, 1), 2418, 100, "unified"),
}
"""The cards that can be simulated, by the name in an inventory."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process that uses a card without being one of this machine: another tenant of the host."""

    pid: int
    name: str
    memory: int
    type: str


@dataclass(frozen=True, slots=True)
class Card:
    """A card; sizes in bytes. ``index`` is NVML's on the host and the number of the device file."""

    index: int
    uuid: str
    model: Model
    memory: int
    reserved: int
    context: int
    mig: bool
    lost: bool
    process_utilization: bool
    tenants: tuple[Tenant, ...]

    @property
    def bus(self) -> str:
        """The PCI address, as NVML writes it."""
        return f"00000000:{(self.index * 0x20 + 1) & 0xFF:02X}:00.0"

    @property
    def for_programs(self) -> int:
        """How much of its memory programs can have."""
        return self.memory - self.reserved


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver and its cards. ``cuda`` is the highest CUDA version that it serves."""

    version: str
    library: str
    cuda: tuple[int, int]
    fault: str
    runtime: str
    cards: tuple[Card, ...]


def read_driver(file: Path) -> Driver:
    """Return what the inventory file says of NVIDIA; two cards where it says nothing. Raises Refused."""
    part = read_part(file, "nvidia")
    if part is None:
        return Driver(
            "570.195.03",
            "570.195",
            (12, 8),
            "none",
            "legacy",
            tuple(_card(index, Part(str(file), {})) for index in range(2)),
        )
    version = part.take("driver", "570.195.03")
    library = part.take("library", "") or ".".join(version.split(".")[:2])
    major, dot, minor = part.take("cuda", "12.8").partition(".")
    if not (dot and major.isdecimal() and minor.isdecimal()):
        raise Refused(f"{part.where}: cuda is not a version such as 12.8")
    fault = part.one_of("fault", DRIVER_FAULTS, "none")
    runtime = part.one_of("runtime", _RUNTIMES, "legacy")
    cards = tuple(_card(index, card) for index, card in enumerate(part.parts("cards")))
    part.finish()
    if len({card.uuid for card in cards}) < len(cards):
        raise Refused(f"{part.where}: two cards have the same uuid")
    return Driver(version, library, (int(major), int(minor)), fault, runtime, cards)


def _card(index: int, part: Part) -> Card:
    model = MODELS[part.one_of("model", tuple(MODELS), "rtx-4090")]
    mig = part.take("mig", default=False)
    if mig and not model.mig:
        raise Refused(f"{part.where}: {model.name} has no MIG")
    tenants = tuple(_tenant(tenant) for tenant in part.parts("processes"))
    card = Card(
        index=index,
        uuid=part.take("uuid", "") or _uuid(index),
        model=model,
        memory=(part.take("memory_mib", 0) or model.memory_mib) * MIB,
        reserved=model.reserved_mib * MIB,
        context=(part.take("context_mib", 0) or model.context_mib) * MIB,
        mig=mig,
        lost=part.one_of("fault", CARD_FAULTS, "none") == "lost",
        process_utilization=part.take("process_utilization", default=True),
        tenants=tenants,
    )
    part.finish()
    if sum(tenant.memory for tenant in tenants) > card.for_programs:
        raise Refused(f"{part.where}: its processes hold more memory than there is")
    return card


def _tenant(part: Part) -> Tenant:
    tenant = Tenant(
        pid=part.take("pid", 4242),
        name=part.take("name", "python3"),
        memory=part.take("memory_mib", 0) * MIB,
        type=part.one_of("type", _TENANT_TYPES, "C"),
    )
    part.finish()
    return tenant


def _uuid(index: int) -> str:
    return f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'xbtasks simulated card {index}')}"
