"""Files and folders of the simulated host: removed with care, never across a mount; programs written."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["mount_points", "remove_children", "remove_empty", "remove_tree", "write_program"]

_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def remove_tree(folder: Path) -> None:
    """Remove ``folder`` and all in it; it may be absent. Raises Refused if anything is mounted inside."""
    if folder.is_dir():
        _refuse_mounts(folder)
        shutil.rmtree(folder)


def remove_children(folder: Path, *, but: Path) -> None:
    """Remove all in ``folder`` except the file ``but``. Raises Refused if anything is mounted inside."""
    _refuse_mounts(folder)
    for child in folder.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        elif child != but:
            child.unlink()


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove each folder that is empty."""
    for folder in folders:
        with contextlib.suppress(OSError):  # not empty, or not there: both are fine
            folder.rmdir()


def write_program(path: Path, command: str) -> None:
    """Make ``path`` a program that runs a shell command; one that somebody runs right now isn't disturbed."""
    text = f"#!/bin/sh\n{command}\n"
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    fresh.write_text(text)
    fresh.chmod(0o755)
    fresh.replace(path)


def mount_points(mountinfo: str) -> tuple[str, ...]:
    """Return the mount points of a ``/proc/<pid>/mountinfo``, whose blanks are written as ``\\040``."""
    points = (line.split(" ")[4] for line in mountinfo.splitlines() if line)
    return tuple(_OCTAL.sub(lambda match: chr(int(match[1], 8)), point) for point in points)


def _refuse_mounts(folder: Path) -> None:
    for point in mount_points(Path("/proc/self/mountinfo").read_text(errors="surrogateescape")):
        if point.startswith(f"{folder}/"):
            raise Refused(f"{point} is a mount point: not removed", hint=f"umount {point}")
