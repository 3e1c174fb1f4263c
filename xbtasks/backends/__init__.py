"""The vendors xbtasks knows: one folder each, listed here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends import ascend, nvidia

if TYPE_CHECKING:
    from xbtasks.backends.base import Backend

__all__ = ["BACKENDS", "backend_of"]

BACKENDS: Final[dict[str, Backend]] = {
    ascend.BACKEND.name: ascend.BACKEND,
    nvidia.BACKEND.name: nvidia.BACKEND,
}


def backend_of(stage_name: str) -> Backend | None:
    """Return the backend whose stages are named like ``stage_name`` (with a suffix), or None."""
    for backend in BACKENDS.values():
        if stage_name.startswith(backend.stage_prefix) and len(stage_name) > len(backend.stage_prefix):
            return backend
    return None
