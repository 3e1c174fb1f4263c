"""A lock file that may be deleted by its holder, for folders that are removed as a whole.

``flock`` locks a file, not a name: whoever waited may get the lock on a file that the last holder has
deleted. So the name is looked at again once the lock is held, and opened anew if it means another file.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["locked"]

_NAME = "lock"


@contextmanager
def locked(folder: Path, waiting: Callable[[], None]) -> Iterator[Path]:
    """Hold the lock of ``folder`` (made if missing); call ``waiting`` once if another process holds it.

    Yields the lock file's path: the holder may delete it together with the folder.
    """
    path = folder / _NAME
    told = False
    while True:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:
            continue  # the folder was removed between the two calls
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not told:
                    waiting()
                    told = True
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if _is_named(descriptor, path):
                yield path
                return
        finally:
            os.close(descriptor)


def _is_named(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
