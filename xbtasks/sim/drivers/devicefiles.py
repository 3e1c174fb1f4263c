"""The cards' device files as the simulated host shows them: in a folder of its own, as containers get theirs.

Nothing stands behind them: opening one fails. They are there to be looked at, as preflight does.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from xbtasks.sim.drivers.ascend.injection import device_files as ascend_files
from xbtasks.sim.drivers.nvidia.injection import device_files as nvidia_files

if TYPE_CHECKING:
    from pathlib import Path

    from xbtasks.sim.drivers.ascend.cards import Driver as AscendDriver
    from xbtasks.sim.drivers.nvidia.cards import Driver as NvidiaDriver

__all__ = ["show_device_files"]


def show_device_files(folder: Path, nvidia: NvidiaDriver, ascend: AscendDriver) -> None:
    """Make ``folder`` hold exactly the device files of the cards that there are."""
    wanted = nvidia_files(nvidia) | ascend_files(ascend)
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        if file.name not in wanted:
            file.unlink()
    for name, (major, minor) in wanted.items():
        file = folder / name
        if not file.exists():
            os.mknod(file, 0o666 | stat.S_IFCHR, os.makedev(major, minor))
