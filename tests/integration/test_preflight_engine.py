"""Preflight against a real engine: a private one of its own, up and down."""

from __future__ import annotations

import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from xbtasks.checks import Check, Status
from xbtasks.errors import XbError
from xbtasks.host.framed import FramedHost
from xbtasks.host.local import LocalTransport
from xbtasks.host.recording import Evidence, RecordedHost
from xbtasks.hostfacts import BuildxState, EngineState, HostFacts
from xbtasks.preflight import preflight_checks, preflight_step, read_preflight
from xbtasks.sim import daemon
from xbtasks.sim.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.engine

STAGING = {"ascend": "/opt/enpu/vcann-rt", "nvidia": "/opt/vgpu"}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Start an engine and point this process at it, as its ``export`` lines would."""
    try:
        Machine.examine()
    except XbError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        status = daemon.up(print)
        try:
            for name, value in status.environment().items():
                patch.setenv(name, value)
            yield
        finally:
            daemon.down(print)


def facts(evidence: Path | None = None, builder: str | None = None) -> HostFacts:
    step = preflight_step("docker", STAGING, builder=builder)
    with closing(FramedHost(LocalTransport(), Evidence(evidence) if evidence else None)) as host:
        return read_preflight(host.run(step))


def row(found: HostFacts, name: str) -> Check:
    return next(check for check in preflight_checks(found) if check.id == f"preflight.{name}")


def test_an_engine_that_is_up(engine: None) -> None:
    found = facts()
    assert found.engine.state is EngineState.UP
    assert found.simulated
    assert found.engine_is_here
    assert found.engine.root
    assert "runc" in found.engine.runtimes
    assert (found.buildx.state, found.buildx.driver) == (BuildxState.READY, "docker")
    assert found.platform is not None
    assert found.can_build(found.platform, cross_compiles=False)
    assert (found.disk.free_kib or 0) > 0
    for name in ("host", "engine", "buildx"):
        assert row(found, name).status is Status.PASS
    assert row(found, "engine").detail.startswith("SIMULATED, docker ")
    for backend in ("ascend", "nvidia"):
        expected = Status.PASS if backend in found.engine.runtimes else Status.WARN
        assert row(found, f"{backend}-runtime").status is expected


def test_the_recording_gives_the_same_table(engine: None, tmp_path: Path) -> None:
    live = facts(tmp_path)
    with closing(RecordedHost(tmp_path, "local")) as recorded:
        again = read_preflight(recorded.run(preflight_step("docker", STAGING)))
    assert preflight_checks(again) == preflight_checks(live)


def test_builders_that_are_not_there_or_not_running(engine: None) -> None:
    missing = facts(builder="xb-no-such-builder")
    assert missing.buildx.state is BuildxState.NO_BUILDER
    assert row(missing, "buildx").status is Status.FAIL
    create = ("docker", "buildx", "create", "--name", "xb-idle", "--driver", "docker-container")
    subprocess.run(create, check=True, capture_output=True)
    try:
        idle = facts(builder="xb-idle")
    finally:
        subprocess.run(("docker", "buildx", "rm", "xb-idle"), check=True, capture_output=True)
    assert (idle.buildx.state, idle.buildx.driver) == (BuildxState.NOT_RUNNING, "docker-container")
    assert "docker buildx inspect --bootstrap xb-idle starts it" in row(idle, "buildx").detail


def test_an_engine_that_is_not_there(engine: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    found = facts()
    assert found.engine.state is EngineState.DOWN
    assert str(tmp_path) in found.engine.reason
    assert found.buildx.state is BuildxState.NOT_RUNNING
    assert [row(found, name).status for name in ("engine", "buildx")] == [Status.FAIL, Status.FAIL]
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "xb-no-such-context")
    assert facts().engine.state is EngineState.DOWN
