"""What the probe answered, as values. ``main.c`` is the other side of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

__all__ = ["ABSENT", "Card", "Device", "Event", "Memory", "Process", "Report", "parse_report"]

ABSENT: Final = -32000
"""In place of a result: the function or the library isn't there."""

_LEAD: Final = '{"xbtasks-probe":'


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory in bytes, as one call tells it. ``rc`` is the call's own result, 0 for success."""

    rc: int
    free: int
    total: int
    used: int = 0


@dataclass(frozen=True, slots=True)
class Device:
    """A device as CUDA lists it: the order is that of its ordinals. ``total`` is cuDeviceTotalMem's."""

    uuid: str
    total: int
    total_rc: int


@dataclass(frozen=True, slots=True)
class Card:
    """A card as NVML lists it. ``utilization`` is the result of nvmlDeviceGetProcessUtilization."""

    uuid: str
    v1: Memory
    v2: Memory
    utilization: int


@dataclass(frozen=True, slots=True)
class Event:
    """One operation and its result; only what belongs to the operation is filled.

    ``dlsym`` is cuMemGetInfo's answer; ``lookup`` that of the function that cuGetProcAddress gives,
    ``lookup_old`` by CUDA 11's form of it, ``lookup_second`` by the cuGetProcAddress that it gives out
    itself, and ``lookup_total`` is so for cuDeviceTotalMem. Sizes are in bytes.
    """

    op: str
    rc: int
    why: str = ""
    size: int = 0
    free: int = 0
    total: int = 0
    mapped: bool = False
    launches: int = 0
    microseconds: int = 0
    devices: tuple[Device, ...] = ()
    cards: tuple[Card, ...] = ()
    dlsym: Memory | None = None
    lookup: Memory | None = None
    lookup_old: Memory | None = None
    lookup_second: Memory | None = None
    lookup_total: Memory | None = None

    @property
    def ok(self) -> bool:
        """Whether it succeeded."""
        return self.rc == 0

    def device(self, uuid: str) -> Device | None:
        """Return the device of that UUID, or None."""
        return next((item for item in self.devices if item.uuid.casefold() == uuid.casefold()), None)

    def card(self, uuid: str) -> Card | None:
        """Return the card of that UUID, or None."""
        return next((item for item in self.cards if item.uuid.casefold() == uuid.casefold()), None)


@dataclass(frozen=True, slots=True)
class Process:
    """One group: its process's exit status (128 + the signal that killed it) and what it did, in order."""

    name: str
    status: int
    events: tuple[Event, ...]

    def event(self, op: str, place: int = 0) -> Event | None:
        """Return event number ``place`` of an operation, whatever its values, or None."""
        found = [event for event in self.events if event.op.partition(":")[0] == op]
        return found[place] if place < len(found) else None

    def result(self, operation: str, place: int = 0) -> Event | None:
        """Return the event number ``place`` of exactly that operation, or None."""
        found = [event for event in self.events if event.op == operation]
        return found[place] if place < len(found) else None


@dataclass(frozen=True, slots=True)
class Report:
    """The document. ``foreign`` are the lines on stdout that aren't the probe's."""

    processes: tuple[Process, ...]
    foreign: tuple[str, ...]

    def process(self, name: str) -> Process | None:
        """Return the process of the group ``name``, or None if it didn't come to it."""
        return next((process for process in self.processes if process.name == name), None)


def parse_report(stdout: str) -> Report | None:
    """Return what the probe printed, or None where there is no whole document of it."""
    lines = [line for line in stdout.splitlines() if line.strip()]
    documents = [line for line in lines if line.startswith(_LEAD)]
    if len(documents) != 1:
        return None
    try:
        document: object = json.loads(documents[0])
        processes = tuple(_process(item) for item in _Fields(document).items("processes"))
    except (ValueError, RecursionError):
        return None
    return Report(processes, tuple(line for line in lines if line is not documents[0]))


class _Fields:
    """A JSON object that is read by name and type."""

    def __init__(self, value: object) -> None:
        if not isinstance(value, dict):
            raise ValueError("not an object")  # noqa: TRY004 - what is wrong is the document
        self._values: dict[str, object] = value

    def has(self, name: str) -> bool:
        return name in self._values

    def number(self, name: str) -> int:
        value = self._values.get(name, 0)
        if type(value) is not int:
            raise ValueError(f"{name} is no number")
        return value

    def text(self, name: str) -> str:
        value = self._values.get(name, "")
        if not isinstance(value, str):
            raise ValueError(f"{name} is no text")  # noqa: TRY004
        return value

    def items(self, name: str) -> list[object]:
        value = self._values.get(name, [])
        if not isinstance(value, list):
            raise ValueError(f"{name} is no list")  # noqa: TRY004
        return value

    def flag(self, name: str) -> bool:
        return self._values.get(name) is True

    def memory(self, name: str) -> Memory | None:
        if name not in self._values:
            return None
        fields = _Fields(self._values[name])
        return Memory(
            fields.number("rc"), fields.number("free"), fields.number("total"), fields.number("used")
        )


def _process(value: object) -> Process:
    fields = _Fields(value)
    return Process(
        fields.text("name"), fields.number("status"), tuple(_event(item) for item in fields.items("events"))
    )


def _event(value: object) -> Event:
    fields = _Fields(value)
    if not fields.has("rc"):
        raise ValueError("an event without a result")
    return Event(
        op=fields.text("op"),
        rc=fields.number("rc"),
        why=fields.text("why"),
        size=fields.number("size"),
        free=fields.number("free"),
        total=fields.number("total"),
        mapped=fields.flag("mapped"),
        launches=fields.number("launches"),
        microseconds=fields.number("microseconds"),
        devices=tuple(_device(item) for item in fields.items("devices")),
        cards=tuple(_card(item) for item in fields.items("cards")),
        dlsym=fields.memory("dlsym"),
        lookup=fields.memory("lookup"),
        lookup_old=fields.memory("lookup_old"),
        lookup_second=fields.memory("lookup_second"),
        lookup_total=fields.memory("lookup_total"),
    )


def _device(value: object) -> Device:
    fields = _Fields(value)
    return Device(fields.text("uuid"), fields.number("total"), fields.number("total_rc"))


def _card(value: object) -> Card:
    fields = _Fields(value)
    v1, v2 = fields.memory("v1"), fields.memory("v2")
    if v1 is None or v2 is None:
        raise ValueError("a card without its memory")
    return Card(fields.text("uuid"), v1, v2, fields.number("utilization"))
