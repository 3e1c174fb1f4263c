"""The container engine's HTTP API over its unix socket: the calls that the simulated host needs.

Contract: Docker Engine API, https://docs.docker.com/reference/api/engine/. Used instead of the client program
because it answers in milliseconds and needs nothing installed.
"""

from __future__ import annotations

import http.client
import json
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from xbtasks.errors import CannotJudge, EngineDown, reason_of

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["EngineApi"]


class _UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to a unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = str(path)

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass(frozen=True, slots=True)
class EngineApi:
    """The engine that listens on ``socket``. A call raises EngineDown if it doesn't answer."""

    socket: Path

    def version(self) -> str:
        """Return the engine's version."""
        document = json.loads(self._call("GET", "/version", timeout=5))
        return str(document["Version"])

    def image_labels(self, reference: str) -> dict[str, str] | None:
        """Return the labels of an image, or None if the engine doesn't have it."""
        try:
            answer = self._call("GET", f"/images/{quote(reference)}/json", timeout=20)
        except _NotFoundError:
            return None
        return dict(json.loads(answer)["Config"].get("Labels") or {})

    def import_image(self, archive: Path, reference: str, changes: tuple[str, ...]) -> None:
        """Make an image of a tar archive; ``changes`` are Dockerfile instructions such as ``LABEL a=b``."""
        repository, _, tag = reference.rpartition(":")
        pairs = [("fromSrc", "-"), ("repo", repository), ("tag", tag)]
        query = urlencode([*pairs, *(("changes", change) for change in changes)])
        with archive.open("rb") as body:
            headers = {"Content-Type": "application/x-tar", "Content-Length": str(archive.stat().st_size)}
            answer = self._call("POST", f"/images/create?{query}", timeout=300, body=body, headers=headers)
        for line in answer.splitlines():  # one JSON document a line; a late error comes with status 200
            problem = json.loads(line).get("error")
            if problem:
                raise CannotJudge(f"the engine could not import {reference}: {problem}")

    def derive_image(self, base: str, content: bytes, reference: str, changes: tuple[str, ...]) -> None:
        """Make an image of ``base`` with the files of the tar archive ``content`` over it."""
        repository, _, tag = reference.rpartition(":")
        as_json, as_tar = {"Content-Type": "application/json"}, {"Content-Type": "application/x-tar"}
        request = json.dumps({"Image": base})
        answer = self._call("POST", "/containers/create", timeout=60, body=request, headers=as_json)
        container = json.loads(answer)["Id"]
        try:
            files = f"/containers/{container}/archive?path=/"
            self._call("PUT", files, timeout=60, body=content, headers=as_tar)
            pairs = [("container", container), ("repo", repository), ("tag", tag)]
            query = urlencode([*pairs, *(("changes", change) for change in changes)])
            self._call("POST", f"/commit?{query}", timeout=60, body="{}", headers=as_json)
        finally:
            self._call("DELETE", f"/containers/{container}?force=1", timeout=60)

    def _call(
        self,
        method: str,
        path: str,
        *,
        timeout: float,
        body: object = None,
        headers: dict[str, str] | None = None,
    ) -> bytes:
        connection = _UnixConnection(self.socket, timeout)
        try:
            connection.request(method, path, body=body, headers=headers or {})  # type: ignore[arg-type]
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise EngineDown(f"the engine at {self.socket} does not answer: {reason_of(error)}") from error
        finally:
            connection.close()
        if response.status == http.client.NOT_FOUND:
            raise _NotFoundError(path)
        if response.status >= http.client.BAD_REQUEST:
            text = answer.decode("utf-8", "replace").strip()
            raise CannotJudge(f"the engine refused {method} {path.partition('?')[0]}: {text}")
        return answer


class _NotFoundError(CannotJudge):
    """The engine doesn't have what was asked for."""
