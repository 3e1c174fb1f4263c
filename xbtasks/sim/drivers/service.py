"""Starting the simulated node, so that it runs as the installed version of it would."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import xbtasks
from xbtasks.errors import CannotJudge
from xbtasks.sim import processes
from xbtasks.sim.drivers.node import peer_pid
from xbtasks.sim.paths import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable

    from xbtasks.sim.paths import SimPaths

__all__ = ["ensure_node", "node_pid"]

_PATIENCE_S: Final = 10.0


def node_pid(paths: SimPaths) -> int | None:
    """Return the process id of the node, or None where none answers."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            connection.connect(str(paths.node_socket))
        except OSError:
            return None
        return peer_pid(connection)


def ensure_node(paths: SimPaths, say: Callable[[str], None]) -> None:
    """Start the node unless it runs; one of another version is replaced. Raises CannotJudge."""
    version = _version()
    recorded = paths.node / "version"
    pid = node_pid(paths)
    if pid is not None and recorded.is_file() and recorded.read_text() == version:
        return
    if pid is not None:
        _end(paths, pid)
    say("starting the simulated node, which has the cards")
    paths.node.mkdir(mode=0o755, parents=True, exist_ok=True)
    paths.node.chmod(0o755)
    _start(paths)
    recorded.write_text(version)


def _start(paths: SimPaths) -> None:
    program = (sys.executable, "-S", "-P", "-m", "xbtasks.sim.drivers.node")
    log = paths.state / "node.log"
    with log.open("ab") as errors:
        node = subprocess.Popen(
            (*program, str(paths.node_socket), str(paths.inventory), str(paths.device_root / "dev")),
            env={"PYTHONPATH": str(Path(xbtasks.__file__).parents[1]), MARKER: str(paths.state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd="/",
            start_new_session=True,
        )
    assert node.stdout is not None  # noqa: S101 - a pipe was asked for
    with node.stdout as ready:
        if ready.readline():
            return
    node.wait()
    lines = log.read_text(errors="replace").strip().splitlines()
    reason = lines[-1] if lines else "it gave no reason"
    raise CannotJudge(f"the simulated node does not start: {reason}", hint=f"its log: {log}")


def _end(paths: SimPaths, pid: int) -> None:
    """End a node of this host; the kernel closes what it had."""
    if not processes.is_engine_process(paths, pid):
        raise CannotJudge(f"process {pid} listens on {paths.node_socket} and isn't the simulated node")
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _PATIENCE_S
    while node_pid(paths) is not None and time.monotonic() < deadline:
        time.sleep(0.01)


def _version() -> str:
    folder = Path(__file__).resolve().parent
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
