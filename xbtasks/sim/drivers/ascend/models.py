"""The kinds of NPU that can be simulated, as their driver and tools describe them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

__all__ = ["MODELS", "Layout", "Model"]


class Layout(IntEnum):
    """How npu-smi lays out what it says. ``smi/smi.h`` has the same numbers."""

    A2 = 0
    A3 = 1
    P310 = 2
    A5 = 3


@dataclass(frozen=True, slots=True)
class Model:
    """A kind of NPU. Memory is a die's, in MiB; ``system_mib`` is what the driver takes of it for itself.

    ``chip`` and ``npu`` are the names that npu-smi prints, ``soc`` the one that the runtime tells.
    """

    layout: Layout
    chip: str
    npu: str
    soc: str
    dies: int
    memory_mib: int
    system_mib: int
    context_mib: int
    firmware: str
    driver: str

    @property
    def device_name(self) -> str:
        """The name that the Ascend docker runtime takes in a list of visible devices, without the number."""
        return "Ascend310P" if self.layout is Layout.P310 else "Ascend910"


_A2_FIRMWARE: Final = "7.8.0.6.201"
_A3: Final = ("Ascend910", "9392", "Ascend910_9392")
_950PR: Final = ("Ascend950PR", "9579", "Ascend950PR_9579")

MODELS: Final = {
    "910b4": Model(Layout.A2, "910B4", "", "Ascend910B4", 1, 32768, 2859, 102, _A2_FIRMWARE, "25.5.1"),
    "910b1": Model(Layout.A2, "910B1", "", "Ascend910B1", 1, 65536, 3384, 102, _A2_FIRMWARE, "25.5.1"),
    "910_93": Model(Layout.A3, *_A3, 2, 65536, 2874, 102, "7.7.0.6.236", "25.3.rc1"),
    "310p3": Model(Layout.P310, "310P3", "", "Ascend310P3", 1, 21527, 1764, 64, "7.1.0.4", "24.1.rc2"),
    "950pr": Model(Layout.A5, *_950PR, 1, 131072, 5239, 128, "9.0.0.105.229", "25.7.rc1"),
}
"""What a case's stage suffix calls 910b, 910c (910_93, also named A3), 310p and 950."""
