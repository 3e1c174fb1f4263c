"""The simulated node: one process that stands for the vendors' kernel drivers. Run as a program.

It listens on a unix socket, which the OCI runtimes mount into containers. The kernel tells it who connects,
by the process id of the host's namespace whatever namespace that process is in, and when a process ends its
connection ends with it: accounting is right across containers, and a killed process leaves nothing behind.

Usage: ``python -m xbtasks.sim.drivers.node SOCKET INVENTORY DEVICES``; DEVICES is the folder for the cards'
device files. A message is one packet: fields in UTF-8 with tabs between them, as ``nvidia/answers.py`` lists
them, and ``ascend/answers.py`` for those that begin with ``ascend``.
"""

from __future__ import annotations

import mmap
import os
import selectors
import socket
import stat
import struct
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import Refused
from xbtasks.sim.drivers.ascend import answers as ascend_answers
from xbtasks.sim.drivers.ascend import cards as ascend_cards
from xbtasks.sim.drivers.ascend.peer import Peer as AscendPeer
from xbtasks.sim.drivers.devicefiles import show_device_files
from xbtasks.sim.drivers.ledger import Ledger
from xbtasks.sim.drivers.nvidia.answers import Answerer
from xbtasks.sim.drivers.nvidia.cards import read_driver

if TYPE_CHECKING:
    from xbtasks.sim.drivers.ledger import Account
    from xbtasks.sim.drivers.nvidia.cards import Driver

__all__ = ["main", "peer_pid", "sees_device"]

_LARGEST: Final = 1 << 16
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred
_END: Final = struct.Struct("=Q")
_TIMELINE_CARDS: Final = 32


def peer_pid(connection: socket.socket) -> int:
    """Return the process id of the other end, as this process's namespace sees it."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, _, _ = _CREDENTIALS.unpack(raw)
    return int(pid)


def sees_device(pid: int, name: str) -> bool:
    """Tell whether a process can see the device file ``/dev/NAME``.

    The host's own processes see every card: the host's ``/dev`` isn't the simulation's to change.
    """
    root = Path(f"/proc/{pid}/root")
    try:
        if root.samefile("/"):
            return True
        return stat.S_ISCHR((root / "dev" / name).lstat().st_mode)
    except OSError:  # no such file, or the process has ended
        return False


class Inventory:
    """The inventory file as last read; read again when it has changed. Device files follow it."""

    def __init__(self, file: Path, devices: Path) -> None:
        self._file = file
        self._devices = devices
        self._stamp: tuple[int, int] | None = self._look()
        self.nvidia: Driver = read_driver(file)
        self.ascend: ascend_cards.Driver = ascend_cards.read_driver(file)
        show_device_files(devices, self.nvidia, self.ascend)

    def refresh(self) -> None:
        """Read the file again if it has changed. A file that is wrong changes nothing."""
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            nvidia, ascend = read_driver(self._file), ascend_cards.read_driver(self._file)
            self.nvidia, self.ascend = nvidia, ascend
            show_device_files(self._devices, self.nvidia, self.ascend)
        except Refused as error:
            print(f"the inventory stays as it was: {error}", file=sys.stderr, flush=True)

    def _look(self) -> tuple[int, int] | None:
        try:
            status = self._file.stat()
        except FileNotFoundError:
            return None
        return status.st_mtime_ns, status.st_ino


class _Peer:
    """A connected process."""

    def __init__(self, connection: socket.socket, ledger: Ledger, shares: dict[int, bool]) -> None:
        self.connection = connection
        self.pid = peer_pid(connection)
        self.account: Account = ledger.open(self.pid)
        self._answerer = Answerer(ledger, self.account, lambda index: sees_device(self.pid, f"nvidia{index}"))
        self._ascend = ascend_answers.Answerer(ledger, self.account, shares, AscendPeer(self.pid))

    def serve(self, inventory: Inventory) -> bool:
        """Answer one message; tell whether the process is still there."""
        try:
            message = self.connection.recv(_LARGEST)
            if not message:
                return False
            fields = message.decode("utf-8", "replace").split("\t")
            if fields[0] == "ascend":
                answer = self._ascend.answer(inventory.ascend, fields[1:])
            else:
                answer = self._answerer.answer(inventory.nvidia, fields)
            if answer:
                self.connection.send("\t".join(answer).encode()[:_LARGEST])
        except OSError:  # it was killed meanwhile
            return False
        return True


class Timeline:
    """The file that says until when each NVIDIA card has work (``nvidia/cuda/timeline.h``)."""

    def __init__(self, file: Path) -> None:
        size = _TIMELINE_CARDS * _END.size
        with file.open("wb+") as handle:
            handle.truncate(size)
            self._ends = mmap.mmap(handle.fileno(), size)
        file.chmod(0o666)

    def drop(self, index: int, end: int) -> None:
        """Let a card have no work after ``end``: who gave it more has gone."""
        place = index * _END.size
        if index < _TIMELINE_CARDS and _END.unpack_from(self._ends, place)[0] > max(end, time.monotonic_ns()):
            _END.pack_into(self._ends, place, end)


def serve(listener: socket.socket, inventory: Inventory, timeline: Timeline) -> None:
    """Answer whoever connects, for ever."""
    ledger = Ledger()
    shares: dict[int, bool] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        while True:
            ready = selector.select()
            inventory.refresh()
            for key, _ in ready:
                peer: _Peer | None = key.data
                if peer is None:
                    connection, _ = listener.accept()
                    selector.register(connection, selectors.EVENT_READ, _Peer(connection, ledger, shares))
                elif not peer.serve(inventory):
                    selector.unregister(peer.connection)
                    peer.connection.close()
                    ledger.close(peer.account)
                    for card in inventory.nvidia.cards:
                        if card.uuid in peer.account.uses:
                            timeline.drop(card.index, ledger.last_end(card.uuid))


def main() -> int:
    """Listen, say so with a line on stdout, and serve."""
    path, file, devices = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    try:
        inventory = Inventory(file, devices)
    except Refused as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        Path(path).unlink(missing_ok=True)
        listener.bind(path)
        Path(path).chmod(0o666)  # a container's process may be anybody
        listener.listen(128)
        timeline = Timeline(Path(path).with_name("timeline"))
        print(os.getpid(), flush=True)
        serve(listener, inventory, timeline)
    return 0


if __name__ == "__main__":
    sys.exit(main())
