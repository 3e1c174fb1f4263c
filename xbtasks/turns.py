"""Turns at what runs beside each other share on a machine: an image, a staging directory with the cards.

A name begins with the machine, which is what its engine says it is: two hosts of a file, or two names that a
user types, may be one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final, Protocol

from xbtasks.errors import Interrupted, disk_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

__all__ = ["Turn", "Turns", "turn_of_processes", "unshared"]

_IN_VAIN: Final = "interrupted while another stage was at work on the host"


class Turn(Protocol):
    """Lends what is called ``name`` on ``machine`` (empty: the engine doesn't say) to one run at a time."""

    def __call__(self, machine: str, *name: str) -> AbstractContextManager[object]:
        """Return the turn, which is had within.

        Raises:
            Interrupted: it was waited for in vain.
        """


def unshared(machine: str, *name: str) -> AbstractContextManager[None]:
    """Return a turn at what no other run uses."""
    del machine, name
    return nullcontext()


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
                raise Interrupted(_IN_VAIN)
        try:
            yield
        finally:
            lock.release()


@contextmanager
def turn_of_processes(folder: Path, *name: str) -> Iterator[None]:
    """Hold the lock called ``name`` against other processes of this client; it is a file in ``folder``.

    The file goes with its last holder.

    Raises:
        Interrupted: Ctrl-C or SIGTERM while it was waited for.
        UsageError, CannotJudge: the lock can't be made.
    """
    path = folder / hashlib.sha256("\0".join(name).encode()).hexdigest()[:32]
    try:
        handle = _lock(path)
    except KeyboardInterrupt:
        raise Interrupted(_IN_VAIN) from None
    except OSError as error:
        raise disk_error(f"no turn can be taken in {folder}", error) from error
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def _lock(path: Path) -> int:
    """Return a handle of the file at ``path``, which is made and locked; one that went meanwhile is none."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as closing, suppress(FileNotFoundError):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            closing.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if os.path.samestat(os.fstat(handle), path.stat()):
                closing.pop_all()
                return handle
