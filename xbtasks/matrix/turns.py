"""Turns: on one host the units of one staging directory use it, and the cards, one after another."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from xbtasks.errors import Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = ["Turns", "turn_of_processes"]


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


@contextmanager
def turn_of_processes(folder: Path, names: Iterable[tuple[str, ...]]) -> Iterator[None]:
    """Hold the locks called ``names`` against other processes of this machine; they are files in ``folder``.

    Raises:
        OSError: a lock can't be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as held:
        for name in sorted(set(names)):  # in one order everywhere, so that nobody waits for one who waits
            digest = hashlib.sha256("\0".join(name).encode()).hexdigest()
            handle = os.open(folder / digest[:32], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
