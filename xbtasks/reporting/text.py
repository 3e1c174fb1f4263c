"""Text of others made harmless for a terminal or a log."""

from __future__ import annotations

__all__ = ["one_line"]


def one_line(text: str) -> str:
    """Return ``text`` on one line, its control characters (escape sequences too) made harmless."""
    return "".join(char if char.isprintable() else " " for char in text).strip()
