"""What HAMi-core and the dynamic loader write on stderr, as values.

Contract: HAMi-core 8f3a89c, ``include/log_utils.h``, and ``multiprocess_utilization_watcher.c`` there and
before 15ea423 (2026-04), where one line speaks for all devices. The prefix was ``4pdvGPU`` until 2024-02. The
loader's lines: glibc, ``elf/rtld.c`` and ``elf/dl-load.c``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

__all__ = ["ComputeLimit", "HamiLog", "parse_log"]

_HAMI: Final = re.compile(r"\[(?:HAMI-core|4pdvGPU) (Debug|Info|Warn|Msg|ERROR)\b[^\]]*\]:? ?(.*)")
_LIMIT: Final = re.compile(
    r"(?:device (\d+): )?core utilization limit = (\d+)|set core utilization limit to +(\d+)"
)
_ABOUT_LIMIT: Final = re.compile(r"\b(?:utili[sz]ation|compute)\b", re.IGNORECASE)
_HOST_PID: Final = re.compile(r"host pid is error!|SET_TASK_PID FAILED")
_BLOCKED: Final = re.compile(r"unified_lock locked|Fail to lock shrreg")
_IGNORED: Final = re.compile(
    r"ERROR: ld\.so: object '([^']*)' from (\S+) cannot be preloaded(?: \((.*)\))?: ignored\."
)
_LOADER: Final = re.compile(
    r"error while loading shared libraries: .*|symbol lookup error: .*|version `\S+' not found .*"
)
_PROBE: Final = "xbtasks-probe: "


@dataclass(frozen=True, slots=True)
class ComputeLimit:
    """The compute limit that the library says it has. ``device`` is None where it says so of all devices."""

    device: int | None
    percent: int


@dataclass(frozen=True, slots=True)
class HamiLog:
    """What a container's stderr says.

    ``lines`` counts HAMi-core's own, ``other`` those that are of nobody known. ``unread`` is a line of
    HAMi-core about a compute limit whose wording isn't known. ``ignored`` tells why the loader ignored a
    preload entry, ``loader`` why it couldn't start a program. ``errors`` are HAMi-core's; ``last`` is the
    probe's last operation, ``said`` the last line of nobody known.
    """

    lines: int
    other: int
    limits: tuple[ComputeLimit, ...]
    unread: str
    host_pid_error: bool
    blocked: str
    ignored: str
    loader: str
    errors: tuple[str, ...]
    last: str
    said: str


def parse_log(stderr: str) -> HamiLog:
    """Return what ``stderr`` says; a number is taken from its own line alone, and as a whole."""
    limits: list[ComputeLimit] = []
    errors: list[str] = []
    lines = other = 0
    unread = blocked = ignored = loader = last = said = ""
    host_pid_error = False
    for raw in stderr.splitlines():
        line = raw.strip()
        if line.startswith(_PROBE):
            last = line.removeprefix(_PROBE)
        elif found := _IGNORED.search(line):
            ignored = ignored or f"{found[1]} from {found[2]}: {found[3] or 'no reason given'}"
        elif found := _LOADER.search(line):
            loader = loader or found[0]
        elif found := _HAMI.fullmatch(line):
            level, text = found[1], found[2].strip()
            lines += 1
            if limit := _LIMIT.fullmatch(text):
                limits.append(
                    ComputeLimit(int(limit[1]) if limit[1] is not None else None, int(limit[2] or limit[3]))
                )
            elif level in ("Info", "Msg") and _ABOUT_LIMIT.search(text):
                unread = unread or text
            if level == "ERROR":
                errors.append(text)
            host_pid_error = host_pid_error or bool(_HOST_PID.search(text))
            blocked = blocked or (text if _BLOCKED.search(text) else "")
        elif line:
            other += 1
            said = line
    return HamiLog(
        lines,
        other,
        tuple(limits),
        unread,
        host_pid_error,
        blocked,
        ignored,
        loader,
        tuple(dict.fromkeys(errors)),
        last,
        said,
    )
