"""A host with GPUs in memory: what a preload library does to programs there, with faults to choose from.

It runs what the cases run: nvidia-smi, and the probe's operations as ``probe/main.c`` performs them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.gpufaults import FAULTS
from xbtasks.backends.nvidia.probe.report import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["FAULTS", "Container", "GpuModel", "ModelCard", "container_of"]

MIB = 1 << 20
LIBRARY = "/usr/local/vgpu/libvgpu.so"
PTX_LAUNCH_US = 2000


@dataclass(frozen=True)
class ModelCard:
    """A card: its place on the host, what NVML says it has, and what a context takes. Sizes in bytes."""

    index: int
    uuid: str
    total: int = 49140 * MIB
    reserved: int = 628 * MIB
    context: int = 386 * MIB


@dataclass(frozen=True)
class Container:
    """What a ``docker run`` asks for."""

    name: str
    image: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    mounts: tuple[str, ...]

    @property
    def injected(self) -> bool:
        return any("target=/etc/ld.so.preload" in mount for mount in self.mounts)


def container_of(argv: Sequence[str]) -> Container | None:
    """Return what a ``docker run`` somewhere in a command line asks for."""
    words = list(argv)
    for place in range(len(words) - 1):
        if words[place : place + 2] == ["docker", "run"]:
            break
    else:
        return None
    environment: dict[str, str] = {}
    mounts: list[str] = []
    name = program = ""
    rest = words[place + 2 :]
    while rest and rest[0].startswith("--"):
        option = rest.pop(0)
        if option == "--rm":
            continue
        value = rest.pop(0)
        match option:
            case "--env":
                key, _, text = value.partition("=")
                environment[key] = text
            case "--mount":
                mounts.append(value)
            case "--name":
                name = value
            case "--entrypoint":
                program = value
    return Container(name, rest[0], (program, *rest[1:]), environment, tuple(mounts))


@dataclass(eq=False)
class _Process:
    device: int = 0
    room: int = 0
    looked_up: bool = False
    contexts: set[int] = field(default_factory=set)
    slots: dict[int, tuple[int, int, bool]] = field(default_factory=dict)  # card, size, counted
    booked: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    events: list[dict[str, object]] = field(default_factory=list)


@dataclass
class GpuModel:
    """The cards of a host, and the library that programs are preloaded with."""

    cards: tuple[ModelCard, ...]
    faults: frozenset[str] = frozenset()
    utilization: int = 7
    absent: frozenset[str] = frozenset()
    unknown: frozenset[str] = frozenset()
    pools_counted: bool = False
    newer_launch: bool = True
    host_pid_error: bool = False

    def run(self, container: Container) -> tuple[int, str, str]:
        """Return a container's exit status, stdout and stderr."""
        return _Run(self, container).run()


class _Run:
    def __init__(self, model: GpuModel, container: Container) -> None:
        self.model = model
        self.container = container
        asked = container.environment["NVIDIA_VISIBLE_DEVICES"].split(",")
        self.cards = [card for card in model.cards if card.uuid in asked]
        self.injected = container.injected and "not-loaded" not in model.faults
        self.faults = model.faults if self.injected else frozenset()
        self.living: list[_Process] = []
        self.document: list[dict[str, object]] = []
        self.log: list[str] = []
        self.status = 0

    def has(self, fault: str) -> bool:
        return fault in self.faults

    def run(self) -> tuple[int, str, str]:
        if self.container.injected and "not-loaded" in self.model.faults:
            reason = "cannot be preloaded (cannot open shared object file): ignored."
            self.log.append(f"ERROR: ld.so: object '{LIBRARY}' from /etc/ld.so.preload {reason}")
        if self.has("no-start"):
            loader = f"symbol lookup error: {LIBRARY}: undefined symbol: _dl_sym, version GLIBC_PRIVATE"
            return 127, "", f"probe: {loader}\n"
        if self.container.command[0] == "nvidia-smi":
            return self._smi()
        groups: list[list[str]] = [[]]
        for word in self.container.command[1:]:
            if word == "--":
                groups.append([])
            else:
                groups[-1].append(word)
        waiting = iter(groups)
        for group in waiting:
            self._group(group, waiting)
        text = json.dumps({"xbtasks-probe": 1, "processes": self.document}, separators=(",", ":"))
        lines = [*self.log, text] if self.has("stdout") else [text]
        return self.status, "\n".join(lines) + "\n", "" if self.has("stdout") else "\n".join(self.log)

    # nvidia-smi

    def _smi(self) -> tuple[int, str, str]:
        if self.has("smi-fails"):
            return 255, "Failed to initialize NVML: Unknown Error\n", ""
        rows = []
        for place, card in enumerate(self._shown()):
            memory = self._nvml(place, card, "v1" if "nvml-v2" in self.model.absent else "v2")
            values = (memory["total"], memory["used"], memory["free"])
            rows.append(", ".join([str(place), card.uuid, *(str(value // MIB) for value in values)]))
        said = "[HAMI-core Msg(7:1:libvgpu.c:871)]: Initializing....."
        out = [said, *rows] if self.has("stdout") else rows
        return 0, "\n".join(out) + "\n", said if self.injected and not self.has("stdout") else ""

    def _shown(self) -> list[ModelCard]:
        return self.cards[:-1] if self.has("hidden-card") else self.cards

    # limits

    def limit(self, place: int) -> int:
        if self.has("limit-0"):
            place = 0
        if self.has("limit-next"):
            place += 1
        text = self.container.environment.get(f"CUDA_DEVICE_MEMORY_LIMIT_{place}", "0m")
        if self.has("constant"):
            return 3000 * MIB
        return int(text.removesuffix("m")) * (1_000_000 if self.has("decimal") else MIB)

    @property
    def sm(self) -> int:
        sm = int(self.container.environment.get("CUDA_DEVICE_SM_LIMIT", "100"))
        return 100 if self.has("sm-100") else sm // 2 if self.has("sm-half") else sm

    def usage(self, place: int, process: _Process | None) -> int:
        counted = [one for one in self.living if not self.has("own-usage") or one is process]
        places = range(len(self.cards)) if self.has("one-account") else (place,)
        return sum(one.booked[at] for one in counted for at in places)

    def physical(self, place: int) -> int:
        held = sum(size for one in self.living for at, size, _ in one.slots.values() if at == place)
        return held + sum(self.cards[place].context for one in self.living if place in one.contexts)

    def _nvml(self, place: int, card: ModelCard, version: str) -> dict[str, int]:
        if version == "v2" and ("nvml-v2" in self.model.absent or self.has("no-v2")):
            return {"rc": 13, "total": 0, "free": 0, "used": 0}
        seen = 1 - place if self.has("nvml-swapped") and place < 2 else place
        if not self.injected or self.has("nvml") or self.has(f"nvml-{version}"):
            used = self.physical(place) + (card.reserved if version == "v1" else 0)
            free = card.total - card.reserved - self.physical(place)
            return {"rc": 0, "total": card.total, "free": free, "used": used}
        limit, used = self.limit(seen), self.usage(seen, None)
        free = (1 << 64) - limit if self.has("underflow") else limit - used
        return {"rc": 0, "total": limit, "free": free, "used": used}

    # the probe

    def _group(self, words: list[str], waiting: Iterator[list[str]]) -> None:
        name, *operations = words
        process = _Process()
        self.living.append(process)
        status = 0
        for operation in operations:
            self.log.append(f"xbtasks-probe: {operation}")
            op, *values = operation.split(":")
            if op == "init" and self.has("segv"):
                status = 139
                break
            event: dict[str, object] = {"op": operation}
            if op == "next":
                following = next(waiting, None)
                if following is not None:
                    self._group(following, waiting)
                event["rc"] = 0
            else:
                event |= getattr(self, f"op_{op.replace('-', '_')}")(process, *values)
            process.events.append(event)
        if status == 0 and self.has("bad-exit"):
            status = 3
        self.living.remove(process)
        self.status = self.status or status
        self.document.append({"name": name, "status": status, "events": process.events})

    def op_maps(self, process: _Process, path: str) -> dict[str, object]:
        return {"rc": 0, "mapped": self.injected and path == LIBRARY}

    def op_init(self, process: _Process) -> dict[str, object]:
        if self.injected:
            self._log_start()
        devices = [
            {"uuid_rc": 0, "uuid": card.uuid, "total_rc": 0, "total": self._device_total(place, card)}
            for place, card in enumerate(self._shown())
        ]
        return {"rc": 0, "version": 12080, "devices": devices}

    def _log_start(self) -> None:
        if self.has("no-log"):
            return
        lead = "[HAMI-core Info(7:1:multiprocess_utilization_watcher.c:273)]"
        if self.has("other-form"):
            self.log.append("vgpu INFO started")
            return
        self.log.append("[HAMI-core Msg(7:1:libvgpu.c:911)]: Initialized")
        if self.model.host_pid_error:
            self.log.append("[HAMI-core ERROR (pid:7 thread=1 utils.c:158)]: host pid is error!")
        for place in range(len(self.cards)):
            wording = "core utilization limit ="
            if self.has("reworded"):
                wording = "the utilization limit is now"
            self.log.append(f"{lead}: device {place}: {wording} {self.sm}")

    def _device_total(self, place: int, card: ModelCard) -> int:
        if not self.injected or self.has("device-total"):
            return card.total - card.reserved
        return self.limit(place)

    def op_device(self, process: _Process, number: str) -> dict[str, object]:
        process.device = int(number)
        process.contexts.add(process.device)
        if self.injected and not self.has("no-context") and not self.model.host_pid_error:
            process.booked[self._account(process.device)] += self.cards[process.device].context
        return {"rc": 0, "device": process.device}

    def _account(self, place: int) -> int:
        return 0 if self.has("other-card") else place

    def _info(self, process: _Process, *, hooked: bool) -> dict[str, object]:
        place = process.device
        if not hooked:
            total = self.cards[place].total - self.cards[place].reserved
            return {"rc": 0, "free": total - self.physical(place), "total": total}
        limit, usage = self.limit(place), self.usage(place, process)
        return {"rc": 0 if usage <= limit else 1, "free": max(limit - usage, 0), "total": limit}

    def op_info(self, process: _Process) -> dict[str, object]:
        hooked = self.injected
        by_lookup = hooked and not self.has("lookup")
        place = process.device
        card = self.cards[place]
        total = self.limit(place) if by_lookup else card.total - card.reserved
        return {
            "rc": 0,
            "dlsym": self._info(process, hooked=hooked and not self.has("meminfo")),
            "lookup": self._info(process, hooked=by_lookup),
            "lookup_old": self._info(process, hooked=by_lookup and not self.has("lookup-old")),
            "lookup_second": self._info(process, hooked=by_lookup and not self.has("lookup-second")),
            "lookup_total": {"rc": 0, "free": 0, "total": total},
        }

    def op_mark(self, process: _Process, most: str, otherwise: str) -> dict[str, object]:
        info = self._info(process, hooked=self.injected and not self.has("meminfo"))
        free = info["free"]
        assert isinstance(free, int)
        process.room = free if info["rc"] == 0 and free <= int(most) else int(otherwise)
        return {**info, "size": process.room}

    def op_nvml(self, process: _Process) -> dict[str, object]:
        cards = [
            {
                "rc": 0,
                "uuid": card.uuid,
                "v1": self._nvml(place, card, "v1"),
                "v2": self._nvml(place, card, "v2"),
                "utilization": self.model.utilization,
            }
            for place, card in enumerate(self._shown())
        ]
        return {"rc": 0, "cards": cards}

    def _size(self, process: _Process, text: str) -> int:
        if not text.startswith("room"):
            return int(text)
        rest, size = text.removeprefix("room"), process.room
        sign = "+" if "+" in rest else "-"
        fraction, _, more = rest.partition(sign)
        if fraction:
            numerator, _, denominator = fraction.removeprefix("*").partition("/")
            size = size * int(numerator) // int(denominator)
        return size + int(f"{sign}{more}") if more else size

    def op_take(self, process: _Process, family: str, slot: str, text: str) -> dict[str, object]:
        size, place = self._size(process, text), process.device
        if family in self.model.absent:
            return {"rc": 801, "size": size}
        if process.looked_up and (family in self.model.unknown or self._gives_none(family)):
            return {"rc": ABSENT, "size": size}
        if family == "vmm":
            size = size // (2 * MIB) * 2 * MIB
        refusal = self._refusal(process, family, size) if self.injected else 0
        card = self.cards[place]
        if not refusal and family != "managed" and self.physical(place) + size > card.total - card.reserved:
            refusal = 2
        if not refusal:
            counted = self.injected and (family != "pool" or self.model.pools_counted)
            process.slots[int(slot)] = (place, size, counted)
            if counted:
                process.booked[self._account(place)] += size
        return {"rc": refusal, "size": size}

    def _refusal(self, process: _Process, family: str, size: int) -> int:
        place = process.device
        if self.has("refuses"):
            return 2
        unchecked = (
            self.has("cap")
            or self.has(family)
            or (process.looked_up and self.has(f"lookup-{family}"))
            or (family == "pool" and not self.model.pools_counted)
            or (family == "getproc" and (self.has("lookup") or self.has("lookup-alloc")))
            or (self.has("first-card") and place > 0)
        )
        limit = self.limit(place)
        if self.has("loose"):
            limit += limit // 10
        if self.has("tight"):
            limit -= limit // 20
        if unchecked or self.usage(place, process) + size <= limit:
            return 0
        if family in ("async", "pool") and not self.model.pools_counted:
            return -1
        return -1 if self.has("minus-one") else 2

    def _gives_none(self, family: str) -> bool:
        return self.injected and family == "managed" and self.has("lookup-none")

    def op_lookup(self, process: _Process) -> dict[str, object]:
        process.looked_up = True
        return {"rc": 0}

    def op_give(self, process: _Process, slot: str) -> dict[str, object]:
        held = process.slots.pop(int(slot), None)
        if held is not None and held[2] and not self.has("no-credit"):
            process.booked[self._account(held[0])] -= held[1]
        return {"rc": 0}

    def op_rate(
        self, process: _Process, blocks: str, cycles: str, warm: str, measure: str
    ) -> dict[str, object]:
        microseconds = int(measure) * 1000
        share = 1.0
        held = self.injected and not self.has("throttle") and self.model.utilization != 3
        held = held and not (process.looked_up and self.has("lookup-launch"))
        if held and not self.model.host_pid_error and self.sm < 100:
            share = 0.001 if self.has("starves") else self.sm / 100 + 0.08
        return {"rc": 0, "launches": int(microseconds / PTX_LAUNCH_US * share), "microseconds": microseconds}

    def op_rate_ex(self, process: _Process, *values: str) -> dict[str, object]:
        if not self.model.newer_launch:
            return {"rc": -32000, "launches": 16, "microseconds": 10}
        if self.injected and self.has("launch-ex-fails"):
            return {"rc": 1, "launches": 16, "microseconds": 10}
        answer = self.op_rate(process, *values)
        if self.injected and self.has("throttle-ex"):
            answer["launches"] = int(values[-1]) * 1000 // PTX_LAUNCH_US
        return answer
