"""From facts to rows, in a stable order. Only engine and buildx can FAIL; all else says what it rules out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from xbtasks.backends import host_modules
from xbtasks.backends.base import Platform
from xbtasks.checks import Check, Status
from xbtasks.hostfacts import BuildxState, EngineState
from xbtasks.hostprobe import one_line

if TYPE_CHECKING:
    from xbtasks.hostfacts import BuilderNode, HostFacts, StagingFacts

__all__ = ["BASE_IMAGE_GIB", "preflight_checks"]

BASE_IMAGE_GIB: Final = 10
"""What the base image of a stage takes on disk, about."""
_STAGING_MIB: Final = 64
_KIB_PER_GIB: Final = 1024 * 1024
_LONGEST_DETAIL: Final = 2000
_BUILDX_RELEASE: Final = "0.19.3"
_NEXT_STEP: Final = {
    EngineState.ABSENT: "install docker, or put it on PATH",
    EngineState.UNUSABLE: "let this user run it",
    EngineState.DOWN: "start the engine, or point DOCKER_HOST or docker's context at one that runs",
    EngineState.DENIED: "add the user to group docker and log in again",
    EngineState.FOREIGN: "use docker's own engine",
    EngineState.TIMED_OUT: "see whether the engine hangs or the host is overloaded, then try again",
    EngineState.UNREADABLE: "see what docker info prints",
}


def preflight_checks(facts: HostFacts, *, platform: Platform | None = None) -> tuple[Check, ...]:
    """Return the rows of the table; ``platform`` is the one to build for, None for the host's own."""
    noise = len(facts.noise)
    rows = (
        _host(facts),
        _engine(facts),
        _buildx(facts),
        _disk(facts),
        *(_staging(facts, staging) for staging in facts.staging),
        _emulation(facts, platform),
        *(
            row
            for name, module in host_modules().items()
            for row in module.checks(facts.accelerators[name], facts.engine)
        ),
        Check("preflight.noise", Status.INFO, f"lines of login noise around the reply, not read: {noise}"),
    )
    # A host's words stand in details: whatever they hold, a detail is one printable line.
    return tuple(replace(row, detail=one_line(row.detail, _LONGEST_DETAIL)) for row in rows)


def _host(facts: HostFacts) -> Check:
    shell = facts.shell or "unknown"
    who = f"{facts.machine}, Linux {facts.kernel}, user {facts.user}, login shell {shell}"
    if facts.platform is None:
        known = " and ".join(platform.value for platform in Platform)
        return Check("preflight.host", Status.WARN, f"{who}: stages are built for {known} only")
    return Check("preflight.host", Status.PASS, f"{who} ({facts.platform})")


def _engine(facts: HostFacts) -> Check:
    row, engine = "preflight.engine", facts.engine
    if not engine.up:
        detail = f"{engine.reason}; {_NEXT_STEP[engine.state]}; no case and no build is possible"
        return Check(row, Status.FAIL, detail, "an engine that answers", engine.state.value)
    simulated = "SIMULATED, " if engine.simulated else ""
    rootless = ", rootless" if engine.rootless else ""
    runtimes = ", ".join(sorted(engine.runtimes))
    detail = (
        f"{simulated}docker {engine.server_version} at {engine.endpoint or engine.context}{rootless}, "
        f"client {engine.client_version}, {engine.storage_driver}, runtimes {runtimes}"
    )
    return Check(row, Status.PASS, detail)


def _buildx(facts: HostFacts) -> Check:
    row, buildx = "preflight.buildx", facts.buildx
    if not buildx.ready:
        stays = "cases on an image that is already there stay possible" if facts.engine.up else ""
        parts = (buildx.reason, "no build is possible", stays, _remedy(facts))
        detail = "; ".join(part for part in parts if part)
        return Check(row, Status.FAIL, detail, "buildx and BuildKit that reads heredocs", buildx.state.value)
    version = ".".join(map(str, buildx.version)) if buildx.version else "of unknown version"
    where = ", ".join(_node(node, several=len(buildx.nodes) > 1) for node in buildx.nodes)
    detail = f"buildx {version}, builder {buildx.builder} ({buildx.driver}): {where}"
    ends = {node.endpoint for node in buildx.nodes}
    if buildx.driver == "docker" and not ends <= {facts.engine.context, facts.engine.endpoint}:
        other = f"its images land in another engine than the cases' ({facts.engine.context})"
        return Check(row, Status.WARN, f"{other}; {detail}")
    if gone := [node.name for node in buildx.nodes if not node.running]:
        return Check(row, Status.WARN, f"{', '.join(gone)} takes no builds now; {detail}")
    return Check(row, Status.PASS, detail)


def _node(node: BuilderNode, *, several: bool) -> str:
    """Return a node's name and place; where there are several, its part in the builder too."""
    if not several:
        return f"{node.name} at {node.endpoint}"
    takes = ", ".join(platform for platform in Platform if platform in node.platforms)
    part = (takes or "for no platform") if node.running else (node.status or "not running")
    return f"{node.name} at {node.endpoint} ({part})"


def _remedy(facts: HostFacts) -> str:
    """Return the one line that puts it right."""
    match facts.buildx.state:
        case BuildxState.ABSENT | BuildxState.TOO_OLD:
            client = Platform.from_machine(facts.machine)
            arch = client.arch if client else "ARCH"
            plugin = "~/.docker/cli-plugins/docker-buildx"
            release = f"https://github.com/docker/buildx/releases/download/v{_BUILDX_RELEASE}"
            return (
                f"install: mkdir -p ~/.docker/cli-plugins && curl -fsSLo {plugin} "
                f"{release}/buildx-v{_BUILDX_RELEASE}.linux-{arch} && chmod +x {plugin}"
            )
        case BuildxState.NO_HEREDOCS:
            return "upgrade the engine, or name a builder with a newer BuildKit (XB_BUILDER)"
        case BuildxState.NO_BUILDER:
            return "docker buildx ls lists the builders (XB_BUILDER)"
        case _:
            return ""


def _disk(facts: HostFacts) -> Check:
    row, disk = "preflight.disk", facts.disk
    if not facts.engine.up:
        return Check(row, Status.WARN, "free disk for images is unknown: the engine doesn't answer")
    if disk.free_kib is None or not facts.engine_is_here:
        why = f"{one_line(disk.path) or 'the data directory'} of the engine can't be measured from this host"
        return Check(row, Status.WARN, f"free disk for images is unknown: {why}")
    free = f"{disk.free_kib / _KIB_PER_GIB:.1f} GiB free at {one_line(disk.path)}"
    if disk.free_kib < BASE_IMAGE_GIB * _KIB_PER_GIB:
        text = f"{free}: a build may run out of disk, a stage's base image takes about {BASE_IMAGE_GIB} GiB"
        return Check(row, Status.WARN, text)
    return Check(row, Status.PASS, f"{free}; the base image of a stage takes about {BASE_IMAGE_GIB} GiB")


def _staging(facts: HostFacts, staging: StagingFacts) -> Check:
    row = "preflight.staging"
    who, path, near = staging.backend, one_line(staging.path), one_line(staging.nearest)
    lost = f"{who}: nothing can be staged, so {who}.case1 to {who}.case3 are unavailable"
    if not near:
        return Check(row, Status.WARN, f"{lost}: {path} could not be looked at")
    if not staging.is_directory:
        return Check(row, Status.WARN, f"{lost}: {near} is not a directory")
    if not staging.writable:
        return Check(
            row, Status.WARN, f"{lost}: user {facts.user} can't write to {near}; XB_STAGE names another one"
        )
    if staging.free_kib is not None and staging.free_kib < _STAGING_MIB * 1024:
        return Check(row, Status.WARN, f"{lost}: {near} has {staging.free_kib // 1024} MiB free")
    if facts.engine.up and not facts.engine_is_here:
        elsewhere = f"the engine runs on {facts.engine.node or 'another host'} and may not see {path}"
        return Check(row, Status.WARN, f"{who}: {who}.case2 and {who}.case3 may be impossible: {elsewhere}")
    how = "is there and writable" if staging.exists else f"can be made in {near}"
    return Check(row, Status.PASS, f"{who}: {path} {how}")


def _emulation(facts: HostFacts, wanted: Platform | None) -> Check:
    row = "preflight.emulation"
    foreign = [one for one in Platform if one is not facts.platform and wanted in (None, one)]
    if not foreign:
        return Check(row, Status.PASS, f"{wanted} is the host's own platform: no emulation is needed")
    can = [one.value for one in foreign if facts.runs(one)]
    cannot = [one.value for one in foreign if one.value not in can]
    how = f" ({', '.join(facts.emulation.interpreters)})" if facts.emulation.interpreters else ""
    if not cannot:
        return Check(row, Status.PASS, f"{' and '.join(can)} can be emulated{how}: slow")
    status = Status.WARN if wanted else Status.INFO
    return Check(
        row,
        status,
        f"{' and '.join(cannot)} can't be emulated: a RUN on it fails, and only stages that cross-compile "
        "(FROM --platform=$BUILDPLATFORM) can be built for it",
    )
