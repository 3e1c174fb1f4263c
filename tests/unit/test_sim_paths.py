"""Folders of the simulated host, and the variables that point at it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.sim.daemon import SimStatus
from xbtasks.sim.paths import SAMPLE_CHECKOUT, SimPaths

UNIX_SOCKET_PATH_MAX = 107


def test_folders_are_those_of_the_xdg_variables() -> None:
    paths = SimPaths.from_environment({"XDG_STATE_HOME": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/home/u"})
    assert (paths.state, paths.cache) == (Path("/a/xbtasks/sim"), Path("/b/xbtasks/sim"))


@pytest.mark.parametrize("unusable", ["", "relative/folder"])
def test_an_unusable_xdg_variable_counts_as_unset(unusable: str) -> None:
    paths = SimPaths.from_environment(
        {"XDG_STATE_HOME": unusable, "XDG_CACHE_HOME": unusable, "HOME": "/home/u"}
    )
    assert paths.state == Path("/home/u/.local/state/xbtasks/sim")
    assert paths.cache == Path("/home/u/.cache/xbtasks/sim")


def test_without_a_home_it_is_roots() -> None:
    assert SimPaths.from_environment({}).state == Path("/root/.local/state/xbtasks/sim")


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=400))
def test_every_socket_fits_whatever_the_home_is(name: str) -> None:
    paths = SimPaths.from_environment({"HOME": f"/home/{name}"})
    deepest = paths.exec_root / "containerd/containerd.sock.ttrpc"
    assert len(os.fsencode(deepest)) <= UNIX_SOCKET_PATH_MAX
    assert len(os.fsencode(paths.socket)) <= UNIX_SOCKET_PATH_MAX


def test_hosts_with_different_state_folders_never_meet() -> None:
    one = SimPaths.from_environment({"XDG_STATE_HOME": "/a"})
    two = SimPaths.from_environment({"XDG_STATE_HOME": "/b"})
    assert one.runtime != two.runtime
    assert one.cgroup != two.cgroup
    assert one.marker != two.marker


def status(bin_dir: Path) -> SimStatus:
    return SimStatus(
        running=True,
        socket=Path("/run/x/docker.sock"),
        docker_config=Path("/state/docker"),
        bin_dir=bin_dir,
        tools_dir=Path("/state/bin"),
        device_root=Path("/run/x/root"),
        repo=SAMPLE_CHECKOUT,
        stage_dir=Path("/state/stage"),
        contexts=Path("/state/ctx"),
        log=Path("/state/dockerd.log"),
        pid=1,
        engine_version="26.1",
    )


def test_the_environment_points_docker_and_xbtasks_at_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert status(Path("/private/bin")).environment() == {
        "DOCKER_HOST": "unix:///run/x/docker.sock",
        "DOCKER_CONFIG": "/state/docker",
        "PATH": "/state/bin:/private/bin:/usr/bin:/bin",
        "XBTASKS_DEVICE_ROOT": "/run/x/root",
        "XB_REPO": str(SAMPLE_CHECKOUT),
        "XB_STAGE": "/state/stage",
        "XB_REMOTE_CTX": "/state/ctx",
    }


def test_the_private_programs_stand_on_the_path_once_and_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/private/bin:/bin")
    assert status(Path("/private/bin")).environment()["PATH"] == "/state/bin:/private/bin:/usr/bin:/bin"
