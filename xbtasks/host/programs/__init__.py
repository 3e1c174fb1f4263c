"""POSIX ``sh`` programs that run on a host. They are constants; values reach them as arguments only."""

from __future__ import annotations

from pathlib import Path

__all__ = ["program"]


def program(name: str, *arguments: str) -> tuple[str, ...]:
    """Return the argv that runs the program ``name`` of this folder on a host with ``arguments``."""
    text = Path(__file__).with_name(f"{name}.sh").read_text()
    return ("sh", "-c", text, name, *arguments)
