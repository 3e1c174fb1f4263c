"""The private engine's programs: docker, buildx, dockerd, containerd, runc, taken out of Debian packages.

Nothing is installed. The programs are unpacked into the cache folder, complete before the folder gets its
name, and used from there:

    engine-<n>-<release>-<arch>/
      bin/           docker                                      first on a user's PATH
      sbin/          dockerd, containerd, shim, runc, …          on dockerd's own PATH
      cli-plugins/   docker-buildx
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge
from xbtasks.sim import apt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xbtasks.sim.machine import Machine

__all__ = ["EnginePrograms", "engine_folder", "ensure_engine"]

_LAYOUT: Final = 1
"""Part of the folder's name: raise it when the list below changes."""

_PACKAGES: Final = ("docker.io", "docker-cli", "docker-buildx", "containerd", "tini")
_OWN_RELEASE_PACKAGES: Final = ("runc",)
_PROGRAMS: Final = {
    "bin/docker": "usr/bin/docker",
    "sbin/dockerd": "usr/sbin/dockerd",
    "sbin/docker-proxy": "usr/sbin/docker-proxy",
    "sbin/docker-init": "usr/bin/tini-static",
    "sbin/containerd": "usr/bin/containerd",
    "sbin/containerd-shim-runc-v2": "usr/bin/containerd-shim-runc-v2",
    "sbin/runc": "usr/sbin/runc",
    "cli-plugins/docker-buildx": "usr/libexec/docker/cli-plugins/docker-buildx",
}


@dataclass(frozen=True, slots=True)
class EnginePrograms:
    """The unpacked programs; the properties are folders."""

    folder: Path

    @property
    def bin(self) -> Path:
        """The client."""
        return self.folder / "bin"

    @property
    def sbin(self) -> Path:
        """The daemons."""
        return self.folder / "sbin"

    @property
    def cli_plugins(self) -> Path:
        """The client's plugins."""
        return self.folder / "cli-plugins"


def engine_folder(cache: Path, machine: Machine) -> Path:
    """Return where the programs for ``machine`` lie, or will."""
    return cache / f"engine-{_LAYOUT}-{machine.release}-{machine.architecture}"


def ensure_engine(
    cache: Path, machine: Machine, source: apt.PrivateApt, say: Callable[[str], None]
) -> EnginePrograms:
    """Return the programs, downloading them first where the cache doesn't have them."""
    folder = engine_folder(cache, machine)
    if not folder.is_dir():
        say(f"downloading the container engine: Debian packages, about 80 MB, unpacked in {cache}")
        archives, tree, chosen = (source.folder / name for name in ("engine-debs", "engine-tree", "engine"))
        wanted = [f"{name}/{machine.engine_release}" for name in _PACKAGES]
        wanted += [f"{name}/{machine.release}" for name in _OWN_RELEASE_PACKAGES]
        source.download(wanted, archives)
        tree.mkdir()
        apt.unpack(sorted(archives.glob("*.deb")), tree)
        _choose(tree, chosen)
        shutil.rmtree(tree)
        shutil.rmtree(archives)
        chosen.rename(folder)
    return EnginePrograms(folder)


def _choose(tree: Path, into: Path) -> None:
    for name, origin in _PROGRAMS.items():
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        program = tree / origin
        if not program.is_file():
            raise CannotJudge(f"the Debian packages of the engine hold no {origin}")
        program.rename(target)
