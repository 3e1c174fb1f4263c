"""Which cards a case runs on: what the user named, found on the host, and free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.errors import Refused, UsageError
from xbtasks.hardware import Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xbtasks.backends.nvidia.smi import Gpu
    from xbtasks.backends.nvidia.tenants import Tenant

__all__ = ["idle_cards", "named_cards", "require_idle"]

AUTO = "auto"


def named_cards(names: Sequence[str], gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return the cards that ``names`` stand for, each an index or a UUID, in that order.

    Raises:
        UsageError: the host has no such card, or two names are for one card.
        Skipped: a limit can't be measured on one of them.
    """
    found = tuple(_card(name, gpus) for name in names)
    for place, gpu in enumerate(found):
        if gpu in found[:place]:
            raise UsageError(f"GPU {gpu.index} is named twice: {', '.join(names)}")
    for gpu in found:
        if gpu.mig:
            raise Skipped(f"GPU {gpu.index} ({gpu.name}) is split by MIG: a limit can't be measured on it")
        if gpu.memory_mib is None:
            said = gpu.memory_text or "nothing"
            raise Skipped(f"GPU {gpu.index} ({gpu.name}) reports no memory of its own ({said})")
    return found


def _card(name: str, gpus: Sequence[Gpu]) -> Gpu:
    for gpu in gpus:
        if name == str(gpu.index) or name.casefold() == gpu.uuid.casefold():
            return gpu
    there = ", ".join(str(gpu.index) for gpu in gpus)
    raise UsageError(f"the host has no GPU {name}", hint=f"it has {there}; `inv preflight` shows them")


def idle_cards(count: int, gpus: Sequence[Gpu], tenants: Iterable[Tenant]) -> tuple[Gpu, ...]:
    """Return the first ``count`` cards on which nobody computes.

    Raises:
        Refused: there are fewer.
    """
    busy = {tenant.uuid.casefold() for tenant in tenants}
    idle = [gpu for gpu in gpus if gpu.sliceable and gpu.uuid.casefold() not in busy]
    if len(idle) < count:
        raise Refused(f"{len(idle)} idle GPUs, {count} needed", hint="--busy-ok takes busy ones too")
    return tuple(idle[:count])


def require_idle(cards: Iterable[Gpu], tenants: Iterable[Tenant]) -> None:
    """Return when nobody computes on ``cards``.

    Raises:
        Refused: somebody does.
    """
    by_card = {gpu.uuid.casefold(): gpu for gpu in cards}
    for tenant in tenants:
        gpu = by_card.get(tenant.uuid.casefold())
        if gpu is not None:
            raise Refused(
                f"GPU {gpu.index} is busy: {tenant} computes on it",
                hint="another card, --gpu auto, or --busy-ok to share it",
            )
