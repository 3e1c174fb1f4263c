"""What docker and buildx answer, as facts. Their JSON is checked value by value; their prose decides nothing.

Contracts: ``docker version``, ``docker info`` and ``docker context inspect`` with ``--format``, measured with
20.10, 26.1 and 28.2; ``docker buildx version`` and ``inspect`` as printed by 0.10 and later.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from xbtasks.backends.base import Platform
from xbtasks.hostfacts import BuilderNode, BuildxFacts, BuildxState, EngineFacts, EngineState
from xbtasks.hostprobe import Answers, Trouble, one_line, unusable

if TYPE_CHECKING:
    from xbtasks.hostprobe import Answer

__all__ = ["OLDEST_BUILDKIT", "OLDEST_BUILDX", "OLDEST_ENGINE", "parse_builder", "read_buildx", "read_engine"]

OLDEST_BUILDX: Final = (0, 10, 0)
"""The first buildx that can leave provenance out, which old image stores can't load."""
OLDEST_BUILDKIT: Final = (0, 10, 0)
"""The first BuildKit whose own Dockerfile frontend (1.4) reads heredocs."""
OLDEST_ENGINE: Final = (23, 0, 0)
"""The first engine with such a BuildKit built in; 20.10's can't read heredocs."""

_FIRST_YEARLY_ENGINE = (17, 3, 0)
_STATES = {
    Trouble.ABSENT: EngineState.ABSENT,
    Trouble.HIDDEN: EngineState.UNUSABLE,
    Trouble.NOT_EXECUTABLE: EngineState.UNUSABLE,
    Trouble.TIMED_OUT: EngineState.TIMED_OUT,
}
_ENGINE_COMPONENT = "Engine"
_DENIED = ("denied", "hidden")


def read_engine(answers: Answers, name: str = "docker") -> EngineFacts:
    """Return what the engine's section says. Permission is told from the socket's mode, not from prose."""
    if trouble := unusable(answers, name):
        return EngineFacts(_STATES.get(trouble.trouble, EngineState.UNREADABLE), trouble.text, answers.tool)
    version, info = _object(answers.answer("version")), _object(answers.answer("info"))
    client = _sub(version, "Client") or _sub(info, "ClientInfo")
    context = answers.answer("context")
    endpoint = context.stdout.strip() if context and context.exit_status == 0 else ""
    labels = _strings(info.get("Labels"))
    store = info.get("DriverStatus")
    architecture = Platform.from_machine(_text(info, "Architecture"))
    state, reason = _state(answers, version, info, endpoint)
    return EngineFacts(
        state=state,
        reason=reason,
        tool=answers.tool,
        client_version=_text(client, "Version"),
        server_version=_text(info, "ServerVersion"),
        context=_text(client, "Context"),
        endpoint=one_line(endpoint),
        id=_text(info, "ID"),
        node=_text(info, "Name"),
        platform=architecture,
        root=_text(info, "DockerRootDir"),
        storage_driver=_text(info, "Driver"),
        containerd_store=isinstance(store, list) and ["driver-type", "io.containerd.snapshotter.v1"] in store,
        runtimes=frozenset(one_line(name) for name in _sub(info, "Runtimes")),
        default_runtime=_text(info, "DefaultRuntime"),
        labels=labels,
        cdi_directories=_strings(info.get("CDISpecDirs")),
        cdi_devices=_cdi_devices(info.get("DiscoveredDevices")),
        rootless="name=rootless" in _strings(info.get("SecurityOptions")),
    )


def _state(
    answers: Answers, version: dict[str, object], info: dict[str, object], endpoint: str
) -> tuple[EngineState, str]:
    at = f" at {one_line(endpoint)}" if endpoint else ""
    if foreign := _foreign(version, info):
        return EngineState.FOREIGN, foreign
    asked = answers.answer("info")
    errors = info.get("ServerErrors")
    said = one_line(" ".join(map(str, errors)) if isinstance(errors, list) and errors else answers.stderr)
    if asked is None:
        return EngineState.UNREADABLE, f"docker info was cut off: {said}"
    answered = asked.exit_status == 0 and not errors and _text(info, "ServerVersion")
    if not answered and answers.first("socket") in _DENIED:
        who = "a member of group docker, or root, may"
        return EngineState.DENIED, f"this user may not use the engine's socket{at} ({who}): {said}"
    if asked.exit_status != 0 or errors:
        return EngineState.DOWN, f"no engine answers{at}: {said or 'docker info ended with an error'}"
    if not info:
        return (
            EngineState.UNREADABLE,
            f"docker info printed no JSON: {one_line(asked.stdout, 120) or 'nothing'}",
        )
    if not answered:
        return EngineState.DOWN, f"no engine answers{at}: docker info ended with 0 and names no server"
    if _text(info, "OSType") not in ("", "linux"):
        return EngineState.FOREIGN, f"the engine{at} runs {_text(info, 'OSType')} containers, not linux ones"
    return EngineState.UP, ""


def _foreign(version: dict[str, object], info: dict[str, object]) -> str:
    """Return which other engine answers to docker's name, or an empty string."""
    client, server = _sub(version, "Client"), _sub(version, "Server")
    if "OsArch" in client or (_sub(info, "host") and _sub(info, "store")):
        return f"docker is a shim of podman {_text(client, 'Version')}".rstrip()
    components = server.get("Components")
    names = (
        [_text(item, "Name") for item in components if isinstance(item, dict)]
        if isinstance(components, list)
        else []
    )
    if names and _ENGINE_COMPONENT not in names:
        return f"the server behind docker is not docker's engine but {names[0]}"
    return ""


def read_buildx(answers: Answers, engine: EngineFacts) -> BuildxFacts:
    """Return what the buildx section says, judged with the engine that the docker driver builds in."""
    if trouble := unusable(answers, "docker"):
        state = BuildxState.TIMED_OUT if trouble.trouble is Trouble.TIMED_OUT else BuildxState.ENGINE_ABSENT
        text = (
            f"docker buildx did not answer within {answers.seconds} s" if answers.timed_out else trouble.text
        )
        return BuildxFacts(state, text)
    asked, inspected = answers.answer("version"), answers.answer("inspect")
    said = one_line(answers.stderr)
    if asked is None:
        return BuildxFacts(BuildxState.UNREADABLE, f"docker buildx was cut off: {said}")
    if asked.exit_status != 0:
        return BuildxFacts(BuildxState.ABSENT, f"docker has no buildx (for this user): {said}")
    found = re.search(r"^\S*/buildx (\S+)", asked.stdout, re.MULTILINE)
    if not found:
        text = f"docker buildx is not docker's: {one_line(asked.stdout, 120) or 'it printed no version'}"
        return BuildxFacts(BuildxState.ABSENT, text)
    version = _version(found[1])
    if version is not None and version < OLDEST_BUILDX:
        text = f"buildx {_dotted(version)} is older than {_dotted(OLDEST_BUILDX)}"
        return BuildxFacts(BuildxState.TOO_OLD, text, version)
    if inspected is None:
        return BuildxFacts(BuildxState.UNREADABLE, f"docker buildx inspect was cut off: {said}", version)
    name, driver, nodes, error = parse_builder(inspected.stdout)
    if inspected.exit_status != 0 or not name:
        text = f"buildx can't say which builder it would use: {said or one_line(inspected.stdout, 120)}"
        return BuildxFacts(BuildxState.NO_BUILDER, text, version)
    if not driver or error:
        text = f"builder {name} can't be used: {error or 'it names no driver'}"
        return BuildxFacts(BuildxState.NOT_RUNNING, text, version, name, driver, nodes)
    state, reason = _builder_state(name, driver, nodes, engine)
    return BuildxFacts(state, reason, version, name, driver, nodes)


def _builder_state(
    name: str, driver: str, nodes: tuple[BuilderNode, ...], engine: EngineFacts
) -> tuple[BuildxState, str]:
    running = [node for node in nodes if node.running]
    if not running:
        hint = (
            "the engine doesn't answer"
            if not engine.up
            else f"docker buildx inspect --bootstrap {name} starts it"
        )
        return BuildxState.NOT_RUNNING, f"builder {name} ({driver}) is not running: {hint}"
    server = _version(engine.server_version)
    ours = all(node.endpoint in (engine.context, engine.endpoint) for node in nodes)
    if driver == "docker" and ours and server is not None:
        if server < OLDEST_ENGINE:
            text = f"engine {engine.server_version} can't read heredocs, {OLDEST_ENGINE[0]} and later can"
            return BuildxState.NO_HEREDOCS, text
        return BuildxState.READY, ""
    for node in running:
        if driver == "remote" and node.buildkit is None and node.versioned:
            continue  # it answered BuildKit's Info call, which is newer (0.11) than heredocs
        if node.buildkit is None or node.buildkit < _oldest(node.buildkit):
            known = f"BuildKit {_dotted(node.buildkit)}" if node.buildkit else "BuildKit of unknown version"
            later = f"{_dotted(OLDEST_BUILDKIT)} and later read heredocs"
            text = f"node {node.name} of builder {name} has {known}; {later}"
            return BuildxState.NO_HEREDOCS, text
    return BuildxState.READY, ""


def _oldest(version: tuple[int, ...]) -> tuple[int, ...]:
    """Return what to measure ``version`` with: some buildx name an old engine's version as BuildKit's."""
    return OLDEST_ENGINE if version >= _FIRST_YEARLY_ENGINE else OLDEST_BUILDKIT


def parse_builder(text: str) -> tuple[str, str, tuple[BuilderNode, ...], str]:
    """Return name, driver, nodes and error of ``docker buildx inspect``; empty where it doesn't tell them.

    It ends with 0 and an error line, and without a driver, when the builder's engine doesn't answer.
    """
    head: dict[str, str] = {}
    nodes: list[dict[str, str]] = []
    in_nodes = False
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if not colon:  # a key of a node's labels or rules is indented, and so none of those looked for
            continue
        if key == "Nodes":
            in_nodes = True
        elif not in_nodes:
            head.setdefault(key, value.strip())
        else:
            if key == "Name":
                nodes.append({})
            if nodes:
                nodes[-1].setdefault(key, value.strip())
    name, driver, error = (one_line(head.get(key, "")) for key in ("Name", "Driver", "Error"))
    return name, driver, tuple(_node(node) for node in nodes), error


def _node(keys: dict[str, str]) -> BuilderNode:
    told = keys.get("BuildKit version") or keys.get("Buildkit") or ""
    names = (part.strip().rstrip("*") for part in keys.get("Platforms", "").split(","))
    return BuilderNode(
        name=one_line(keys.get("Name", "")),
        endpoint=one_line(keys.get("Endpoint", "")),
        status=one_line(keys.get("Status", "")),
        buildkit=_version(told),
        platforms=frozenset(one_line(name) for name in names if name),
        versioned=bool(told),
    )


def _version(text: str) -> tuple[int, ...] | None:
    found = re.match(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?", text, re.ASCII)
    version = tuple(int(part or 0) for part in found.groups()) if found else ()
    return version if any(version) else None  # 0.0.0 is a build that wasn't told its version


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def _object(answer: Answer | None) -> dict[str, object]:
    """Return the JSON object that an answer holds, or an empty one."""
    try:
        value: object = json.loads(answer.stdout) if answer else None
    except (ValueError, RecursionError):
        return {}
    return {str(key): item for key, item in value.items()} if isinstance(value, dict) else {}


def _sub(value: dict[str, object], key: str) -> dict[str, object]:
    item = value.get(key)
    return {str(name): part for name, part in item.items()} if isinstance(item, dict) else {}


def _text(value: dict[str, object], key: str) -> str:
    item = value.get(key)
    return one_line(item) if isinstance(item, str) else ""


def _strings(value: object) -> frozenset[str]:
    return (
        frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list) else frozenset()
    )


def _cdi_devices(value: object) -> frozenset[str]:
    items = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return frozenset(str(item.get("ID")) for item in items if item.get("Source") == "cdi")
