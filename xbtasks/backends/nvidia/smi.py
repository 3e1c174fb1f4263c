"""``nvidia-smi --query-gpu``: its CSV as values, or a typed reason why not.

Layout: nvidia-smi(1), "Selective query options". Exit codes: its "Return value", which are NVML's
``nvmlReturn_t``. A number is only ever taken from the column that it belongs to.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from typing import Final

from xbtasks.hostprobe import Trouble, Unusable, one_line

__all__ = ["QUERY", "Gpu", "parse_gpus"]

_FIELDS: Final = ("index", "uuid", "name", "memory.total", "mig.mode.current", "driver_version")
QUERY: Final = (f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")
"""The arguments that ask for what :func:`parse_gpus` reads."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A physical GPU as NVML numbers it. A field that the driver doesn't report is None.

    ``memory_mib`` is in MiB; ``memory_text`` is what stood in its place when it is None.
    """

    index: int
    uuid: str
    name: str
    memory_mib: int | None
    mig: bool | None
    driver: str
    memory_text: str = ""

    @property
    def unified(self) -> bool:
        """Whether the GPU has no memory of its own to report: it shares the system's, as GB10 does."""
        return self.memory_text in _NOT_REPORTED

    @property
    def sliceable(self) -> bool:
        """Whether a limit on this GPU can be measured: it reports its memory and is not split by MIG."""
        return self.memory_mib is not None and self.mig is not True


_NOT_REPORTED = frozenset({"[N/A]", "N/A", "[Not Supported]", "Not Supported"})
_MIG = {"Enabled": True, "Disabled": False}
_UUID = re.compile(r"GPU-[0-9A-Za-z-]+")
_NONE_FOUND = "No devices were found"
_INFOROM_CORRUPT = 14
_TROUBLES = {
    2: Trouble.UNSUPPORTED,
    3: Trouble.UNSUPPORTED,
    4: Trouble.PERMISSION,
    6: Trouble.NO_DEVICE,
    9: Trouble.NO_DRIVER,
    12: Trouble.NO_LIBRARY,
    13: Trouble.NO_LIBRARY,
    15: Trouble.LOST,
    16: Trouble.LOST,
    17: Trouble.PERMISSION,
    18: Trouble.MISMATCH,
    19: Trouble.BUSY,
    28: Trouble.NO_DEVICE,
    127: Trouble.NO_LIBRARY,  # the loader's
    255: Trouble.LOST,
}


def parse_gpus(stdout: str, exit_status: int, stderr: str = "") -> tuple[Gpu, ...] | Unusable:
    """Return the GPUs of an answer to :data:`QUERY`, or why there are none.

    Corrupt infoROM (exit 14) is a warning printed after the rows: the rows count.
    """
    lines = [line for line in stdout.splitlines() if line.strip()]
    said = one_line(" ".join(lines) or stderr) or f"it said nothing and ended with {exit_status}"
    if exit_status not in (0, _INFOROM_CORRUPT):
        return Unusable(_TROUBLES.get(exit_status, Trouble.FAILED), said)
    if not lines or [line.strip() for line in lines] == [_NONE_FOUND]:
        return Unusable(Trouble.NO_DEVICE, said)
    gpus: list[Gpu] = []
    for line in lines:
        gpu = _gpu(line)
        if gpu is not None:
            gpus.append(gpu)
        elif exit_status == 0:
            return Unusable(
                _permission(line) or Trouble.UNREADABLE, one_line(f"not a row of GPU fields: {line}")
            )
    if not gpus:
        return Unusable(Trouble.FAILED, said)
    if len({gpu.index for gpu in gpus}) < len(gpus) or len({gpu.uuid for gpu in gpus}) < len(gpus):
        return Unusable(Trouble.UNREADABLE, "two rows name the same GPU")
    return tuple(gpus)


def _permission(line: str) -> Trouble | None:
    return Trouble.PERMISSION if line.strip() == "[Insufficient Permissions]" else None


def _gpu(line: str) -> Gpu | None:
    try:
        rows = list(csv.reader([line], skipinitialspace=True, strict=True))
    except csv.Error:
        return None
    if len(rows) != 1 or len(rows[0]) != len(_FIELDS):
        return None
    index, uuid, name, memory, mig, driver = (field.strip() for field in rows[0])
    if not _number(index) or not _UUID.fullmatch(uuid) or not name or not driver:
        return None
    return Gpu(
        index=int(index),
        uuid=uuid,
        name=one_line(name),
        memory_mib=int(memory) if _number(memory) else None,
        mig=_MIG.get(mig),
        driver=one_line(driver),
        memory_text="" if _number(memory) else one_line(memory),
    )


def _number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 12
