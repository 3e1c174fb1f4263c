"""Whether this package lies in its source checkout or was installed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["SOURCE", "find_source"]


def find_source(package: Path) -> Path | None:
    """Return the source checkout around the folder ``package``; None where it was installed.

    What lies beside an installed package belongs to others: a folder ``tests`` or ``config`` is no sign.
    """
    root = package.parent
    return root if (root / "xb").is_file() and (root / "requirements/run.lock").is_file() else None


SOURCE: Final = find_source(Path(__file__).resolve().parent)
"""The source checkout that this package runs from, or None."""
