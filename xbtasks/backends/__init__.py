"""The vendors xbtasks knows: one folder each, listed here and nowhere else."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, cast

from xbtasks.backends import ascend, nvidia
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from xbtasks.backends.base import Backend, HostModule

__all__ = ["BACKENDS", "backend_of", "host_modules", "require_modules"]

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
    """Return the modules that look at a host's cards, by backend.

    Raises:
        UsageError: a backend names one that isn't there.
    """
    found = {name: backend.host for name, backend in BACKENDS.items() if backend.host}
    for name, module in found.items():
        _require(name, "host", module)
    return {name: cast("HostModule", import_module(module)) for name, module in found.items()}


def require_modules(backend: Backend) -> None:
    """See that the modules that the backend names are there, before anything is built for them.

    Raises:
        UsageError: one isn't.
    """
    if backend.host:
        _require(backend.name, "host", backend.host)
    for case in backend.cases:
        if case.cards:
            _require(backend.name, f"case {case.number}", case.module)


def _require(backend: str, what: str, module: str) -> None:
    try:
        there = bool(module) and find_spec(module) is not None
    except ModuleNotFoundError:  # nor is the folder above it
        there = False
    if not there:
        raise UsageError(f"backend {backend} names no module that is there: its {what} is {module!r}")
