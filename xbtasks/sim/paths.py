"""Where the simulated host keeps its files.

=====================  ============================================  =======================================
folder                 default                                       holds
=====================  ============================================  =======================================
cache                  ``$XDG_CACHE_HOME/xbtasks/sim``               what was downloaded; survives ``down``
state                  ``$XDG_STATE_HOME/xbtasks/sim``               the engine's images, log, staged files
runtime                ``/run/xbtasks-sim/<id>``                     sockets and pid files; gone after a boot
=====================  ============================================  =======================================

The sockets lie under ``/run`` because a unix socket's path is at most 107 bytes long and a home directory's
may be any length. The id is made from the state folder and the root file system, so that hosts with
different state folders, and one inside a chroot, never meet.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["MARKER", "SAMPLE_CHECKOUT", "SimPaths"]

MARKER: Final = "XBTASKS_SIM_STATE"
"""The environment variable that every process of the private engine carries: the state folder."""

SAMPLE_CHECKOUT: Final = Path(__file__).resolve().parent / "operator"
"""The sample operator checkout. Nothing in it is written by a build, so the package's own copy serves."""

_RUNTIME_PARENT: Final = Path("/run/xbtasks-sim")


@dataclass(frozen=True, slots=True)
class SimPaths:
    """The three folders of one simulated host, and what lies where in them."""

    cache: Path
    state: Path
    runtime: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> SimPaths:
        """Return the folders that the XDG variables of ``environ`` (default: this process's) name.

        A relative or empty value counts as unset, as the XDG base directory specification says.
        """
        env = os.environ if environ is None else environ
        home = Path(env.get("HOME") or "/root")
        state = _xdg(env, "XDG_STATE_HOME", home / ".local/state") / "xbtasks/sim"
        cache = _xdg(env, "XDG_CACHE_HOME", home / ".cache") / "xbtasks/sim"
        return cls(cache=cache, state=state, runtime=_RUNTIME_PARENT / _identity(state))

    @property
    def socket(self) -> Path:
        """The engine's API socket."""
        return self.runtime / "docker.sock"

    @property
    def pid_file(self) -> Path:
        """The file in which dockerd keeps its process id."""
        return self.runtime / "dockerd.pid"

    @property
    def exec_root(self) -> Path:
        """Dockerd's execution state: containerd's sockets, network namespaces."""
        return self.runtime / "exec"

    @property
    def data_root(self) -> Path:
        """Images, build cache and containers."""
        return self.state / "data"

    @property
    def docker_config(self) -> Path:
        """The folder for ``DOCKER_CONFIG``: where the docker client finds buildx."""
        return self.state / "docker"

    @property
    def daemon_json(self) -> Path:
        """Dockerd's configuration."""
        return self.state / "daemon.json"

    @property
    def log(self) -> Path:
        """What dockerd and its containerd wrote."""
        return self.state / "dockerd.log"

    @property
    def stage_dir(self) -> Path:
        """The staging directory (``XB_STAGE``) that goes with this host."""
        return self.state / "stage"

    @property
    def contexts(self) -> Path:
        """Where build contexts go (``XB_REMOTE_CTX``), so that they go with this host."""
        return self.state / "ctx"

    @property
    def programs(self) -> Path:
        """A link to the engine's programs in the cache."""
        return self.state / "programs"

    @property
    def bin(self) -> Path:
        """The vendors' tools, as the simulated host has them on PATH."""
        return self.state / "bin"

    @property
    def drivers(self) -> Path:
        """A link to the compiled drivers in the cache: one folder for each vendor."""
        return self.state / "drivers"

    @property
    def inventory(self) -> Path:
        """Which cards the host has; the default ones where this file is missing."""
        return self.state / "inventory.json"

    @property
    def device_root(self) -> Path:
        """The folder in whose ``dev`` the cards' device files lie: the machine's own is left alone."""
        return self.runtime / "root"

    @property
    def node(self) -> Path:
        """The folder that containers get to see: the simulated node's socket."""
        return self.runtime / "node"

    @property
    def node_socket(self) -> Path:
        """The socket of the simulated node, which stands for the vendors' kernel drivers."""
        return self.node / "socket"

    @property
    def request(self) -> Path:
        """What ``spawn.py`` was asked to start."""
        return self.state / "spawn.json"

    @property
    def hidden(self) -> Path:
        """What the private engine sees in place of the folders that containerd's paths are fixed to."""
        return self.state / "hidden"

    @property
    def cgroup(self) -> str:
        """The control group (below the root one) that this host's containers run in."""
        return f"xbtasks-sim-{self.runtime.name}"

    @property
    def marker(self) -> str:
        """The environment entry that every process of this host's engine carries."""
        return f"{MARKER}={self.state}"


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    value = environ.get(name, "")
    return Path(value) if value.startswith("/") else default


def _identity(state: Path) -> str:
    root = Path("/").stat()
    text = f"{state}\0{root.st_dev}:{root.st_ino}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]
