"""A TCP proxy that delays, cuts, flips or drops what goes through it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Forwards connections on loopback to ``target``.

    ``delay`` (seconds) holds each way. The ``drop_first`` connections are closed at once. When more than
    ``cut_up`` bytes came from clients, or ``cut_down`` from the target, all connections are cut, once; the
    byte at ``flip_at`` of the clients' is flipped. None means never.
    """

    target: int
    delay: float = 0.0
    drop_first: int = 0
    cut_up: int | None = None
    cut_down: int | None = None
    flip_at: int | None = None
    connections: int = 0
    up: int = 0
    down: int = 0
    _open: list[socket.socket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening and cut all connections."""
        self._shut(self._listener)
        self.cut()

    def cut(self) -> None:
        """Cut all connections."""
        with self._lock:
            sockets, self._open = self._open, []
        for sock in sockets:
            self._shut(sock)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self.connections <= self.drop_first:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open += [client, server]
            threading.Thread(target=self._pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, False), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, upward: bool) -> None:
        queue: list[tuple[float, bytes]] = []
        ready = threading.Condition()

        def deliver() -> None:
            while True:
                with ready:
                    while not queue:
                        ready.wait()
                    due, data = queue.pop(0)
                time.sleep(max(0.0, due - time.monotonic()))
                try:
                    if not data:
                        sink.shutdown(socket.SHUT_WR)
                        return
                    sink.sendall(data)
                except OSError:
                    return

        threading.Thread(target=deliver, daemon=True).start()
        while True:
            try:
                data = source.recv(65536)
            except OSError:
                data = b""
            data, cut = self._changed(data, upward)
            with ready:
                queue.append((time.monotonic() + self.delay, data))
                ready.notify()
            if cut:
                self.cut()
            if not data or cut:
                return

    def _changed(self, data: bytes, upward: bool) -> tuple[bytes, bool]:
        with self._lock:
            before = self.up if upward else self.down
            after = before + len(data)
            if upward:
                self.up = after
            else:
                self.down = after
            limit = self.cut_up if upward else self.cut_down
            cut = limit is not None and after > limit
            if cut:
                self.cut_up = self.cut_down = None
        if upward and self.flip_at is not None and before <= self.flip_at < after:
            spot = self.flip_at - before
            data = data[:spot] + bytes([data[spot] ^ 1]) + data[spot + 1 :]
        if limit is not None and cut:
            return data[: max(limit - before, 0)], True
        return data, False

    @staticmethod
    def _shut(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)
        sock.close()
