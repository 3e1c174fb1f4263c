"""The vendors xbtasks knows: one folder each, listed here and nowhere else."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from xbtasks.backends import ascend, nvidia

if TYPE_CHECKING:
    from xbtasks.backends.base import Backend, HostModule

__all__ = ["BACKENDS", "backend_of", "host_modules"]

BACKENDS: Final[dict[str, Backend]] = {
    ascend.BACKEND.name: ascend.BACKEND,
    nvidia.BACKEND.name: nvidia.BACKEND,
}
"""The vendors by name."""


def backend_of(stage_name: str) -> Backend | None:
    """Return the backend whose stages are named like ``stage_name`` (with a suffix), or None."""
    for backend in BACKENDS.values():
        if stage_name.startswith(backend.stage_prefix) and len(stage_name) > len(backend.stage_prefix):
            return backend
    return None


def host_modules() -> dict[str, HostModule]:
    """Return the modules that look at a host's cards, by backend."""
    found = {name: backend.host for name, backend in BACKENDS.items() if backend.host}
    return {name: cast("HostModule", import_module(module)) for name, module in found.items()}
