"""The probe that runs in a container: memory of device 0, taken the way that a workload takes it.

It stands alone: any Python from 3.7 on runs this file. ``aclrtMalloc`` is called, through pyACL or where an
image lacks it by name. Each operation is one line on stdout, printed at once, so that a crash loses none.
The process lives on for half a second after the last one: vcann-rt's log is asynchronous, and what isn't
written when it ends is lost.

``begin``: use the device, and where that works take one chunk. ``fill CHUNK CAP``: take chunks until CAP is
passed or one is refused; then ask for two more in each of ACL's other ways. ``measure CHUNK CAP``: the same
after a second process has shown what a context costs, and ask in the other ways in any case. ``pair CHUNK CAP
FIRST``: take FIRST, and let a second process fill the rest. ``usage FIRST SECOND``: run the monitor beside a
context, beside FIRST taken, and beside SECOND in another process too. ``hold [SIZE]`` and ``rest CHUNK CAP``
are what the second process does. Sizes are in bytes.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["main"]

LIBRARIES = ("libvruntime.so", "libruntime.so", "libascendcl.so")
SHARED = "/dev/shm/"  # noqa: S108 - where shared memory is
MONITOR = "/opt/enpu/vcann-rt/tools/enpu-monitor"
FAMILIES = {"align32": "Align32", "cached": "Cached", "with_cfg": "WithCfg"}
PAGE = 2 << 20
LEAD = "xbtasks-probe "


def say(who: str, operation: str, **values: object) -> None:
    """Print an operation."""
    print(LEAD + json.dumps({"who": who, "op": operation, **values}), flush=True)


class PyAcl:
    """ACL through CANN's own Python module."""

    def __init__(self) -> None:
        self.acl = importlib.import_module("acl")

    def init(self) -> int:
        """Initialise ACL."""
        return int(self.acl.init())

    def set_device(self) -> int:
        """Use device 0."""
        return int(self.acl.rt.set_device(0))

    def memory(self, kind: int) -> tuple[int, int, int]:
        """Return what is free, what there is, and the code."""
        free, total, code = self.acl.rt.get_mem_info(kind)
        return int(free), int(total), int(code)

    def malloc(self, size: int, family: str = "") -> tuple[int, int] | None:
        """Return an address and the code; None where there is no such family."""
        function = getattr(self.acl.rt, f"malloc_{family}" if family else "malloc", None)
        if function is None:
            return None
        pointer, code = function(size, 0, {}) if family == "with_cfg" else function(size, 0)
        return int(pointer or 0), int(code)

    def malloc_physical(self, size: int) -> int | None:
        """Ask for memory that has no address yet; returns the code, None where that can't be asked."""
        function = getattr(self.acl.rt, "malloc_physical", None)
        if function is None:
            return None
        place = {"id": 0, "type": 1}
        properties = {"handleType": 0, "allocationType": 0, "memAttr": 4, "location": place, "reserve": 0}
        return int(function(size, properties, 0)[1])


class Acl:
    """ACL through its C interface, where an image has CANN without the Python module."""

    def __init__(self) -> None:
        self.c = importlib.import_module("ctypes")
        self.acl = self.c.CDLL("libascendcl.so", mode=self.c.RTLD_GLOBAL)

    def init(self) -> int:
        """Initialise ACL."""
        return int(self.acl.aclInit(None))

    def set_device(self) -> int:
        """Use device 0."""
        return int(self.acl.aclrtSetDevice(0))

    def memory(self, kind: int) -> tuple[int, int, int]:
        """Return what is free, what there is, and the code."""
        free, total = self.c.c_size_t(0), self.c.c_size_t(0)
        code = int(self.acl.aclrtGetMemInfo(kind, self.c.byref(free), self.c.byref(total)))
        return int(free.value), int(total.value), code

    def malloc(self, size: int, family: str = "") -> tuple[int, int] | None:
        """Return an address and the code; None where there is no such family."""
        function = getattr(self.acl, f"aclrtMalloc{FAMILIES.get(family, '')}", None)
        if function is None:
            return None
        pointer = self.c.c_void_p(None)
        words = [self.c.byref(pointer), self.c.c_size_t(size), 0]
        code = int(function(*words, None) if family == "with_cfg" else function(*words))
        return int(pointer.value or 0), code

    def malloc_physical(self, size: int) -> int | None:
        """Ask for memory that has no address yet; returns the code, None where that can't be asked."""
        function = getattr(self.acl, "aclrtMallocPhysical", None)
        if function is None:
            return None
        handle = self.c.c_void_p(None)
        # aclrtPhysicalMemProp: no handle type, pinned, huge pages of HBM, id and kind of the place; reserved
        properties = (self.c.c_uint32 * 8)(0, 0, 4, 0, 1, 0, 0, 0)
        return int(function(self.c.byref(handle), self.c.c_size_t(size), properties, self.c.c_uint64(0)))


class Device:
    """Device 0 through ACL."""

    def __init__(self, who: str) -> None:
        self.who = who
        try:
            self.acl: PyAcl | Acl = PyAcl()
        except ImportError as first:
            try:
                self.acl = Acl()
            except (ImportError, OSError) as second:
                say(who, "open", rc=-1, why=f"{first}; {second}")
                sys.exit(3)
        say(who, "open", rc=0)

    def begin(self) -> int:
        """Use the device; returns ACL's code."""
        code = self.acl.init()
        say(self.who, "init", rc=code)
        if code == 0:
            code = self.acl.set_device()
            say(self.who, "device", rc=code)
        self.maps()
        return code

    def maps(self) -> None:
        """Print where the libraries are mapped from, and which shared memory is mapped."""
        lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
        paths = {line.split(None, 5)[5].strip() for line in lines if "/" in line}
        wanted = [path for path in paths if path.rpartition("/")[2].startswith(LIBRARIES)]
        wanted += [path for path in paths if path.startswith(SHARED)]
        say(self.who, "maps", rc=0, paths=sorted(wanted))

    def memory(self) -> int:
        """Print free and total memory, of HBM or where there is none of DDR; returns what is free."""
        free, total, code = self.acl.memory(1)
        if code or not total:
            free, total, code = self.acl.memory(0)
        say(self.who, "memory", rc=code, free=free, total=total)
        return free

    def monitor(self) -> None:
        """Print what is free, and what the monitor says at the same time where it was injected."""
        self.memory()
        if not Path(MONITOR).exists():
            return
        done = subprocess.run([MONITOR], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        say(self.who, "monitor", rc=done.returncode, why=done.stderr.decode("utf-8", "replace"))

    def take(self, size: int) -> int:
        """Allocate ``size`` bytes and keep them; returns ACL's code, -2 for a success without an address."""
        pointer, code = self.acl.malloc(size) or (0, -3)
        return code if code or pointer else -2

    def hold(self, size: int) -> None:
        """Take ``size`` bytes, and print how that went."""
        say(self.who, "take", rc=self.take(size), size=size)

    def take_otherwise(self, size: int) -> None:
        """Ask for ``size`` bytes in the other ways that there are, and print ACL's codes."""
        for family in FAMILIES:
            answer = self.acl.malloc(size, family)
            if answer is not None:
                say(self.who, "family", rc=answer[1], why=family)
        code = self.acl.malloc_physical(-(-size // PAGE) * PAGE)  # it takes whole pages alone
        if code is not None:
            say(self.who, "family", rc=code, why="physical")

    def fill(self, chunk: int, cap: int) -> None:
        """Take chunks until one is refused or ``cap`` bytes are passed."""
        total, code = 0, 0
        while total <= cap:
            code = self.take(chunk)
            if code:
                break
            total += chunk
        say(self.who, "fill", rc=code, size=total, chunk=chunk)
        if code:
            self.take_otherwise(2 * chunk)


def second(mode: str, *values: int) -> subprocess.Popen[str]:
    """Start this program again as a second process, which uses the device when it has printed ``ready``."""
    command = [sys.executable, __file__, mode, *map(str, values)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, universal_newlines=True)


def relay(child: subprocess.Popen[str], until: str) -> None:
    """Pass the second process's lines on, up to the one of the operation ``until``."""
    for line in child.stdout or ():
        sys.stdout.write(line)
        sys.stdout.flush()
        if f'"op": "{until}"' in line:
            return


def measure(device: Device, *values: int) -> None:
    """Print what a context costs, how much less is free while a second process has one; then take memory."""
    before = device.memory()
    child = second("hold")
    relay(child, "held")
    after = device.memory()
    child.communicate("")
    say(device.who, "context", rc=child.returncode, size=max(0, before - after))
    device.memory()
    device.fill(*values)
    device.take_otherwise(2 * values[0])


def usage(device: Device, first: int, rest: int) -> None:
    """Run the monitor beside a context, beside what this process takes, and beside a second process too."""
    device.monitor()
    device.hold(first)
    device.monitor()
    child = second("hold", rest)
    relay(child, "held")
    device.monitor()
    child.communicate("")
    say(device.who, "second", rc=child.returncode)


def main(mode: str, *values: int) -> int:
    """Run ``mode``; returns the exit status."""
    device = Device("b" if mode in ("hold", "rest") else "a")
    if device.begin() != 0:
        return 4
    if mode == "hold":
        for size in values:
            device.hold(size)
        say(device.who, "held", rc=0)
        sys.stdin.read()
        return 0
    if mode == "usage":
        usage(device, *values)
        return 0
    if mode == "measure":
        measure(device, *values)
        return 0
    device.memory()
    if mode == "begin":
        device.hold(1 << 20)
    elif mode == "pair":
        chunk, cap, first = values
        device.fill(chunk, first - chunk)
        child = second("rest", chunk, cap)
        relay(child, "end")
        child.communicate("")
        say(device.who, "second", rc=child.returncode)
    else:
        device.fill(*values)
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1], *map(int, sys.argv[2:]))
    time.sleep(0.5)
    say("b" if sys.argv[1] in ("hold", "rest") else "a", "end", rc=status)
    os._exit(status)
