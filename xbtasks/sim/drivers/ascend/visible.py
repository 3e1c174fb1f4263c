"""``ASCEND_VISIBLE_DEVICES`` and its like, as ascend-docker-runtime reads and refuses them.

Contract: Ascend mind-cluster, component/ascend-docker-runtime. The wording of the refusals is the vendor's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xbtasks.sim.drivers.injection import InjectionError

if TYPE_CHECKING:
    from xbtasks.sim.drivers.ascend.models import Model

__all__ = ["visible_devices", "without_drivers"]

_NAMES: Final = ("Ascend", "npu-")
_CHIP_NAME: Final = re.compile(r"Ascend(910|310B|310P|310)-(\d+)", re.ASCII)
_NPU_NAME: Final = re.compile(r"npu-(\d+)", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?\d+", re.ASCII)
_HIGHEST: Final = 128
_LONGEST_OPTION: Final = 128
_OPTIONS: Final = ("", "NODRV", "VIRTUAL")


def visible_devices(text: str, model: Model) -> tuple[int, ...]:
    """Return the physical ids that ``text`` asks for, in order; none for an empty text and ``void``.

    One name in it makes the whole list one of names. Raises InjectionError.
    """
    if text in ("", "void"):
        return ()
    items = [item.strip() for item in text.split(",")]
    try:
        if any(name in text for name in _NAMES):
            found = _by_name(items, model)
        else:
            found = [number for item in items for number in _by_number(item)]
    except InjectionError as error:
        raise InjectionError(f"failed to check ASCEND_VISIBLE_DEVICES parameter, err: {error}") from error
    return tuple(sorted(set(found)))


def without_drivers(text: str) -> bool:
    """Tell whether ``ASCEND_RUNTIME_OPTIONS`` leaves the driver's files out. Raises InjectionError."""
    if len(text) > _LONGEST_OPTION:
        raise InjectionError("invalid length of ASCEND_RUNTIME_OPTIONS")
    options = [option.strip() for option in text.split(",")]
    for option in options:
        if option not in _OPTIONS:
            raise InjectionError(f"failed to parse runtime options: invalid runtime option {option}")
    return "NODRV" in options


def _by_name(items: list[str], model: Model) -> list[int]:
    found = []
    for item in items:
        chip, npu = _CHIP_NAME.fullmatch(item), _NPU_NAME.fullmatch(item)
        if chip and f"Ascend{chip[1]}" != model.device_name:
            raise InjectionError(f"failed to parse ascend device : chip type not match really: {chip[1]}")
        if chip:
            found.append(int(chip[2]))
        elif npu:
            found.append(int(npu[1]))
        else:
            raise InjectionError(f"failed to parse ascend device : invalid device format: {item}")
    return found


def _by_number(item: str) -> range:
    """Return the numbers of ``3`` or ``0-3``."""
    borders = [border.strip() for border in item.split("-")]
    match borders:
        case [single]:
            number = _number(single)
            if number is None:
                raise InjectionError(f"failed to parse device : invalid single device parameter: {item}")
            return range(number, number + 1)
        case [first, last]:
            left, right = _number(first), _number(last)
        case _:
            raise InjectionError(f"failed to parse device : invalid device range: {item}")
    if left is None:
        raise InjectionError(f"failed to parse device : invalid left boarder range parameter: {first}")
    if right is None or right > _HIGHEST:
        raise InjectionError(f"failed to parse device : invalid right boarder range parameter: {last}")
    if left > right:
        raise InjectionError(
            f"failed to parse device : left boarder ({left}) should not be larger than the right one({right})"
        )
    return range(left, right + 1)


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
