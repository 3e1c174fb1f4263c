"""The local host: the same script and frame as everywhere, through a child ``sh``."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from xbtasks.errors import DeadlineExceeded, HostUnreachable
from xbtasks.host.frame import bootstrap
from xbtasks.host.framed import Exchange, Transport

if TYPE_CHECKING:
    from xbtasks.host.step import LiveSink

__all__ = ["LocalTransport"]

_CHUNK = 65536


class LocalTransport(Transport):
    """Runs scripts in a session of their own, so that a terminal's Ctrl-C reaches them only through us."""

    @property
    def label(self) -> str:
        """``local``."""
        return "local"

    def exchange(self, script: bytes, payload: bytes, deadline: float, live: LiveSink | None) -> Exchange:
        """Run ``script`` with ``payload`` on its stdin.

        Raises:
            HostUnreachable: there is no ``sh``.
            DeadlineExceeded: it has not ended after ``deadline`` seconds; it was stopped.
        """
        try:
            # The same words as a remote login shell would get, so that both ways are one way.
            child = subprocess.Popen(
                ["sh", "-c", bootstrap(len(script))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise HostUnreachable(f"no sh can be started here: {error}") from error
        try:
            answer = _pump(child, script + payload, time.monotonic() + deadline, live)
            child.wait()
        except BaseException:
            _stop(child)
            raise
        return answer

    def close(self) -> None:
        """Nothing is held."""


def _pump(child: subprocess.Popen[bytes], data: bytes, until: float, live: LiveSink | None) -> Exchange:
    """Feed ``data`` and read both streams at once, so that neither side can wait for the other."""
    assert child.stdin is not None  # noqa: S101 - all three are pipes, see Popen above
    assert child.stdout is not None  # noqa: S101
    assert child.stderr is not None  # noqa: S101
    stdout: list[bytes] = []
    stderr: list[bytes] = []
    rest = memoryview(data)
    os.set_blocking(child.stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdin, selectors.EVENT_WRITE, None)
        selector.register(child.stdout, selectors.EVENT_READ, stdout)
        selector.register(child.stderr, selectors.EVENT_READ, stderr)
        while selector.get_map():
            left = until - time.monotonic()
            if left <= 0:
                raise DeadlineExceeded("the step was stopped: no answer within its deadline")
            for key, _ in selector.select(min(left, 1.0)):
                if key.fileobj is child.stdin:
                    rest = _feed(child.stdin.fileno(), rest)
                    if not rest:
                        selector.unregister(child.stdin)
                        child.stdin.close()
                    continue
                chunk = os.read(key.fd, _CHUNK)
                if not chunk:
                    selector.unregister(key.fileobj)
                    continue
                key.data.append(chunk)
                if key.data is stderr and live is not None:
                    live(chunk)
    return Exchange(b"".join(stdout), b"".join(stderr))


def _feed(fd: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(fd, rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]


def _stop(child: subprocess.Popen[bytes]) -> None:
    """End the script: asked first, so that it can end its own child and remove its files, then killed."""
    for number, patience in ((signal.SIGTERM, 8.0), (signal.SIGKILL, 2.0)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            break
        try:
            child.wait(patience)
            break
        except subprocess.TimeoutExpired:
            continue
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()
