"""What the simulated host needs of the machine, and the one line that says what is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from xbtasks.backends.base import Platform
from xbtasks.errors import Refused

__all__ = ["Machine", "parse_os_release"]

_PROGRAMS: Final = ("apt-get", "apt-config", "dpkg", "dpkg-deb", "tar")
_ELSEWHERE: Final = (
    "run it on Debian 12 or 13 as root (a container with --privileged will do), or use a real host"
)

# Debian 12's own docker.io (20.10) can't parse heredocs, so there the engine is the next release's. Its runc
# needs a newer libc than Debian 12 has; runc comes from the machine's own release everywhere.
_ENGINE_RELEASE: Final = {"bookworm": "trixie"}
_BASE_RELEASE: Final = "trixie"
_KNOWN_RELEASES: Final = ("bookworm", "trixie")


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine's architecture (Debian's name) and the Debian releases that packages are taken from."""

    architecture: str
    release: str

    @property
    def engine_release(self) -> str:
        """The release that docker, buildx and containerd come from."""
        return _ENGINE_RELEASE.get(self.release, self.release)

    @property
    def base_release(self) -> str:
        """The release that the base image is made of: the same on every machine."""
        return _BASE_RELEASE

    @classmethod
    def examine(cls) -> Machine:
        """Return this machine; raises Refused, with what is missing, where the engine can't run on it."""
        if os.geteuid() != 0:
            raise Refused("the simulated host needs root: it starts a container engine", hint=_ELSEWHERE)
        missing = [name for name in _PROGRAMS if shutil.which(name) is None]
        if missing:
            raise Refused(f"the simulated host needs {', '.join(missing)}: not found", hint=_ELSEWHERE)
        system = parse_os_release(_os_release())
        release = system.get("VERSION_CODENAME", "")
        if system.get("ID") != "debian" or release not in _KNOWN_RELEASES:
            name = system.get("PRETTY_NAME", "this system")
            raise Refused(f"the simulated host knows Debian 12 and 13, not {name}", hint=_ELSEWHERE)
        architecture = _architecture()
        if Platform.from_machine(architecture) is None:
            raise Refused(f"the simulated host knows amd64 and arm64, not {architecture}", hint=_ELSEWHERE)
        return cls(architecture, release)


def parse_os_release(text: str) -> dict[str, str]:
    """Parse os-release(5): ``NAME=value`` lines, quotes taken off."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def _architecture() -> str:
    return subprocess.run(
        ("dpkg", "--print-architecture"), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    ).stdout.strip()


def _os_release() -> str:
    for name in ("/etc/os-release", "/usr/lib/os-release"):
        path = Path(name)
        if path.is_file():
            return path.read_text(errors="replace")
    return ""
