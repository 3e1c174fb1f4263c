"""The private container engine of the simulated accelerator host: up, down, status.

It is always an engine of its own, beside whatever docker the machine has: own socket, data, pid file, control
group, network and mount namespace, configuration. Nothing is installed. It carries a label that says that
its accelerators are simulated (SPEC 8).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge, EngineDown, Refused
from xbtasks.sim import base_image, packages, processes, spawn
from xbtasks.sim.apt import PrivateApt
from xbtasks.sim.engine_api import EngineApi
from xbtasks.sim.lock import locked
from xbtasks.sim.machine import Machine
from xbtasks.sim.paths import MARKER, SAMPLE_CHECKOUT, SimPaths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xbtasks.sim.packages import EnginePrograms

__all__ = ["SIMULATED_LABEL", "SimStatus", "down", "status", "up"]

SIMULATED_LABEL: Final = "xbtasks.simulated=true"
"""The engine label (``docker info``: Labels) that marks simulated accelerators."""

_START_S: Final = 60.0
_POLL_S: Final = 0.05
_FREE_BYTES: Final = 3 << 30
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class SimStatus:
    """The simulated host as it stands. ``pid`` and ``engine_version`` are None where it doesn't run."""

    running: bool
    socket: Path
    docker_config: Path
    bin_dir: Path
    repo: Path
    stage_dir: Path
    log: Path
    pid: int | None
    engine_version: str | None

    def environment(self) -> dict[str, str]:
        """Return the variables that point docker and xbtasks at this host."""
        others = [folder for folder in os.get_exec_path() if folder != str(self.bin_dir)]
        return {
            "DOCKER_HOST": f"unix://{self.socket}",
            "DOCKER_CONFIG": str(self.docker_config),
            "PATH": os.pathsep.join((str(self.bin_dir), *others)),
            "XB_REPO": str(self.repo),
            "XB_STAGE": str(self.stage_dir),
        }


def status() -> SimStatus:
    """Return how the simulated host stands; reads only."""
    return _status(SimPaths.from_environment())


def up(say: Callable[[str], None]) -> SimStatus:
    """Start the simulated host, getting what it needs first; at once where it already runs.

    ``say`` gets one line for a person before each step that takes long. Raises Refused where this machine
    can't run it, CannotJudge where the network, the disk or the engine doesn't do its part.
    """
    machine = Machine.examine()
    paths = SimPaths.from_environment()
    with locked(
        paths.state, lambda: say("waiting: another process is starting or stopping the simulated host")
    ):
        if not _is_current(paths, machine):
            programs, archive = _ensure_downloads(paths, machine, say)
            if not _runs_as_configured(paths):
                _start(paths, programs, say)
            base_image.ensure_image(EngineApi(paths.socket), archive, machine, say)
        return _status(paths)


def down(say: Callable[[str], None], *, everything: bool = False) -> None:
    """Stop the simulated host and remove what it made, but for the downloads; with ``everything``, all.

    Raises Refused where something else still uses the files.
    """
    paths = SimPaths.from_environment()
    if os.geteuid() != 0:
        raise Refused("the simulated host belongs to root", hint="run it as root")
    with locked(
        paths.state, lambda: say("waiting: another process is starting or stopping the simulated host")
    ) as lock:
        current = _status(paths)
        if current.running:
            say("stopping the simulated host's engine")
        _stop(paths, current.pid)
        _remove_children(paths.state, but=lock)
        lock.unlink()
        _remove_empty(paths.state, paths.state.parent)
    if everything and paths.cache.is_dir():
        with locked(
            paths.cache, lambda: say("waiting: another process is filling the download cache")
        ) as lock:
            if processes.uses_files_of(paths.cache):
                raise Refused(
                    f"programs in {paths.cache} are running for another simulated host",
                    hint="stop that one first",
                )
            say(f"removing the downloads in {paths.cache}")
            _remove_children(paths.cache, but=lock)
            lock.unlink()
            _remove_empty(paths.cache, paths.cache.parent)


def _status(paths: SimPaths) -> SimStatus:
    try:
        version = EngineApi(paths.socket).version()
    except CannotJudge:
        version = None
    return SimStatus(
        running=version is not None,
        socket=paths.socket,
        docker_config=paths.docker_config,
        bin_dir=paths.programs / "bin",
        repo=SAMPLE_CHECKOUT,
        stage_dir=paths.stage_dir,
        log=paths.log,
        pid=_recorded_pid(paths),
        engine_version=version,
    )


def _recorded_pid(paths: SimPaths) -> int | None:
    """Return dockerd's process id from its pid file, if that process is really this host's."""
    try:
        pid = int(paths.pid_file.read_text())
    except (OSError, ValueError):
        return None
    return pid if pid in processes.engine_processes(paths) else None


def _is_current(paths: SimPaths, machine: Machine) -> bool:
    if not _runs_as_configured(paths):
        return False
    return base_image.image_is_current(EngineApi(paths.socket), machine)


def _runs_as_configured(paths: SimPaths) -> bool:
    """Tell whether the engine answers and was started with the settings that this version would give it."""
    try:
        found: object = json.loads(paths.daemon_json.read_text())
        EngineApi(paths.socket).version()
    except (OSError, ValueError, EngineDown):
        return False
    return found == _daemon_settings(paths)


def _ensure_downloads(
    paths: SimPaths, machine: Machine, say: Callable[[str], None]
) -> tuple[EnginePrograms, Path]:
    with (
        locked(paths.cache, lambda: say("waiting: another process is filling the download cache")),
        _work_folder(paths.cache) as work,
    ):
        free = shutil.disk_usage(paths.cache).free
        if free < _FREE_BYTES:
            raise CannotJudge(
                f"only {free >> 20} MiB are free in {paths.cache}: {_FREE_BYTES >> 20} are needed",
                hint="free some, or point XDG_CACHE_HOME and XDG_STATE_HOME at a larger disk",
            )
        suites = tuple(dict.fromkeys((machine.base_release, machine.engine_release, machine.release)))
        source = PrivateApt(work, suites, machine.release, machine.architecture, log=paths.cache / "apt.log")
        programs = packages.ensure_engine(paths.cache, machine, source, say)
        archive = base_image.ensure_archive(paths.cache, machine, source, say)
    return programs, archive


@contextlib.contextmanager
def _work_folder(cache: Path) -> Iterator[Path]:
    """Yield a folder for what isn't complete yet; those of killed processes go first (the lock is held)."""
    for left_over in cache.glob("tmp-*"):
        shutil.rmtree(left_over)
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=cache) as name:
        yield Path(name)


def _start(paths: SimPaths, programs: EnginePrograms, say: Callable[[str], None]) -> None:
    if processes.engine_processes(paths):
        say("stopping what is left of the simulated host's last engine")
    _stop(paths, _recorded_pid(paths))
    say("starting the simulated host's container engine")
    for folder in (paths.data_root, paths.docker_config, paths.stage_dir, paths.exec_root):
        folder.mkdir(parents=True, exist_ok=True)
    paths.programs.unlink(missing_ok=True)
    paths.programs.symlink_to(programs.folder)
    settings = {"cliPluginsExtraDirs": [str(paths.programs / "cli-plugins")]}
    (paths.docker_config / "config.json").write_text(json.dumps(settings))
    paths.daemon_json.write_text(json.dumps(_daemon_settings(paths), indent=2))
    request = {
        "argv": [str(programs.sbin / "dockerd"), "--config-file", str(paths.daemon_json)],
        "env": {
            "PATH": f"{programs.sbin}:{_SYSTEM_PATH}",
            "HOME": str(paths.state),
            MARKER: str(paths.state),
        },
        "log": str(paths.log),
        "binds": [],
    }
    paths.request.write_text(json.dumps(request))
    _spawn(paths)
    _await_answer(paths)


def _spawn(paths: SimPaths) -> None:
    started = subprocess.run(
        (sys.executable, "-I", "-S", spawn.__file__, str(paths.request)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if started.returncode != 0:
        reason = started.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise CannotJudge(f"the container engine could not be started: {reason[0]}", hint=_PRIVILEGE_HINT)


_PRIVILEGE_HINT: Final = "in a container, the simulated host needs --privileged"


def _await_answer(paths: SimPaths) -> None:
    engine = EngineApi(paths.socket)
    deadline = time.monotonic() + _START_S
    while True:
        try:
            engine.version()
        except EngineDown as error:
            alive = bool(processes.engine_processes(paths))
            if alive and time.monotonic() < deadline:
                time.sleep(_POLL_S)
                continue
            what = f"did not answer within {_START_S:.0f} s" if alive else "ended at once"
            raise CannotJudge(
                f"the container engine {what}: {_last_line(paths.log)}", hint=f"its log: {paths.log}"
            ) from error
        return


def _stop(paths: SimPaths, pid: int | None) -> None:
    processes.stop_all(paths, pid)
    processes.remove_cgroups(paths)
    if paths.runtime.is_dir():
        _refuse_mounts(paths.runtime)
        shutil.rmtree(paths.runtime)
    _remove_empty(paths.runtime.parent)


def _daemon_settings(paths: SimPaths) -> dict[str, object]:
    """Return dockerd's settings. They go into a file of our own: /etc/docker/daemon.json is the user's."""
    return {
        "hosts": [f"unix://{paths.socket}"],
        "data-root": str(paths.data_root),
        "exec-root": str(paths.exec_root),
        "pidfile": str(paths.pid_file),
        "labels": [SIMULATED_LABEL],
        "cgroup-parent": f"/{paths.cgroup}",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "iptables": False,
        "ip6tables": False,
        "log-level": "warn",
        "shutdown-timeout": 3,
    }


def _remove_children(folder: Path, *, but: Path) -> None:
    """Remove all in ``folder`` except one file; refuses where something is mounted inside."""
    _refuse_mounts(folder)
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        elif child != but:
            child.unlink()


def _refuse_mounts(folder: Path) -> None:
    """Raise Refused if anything is mounted below ``folder`` here: removing it would reach another disk."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4].encode().decode("unicode_escape")
        if point.startswith(f"{folder}/"):
            raise Refused(f"{point} is a mount point: not removed", hint=f"umount {point}")


def _remove_empty(*folders: Path) -> None:
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or not there: both are fine
            folder.rmdir()


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "its log is empty"
