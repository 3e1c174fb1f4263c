"""Preflight against a real engine: the session's own."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from xbtasks.checks import Check, Status
from xbtasks.host.framed import FramedHost
from xbtasks.host.local import LocalTransport
from xbtasks.host.recording import Evidence, RecordedHost
from xbtasks.hostfacts import BuildxState, EngineState, HostFacts
from xbtasks.preflight import preflight_checks, preflight_step, read_preflight

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workplace import PrivateEngine

pytestmark = pytest.mark.engine

STAGING = {"ascend": "/opt/enpu/vcann-rt", "nvidia": "/opt/vgpu"}


@pytest.fixture(autouse=True)
def here(engine: PrivateEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point this process at the session's engine, as its ``export`` lines would."""
    for name, value in engine.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DOCKER_CONTEXT", raising=False)


def facts(evidence: Path | None = None, builder: str | None = None) -> HostFacts:
    step = preflight_step("docker", STAGING, builder=builder)
    with closing(FramedHost(LocalTransport(), Evidence(evidence) if evidence else None)) as host:
        return read_preflight(host.run(step))


def row(found: HostFacts, name: str) -> Check:
    return next(check for check in preflight_checks(found) if check.id == f"preflight.{name}")


def test_an_engine_that_is_up() -> None:
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


def test_the_recording_gives_the_same_table(tmp_path: Path) -> None:
    live = facts(tmp_path)
    with closing(RecordedHost(tmp_path, "local")) as recorded:
        again = read_preflight(recorded.run(preflight_step("docker", STAGING)))
    assert preflight_checks(again) == preflight_checks(live)


def test_builders_that_are_not_there_or_not_running(engine: PrivateEngine) -> None:
    missing = facts(builder="xb-no-such-builder")
    assert missing.buildx.state is BuildxState.NO_BUILDER
    assert row(missing, "buildx").status is Status.FAIL
    engine.docker("buildx", "create", "--name", "xb-idle", "--driver", "docker-container")
    try:
        idle = facts(builder="xb-idle")
    finally:
        engine.docker("buildx", "rm", "xb-idle")
    assert (idle.buildx.state, idle.buildx.driver) == (BuildxState.NOT_RUNNING, "docker-container")
    assert "docker buildx inspect --bootstrap xb-idle starts it" in row(idle, "buildx").detail


def test_an_engine_that_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    found = facts()
    assert found.engine.state is EngineState.DOWN
    assert str(tmp_path) in found.engine.reason
    assert found.buildx.state is BuildxState.NOT_RUNNING
    assert [row(found, name).status for name in ("engine", "buildx")] == [Status.FAIL, Status.FAIL]
    monkeypatch.delenv("DOCKER_HOST")
    monkeypatch.setenv("DOCKER_CONTEXT", "xb-no-such-context")
    assert facts().engine.state is EngineState.DOWN
