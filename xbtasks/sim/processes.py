"""The processes of one simulated host: dockerd, containerd, their shims, and what runs in containers.

The engine's own processes carry a marker in their environment, which children inherit and which nobody else
sets; a container's processes don't, but they are descendants of a shim or sit in this host's control group.
So what a crash left behind is found without trusting a pid file.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge, reason_of
from xbtasks.sim.paths import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xbtasks.sim.paths import SimPaths

__all__ = [
    "any_engine_runs",
    "engine_processes",
    "is_engine_process",
    "remove_cgroups",
    "run_from",
    "stop_all",
]

_PROC: Final = Path("/proc")
_CGROUPS: Final = Path("/sys/fs/cgroup")
_GRACE_S: Final = 8.0
_KILL_S: Final = 10.0
_POLL_S: Final = 0.05


def engine_processes(paths: SimPaths) -> frozenset[int]:
    """Return the processes that carry this host's marker and see this root file system."""
    return frozenset(pid for pid in _all_pids() if is_engine_process(paths, pid))


def is_engine_process(paths: SimPaths, pid: int) -> bool:
    """Tell whether a process carries this host's marker and sees this root file system."""
    return os.fsencode(paths.marker) in _environment(pid) and _shares_root(pid)


def any_engine_runs() -> bool:
    """Tell whether any simulated host's engine runs on this root file system."""
    prefix = os.fsencode(f"{MARKER}=")
    return any(
        entry.startswith(prefix) for pid in _all_pids() for entry in _environment(pid) if _shares_root(pid)
    )


def stop_all(paths: SimPaths, daemon: int | None) -> None:
    """End every process of the host: what runs in containers first, by force, then dockerd by request.

    Dockerd gets a little patience, and what is left is ended by force. Returns at once where nothing runs.
    Raises CannotJudge if a process outlives SIGKILL.
    """
    for pid in _in_containers(paths):
        _signal(pid, signal.SIGKILL)
    if daemon is not None:
        _signal(daemon, signal.SIGTERM)
        _wait(lambda: is_engine_process(paths, daemon), _GRACE_S)
    deadline = time.monotonic() + _KILL_S
    while left := _family(paths):
        if time.monotonic() > deadline:
            names = ", ".join(map(str, sorted(left)))
            raise CannotJudge(f"processes of the simulated host do not end: {names}")
        for pid in left:
            _signal(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def remove_cgroups(paths: SimPaths) -> None:
    """Remove the control groups that the host's containers ran in; their processes have ended.

    The kernel takes a moment to let go of an ended process. Raises CannotJudge if it doesn't.
    """
    deadline = time.monotonic() + _KILL_S
    while roots := _cgroup_roots(paths):
        try:
            for root in roots:
                for folder, _, _ in os.walk(root, topdown=False):
                    Path(folder).rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise CannotJudge(
                    f"the control group of the simulated host can't be removed: {reason_of(error)}"
                ) from error
            time.sleep(_POLL_S)


def run_from(folder: Path) -> bool:
    """Tell whether any process runs a program that lies in ``folder``."""
    return any(_runs_from(pid, folder) for pid in _all_pids())


def hosts_run_from(folder: Path) -> tuple[Path, ...]:
    """Return the state folders of the simulated hosts whose engines run programs that lie in ``folder``."""
    prefix = os.fsencode(f"{MARKER}=")
    entries = (entry for pid in _all_pids() if _runs_from(pid, folder) for entry in _environment(pid))
    return tuple(sorted({Path(os.fsdecode(e.removeprefix(prefix))) for e in entries if e.startswith(prefix)}))


def _family(paths: SimPaths) -> frozenset[int]:
    return frozenset(_with_descendants(engine_processes(paths) | _in_containers(paths)) - {os.getpid()})


def _in_containers(paths: SimPaths) -> frozenset[int]:
    listings = (listing for root in _cgroup_roots(paths) for listing in root.rglob("cgroup.procs"))
    return frozenset(int(pid) for listing in listings for pid in _read(listing).split())


def _with_descendants(pids: Iterable[int]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid in _all_pids():
        children.setdefault(_parent(pid), []).append(pid)
    found: set[int] = set()
    queue = list(pids)
    while queue:
        pid = queue.pop()
        if pid not in found:
            found.add(pid)
            queue.extend(children.get(pid, ()))
    return found


def _cgroup_roots(paths: SimPaths) -> list[Path]:
    """Return this host's control groups: one in the unified hierarchy, one in each of the older ones."""
    places = [_CGROUPS, *(_CGROUPS.iterdir() if _CGROUPS.is_dir() else ())]
    return [place / paths.cgroup for place in places if (place / paths.cgroup).is_dir()]


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # ended meanwhile
        return []


def _shares_root(pid: int) -> bool:
    try:
        return (_PROC / str(pid) / "root").samefile("/")
    except OSError:
        return False


def _parent(pid: int) -> int:
    """Return the parent's id from ``stat``, whose second field may hold blanks; 0 if it ended."""
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _runs_from(pid: int, folder: Path) -> bool:
    link = _PROC / str(pid) / "exe"
    try:
        return link.readlink().is_relative_to(folder) and link.samefile(link.readlink())
    except OSError:  # ended meanwhile, or a file of another root file system
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # ended meanwhile
        return ""


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _wait(busy: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while busy() and time.monotonic() < deadline:
        time.sleep(_POLL_S)
