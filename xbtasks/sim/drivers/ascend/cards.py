"""The NPUs of the simulated host, and how their driver is.

The inventory's part ``ascend``::

    {"model": "910b4", "driver": "25.5.1", "firmware": "", "fault": "none", "other_cards": false,
     "cards": [{"npu_id": 0, "dies": [{"phy_id": 0, "die_id": "", "ndie_id": "", "memory_mib": 0,
                                       "system_mib": 2859, "context_mib": 102, "device_share": true,
                                       "health": "OK",
                                       "processes": [{"pid": 4242, "name": "python3", "memory_mib": 900}]}]}]}

All of it is optional; what is missing or empty is the model's, and so is a ``memory_mib`` of 0; a card
without a list of dies has the model's number of them. ``npu_id`` is npu-smi's, ``phy_id`` the number of the
device file; the logic id counts the dies in the order of the list. ``other_cards``: whether dcmi answers for
a card that isn't in the container. A die's ``processes`` are other tenants', in containers of their own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.errors import Refused
from xbtasks.sim.drivers.ascend.models import MODELS
from xbtasks.sim.drivers.inventory import Part, read_part

if TYPE_CHECKING:
    from pathlib import Path

    from xbtasks.sim.drivers.ascend.models import Model

__all__ = ["DRIVER_FAULTS", "Die", "Driver", "Tenant", "read_driver"]

MIB: Final = 1 << 20

DRIVER_FAULTS: Final = ("none", "not-loaded", "board-type")
"""Not loaded: no kernel module. Board type: in containers npu-smi can't tell the board; computing works."""

_DEFAULT_CARDS: Final = 2
_MOST_DIES: Final = 32
_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process that uses a die without being one of this machine: another tenant of the host."""

    pid: int
    name: str
    memory: int


@dataclass(frozen=True, slots=True)
class Die:
    """A die; sizes in bytes. ``npu_id`` and ``chip_id`` are npu-smi's, ``phy_id`` is the device file's.

    ``chips`` is how many dies its card has.
    """

    npu_id: int
    chip_id: int
    chips: int
    logic_id: int
    phy_id: int
    die_id: str
    ndie_id: str
    memory: int
    system: int
    context: int
    device_share: bool
    health: str
    tenants: tuple[Tenant, ...]

    @property
    def account(self) -> str:
        """Its name in the ledger."""
        return f"npu {self.phy_id}"

    @property
    def device(self) -> str:
        """The name of its device file in ``/dev``."""
        return f"davinci{self.phy_id}"

    @property
    def for_programs(self) -> int:
        """How much of its memory the programs of this machine can have."""
        return self.memory - self.system - sum(tenant.memory for tenant in self.tenants)

    @property
    def bus(self) -> str:
        """The PCI address, as npu-smi writes it."""
        return f"0000:{(self.phy_id * 0x20 + 0xC1) & 0xFF:02X}:00.0"


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver and its dies, by logic id."""

    model: Model
    version: str
    firmware: str
    fault: str
    other_cards: bool
    dies: tuple[Die, ...]


def read_driver(file: Path) -> Driver:
    """Return what the inventory file says of Ascend; two cards where it says nothing. Raises Refused."""
    part = read_part(file, "ascend")
    if part is None:
        part = Part(str(file), {"cards": [{}] * _DEFAULT_CARDS})
    model = MODELS[part.one_of("model", tuple(MODELS), "910b4")]
    version = part.take("driver", "") or model.driver
    firmware = part.take("firmware", "") or model.firmware
    fault = part.one_of("fault", DRIVER_FAULTS, "none")
    other_cards = part.take("other_cards", default=False)
    dies: list[Die] = []
    for index, card in enumerate(part.parts("cards")):
        dies += _card(card, index, model, len(dies), str(file))
    part.finish()
    _check(part, dies)
    return Driver(model, version, firmware, fault, other_cards, tuple(dies))


def _check(part: Part, dies: list[Die]) -> None:
    if len(dies) > _MOST_DIES:
        raise Refused(f"{part.where}: {len(dies)} dies are more than {_MOST_DIES}")
    if len({die.phy_id for die in dies}) < len(dies):
        raise Refused(f"{part.where}: two dies have the same phy_id")
    if len({(die.npu_id, die.chip_id) for die in dies}) < len(dies):
        raise Refused(f"{part.where}: two cards have the same npu_id")


def _card(part: Part, index: int, model: Model, first: int, host: str) -> list[Die]:
    npu_id = part.take("npu_id", index)
    given = part.parts("dies") if part.has("dies") else [Part(part.where, {}) for _ in range(model.dies)]
    part.finish()
    return [
        _die(die, model, (npu_id, chip, len(given)), first + chip, host) for chip, die in enumerate(given)
    ]


def _die(part: Part, model: Model, place: tuple[int, int, int], logic_id: int, host: str) -> Die:
    npu_id, chip_id, chips = place
    phy_id = part.take("phy_id", logic_id)
    die = Die(
        npu_id=npu_id,
        chip_id=chip_id,
        chips=chips,
        logic_id=logic_id,
        phy_id=phy_id,
        die_id=part.take("die_id", "") or _words(f"{host} die {phy_id}"),
        ndie_id=part.take("ndie_id", "") or _words(f"{host} ndie {phy_id}"),
        memory=(part.take("memory_mib", 0) or model.memory_mib) * MIB,
        system=part.take("system_mib", model.system_mib) * MIB,
        context=part.take("context_mib", model.context_mib) * MIB,
        device_share=part.take("device_share", default=True),
        health=part.take("health", "OK"),
        tenants=tuple(_tenant(tenant) for tenant in part.parts("processes")),
    )
    part.finish()
    if die.for_programs < 0:
        raise Refused(f"{part.where}: the system and its processes hold more memory than there is")
    return die


def _tenant(part: Part) -> Tenant:
    tenant = Tenant(part.take("pid", 4242), part.take("name", "python3"), part.take("memory_mib", 0) * MIB)
    part.finish()
    return tenant


def _words(seed: str) -> str:
    """Return an id. No two simulated hosts share one: shared memory is named after it, on the real host."""
    digest = hashlib.sha256(f"xbtasks simulated {seed}".encode()).hexdigest().upper()
    return " ".join(digest[at * 8 : at * 8 + 8] for at in range(_WORDS))
