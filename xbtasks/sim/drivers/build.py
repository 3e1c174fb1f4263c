"""Compiling the simulated drivers, in a container of the base image: a fresh machine has no compiler.

What was compiled lies in the cache, in a folder named after a digest of all that goes into it.
"""

from __future__ import annotations

import hashlib
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge
from xbtasks.sim.base_image import BASE_IMAGE
from xbtasks.sim.drivers.injection import NODE_IN_CONTAINER
from xbtasks.sim.folders import write_program
from xbtasks.sim.lock import locked

if TYPE_CHECKING:
    from collections.abc import Callable

    from xbtasks.sim.paths import SimPaths

__all__ = ["TOOLS", "VENDORS", "ensure_built", "sources"]

VENDORS: Final = ("nvidia", "ascend")
"""The vendors' folders here. Each has a ``build.sh SOCKET OUT`` that compiles its libraries and tools."""

TOOLS: Final = {"nvidia": "nvidia-smi", "ascend": "npu-smi"}
"""Each vendor's tool, which the simulated host has on PATH."""

_PATTERNS: Final = ("*.sh", "*.c", "*.h", "*.def", "*.S")
_NODE_VARIABLE: Final = "XBTASKS_SIM_NODE"
"""Where the libraries look for the node's socket if it isn't at its place in a container."""


def sources(vendor: str) -> Path:
    """Return the folder of a vendor's sources."""
    return Path(__file__).resolve().parent / vendor


def ensure_built(paths: SimPaths, base: str, say: Callable[[str], None]) -> None:
    """Compile what isn't compiled yet, and put the tools where PATH leads to.

    ``base`` is the digest of the base image. Raises CannotJudge.
    """
    wanted = paths.cache / f"drivers-{_digest(base)}"
    if not wanted.is_dir():
        # Whoever fills the cache clears away what others left behind in it: one at a time.
        with locked(paths.cache, lambda: say("waiting: another process is at work on the downloads")):
            if not wanted.is_dir():
                say("compiling the simulated drivers")
                _compile(wanted, paths)
    if not paths.drivers.is_symlink() or paths.drivers.readlink() != wanted:
        fresh = paths.drivers.with_name(".drivers")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(wanted)
        fresh.replace(paths.drivers)
    for vendor, name in TOOLS.items():
        assign = shlex.quote(f"{_NODE_VARIABLE}={paths.node_socket}")
        program = shlex.quote(str(paths.drivers / vendor / name))
        write_program(paths.bin / name, f'exec env {assign} {program} "$@"')


def _digest(base: str) -> str:
    digest = hashlib.sha256(f"{base}\0{NODE_IN_CONTAINER}\0".encode())
    for vendor in VENDORS:
        folder = sources(vendor)
        for file in sorted(file for pattern in _PATTERNS for file in folder.rglob(pattern)):
            digest.update(f"{vendor}/{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _compile(wanted: Path, paths: SimPaths) -> None:
    with tempfile.TemporaryDirectory(prefix="tmp-drivers-", dir=paths.cache) as name:
        work = Path(name) / "out"
        for vendor in VENDORS:
            (work / vendor).mkdir(parents=True)
            _run_compiler(vendor, work / vendor, paths)
        work.rename(wanted)


def _run_compiler(vendor: str, out: Path, paths: SimPaths) -> None:
    done = subprocess.run(
        (
            *(str(paths.programs / "bin/docker"), "run", "--rm", "--pull", "never", "--network", "none"),
            *("--mount", f"type=bind,src={sources(vendor).parent},dst=/source,readonly"),
            *("--mount", f"type=bind,src={out},dst=/out"),
            *("--workdir", f"/source/{vendor}", BASE_IMAGE),
            *("sh", "build.sh", f"{NODE_IN_CONTAINER}/socket", "/out"),
        ),
        env={"DOCKER_HOST": f"unix://{paths.socket}", "DOCKER_CONFIG": str(paths.docker_config)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["the compiler gave no reason"])[0]
        raise CannotJudge(f"the simulated {vendor} driver could not be compiled: {reason}")
