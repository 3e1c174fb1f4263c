"""Names to addresses, within a time: the system's resolver has none that a caller can set."""

from __future__ import annotations

import queue
import socket
import threading
from typing import Any

__all__ = ["look_up"]

_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]


def look_up(host: str, port: int, family: int, seconds: float) -> list[_Address]:
    """Return the addresses of ``host`` for a stream socket, as :func:`socket.getaddrinfo` does.

    Raises:
        TimeoutError: the resolver didn't answer within ``seconds``; it is left to itself.
        OSError: there is no such name.
        UnicodeError: it is no name that can be looked up.
    """
    answers: queue.SimpleQueue[list[_Address] | OSError | UnicodeError] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(list(socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)))
        except (OSError, UnicodeError) as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True, name=f"look up {host}").start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"not looked up within {seconds:g} s") from None
    if isinstance(answer, list):
        return answer
    raise answer
