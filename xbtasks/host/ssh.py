"""A host over ssh: Fabric's connection, and a channel of it for the work."""

from __future__ import annotations

import select
import threading
import time
from typing import TYPE_CHECKING

from xbtasks.errors import DeadlineExceeded
from xbtasks.host.frame import bootstrap
from xbtasks.host.framed import Exchange, Transport

if TYPE_CHECKING:
    from xbtasks.host.dial import Dialer, Line
    from xbtasks.host.step import LiveSink

__all__ = ["SshTransport"]


class SshTransport(Transport):
    """Runs scripts on a host over one ssh connection."""

    def __init__(self, label: str, dialer: Dialer) -> None:
        self._label = label
        self._dialer = dialer
        self._line: Line | None = None

    @property
    def label(self) -> str:
        """The ssh destination."""
        return self._label

    def exchange(self, script: bytes, payload: bytes, deadline: float, live: LiveSink | None) -> Exchange:
        """Run ``script`` with ``payload`` on its stdin."""
        if self._line is None:
            self._line = self._dialer.dial()
        until = time.monotonic() + deadline
        channel = self._line.connection.create_session()
        channel.exec_command(bootstrap(len(script)))
        out: list[bytes] = []
        err: list[bytes] = []

        def feed() -> None:
            channel.sendall(script + payload)
            channel.shutdown_write()

        thread = threading.Thread(target=feed, daemon=True)
        thread.start()
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise DeadlineExceeded("the step was stopped: no answer within its deadline")
            select.select([channel.fileno()], [], [], min(left, 1.0))
            got = False
            if channel.recv_ready():
                out.append(channel.recv(65536))
                got = True
            if channel.recv_stderr_ready():
                chunk = channel.recv_stderr(65536)
                err.append(chunk)
                if live:
                    live(chunk)
                got = True
            if not got and (channel.eof_received or channel.closed):
                break
        channel.close()
        return Exchange(b"".join(out), b"".join(err))

    def close(self) -> None:
        """Close the connection."""
        if self._line is not None:
            self._line.close()
            self._line = None
