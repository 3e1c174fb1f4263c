"""What the kernel tells of processes, while they come and go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["words_of_processes"]


def words_of_processes(file: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield each process and what its ``file`` in /proc holds: ``cmdline`` or ``environ``."""
    for path in Path("/proc").iterdir():  # a pattern for files in them fails where a process ends
        if not path.name.isdecimal():
            continue
        try:
            words = (path / file).read_bytes().split(b"\0")
        except OSError:
            continue
        yield int(path.name), words
