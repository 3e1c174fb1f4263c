"""The private container engine of the simulated accelerator host: up, down, status.

It is always an engine of its own, beside whatever docker the machine has: own socket, data, pid file, control
group, network and mount namespace, configuration. Nothing is installed. It carries a label that says that
its accelerators are simulated (SPEC 8).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge, Refused
from xbtasks.hostfacts import SIMULATED_LABEL
from xbtasks.sim import base_image, folders, launch, packages, processes, runtime
from xbtasks.sim.apt import PrivateApt
from xbtasks.sim.drivers.ascend.image import ensure_images
from xbtasks.sim.drivers.build import ensure_built
from xbtasks.sim.drivers.service import ensure_node
from xbtasks.sim.engine_api import EngineApi
from xbtasks.sim.lock import locked
from xbtasks.sim.machine import Machine
from xbtasks.sim.paths import SAMPLE_CHECKOUT, SimPaths
from xbtasks.typed import command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xbtasks.sim.packages import EnginePrograms

__all__ = ["SIMULATED_LABEL", "SimStatus", "down", "status", "up"]

_FREE_BYTES: Final = 3 << 30
_BUSY: Final = "waiting: another process is starting or stopping the simulated host"
_FILLING: Final = "waiting: another process is at work on the simulated host's downloads"


@dataclass(frozen=True, slots=True)
class SimStatus:
    """The simulated host as it stands. ``pid`` and ``engine_version`` are None where it doesn't run."""

    running: bool
    socket: Path
    docker_config: Path
    bin_dir: Path
    tools_dir: Path
    device_root: Path
    repo: Path
    stage_dir: Path
    contexts: Path
    log: Path
    pid: int | None
    engine_version: str | None

    def environment(self) -> dict[str, str]:
        """Return the variables that point docker and xbtasks at this host."""
        ours = (str(self.tools_dir), str(self.bin_dir))
        others = [folder for folder in os.get_exec_path() if folder not in ours]
        return {
            "DOCKER_HOST": f"unix://{self.socket}",
            "DOCKER_CONFIG": str(self.docker_config),
            "PATH": os.pathsep.join((*ours, *others)),
            "XBTASKS_DEVICE_ROOT": str(self.device_root),
            "XB_REPO": str(self.repo),
            "XB_STAGE": str(self.stage_dir),
            "XB_REMOTE_CTX": str(self.contexts),
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
    with locked(paths.state, lambda: say(_BUSY)):
        engine = EngineApi(paths.socket)
        wanted = packages.engine_folder(paths.cache, machine)
        runtime.install(paths)
        if not (launch.runs_as_configured(paths, wanted) and base_image.is_current(engine, machine)):
            programs, archive = _ensure_downloads(paths.cache, machine, say)
            if not launch.runs_as_configured(paths, programs.folder):
                launch.start(paths, programs, say)
            base_image.ensure_image(engine, archive, machine, say)
        base = base_image.archive_path(paths.cache, machine).name
        ensure_built(paths, base, say)
        ensure_images(engine, paths.drivers / "ascend", base, say)
        ensure_node(paths, say)
        return _status(paths)


def down(say: Callable[[str], None], *, everything: bool = False) -> None:
    """Stop the simulated host and remove what it made, but for the downloads; with ``everything``, all.

    Raises Refused where something else still uses the files.
    """
    if os.geteuid() != 0:
        raise Refused("the simulated host belongs to root", hint="run it as root")
    paths = SimPaths.from_environment()
    with locked(paths.state, lambda: say(_BUSY)) as lock:
        if processes.engine_processes(paths):
            say("stopping the simulated host's container engine")
        launch.stop(paths)
        folders.remove_children(paths.state, but=lock)
        lock.unlink()
        folders.remove_empty((paths.state, paths.state.parent / "runs", paths.state.parent))
    if everything and paths.cache.is_dir():
        with locked(paths.cache, lambda: say(_FILLING)) as lock:
            if processes.run_from(paths.cache):
                raise _in_use(paths.cache)
            say(f"removing the downloads in {paths.cache}")
            folders.remove_children(paths.cache, but=lock)
            lock.unlink()
            folders.remove_empty((paths.cache, paths.cache.parent))


def _in_use(cache: Path) -> Refused:
    """Return the error that others run the programs of the cache, with how to stop each simulated host."""
    others = processes.hosts_run_from(cache)
    stops = [
        f"XDG_STATE_HOME={shlex.quote(str(state.parent.parent))} {command('sim.down')}" for state in others
    ]
    who = f"the simulated host in {' and in '.join(map(str, others))}" if others else "some process"
    return Refused(
        f"{who} runs the programs in {cache}: the downloads are kept",
        hint=f"to stop it first: {' && '.join(stops)}" if stops else "end it first",
    )


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
        tools_dir=paths.bin,
        device_root=paths.device_root,
        repo=SAMPLE_CHECKOUT,
        stage_dir=paths.stage_dir,
        contexts=paths.contexts,
        log=paths.log,
        pid=launch.recorded_pid(paths),
        engine_version=version,
    )


def _ensure_downloads(
    cache: Path, machine: Machine, say: Callable[[str], None]
) -> tuple[EnginePrograms, Path]:
    with locked(cache, lambda: say(_FILLING)), _work_folder(cache) as work:
        suites = tuple(dict.fromkeys((machine.base_release, machine.engine_release, machine.release)))
        source = PrivateApt(work, suites, machine.release, machine.architecture, log=cache / "apt.log")
        wanted = {packages.engine_folder(cache, machine), base_image.archive_path(cache, machine)}
        if not all(path.exists() for path in wanted):
            _require_space(cache)
        programs = packages.ensure_engine(cache, machine, source, say)
        archive = base_image.ensure_archive(cache, machine, source, say)
        _remove_superseded(cache, {programs.folder, archive})
    return programs, archive


@contextlib.contextmanager
def _work_folder(cache: Path) -> Iterator[Path]:
    """Yield a folder for what isn't complete yet; those of killed processes go first (the lock is held)."""
    for left_over in cache.glob("tmp-*"):
        shutil.rmtree(left_over, ignore_errors=True)  # an orphaned apt-get may still write to it: next time
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=cache) as name:
        yield Path(name)


def _remove_superseded(cache: Path, wanted: set[Path]) -> None:
    """Remove what other versions of xbtasks downloaded, unless an engine still runs from it."""
    for path in {*cache.glob("engine-*"), *cache.glob("base-*")} - wanted:
        if path.is_dir() and not processes.run_from(path):
            folders.remove_tree(path)
        elif path.is_file():
            path.unlink()


def _require_space(cache: Path) -> None:
    free = shutil.disk_usage(cache).free
    if free < _FREE_BYTES:
        raise CannotJudge(
            f"{free >> 20} MiB are free in {cache}: the simulated host needs {_FREE_BYTES >> 20} MiB",
            hint="free some, or point XDG_CACHE_HOME and XDG_STATE_HOME at a larger disk",
        )
