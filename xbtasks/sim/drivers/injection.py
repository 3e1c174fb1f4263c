"""What an injecting OCI runtime does to a container before runc makes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from xbtasks.sim.oci import OciSpec

__all__ = ["NODE_IN_CONTAINER", "Injection", "InjectionError", "NodeFiles"]

NODE_IN_CONTAINER: Final = "/run/xbtasks-sim-node"
"""Where containers see the folder of the node's socket, whose name is ``socket``."""


class InjectionError(Exception):
    """The container can't be made. The text is the vendor's, as its runtime words it."""


@dataclass(frozen=True, slots=True)
class NodeFiles:
    """Where the simulated node has what is injected: libraries and programs, socket's folder, inventory."""

    drivers: Path
    node: Path
    inventory: Path


class Injection(Protocol):
    """One vendor's way to bring cards and drivers into a container."""

    def __call__(self, spec: OciSpec, files: NodeFiles) -> None:
        """Change ``spec``; raises InjectionError where the vendor's runtime refuses."""
