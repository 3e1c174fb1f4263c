"""Starting and stopping the private dockerd: its settings, its namespaces, its left-overs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge, EngineDown, Refused
from xbtasks.hostfacts import SIMULATED_LABEL
from xbtasks.sim import folders, processes, runtime, spawn
from xbtasks.sim.engine_api import EngineApi
from xbtasks.sim.paths import MARKER

if TYPE_CHECKING:
    from collections.abc import Callable

    from xbtasks.sim.packages import EnginePrograms
    from xbtasks.sim.paths import SimPaths

__all__ = ["recorded_pid", "runs_as_configured", "start", "stop"]

_START_S: Final = 60.0
_POLL_S: Final = 0.05
_SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Folders that dockerd and containerd use whatever their settings are. The private engine sees empty ones of
# its own in their place, so that a docker that the machine has is never met.
_FIXED_FOLDERS: Final = tuple(map(Path, ("/run/containerd", "/run/docker", "/run/runc", "/opt/containerd")))

# Where the kernel shows its security modules. Without it dockerd loads no AppArmor profile, which would stay
# in the kernel, and which a docker of the machine shares by name.
_SECURITY: Final = Path("/sys/kernel/security")


def runs_as_configured(paths: SimPaths, programs: Path) -> bool:
    """Tell whether the engine answers, and was started as this version of xbtasks would start it."""
    try:
        settings: object = json.loads(paths.daemon_json.read_text())
        same_programs = paths.programs.readlink() == programs
        EngineApi(paths.socket).version()
    except (OSError, ValueError, EngineDown):
        return False
    return same_programs and settings == _settings(paths)


def recorded_pid(paths: SimPaths) -> int | None:
    """Return dockerd's process id from its pid file, if that process is really this host's."""
    try:
        pid = int(paths.pid_file.read_text())
    except (OSError, ValueError):
        return None
    return pid if processes.is_engine_process(paths, pid) else None


def start(paths: SimPaths, programs: EnginePrograms, say: Callable[[str], None]) -> None:
    """Start dockerd and wait until it answers; what an earlier one left behind goes first.

    Raises Refused where the machine doesn't let it have namespaces, CannotJudge where it doesn't come up.
    """
    if processes.engine_processes(paths):
        say("stopping what is left of the simulated host's last engine")
    stop(paths)
    say("starting the simulated host's container engine")
    paths.runtime.mkdir(mode=0o700, parents=True)
    for folder in (paths.data_root, paths.docker_config, paths.stage_dir, paths.exec_root):
        folder.mkdir(parents=True, exist_ok=True)
    paths.programs.unlink(missing_ok=True)
    paths.programs.symlink_to(programs.folder)
    plugins = {"cliPluginsExtraDirs": [str(paths.programs / programs.cli_plugins.name)]}
    (paths.docker_config / "config.json").write_text(json.dumps(plugins))
    paths.daemon_json.write_text(json.dumps(_settings(paths), indent=2))
    request: spawn.Request = {
        "argv": [str(programs.sbin / "dockerd"), "--config-file", str(paths.daemon_json)],
        "env": {
            "PATH": f"{programs.sbin}:{_SYSTEM_PATH}",
            "HOME": str(paths.state),
            MARKER: str(paths.state),
        },
        "log": str(paths.log),
        "binds": _binds(paths),
    }
    paths.request.write_text(json.dumps(request))
    _spawn(paths.request)
    _await_answer(paths)


def stop(paths: SimPaths) -> None:
    """Stop the engine with all that runs in it, and remove its sockets and control groups. Idempotent."""
    processes.stop_all(paths, recorded_pid(paths))
    processes.remove_cgroups(paths)
    folders.remove_tree(paths.runtime)
    folders.remove_empty((paths.runtime.parent,))
    if not processes.any_engine_runs():
        # A running engine needs them as mount points. Empty, they are nobody's: whoever wants one makes it.
        folders.remove_empty(_FIXED_FOLDERS)


def _settings(paths: SimPaths) -> dict[str, object]:
    """Return dockerd's settings. They go into a file of our own: /etc/docker/daemon.json is the user's."""
    return {
        "hosts": [f"unix://{paths.socket}"],
        "data-root": str(paths.data_root),
        "exec-root": str(paths.exec_root),
        "pidfile": str(paths.pid_file),
        "group": "root",
        "labels": [SIMULATED_LABEL],
        "runtimes": runtime.settings(paths),
        "cgroup-parent": f"/{paths.cgroup}",
        "exec-opts": ["native.cgroupdriver=cgroupfs"],
        "iptables": False,
        "ip6tables": False,
        "log-level": "warn",
        "shutdown-timeout": 3,
    }


def _binds(paths: SimPaths) -> list[tuple[str, str]]:
    """Make the empty folders that the engine sees in place of the machine's, and their mount points."""
    binds = []
    for folder in (*_FIXED_FOLDERS, _SECURITY):
        if folder == _SECURITY and not folder.is_dir():
            continue
        folder.mkdir(mode=0o711, exist_ok=True)
        stand_in = paths.hidden / folder.relative_to("/")
        stand_in.mkdir(parents=True, exist_ok=True)
        binds.append((str(stand_in), str(folder)))
    return binds


def _spawn(request: Path) -> None:
    started = subprocess.run(
        (sys.executable, "-I", "-S", spawn.__file__, str(request)),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    reason = (started.stderr.strip().splitlines() or ["it gave no reason"])[-1]
    if started.returncode == spawn.NOT_PERMITTED:
        raise Refused(
            f"the simulated host may not make namespaces and mounts here: {reason}",
            hint="in a container it needs --privileged",
        )
    if started.returncode != 0:
        raise CannotJudge(f"the container engine could not be started: {reason}")


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
            said = _last_line(paths.log)
            raise CannotJudge(f"the container engine {what}: {said}", hint=f"its log: {paths.log}") from error
        return


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1] if lines else "its log is empty"
