"""The connections of a matrix to one host: few, used again, and stopped from outside.

A signal reaches only the main thread, whereas a unit waits for its host in a thread of its own. There it
looks every second whether it is to stop, and then ends as it does after Ctrl-C: its step is given up, and
what the step may have left is removed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from xbtasks.errors import HostUnreachable
from xbtasks.host.framed import Transport
from xbtasks.host.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from xbtasks.errors import XbError
    from xbtasks.host.wire import Answer, Request

__all__ = ["Connections", "UnitTransport"]


class Connections:
    """All ways to one host. ``gone`` says why it can't be reached any more, or nothing."""

    def __init__(self, make: Callable[[], Transport], stop: threading.Event) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._idle: list[UnitTransport] = []
        self._open = 0
        self.stop = stop
        self.gone = ""

    def take(self) -> UnitTransport:
        """Return a transport that nobody uses; closing it gives it back."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return UnitTransport(self._make(), self)

    def give_back(self, transport: UnitTransport) -> None:
        """Keep a transport for whoever comes next."""
        with self._lock:
            self._idle.append(transport)

    def close(self) -> None:
        """End the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for transport in idle:
            transport.end()

    def opened(self) -> None:
        """Count a wire that is open now."""
        with self._lock:
            self._open += 1
            self.gone = ""

    def ended(self) -> None:
        """Count a wire that has ended."""
        with self._lock:
            self._open -= 1

    def failed(self, error: HostUnreachable) -> None:
        """Note that no connection could be made: the host is gone, unless another one is open."""
        with self._lock:
            if not self._open:
                self.gone = str(error)


class UnitTransport(Transport):
    """A transport to a host for one unit after the other; ``connecting`` while nothing of it runs there."""

    def __init__(self, inner: Transport, connections: Connections) -> None:
        super().__init__(inner.label)
        self._inner = inner
        self._connections = connections
        self._shielded = False
        self.connecting = False

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The hosts and users on the way, as the inner transport knows them."""
        return self._inner.names

    def exchange(self, request: Request, answer: Answer, *, hurried: bool = False) -> None:
        """Carry a request; a hurried one, which removes what another left, isn't stopped."""
        self._shielded = hurried
        super().exchange(request, answer, hurried=hurried)

    def open(self, *, hurried: bool) -> Wire:
        """Open a wire that stops when the matrix does.

        Raises:
            KeyboardInterrupt: it stops already.
            HostUnreachable: as the inner transport's.
        """
        self.check()
        self.connecting = not hurried
        try:
            wire = self._inner.open(hurried=hurried)
        except HostUnreachable as error:
            self._connections.failed(error)
            raise
        finally:
            self.connecting = False
        self._connections.opened()
        return _UnitWire(wire, self)

    def check(self) -> None:
        """Return unless the matrix stops.

        Raises:
            KeyboardInterrupt: it does.
        """
        if self._connections.stop.is_set() and not self._shielded:
            raise KeyboardInterrupt

    def wire_ended(self) -> None:
        """Take note that the wire is no more."""
        self._connections.ended()

    def close(self) -> None:
        """Give the connection back, for the next unit."""
        self._connections.give_back(self)

    def end(self) -> None:
        """End the connection."""
        super().close()


class _UnitWire(Wire):
    """A wire that looks, each time it waits, whether it is to stop."""

    def __init__(self, wire: Wire, owner: UnitTransport) -> None:
        self._wire = wire
        self._owner = owner

    def send(self, data: bytes) -> None:
        """Send ``data``."""
        self._wire.send(data)

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        """Return what came.

        Raises:
            KeyboardInterrupt: the matrix stops.
        """
        self._owner.check()
        return self._wire.receive(seconds)

    def why_ended(self, answer: Answer, *, proven: bool) -> XbError:
        """Return what the end of the wire means."""
        return self._wire.why_ended(answer, proven=proven)

    def close(self) -> None:
        """End the far shell, which is idle."""
        self._owner.wire_ended()
        self._wire.close()

    def abandon(self) -> None:
        """End the far shell and its step."""
        self._owner.wire_ended()
        self._wire.abandon()
