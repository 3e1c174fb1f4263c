"""What vcann-rt, enpu-monitor and the dynamic loader write on stderr, as values.

Contract: ubs-virt 4d7e4b1, 9f8c779, bac3d46: ``utils/config.c``, ``npu_manager.c``, ``mem_limiter.c`` and
``enpu-monitor``'s ``monitor.c``. Stamps, file names and line numbers move from version to version: only the
message counts. What the asynchronous logger hasn't written when the process ends is lost, always the last
lines. The loader's lines: glibc, ``elf/rtld.c`` and ``elf/dl-load.c``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["EnpuLog", "OutOfMemory", "parse_log"]

_LINE: Final = re.compile(r"(?:\[[^\]]*\] )?\[(FATAL|ERROR|WARN|INFO|DEBUG)\] \[eNPU\] (?:\[[^\]]*\] )*(.*)")
_LOADED: Final = re.compile(r"Success to load config: ([^,]*), value: (.*)")
_DEVICE: Final = "Successfully to initialize vnpu device."
_MODULES: Final = "Successfully to initialize all module."
_MEMORY: Final = re.compile(
    r"Out of memory! Request:(\d{1,20}) B, used:(\d{1,20}) B, quota:(\d{1,20}) B\.", re.ASCII
)
_AICORE: Final = re.compile(r"Aicore Limit Quota\(%\)\s*: (.*)")
_QUOTA: Final = re.compile(r"Memory Limit [qQ]uota\(MB\)\s*: (.*)")
_USAGE: Final = re.compile(r"Memory Usage\(MB\)\s*: (.*)")
_IGNORED: Final = re.compile(
    r"ERROR: ld\.so: object '([^']*)' from \S+ cannot be preloaded(?: \((.*)\))?: ignored\."
)
_LOADER: Final = re.compile(
    r"error while loading shared libraries: .*|symbol lookup error: .*|version `\S+' not found .*"
)


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """A refusal as the library logs it; bytes."""

    request: int
    used: int
    quota: int

    def __str__(self) -> str:
        return f"Request:{self.request} used:{self.used} quota:{self.quota}"


@dataclass(frozen=True, slots=True)
class EnpuLog:
    """What a container's stderr says.

    ``lines`` counts eNPU's own log lines. ``loaded`` are the configuration's keys and values in the order
    in which they were read; ``device`` and ``modules`` count two different lines. ``aicore`` and ``memory``
    are what the monitor prints as quotas, ``usage`` what it prints as memory in use. ``ignored`` are the
    preload entries that the loader ignored, with its reasons; ``loader`` is why it couldn't start a program.
    """

    lines: int
    loaded: tuple[tuple[str, str], ...]
    device: int
    modules: int
    refusals: tuple[OutOfMemory, ...]
    aicore: tuple[str, ...]
    memory: tuple[str, ...]
    usage: tuple[str, ...]
    ignored: tuple[tuple[str, str], ...]
    loader: str
    errors: tuple[str, ...]

    def values(self, key: str) -> tuple[str, ...]:
        """Return the values with which ``key`` was loaded."""
        return tuple(value for name, value in self.loaded if name == key)

    def why_ignored(self, path: str) -> str:
        """Return why the loader ignored the preload entry ``path``, or an empty string."""
        return next((why for entry, why in self.ignored if entry.strip() == path), "")


def parse_log(stderr: str) -> EnpuLog:
    """Return what ``stderr`` says; a value is taken from its own line alone, and as a whole."""
    loaded: list[tuple[str, str]] = []
    refusals: list[OutOfMemory] = []
    aicore: list[str] = []
    memory: list[str] = []
    usage: list[str] = []
    ignored: dict[str, str] = {}
    errors: list[str] = []
    lines = device = modules = 0
    loader = ""
    for raw in stderr.splitlines():
        line = raw.strip()
        if found := _IGNORED.search(line):
            ignored.setdefault(found[1], found[2] or "no reason given")
        elif found := _LOADER.search(line):
            loader = loader or found[0]
        elif found := _AICORE.fullmatch(line):
            aicore.append(found[1].strip())
        elif found := _QUOTA.fullmatch(line):
            memory.append(found[1].strip())
        elif found := _USAGE.fullmatch(line):
            usage.append(found[1].strip())
        elif found := _LINE.fullmatch(line):
            level, text = found[1], found[2].strip()
            lines += 1
            if pair := _LOADED.fullmatch(text):
                loaded.append((pair[1].strip(), pair[2].strip()))
            elif refused := _MEMORY.fullmatch(text):
                refusals.append(OutOfMemory(int(refused[1]), int(refused[2]), int(refused[3])))
            device += text == _DEVICE
            modules += text == _MODULES
            if level in ("FATAL", "ERROR"):
                errors.append(text)
    return EnpuLog(
        lines,
        tuple(loaded),
        device,
        modules,
        tuple(refusals),
        tuple(aicore),
        tuple(memory),
        tuple(usage),
        tuple(ignored.items()),
        loader,
        tuple(dict.fromkeys(errors)),
    )
