"""POSIX ``sh`` programs that run on a host. They are constants; values reach them as arguments only."""

from __future__ import annotations

from functools import cache
from pathlib import Path

__all__ = ["program", "program_text", "programs"]


def program(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the argv that runs the program ``name`` of this folder on a host with ``arguments``."""
    return ("sh", "-c", program_text(name), name, *arguments)


@cache
def program_text(name: str) -> str:
    """Return the program ``name`` of this folder."""
    return Path(__file__).with_name(f"{name}.sh").read_text()


def programs() -> tuple[str, ...]:
    """Return the texts of all programs of this folder."""
    return tuple(program_text(path.stem) for path in sorted(Path(__file__).parent.glob("*.sh")))
