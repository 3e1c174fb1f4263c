"""A process that asks the simulated node about NPUs, as the kernel's driver sees it: by its namespaces."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

__all__ = ["Peer"]

_SYS_ADMIN: Final = 21  # CAP_SYS_ADMIN


class Peer:
    """A process. The host's own processes see every NPU and everybody who uses one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._proc = Path(f"/proc/{pid}")
        self.on_host = _same(self._proc / "root", Path("/"))
        self.mounts = _link(self._proc / "ns/mnt")
        self._pids = _link(self._proc / "ns/pid")

    def sees(self, name: str) -> bool:
        """Tell whether it can see the device file ``/dev/NAME``."""
        try:
            return self.on_host or stat.S_ISCHR((self._proc / "root/dev" / name).lstat().st_mode)
        except OSError:  # no such file, or the process has ended
            return False

    @property
    def sees_everybody(self) -> bool:
        """Whether the driver lists all users of an NPU to it: on the host and in privileged containers."""
        return self.on_host or bool(int(self._status("CapEff") or "0", 16) >> _SYS_ADMIN & 1)

    def shares_mounts_with(self, pid: int) -> bool:
        """Tell whether a process is in the same mount namespace, so in the same container."""
        return _link(Path(f"/proc/{pid}/ns/mnt")) == self.mounts

    def number_of(self, pid: int) -> int:
        """Return the process id of ``pid`` as this process knows it."""
        if self.on_host or _link(Path(f"/proc/{pid}/ns/pid")) != self._pids:
            return pid
        numbers = Peer._status_of(pid, "NSpid").split()
        return int(numbers[-1]) if numbers else pid

    def _status(self, key: str) -> str:
        return self._status_of(self.pid, key)

    @staticmethod
    def _status_of(pid: int, key: str) -> str:
        try:
            lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
        except OSError:  # it has ended
            return ""
        return next((line.partition(":")[2].strip() for line in lines if line.startswith(f"{key}:")), "")


def _link(path: Path) -> str:
    try:
        return str(path.readlink())
    except OSError:  # the process has ended
        return ""


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # the process has ended
        return False
