"""The simulated host on the real thing: a private engine with folders of its own, beside whatever runs here.

Downloads are taken from the default download cache, which is filled first where it isn't. What is about the
engine's life alone uses a base image with a shell and little else, which takes no time to import.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xbtasks.errors import Refused, XbError
from xbtasks.sim import base_image, daemon, packages
from xbtasks.sim.base_image import BASE_IMAGE
from xbtasks.sim.daemon import SIMULATED_LABEL
from xbtasks.sim.engine_api import EngineApi
from xbtasks.sim.machine import Machine
from xbtasks.sim.paths import SAMPLE_CHECKOUT, SimPaths

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine

PROJECT = Path(__file__).resolve().parents[2]
CALL = """
import json, sys
from xbtasks.sim import daemon
from xbtasks.errors import Refused, XbError
try:
    if sys.argv[1] == "up":
        status = daemon.up(lambda line: print(line, file=sys.stderr))
        print(json.dumps({"pid": status.pid, "environment": status.environment()}))
    else:
        daemon.down(lambda line: print(line, file=sys.stderr), everything=sys.argv[1] == "remove")
except XbError as error:
    print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.exit(int(error.exit_code))
"""
FIXED_FOLDERS = ("/run/containerd", "/run/docker", "/run/runc", "/opt/containerd")


@dataclass
class Host:
    """A simulated host with its own state folder; ``env`` is what its processes are started with."""

    env: dict[str, str]
    paths: SimPaths

    @classmethod
    def at(cls, state: Path, cache: Path) -> Host:
        env = {
            **os.environ,
            "XDG_STATE_HOME": str(state),
            "XDG_CACHE_HOME": str(cache),
            "PYTHONPATH": str(PROJECT),
        }
        return cls(env, SimPaths.from_environment(env))

    def start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            (sys.executable, "-c", CALL, command),
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, command: str) -> str:
        process = self.start(command)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return out

    def up(self) -> dict[str, str]:
        return json.loads(self.call("up"))["environment"]

    def pid(self) -> int:
        return int(self.paths.pid_file.read_text())

    def docker(self, *arguments: str) -> str:
        environment = {**self.env, "DOCKER_HOST": f"unix://{self.paths.socket}"}
        environment["DOCKER_CONFIG"] = str(self.paths.docker_config)
        argv = (str(self.paths.programs / "bin/docker"), *arguments)
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the default download cache, filled."""
    try:
        Machine.examine()
    except XbError as error:
        pytest.skip(str(error))
    cache = SimPaths.from_environment().cache
    host = Host.at(tmp_path_factory.mktemp("filling") / "state", cache.parents[1])
    host.up()  # downloads, and compiles the simulated drivers
    host.call("down")
    return cache


@pytest.fixture(scope="module")
def full_cache(downloads: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a private ``XDG_CACHE_HOME`` that shares the downloads."""
    folder = tmp_path_factory.mktemp("full-cache")
    copy_downloads(downloads, folder)
    return folder


@pytest.fixture(scope="module")
def cache(downloads: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a private ``XDG_CACHE_HOME`` with a tiny base image."""
    folder = tmp_path_factory.mktemp("cache")
    ours = copy_downloads(downloads, folder)
    archive = base_image.archive_path(ours, Machine.examine())
    full = archive.rename(archive.with_name("full.tar"))
    with tarfile.open(full) as source, tarfile.open(archive, "w") as target:
        for member in source:
            if is_needed_to_live(member):
                target.addfile(member, source.extractfile(member) if member.isreg() else None)
    full.unlink()
    return folder


def is_needed_to_live(member: tarfile.TarInfo) -> bool:
    """Choose a shell, a few programs and their libraries out of the base image."""
    path = Path(member.name)
    if len(path.parts) <= 2:
        return True
    if path.parts[:2] == ("usr", "bin"):
        return path.name in {"bash", "cat", "echo", "sleep"}
    return path.parts[1].startswith("lib") and path.name.startswith(
        ("ld-linux-", "libc.so.6", "libtinfo.so.6")
    )


def copy_downloads(downloads: Path, xdg_cache_home: Path) -> Path:
    ours = SimPaths.from_environment({"XDG_CACHE_HOME": str(xdg_cache_home)}).cache
    machine = Machine.examine()
    engine = packages.engine_folder(downloads, machine)
    archive = base_image.archive_path(downloads, machine)
    shutil.copytree(engine, ours / engine.name, copy_function=_share)
    _share(archive, ours / archive.name)
    for drivers in downloads.glob("drivers-*"):
        shutil.copytree(drivers, ours / drivers.name, copy_function=_share)
    return ours


def _share(source: Path | str, target: Path | str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture
def host(tmp_path: Path, cache: Path) -> Iterator[Host]:
    host = Host.at(tmp_path / "state", cache)
    yield host
    host.call("down")


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that ended but wasn't waited for yet doesn't."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_up_then_again_in_no_time(host: Host) -> None:
    host.up()
    first = host.pid()
    started = time.monotonic()
    host.up()
    assert time.monotonic() - started < 1
    assert host.pid() == first


def test_it_outlives_who_started_it_and_keeps_no_pipe_open(host: Host) -> None:
    shown = subprocess.run(
        f"{sys.executable} -c '{CALL}' up 2>&1 | cat",
        shell=True,
        env=host.env,
        capture_output=True,
        timeout=300,
        start_new_session=True,
    )
    assert shown.returncode == 0
    assert EngineApi(host.paths.socket).version()
    assert os.getsid(host.pid()) == host.pid()


def test_two_at_once_share_one_engine(host: Host) -> None:
    both = [host.start("up"), host.start("up")]
    results = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert len({json.loads(out)["pid"] for out, _ in results}) == 1


def test_the_engine_is_marked_and_apart(host: Host) -> None:
    interfaces = Path("/proc/net/dev").read_text().count(":")
    host.up()
    info = json.loads(host.docker("info", "--format", "{{json .}}"))
    assert SIMULATED_LABEL in info["Labels"]
    assert info["DockerRootDir"] == str(host.paths.data_root)
    assert Path("/proc/net/dev").read_text().count(":") == interfaces
    assert str(host.paths.state) not in Path("/proc/self/mountinfo").read_text()
    for kind in ("net", "mnt"):
        theirs, ours = Path(f"/proc/{host.pid()}/ns/{kind}"), Path(f"/proc/self/ns/{kind}")
        assert theirs.readlink() != ours.readlink()
    for folder in FIXED_FOLDERS:
        seen = Path(f"/proc/{host.pid()}/root{folder}")
        assert not seen.samefile(folder)


def test_a_container_reaches_loopback_and_nothing_else(host: Host) -> None:
    host.up()
    script = "exec 3<>/dev/tcp/127.0.0.1/9 || true; cat /proc/net/route"
    assert "Destination" in host.docker("run", "--rm", "--network", "none", BASE_IMAGE, "bash", "-c", script)


def test_a_killed_engine_is_replaced_with_nothing_left_of_it(host: Host) -> None:
    host.up()
    container = host.docker("run", "--detach", BASE_IMAGE, "sleep", "1000")
    inside = int(host.docker("inspect", "--format", "{{.State.Pid}}", container))
    first = host.pid()
    os.kill(first, signal.SIGKILL)
    assert alive(inside)  # shims and containers outlive their engine
    host.up()
    assert host.pid() != first
    assert not alive(inside)
    assert host.docker("inspect", "--format", "{{.State.Running}}", container) == "false"
    assert BASE_IMAGE in host.docker("images", "--format", "{{.Repository}}:{{.Tag}}")


def test_left_overs_of_a_reboot_are_no_obstacle_and_no_pid_is_trusted(host: Host) -> None:
    host.up()
    bystander = subprocess.Popen(("sleep", "1000"))
    try:
        socket = host.paths.socket
        os.kill(host.pid(), signal.SIGKILL)
        assert socket.exists()
        host.paths.pid_file.write_text(str(bystander.pid))
        host.up()
        assert host.pid() != bystander.pid
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_long_home_with_blanks_is_no_obstacle(tmp_path: Path, cache: Path) -> None:
    host = Host.at(tmp_path / ("a long name " * 12) / "state", cache)
    try:
        host.up()
        assert host.docker("run", "--rm", BASE_IMAGE, "echo", "hello") == "hello"
    finally:
        host.call("down")


def test_down_leaves_the_downloads_and_nothing_else(host: Host, cache: Path) -> None:
    host.up()
    container = host.docker("run", "--detach", BASE_IMAGE, "sleep", "1000")
    inside = int(host.docker("inspect", "--format", "{{.State.Pid}}", container))
    engine = host.pid()
    downloads = sorted(cache.rglob("*"))
    host.call("down")
    assert not alive(engine)
    assert not alive(inside)
    assert not host.paths.state.parent.exists()
    assert not host.paths.runtime.exists()
    assert list(Path("/sys/fs/cgroup").glob(f"**/{host.paths.cgroup}")) == []
    assert sorted(cache.rglob("*")) == downloads
    host.call("down")  # again: nothing to do


def test_down_with_everything_leaves_nothing(tmp_path: Path, cache: Path) -> None:
    shutil.copytree(cache, tmp_path / "cache", copy_function=_share)
    host = Host.at(tmp_path / "state", tmp_path / "cache")
    host.up()
    host.call("remove")
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "cache", tmp_path / "state"]


def test_downloads_in_use_by_another_host_are_kept(host: Host, tmp_path: Path, cache: Path) -> None:
    host.up()
    process = Host.at(tmp_path / "other", cache).start("remove")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert err.startswith("Refused: the simulated host in ")
    assert str(host.paths.state) in err
    assert f" runs the programs in {host.paths.cache}: the downloads are kept" in err
    assert f" XDG_STATE_HOME={host.paths.state.parent.parent} " in err
    assert EngineApi(host.paths.socket).version()


def test_what_a_killed_download_left_goes_with_the_next_up(host: Host) -> None:
    left_over = host.paths.cache / "tmp-killed/engine-tree"
    left_over.mkdir(parents=True)
    host.up()
    assert not left_over.parent.exists()


def test_an_engine_with_other_settings_is_started_anew(host: Host) -> None:
    host.up()
    first = host.pid()
    settings = json.loads(host.paths.daemon_json.read_text())
    host.paths.daemon_json.write_text(json.dumps({**settings, "debug": True}))
    host.up()
    assert host.pid() != first


def test_an_engine_that_ends_at_once_says_why(host: Host) -> None:
    host.up()
    host.call("down")
    host.paths.data_root.mkdir(parents=True)
    (host.paths.data_root / "containers").touch()  # a file where dockerd wants a folder
    process = host.start("up")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 4
    message = err.splitlines()[-1]
    assert message.startswith("CannotJudge: the container engine ended at once: ")
    assert message.endswith(f"; its log: {host.paths.log}")


def test_without_root_one_line_says_what_to_do() -> None:
    pid = os.fork()  # nobody else may be able to read this interpreter's files, so it is loaded first
    if pid == 0:
        code = 1
        try:
            os.setuid(65534)
            daemon.up(print)
        except Refused as error:
            line = "the simulated host needs root: it starts a container engine; run it on "
            code = 0 if str(error).startswith(line) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory, full_cache: Path) -> Iterator[Host]:
    """Return a host with the real base image."""
    host = Host.at(tmp_path_factory.mktemp("full") / "state", full_cache)
    yield host
    host.call("down")


@pytest.mark.parametrize(("platform", "machine"), [("linux/amd64", 62), ("linux/arm64", 183)])
def test_a_stage_builds_for_both_platforms(full: Host, platform: str, machine: int, tmp_path: Path) -> None:
    host, environment = full, full.up()
    assert environment["XB_REPO"] == str(SAMPLE_CHECKOUT)
    dockerfile = SAMPLE_CHECKOUT / "pack/gpustack-operator/Dockerfile"
    options = ("--platform", platform, "--load", "--tag", "sample:1", "--file", str(dockerfile))
    target = ("--target", "xbuild-nvidia-cuda-12")
    host.docker("buildx", "build", *target, *options, str(SAMPLE_CHECKOUT))
    assert host.docker("image", "inspect", "--format", "{{.Os}}/{{.Architecture}}", "sample:1") == platform
    container = host.docker("create", "--platform", platform, "sample:1")
    host.docker("cp", f"{container}:/out/libvgpu.so", str(tmp_path))
    library = tmp_path / "libvgpu.so"
    header = library.read_bytes()[:20]
    assert (header[:4], int.from_bytes(header[18:20], "little")) == (b"\x7fELF", machine)
    assert library.stat().st_mode & 0o7777 == 0o644


def test_where_namespaces_are_forbidden_one_line_says_so(host: Host) -> None:
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    limited = ("setpriv", "--bounding-set=-sys_admin", sys.executable, "-c", CALL, "up")
    done = subprocess.run(limited, env=host.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1] == (
        "Refused: the simulated host may not make namespaces and mounts here: "
        "unshare: Operation not permitted; in a container it needs --privileged"
    )
