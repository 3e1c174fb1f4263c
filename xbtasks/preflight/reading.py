"""From the reply of the preflight step to facts. Pure: the same reply gives the same facts."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xbtasks.backends import BACKENDS, host_modules
from xbtasks.backends.base import NoCards, Platform
from xbtasks.hostfacts import DiskFacts, EmulationFacts, HostFacts, StagingFacts
from xbtasks.hostprobe import Answers, one_line
from xbtasks.preflight.docker import read_buildx, read_engine

if TYPE_CHECKING:
    from xbtasks.host.step import Reply
    from xbtasks.hostfacts import EngineFacts

__all__ = ["read_preflight"]

_STAGING = "staging."
_CONTAINERD = "/var/lib/containerd"
_DOCKER = "/var/lib/docker"
# df -P: file system, 1024-blocks, used, available, capacity, mount point; names may hold blanks
_DF = re.compile(r".*?\s\d+\s+\d+\s+(-?\d+)\s+(?:\d+%|-)\s+/.*", re.ASCII)
# Byte 18 of an ELF header: e_machine, little-endian, in binfmt_misc's hexadecimal spelling
_E_MACHINE = {"b700": Platform.ARM64, "3e00": Platform.AMD64}


def read_preflight(reply: Reply) -> HostFacts:
    """Return what the reply to :func:`~xbtasks.preflight.step.preflight_step` says.

    Raises:
        LostReply: a section is missing.
    """
    modules = host_modules()
    host = Answers(reply["host"])
    engine = read_engine(Answers(reply["engine"]))
    machine = one_line(host.first("machine"))
    return HostFacts(
        machine=machine,
        kernel=one_line(host.first("kernel")),
        node=one_line(host.first("node")),
        user=one_line(host.first("user") or host.first("uid")),
        shell=one_line(host.first("shell")),
        platform=engine.platform if engine.up else Platform.from_machine(machine),
        engine=engine,
        buildx=read_buildx(Answers(reply["buildx"]), engine),
        disk=_disk(Answers(reply["engine"]), engine),
        staging=tuple(
            _staging(section.name.removeprefix(_STAGING), Answers(section))
            for section in reply.sections
            if section.name.startswith(_STAGING)
        ),
        emulation=_emulation(Answers(reply["binfmt"])),
        accelerators={name: modules[name].read(reply) if name in modules else NoCards() for name in BACKENDS},
        noise=reply.noise,
    )


def _free_kib(line: str) -> int | None:
    match = _DF.fullmatch(line)
    return int(match[1]) if match else None


def _disk(answers: Answers, engine: EngineFacts) -> DiskFacts:
    """Return the disk that images go to: containerd's own, where a stock engine keeps them there."""
    if engine.containerd_store and engine.root == _DOCKER:
        return DiskFacts(_CONTAINERD, _free_kib(answers.first("df.containerd")))
    return DiskFacts(engine.root, _free_kib(answers.first("df.root")))


def _staging(backend: str, answers: Answers) -> StagingFacts:
    return StagingFacts(
        backend=backend,
        path=answers.first("path"),
        nearest=answers.first("near"),
        is_directory=bool(answers.lines("directory")),
        writable=bool(answers.lines("writable")),
        free_kib=_free_kib(answers.first("df")),
    )


def _emulation(answers: Answers) -> EmulationFacts:
    if answers.first("visible").strip() != "enabled":
        return EmulationFacts(visible=bool(answers.lines("visible")))
    platforms: set[Platform] = set()
    interpreters: list[str] = []
    for entry in answers.lines("entry"):
        lines = entry.split("\t")
        keys = dict(line.split(" ", 1) for line in lines if " " in line)
        magic = keys.get("magic", "")
        platform = _E_MACHINE.get(magic[36:40])
        # Without F the interpreter is looked for inside the container, where it is not.
        if (
            lines[0] == "enabled"
            and "F" in keys.get("flags:", "")
            and platform
            and magic.startswith("7f454c46")
        ):
            platforms.add(platform)
            interpreters.append(one_line(keys.get("interpreter", "")))
    return EmulationFacts(
        visible=True, platforms=frozenset(platforms), interpreters=tuple(sorted(interpreters))
    )
