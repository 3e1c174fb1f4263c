"""docker's and buildx's answers as facts: every way an engine can fail to be one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.preflight_replies import FakeHost, asked, buildx_text, engine_text, sample, section
from xbtasks.backends.base import Platform
from xbtasks.hostfacts import BuildxFacts, BuildxState, EngineFacts, EngineState, HostFacts
from xbtasks.hostprobe import Answers, Lookup
from xbtasks.preflight import preflight_checks, read_preflight
from xbtasks.preflight.docker import parse_builder, read_buildx, read_engine


def facts(host: FakeHost) -> HostFacts:
    return read_preflight(host.reply())


def engine(text: str, stderr: str = "") -> EngineFacts:
    return read_engine(Answers(section("engine", text, stderr=stderr)))


def buildx(text: str, stderr: str = "", info: str = "docker/info-26.1.json") -> BuildxFacts:
    return read_buildx(Answers(section("buildx", text, stderr=stderr)), engine(engine_text(info)))


def test_an_engine_that_answers() -> None:
    found = engine(engine_text())
    assert found.state is EngineState.UP
    assert (found.server_version, found.client_version) == ("26.1.5+dfsg1", "26.1.5+dfsg1")
    assert (found.context, found.endpoint) == ("default", "unix:///var/run/docker.sock")
    assert found.platform is Platform.AMD64
    assert (found.root, found.storage_driver, found.containerd_store) == (
        "/var/lib/docker",
        "overlay2",
        False,
    )
    assert found.runtimes == {"runc", "io.containerd.runc.v2", "nvidia", "ascend"}
    assert found.default_runtime == "runc"
    assert (found.labels, found.simulated, found.rootless) == (frozenset(), False, False)
    assert found.tool is not None
    assert (found.tool.lookup, found.tool.path) == (Lookup.FOUND, "/usr/bin/docker")


def test_the_simulated_host_is_known_by_its_label_alone() -> None:
    found = engine(engine_text("docker/info-26.1-simulated.json"))
    assert found.up
    assert found.simulated


def test_cdi_and_containerd_store() -> None:
    found = engine(engine_text("docker/info-29-containerd-cdi.json"))
    assert found.cdi_directories == {"/etc/cdi", "/var/run/cdi"}
    assert found.cdi_devices == {"nvidia.com/gpu=0", "nvidia.com/gpu=all"}
    assert found.containerd_store


CANNOT_CONNECT = (
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
)


@pytest.mark.parametrize(
    ("text", "stderr", "state"),
    [
        (
            engine_text(
                "docker/info-28.2-no-server.json",
                "docker/version-28.2-no-server.json",
                status=1,
                socket="absent",
            ),
            CANNOT_CONNECT,
            EngineState.DOWN,
        ),
        # exit 0 and errors, exit 0 and nothing behind it: neither is an engine
        (engine_text("docker/info-server-errors.json", ""), "", EngineState.DOWN),
        (engine_text("docker/info-28.2-no-server.json"), "", EngineState.DOWN),
        # the socket is there, and this user may not open it, or can't see it
        (engine_text("docker/info-server-errors.json", "", socket="denied"), "", EngineState.DENIED),
        (engine_text("", "", status=1, socket="hidden"), "permission denied", EngineState.DENIED),
        # the words "permission denied" decide nothing
        (engine_text("", "", status=1, socket="open"), "permission denied while trying", EngineState.DOWN),
        (engine_text("docker/podman-info.json", "docker/podman-version.json"), "", EngineState.FOREIGN),
        (engine_text("docker/podman-info.json", ""), "", EngineState.FOREIGN),
        (engine_text("docker/info-26.1.json", "docker/podman-version.json"), "", EngineState.FOREIGN),
        (engine_text("docker/info-26.1.json", "docker/podman-socket-version.json"), "", EngineState.FOREIGN),
        (engine_text("docker/info-windows.json"), "", EngineState.FOREIGN),
        ("found /usr/bin/docker\n" + asked("info", 0, "hello"), "", EngineState.UNREADABLE),
        ("found /usr/bin/docker\n" + asked("info", 0, ""), "", EngineState.UNREADABLE),
        ("found /usr/bin/docker\n" + asked("info", 0, "[1]"), "", EngineState.UNREADABLE),
        ("found /usr/bin/docker\n" + asked("info", 0, "[" * 100_000), "", EngineState.UNREADABLE),
        ("found /usr/bin/docker\n" + asked("info", 125, ""), "docker: boom", EngineState.DOWN),
        ("found /usr/bin/docker\n", "killed", EngineState.UNREADABLE),
        ("absent docker\n", "", EngineState.ABSENT),
        ("denied /usr/bin/docker\n", "", EngineState.UNUSABLE),
        ("hidden /opt/secret\n", "", EngineState.UNUSABLE),
        ("", "sh: broken", EngineState.UNREADABLE),
    ],
)
def test_every_other_engine_has_its_own_reason(text: str, stderr: str, state: EngineState) -> None:
    found = engine(text, stderr)
    assert found.state is state
    assert not found.up
    assert found.reason
    assert found.reason.isprintable()
    row = next(row for row in preflight_checks(facts(FakeHost(engine=text))) if row.id == "preflight.engine")
    assert row.status.value == "FAIL"


def test_a_permission_that_docker_has_is_not_missing() -> None:
    """A group's socket that root or sudo's docker answers through is no trouble, whatever its mode says."""
    assert engine(engine_text(socket="denied")).state is EngineState.UP


def test_podman_is_named_with_its_version() -> None:
    assert engine(engine_text("docker/podman-info.json", "docker/podman-version.json")).reason == (
        "docker is a shim of podman 4.3.1"
    )
    behind = engine(engine_text("docker/info-26.1.json", "docker/podman-socket-version.json")).reason
    assert behind == "the server behind docker is not docker's engine but Podman Engine"


def test_an_engine_that_hangs_is_not_absent() -> None:
    hung = section("engine", "found /usr/bin/docker\n", timed_out=True, seconds=30)
    found = read_engine(Answers(hung))
    assert found.state is EngineState.TIMED_OUT
    assert found.reason == "/usr/bin/docker did not answer within 30 s"


def test_the_podman_notice_is_noise() -> None:
    notice = "Emulate Docker CLI using podman. Create /etc/containers/nodocker to quiet msg.\n"
    assert engine(engine_text(), notice).up


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("docker/buildx-version-debian.txt", (0, 13, 1)),
        ("docker/buildx-version-upstream.txt", (0, 19, 3)),
        ("docker/buildx-version-untold.txt", None),
    ],
)
def test_buildx_versions(version: str, expected: tuple[int, ...] | None) -> None:
    found = buildx(buildx_text(version))
    assert found.state is BuildxState.READY
    assert found.version == expected
    assert (found.builder, found.driver) == ("default", "docker")


@pytest.mark.parametrize(
    ("text", "stderr", "state"),
    [
        (buildx_text("", status=1), "docker: 'buildx' is not a docker command.", BuildxState.ABSENT),
        (buildx_text("", status=1), "docker: unknown command: docker buildx", BuildxState.ABSENT),
        (buildx_text("docker/buildah-version.txt"), "", BuildxState.ABSENT),
        (buildx_text(""), "", BuildxState.ABSENT),
        (buildx_text("docker/buildx-version-0.9.1.txt"), "", BuildxState.TOO_OLD),
        (buildx_text(inspect="", inspect_status=1), 'ERROR: no builder "nope" found', BuildxState.NO_BUILDER),
        (buildx_text(inspect=""), "", BuildxState.NO_BUILDER),
        (buildx_text(inspect="docker/inspect-engine-down.txt"), "", BuildxState.NOT_RUNNING),
        (buildx_text(inspect="docker/inspect-container-inactive.txt"), "", BuildxState.NOT_RUNNING),
        (buildx_text(inspect="docker/inspect-old-key.txt"), "", BuildxState.NO_HEREDOCS),
        ("found /usr/bin/docker\n", "killed", BuildxState.UNREADABLE),
        (
            "found /usr/bin/docker\n" + asked("version", 0, "github.com/docker/buildx v0.13.1 x"),
            "",
            BuildxState.UNREADABLE,
        ),
        ("absent docker\n", "", BuildxState.ENGINE_ABSENT),
    ],
)
def test_every_buildx_that_cannot_build_has_its_reason(text: str, stderr: str, state: BuildxState) -> None:
    found = buildx(text, stderr)
    assert found.state is state
    assert not found.ready
    assert found.reason


def test_buildx_that_hangs() -> None:
    hung = section("buildx", "found /usr/bin/docker\n", timed_out=True, seconds=31)
    found = read_buildx(Answers(hung), engine(engine_text()))
    assert found.state is BuildxState.TIMED_OUT
    assert found.reason == "docker buildx did not answer within 31 s"


def test_the_docker_driver_reads_heredocs_as_the_engine_does() -> None:
    """Debian's BuildKit says 0.0.0 of itself; 20.10's can't read heredocs whatever it says."""
    assert buildx(buildx_text()).ready
    old = buildx(buildx_text(), info="docker/info-20.10.json")
    assert old.state is BuildxState.NO_HEREDOCS
    assert old.reason == "engine 20.10.24+dfsg1 can't read heredocs, 23 and later can"


@pytest.mark.parametrize(
    ("line", "instead"),
    [("Driver:        docker\n", ""), ("Driver:        docker\n", "Driver: docker\nError:  no such host\n")],
)
def test_a_builder_without_a_driver_or_with_an_error_is_not_used(line: str, instead: str) -> None:
    text = buildx_text()
    assert line in text.replace("inspect ", "")
    found = buildx(
        text.replace(f"inspect {line}", "".join(f"inspect {one}\n" for one in instead.splitlines()))
    )
    assert found.state is BuildxState.NOT_RUNNING


@pytest.mark.parametrize(
    ("told", "ready"),
    [
        ("v0.10.0", True),
        ("v0.9.9", False),
        ("v0.0.0+unknown", False),
        ("", False),
        ("20.10.21", False),
        ("24.0.2", True),
    ],
)
def test_a_builder_elsewhere_reads_heredocs_as_its_buildkit_does(told: str, ready: bool) -> None:
    text = sample("docker/inspect-docker.txt").replace("v0.0.0+unknown", told)
    elsewhere = text.replace("Endpoint:         default", "Endpoint:         other")
    version = asked("version", 0, sample("docker/buildx-version-debian.txt"))
    found = buildx("found /usr/bin/docker\n" + version + asked("inspect", 0, elsewhere))
    assert found.ready is ready
    if not ready:
        assert found.state is BuildxState.NO_HEREDOCS


@pytest.mark.parametrize(
    ("driver", "told", "ready"),
    [
        ("remote", "v0.0.0+unknown", True),  # only a BuildKit that has the Info call says that there
        ("remote", "1a2b3c4.m", True),
        ("remote", "v0.9.3", False),
        ("remote", "", False),
        ("docker-container", "v0.0.0+unknown", False),  # as `buildkitd --version` says it, however old
        ("kubernetes", "v0.0.0+unknown", False),
    ],
)
def test_a_remote_node_without_a_number_reads_heredocs(driver: str, told: str, ready: bool) -> None:
    text = sample("docker/inspect-remote-two-nodes.txt").replace("v0.0.0+unknown", told)
    version = asked("version", 0, sample("docker/buildx-version-debian.txt"))
    other = text.replace("Driver:        remote", f"Driver:        {driver}")
    found = buildx("found /usr/bin/docker\n" + version + asked("inspect", 0, other))
    assert found.ready is ready
    assert found.driver == driver
    assert ready or found.state is BuildxState.NO_HEREDOCS


def test_a_fleet_of_nodes() -> None:
    found = buildx(buildx_text(inspect="docker/inspect-container-two-nodes.txt"))
    assert found.ready
    assert [(node.name, node.endpoint, node.buildkit) for node in found.nodes] == [
        ("fleet0", "unix:///var/run/docker.sock", (0, 18, 2)),
        ("fleet1", "ssh://builder", (0, 17, 0)),
    ]
    assert {"linux/amd64", "linux/arm64"} <= found.platforms


def test_a_sleeping_node_brings_no_platforms() -> None:
    text = sample("docker/inspect-container-two-nodes.txt").replace("v0.17.0", "")
    asleep = text.replace(
        "Endpoint:              ssh://builder\nStatus:                running", "Status: stopped"
    )
    version = asked("version", 0, sample("docker/buildx-version-debian.txt"))
    found = buildx("found /usr/bin/docker\n" + version + asked("inspect", 0, asleep))
    assert found.ready
    assert "linux/arm64" not in found.platforms


def test_indented_lines_of_a_builder_are_not_its_keys() -> None:
    text = sample("docker/inspect-docker.txt").replace("Status: ", " Status: stopped\nStatus: ")
    name, driver, nodes, error = parse_builder(text)
    assert (name, driver, error) == ("default", "docker", "")
    assert [node.status for node in nodes] == ["running"]


def test_the_key_that_older_buildx_gives_its_buildkit() -> None:
    nodes = parse_builder(sample("docker/inspect-old-key.txt"))[2]
    assert [node.buildkit for node in nodes] == [(0, 9, 3)]


def test_exit_statuses_outweigh_good_looking_text() -> None:
    version = sample("docker/buildx-version-debian.txt")
    inspect = sample("docker/inspect-docker.txt")
    found = "found /usr/bin/docker\n"
    assert (
        buildx(found + asked("version", 1, version) + asked("inspect", 0, inspect)).state
        is BuildxState.ABSENT
    )
    lost = buildx(found + asked("version", 0, version) + asked("inspect", 1, inspect))
    assert lost.state is BuildxState.NO_BUILDER


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["Client", "Server", "ClientInfo", "ServerErrors", "ServerVersion", "Runtimes", "Labels",
                 "host", "store", "Components", "Name", "DriverStatus", "SecurityOptions", "CDISpecDirs",
                 "DiscoveredDevices", "Architecture", "OSType", "ID", "Source"]
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(JSON, JSON, st.integers(0, 255), st.text(), st.sampled_from(["open", "denied", "hidden", "absent"]))
def test_any_json_gives_typed_facts(
    info: object, version: object, status: int, stderr: str, socket: str
) -> None:
    text = (
        f"found /usr/bin/docker\nsocket {socket}\n"
        + asked("version", status, json.dumps(version))
        + asked("info", status, json.dumps(info))
    )
    found = engine(text, stderr)
    assert found.up or found.reason
    assert not found.up or found.server_version


@given(st.text(), st.text())
def test_any_text_of_buildx_gives_typed_facts(version: str, inspect: str) -> None:
    text = "found /usr/bin/docker\n" + asked("version", 0, version) + asked("inspect", 0, inspect)
    found = buildx(text)
    assert found.ready or found.reason
