"""The local host: the same loop, script and frame as everywhere, through a child ``sh``."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import socket
import subprocess
from typing import TYPE_CHECKING, Final

from xbtasks.errors import HostUnreachable, LostReply, reason_of
from xbtasks.host.frame import LOOP
from xbtasks.host.framed import Transport
from xbtasks.host.wire import Wire

if TYPE_CHECKING:
    from xbtasks.errors import XbError
    from xbtasks.host.wire import Answer

__all__ = ["LocalTransport"]

_CHUNK: Final = 65536


class LocalTransport(Transport):
    """Runs scripts on this machine."""

    def __init__(self, label: str = "local") -> None:
        super().__init__(label)

    def open(self, *, hurried: bool) -> Wire:
        """Start a shell, which takes no time.

        Raises:
            HostUnreachable: there is no ``sh``.
        """
        del hurried
        return _ShellWire()


class _ShellWire(Wire):
    """A child shell in a session of its own, so that a terminal's Ctrl-C reaches it only through us."""

    def __init__(self) -> None:
        # A socket, unlike a pipe, can be shut while another thread waits to write to it.
        self._input, theirs = socket.socketpair()
        try:
            with theirs:
                # The words that a remote login shell would get, split as it would split them.
                self._child = subprocess.Popen(
                    shlex.split(LOOP),
                    stdin=theirs.fileno(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                )
        except OSError as error:
            self._input.close()
            raise HostUnreachable(f"no sh can be started here: {reason_of(error)}") from error
        assert self._child.stdout is not None  # noqa: S101 - both are pipes
        assert self._child.stderr is not None  # noqa: S101
        self._outputs = (self._child.stdout, self._child.stderr)
        self._selector = selectors.DefaultSelector()
        for stream in self._outputs:
            self._selector.register(stream, selectors.EVENT_READ)

    def send(self, data: bytes) -> None:
        """Send ``data`` to the shell's stdin."""
        self._input.sendall(data)

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        """Return what came on stdout and stderr; None when the shell has ended, even if others hold them."""
        ready = self._selector.select(seconds)
        if not ready and self._child.poll() is not None:
            return None
        arrived = dict.fromkeys(self._outputs, b"")
        for key, _ in ready:
            chunk = os.read(key.fd, _CHUNK)
            if not chunk:
                self._selector.unregister(key.fileobj)
            for stream in self._outputs:
                if key.fileobj is stream:
                    arrived[stream] = chunk
        stdout, stderr = arrived.values()
        return stdout, stderr

    def why_ended(self, answer: Answer, *, proven: bool) -> XbError:
        """Say that the shell was killed: it doesn't end by itself."""
        del answer, proven
        return LostReply("the shell that ran the step ended")

    def close(self) -> None:
        """End the idle shell."""
        self._input.shutdown(socket.SHUT_WR)
        self._wait(2.0)

    def abandon(self) -> None:
        """End the step: asked first, so that it can end its children and remove its files, then killed."""
        self._input.shutdown(socket.SHUT_RDWR)
        self._signal(signal.SIGTERM)
        self._wait(8.0)

    def _wait(self, seconds: float) -> None:
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            self._child.wait()
        self._input.close()
        self._selector.close()
        for stream in self._outputs:
            stream.close()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self._child.pid, number)
        except ProcessLookupError:
            return
