"""A host over ssh: one of Fabric's connections, and one channel of it that carries every step."""

from __future__ import annotations

import contextlib
import select
import threading
import time
from typing import TYPE_CHECKING, Final

from xbtasks.errors import LostReply, reason_of
from xbtasks.host.failures import Failure, unreachable
from xbtasks.host.frame import LOOP
from xbtasks.host.framed import Transport
from xbtasks.host.wire import Wire

if TYPE_CHECKING:
    from paramiko import Channel
    from paramiko import Transport as SshConnection

    from xbtasks.errors import XbError
    from xbtasks.host.dial import Dialer, Route
    from xbtasks.host.wire import Answer

__all__ = ["SshTransport"]

_CHUNK: Final = 65536
_ALIVE_INTERVAL: Final = 15  # seconds between two questions whether the server is alive
_ALIVE_COUNT: Final = 4  # unanswered ones after which the link counts as lost


class SshTransport(Transport):
    """Runs scripts on a host over ssh."""

    def __init__(self, label: str, dialer: Dialer) -> None:
        super().__init__(label)
        self._dialer = dialer

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Each hop's name, address and user."""
        return self._dialer.names

    def open(self, *, hurried: bool) -> Wire:
        """Connect and start the far shell.

        Raises:
            HostUnreachable: one of them failed, by kind.
        """
        route = self._dialer.dial(hurried=hurried)
        # paramiko waits for ever for the answer to a request
        alarm = threading.Timer(route.connection.connect_timeout, route.cut)
        alarm.daemon = True
        alarm.start()
        try:
            return _ChannelWire(self.label, route, _start_shell(self.label, route))
        except BaseException:
            route.cut()
            raise
        finally:
            alarm.cancel()


def _start_shell(label: str, route: Route) -> Channel:
    from paramiko import ChannelException, SSHException

    transport: SshConnection = route.connection.transport
    try:
        channel: Channel = route.connection.create_session()
    except ChannelException as error:
        raise unreachable(Failure.TOO_MANY_SESSIONS, label, f"no channel: {error.text}") from error
    except (SSHException, EOFError, OSError) as error:
        raise unreachable(Failure.LINK_LOST, label, f"no channel: {reason_of(error)}") from error
    try:
        channel.exec_command(LOOP)
    except (SSHException, EOFError, OSError) as error:
        if not transport.is_active():
            raise unreachable(Failure.LINK_LOST, label, "no answer to the first request") from error
        raise unreachable(Failure.SHELL, label, f"it runs no command: {reason_of(error)}") from error
    return channel


class _ChannelWire(Wire):
    """A channel whose far end is the account's login shell, running the loop."""

    def __init__(self, label: str, route: Route, channel: Channel) -> None:
        self._label = label
        self._route = route
        self._channel = channel
        interval = route.config.alive_interval or _ALIVE_INTERVAL
        patience = interval * (route.config.alive_count if route.config.alive_interval else _ALIVE_COUNT)
        self._keep_alive = _KeepAlive(channel.get_transport(), interval, patience)
        self._keep_alive.start()

    def send(self, data: bytes) -> None:
        """Send ``data``; the far end's window says how fast."""
        from paramiko import SSHException

        while data:
            try:
                sent = self._channel.send(data[:_CHUNK])
            except (SSHException, EOFError) as error:
                raise BrokenPipeError("the connection ended") from error
            if not sent:
                raise BrokenPipeError("the channel is closed")
            data = data[sent:]
            self._keep_alive.heard()

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        """Return what came on stdout and stderr; None when the channel has ended.

        Raises:
            LostReply: the server hasn't answered for too long.
        """
        ready, _, _ = select.select([self._channel.fileno()], [], [], seconds)
        stdout = self._channel.recv(_CHUNK) if self._channel.recv_ready() else b""
        stderr = self._channel.recv_stderr(_CHUNK) if self._channel.recv_stderr_ready() else b""
        if stdout or stderr:
            self._keep_alive.heard()
        elif self._channel.eof_received or self._channel.closed:
            return None
        elif not ready and self._channel.exit_status_ready():
            return None  # others hold its streams
        if self._keep_alive.silent:
            raise LostReply(
                f"{self._label}: {Failure.LINK_LOST}: no sign of life for {self._keep_alive.patience} s"
            )
        return stdout, stderr

    def why_ended(self, answer: Answer, *, proven: bool) -> XbError:
        """The link is gone, or the account's shell can't run the loop, or somebody killed it."""
        if not self._keep_alive.connected:
            return LostReply(f"{self._label}: {Failure.LINK_LOST}: the connection ended amid a step")
        if proven or answer.begun:
            return LostReply(f"{self._label}: the shell that ran the step ended")
        said = (answer.stderr or answer.stdout).decode(errors="replace").strip().splitlines()
        detail = "it ended"
        if self._channel.status_event.wait(1):
            detail += f" with status {self._channel.recv_exit_status()}"
        return unreachable(Failure.SHELL, self._label, f"{detail}: {said[-1].strip()}" if said else detail)

    def close(self) -> None:
        """End the far shell, which is idle, and the connection."""
        from paramiko import SSHException

        self._keep_alive.stop()
        with contextlib.suppress(SSHException, EOFError, OSError):
            self._channel.close()
        self._route.close()

    def abandon(self) -> None:
        """Cut the connection. The far shell notices, and ends the step."""
        self._keep_alive.stop()
        self._route.cut()


class _KeepAlive(threading.Thread):
    """Asks the server now and then whether it is alive, as ssh's ServerAliveInterval does."""

    def __init__(self, connection: SshConnection, interval: int, patience: int) -> None:
        super().__init__(name="xbtasks-keepalive", daemon=True)
        self._connection = connection
        self._interval = interval
        self._ended = threading.Event()
        self._last = time.monotonic()
        self.patience = patience

    @property
    def connected(self) -> bool:
        """Whether the connection is still there, as far as is known."""
        return self._connection.is_active()

    @property
    def silent(self) -> bool:
        """Whether there was no sign of life for ``patience`` seconds."""
        return time.monotonic() - self._last > self.patience

    def heard(self) -> None:
        """Take a sign of life that came by itself."""
        self._last = time.monotonic()

    def run(self) -> None:
        from paramiko import SSHException

        while not self._ended.wait(self._interval) and self.connected:
            try:
                self._connection.global_request("keepalive@openssh.com", wait=True)
            except (SSHException, EOFError, OSError):
                return  # the channel's end says so too
            if self.connected:
                self.heard()

    def stop(self) -> None:
        """Ask no more."""
        self._ended.set()
