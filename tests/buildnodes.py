"""Nodes of a BuildKit builder that need no registry: private engines whose own BuildKit listens.

An engine lends its BuildKit to any connection that is upgraded at ``/grpc``, which is how buildx's docker
driver reaches it. Behind a plain socket the same BuildKit is a node of the ``remote`` driver, as a
``buildkitd`` elsewhere would be; unlike the docker driver's, such nodes can be several in one builder. With
containerd's image store the engine exports an image for another engine to load.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest import mock

from tests.workplace import PrivateEngine
from xbtasks.sim import base_image, launch, packages
from xbtasks.sim.engine_api import EngineApi
from xbtasks.sim.machine import Machine
from xbtasks.sim.paths import SimPaths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Node", "build_node"]

_UPGRADE = b"POST /grpc HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"


@dataclass(frozen=True)
class Node:
    """A node: where its BuildKit listens, and the engine that it is part of."""

    endpoint: str
    engine: PrivateEngine

    def built(self) -> str:
        """Return what lies in its build cache, in words."""
        return self.engine.docker("buildx", "du", "--builder", "default", "--verbose")


@contextmanager
def build_node(folder: Path, engine: PrivateEngine) -> Iterator[Node]:
    """Run a node, all of it below ``folder``; ``engine`` is one that runs, whose downloads are used."""
    folder.mkdir()
    machine = Machine.examine()
    paths = SimPaths.from_environment({**os.environ, "XDG_STATE_HOME": str(folder)})
    programs = packages.EnginePrograms(packages.engine_folder(paths.cache, machine))
    settings = {
        name: value for name, value in launch._settings(paths).items() if name not in ("runtimes", "labels")
    } | {"features": {"containerd-snapshotter": True}}
    paths.state.mkdir(parents=True)
    try:
        with mock.patch.object(launch, "_settings", return_value=settings):
            launch.start(paths, programs, lambda _: None)
        archive = base_image.archive_path(paths.cache, machine)
        base_image.ensure_image(EngineApi(paths.socket), archive, machine, lambda _: None)
        variables = {**engine.environment, "DOCKER_HOST": f"unix://{paths.socket}"}
        with _listening(paths.runtime / "buildkit.sock", paths.socket) as endpoint:
            yield Node(endpoint, PrivateEngine(variables))
    finally:
        launch.stop(paths)


@contextmanager
def _listening(path: Path, engine: Path) -> Iterator[str]:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(16)

    def serve() -> None:
        with contextlib.suppress(OSError):  # it is closed at the end
            while True:
                client, _ = listener.accept()
                threading.Thread(target=_lend, args=(client, engine), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"unix://{path}"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def _lend(client: socket.socket, engine: Path) -> None:
    """Join ``client`` to the engine's BuildKit until one of them ends."""
    with client, socket.socket(socket.AF_UNIX) as server:
        server.connect(str(engine))
        server.sendall(_UPGRADE)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = server.recv(1)
            if not byte:
                return
            head += byte
        assert head.startswith(b"HTTP/1.1 101 "), head
        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server)
        back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
