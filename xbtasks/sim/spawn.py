"""Starts dockerd in namespaces of its own; run as a script, with nothing but Python's library.

Usage: ``spawn.py REQUEST.json``. The request holds ``argv``, ``env``, ``log`` and ``binds`` (pairs of
folders: what is mounted where). The process id of the started program is printed once it runs; on failure,
one line goes to stderr and the exit status is 1, or NOT_PERMITTED where the kernel forbids it.

Network namespace: dockerd makes bridges and addresses, which must never meet those of a docker that the
machine already has. Mount namespace: its mounts vanish with its last process. Mounts that the machine makes
later still arrive (propagation "slave"), so that containers can bind them.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import socket
import struct
import sys
from pathlib import Path
from typing import TypedDict

__all__ = ["main"]

NOT_PERMITTED = 77

CLONE_NEWNS = 0x00020000
CLONE_NEWNET = 0x40000000
MS_BIND = 4096
MS_REC = 16384
MS_SLAVE = 1 << 19
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
IFREQ = struct.Struct("16sH14x")


class Request(TypedDict):
    """What to start, and how."""

    argv: list[str]
    env: dict[str, str]
    log: str
    binds: list[tuple[str, str]]


libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise OSError for a libc call that failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, flags: int) -> None:
    """Call mount(2)."""
    done = libc.mount(os.fsencode(source), os.fsencode(target), None, ctypes.c_ulong(flags), None)
    check(done, f"mount {target}")


def raise_loopback() -> None:
    """Bring the new network namespace's loopback interface up, without the ``ip`` program."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        _, flags = IFREQ.unpack(fcntl.ioctl(handle, SIOCGIFFLAGS, IFREQ.pack(b"lo", 0)))
        fcntl.ioctl(handle, SIOCSIFFLAGS, IFREQ.pack(b"lo", flags | IFF_UP))


def become(request: Request) -> None:
    """Turn this process into the requested program, detached from whoever started it."""
    os.setsid()
    os.umask(0o022)
    os.chdir("/")
    check(libc.unshare(CLONE_NEWNS | CLONE_NEWNET), "unshare")
    mount("none", "/", MS_REC | MS_SLAVE)
    for source, target in request["binds"]:
        mount(source, target, MS_BIND)
    raise_loopback()
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor, standard in ((null, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, standard)
    os.execve(request["argv"][0], request["argv"], request["env"])  # noqa: S606 - the purpose of this file


def main() -> int:
    """Fork the program off; report its process id, or why it could not be started."""
    request = json.loads(Path(sys.argv[1]).read_text())
    reader, writer = os.pipe()  # closed by a successful execve: nothing to read means that it runs
    child = os.fork()
    if child == 0:
        try:
            become(request)
        except OSError as error:
            where = "" if error.filename is None else f"{error.filename}: "
            os.write(writer, f"{where}{error.strerror}".encode("utf-8", "replace"))
            os._exit(NOT_PERMITTED if error.errno == errno.EPERM else 1)
        finally:
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8", errors="replace") as pipe:
        reason = pipe.read()
    if reason:
        print(reason, file=sys.stderr)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    print(child)
    return 0


if __name__ == "__main__":
    sys.exit(main())
