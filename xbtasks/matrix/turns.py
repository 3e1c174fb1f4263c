"""Turns: on one host the units of one staging directory use it, and the cards, one after another."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xbtasks.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Turns"]


class Turns:
    """A lock for each name, waited for until it is had or everything stops."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop
        self._lock = threading.Lock()
        self._locks: dict[tuple[str, ...], threading.Lock] = {}

    @contextmanager
    def turn(self, *name: str) -> Iterator[None]:
        """Hold the lock called ``name``.

        Raises:
            Interrupted: everything stops.
        """
        with self._lock:
            lock = self._locks.setdefault(name, threading.Lock())
        while not lock.acquire(timeout=0.2):
            if self._stop.is_set():
                raise Interrupted("interrupted while another stage was at work on the host")
        try:
            yield
        finally:
            lock.release()
