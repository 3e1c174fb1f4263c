"""Real ELF files for tests: compiled by gcc, patched at named places, or written byte by byte.

The compiled ones honour the contract of a stage's artifacts (NEEDED, dcmi, hooks, SONAME) with small sources
of our own; each keyword of a builder breaks, or allows, one thing. Equal requests are built once.
"""

from __future__ import annotations

import atexit
import shutil
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from xbtasks.backends.profiles import profile_for

__all__ = [
    "DCMI",
    "Elf",
    "archive",
    "compile_c",
    "cross_compiler",
    "debug_only",
    "linkers",
    "monitor",
    "rt_hooks",
    "run",
    "same_version_libc",
    "versioned_libc",
    "vgpu",
    "vgpu_hooks",
    "vruntime",
    "write_elf",
]

DCMI = (
    "dcmi_get_card_id_device_id_from_phyid",
    "dcmi_get_device_resource_info",
    "dcmi_get_device_utilization_rate",
    "dcmi_init",
    "dcmiv2_get_device_list",
    "dcmiv2_get_device_proc_mem_info",
    "dcmiv2_get_device_utilization_rate",
    "dcmiv2_init",
)
_STUBS = {
    # file name: (SONAME, functions)
    "libcuda.so": ("libcuda.so.1", ("cuStub",)),
    "libnvidia-ml.so": ("libnvidia-ml.so.1", ("nvmlStub",)),
    "libcudabare.so": ("libcuda.so", ("cuStub",)),
    "libcudafake.so": ("libcuda.so.1.fake", ("cuStub",)),
    "libcudaregex.so": ("libcudaXso.1", ("cuStub",)),
    "libc_sec.so": ("libc_sec.so", ("memcpy_s",)),
    "libboundscheck.so": ("libboundscheck.so", ("memcpy_s",)),
    "libascendcl.so": ("libascendcl.so", ("aclrtGetSocName",)),
    "libdcmi.so": ("libdcmi.so", DCMI),
    "libextra.so": ("libextra.so.7", ("extra",)),
    "libpath.so": ("", ("path",)),
}


def run(*argv: str) -> None:
    """Run a tool of the toolchain; raises with its own words when it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{argv}: {done.stderr}"


@cache
def _workshop() -> Path:
    """Return a folder of this process."""
    folder = Path(tempfile.mkdtemp(prefix="elfkit-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _stubs(compiler: str) -> Path:
    """Return a folder with the stub libraries that the artifacts are linked with."""
    folder = _workshop() / f"stubs-{compiler}"
    folder.mkdir()
    for name, (soname, functions) in _STUBS.items():
        source = folder / "stub.c"
        source.write_text("".join(f"int {function}(void) {{ return 0; }}\n" for function in functions))
        flags = [f"-Wl,-soname,{soname}"] if soname else []
        run(compiler, "-shared", "-fPIC", "-w", *flags, "-o", str(folder / name), str(source))
    return folder


@cache
def compile_c(
    source: str, *flags: str, compiler: str = "gcc", stubs: bool = True, scripts: str = ""
) -> bytes:
    """Return what ``compiler`` makes of ``source``; ``{here}`` in a flag is the folder of the stub libraries.

    ``scripts`` is the text of a linker version script.
    """
    folder = Path(tempfile.mkdtemp(dir=_workshop()))
    (folder / "source.c").write_text(source)
    words = [flag.format(here=_stubs(compiler)) for flag in flags] if stubs else list(flags)
    if scripts:
        (folder / "versions.map").write_text(scripts)
        words.append(f"-Wl,--version-script={folder / 'versions.map'}")
    if stubs:
        words = [f"-L{_stubs(compiler)}", *words]
    run(compiler, "-w", "-O1", "-o", str(folder / "out"), str(folder / "source.c"), *words)
    return (folder / "out").read_bytes()


@cache
def versioned_libc(*versions: str) -> str:
    """Return a flag that links a libc.so.6 of our own; its function ``f<n>`` has the n-th of ``versions``."""
    return _libc({version: (f"f{n}",) for n, version in enumerate(versions)})


@cache
def same_version_libc(count: int, version: str) -> str:
    """Return a flag that links a libc.so.6 of our own with ``count`` functions ``f<n>`` of one version."""
    return _libc({version: tuple(f"f{n}" for n in range(count))})


def _libc(versions: dict[str, tuple[str, ...]]) -> str:
    folder = Path(tempfile.mkdtemp(dir=_workshop()))
    known = {"GLIBC_2.2.5": ("getenv",)} | versions
    source = _functions(tuple(name for functions in known.values() for name in functions))
    scripts = "".join(f"{version} {{ global: {'; '.join(names)}; }};\n" for version, names in known.items())
    flags = ("-shared", "-fPIC", "-nostdlib", "-Wl,-soname,libc.so.6")
    (folder / "libversions.so").write_bytes(compile_c(source, *flags, scripts=scripts))
    return str(folder / "libversions.so")


@cache
def archive() -> bytes:
    """Return a static library."""
    folder = Path(tempfile.mkdtemp(dir=_workshop()))
    (folder / "f.o").write_bytes(compile_c("int f(void) { return 0; }", "-c", stubs=False))
    run("ar", "rc", str(folder / "libf.a"), str(folder / "f.o"))
    return (folder / "libf.a").read_bytes()


@cache
def debug_only(data: bytes) -> bytes:
    """Return the debug information of ``data``, split off."""
    folder = Path(tempfile.mkdtemp(dir=_workshop()))
    (folder / "whole").write_bytes(data)
    run("objcopy", "--only-keep-debug", str(folder / "whole"), str(folder / "debug"))
    return (folder / "debug").read_bytes()


@cache
def cross_compiler() -> str:
    """Return the name of the gcc for AArch64, or nothing where this machine has none."""
    name = "aarch64-linux-gnu-gcc"
    return name if shutil.which(name) else ""


@cache
def linkers() -> tuple[str, ...]:
    """Return the linkers that gcc can use here, the default one first."""
    return ("bfd", *(name for name in ("gold", "lld") if shutil.which(f"ld.{name}")))


def vgpu_hooks() -> tuple[str, ...]:
    """Return the hooks that libvgpu.so must export."""
    profile = profile_for("nvidia", "")
    assert profile is not None
    return profile.expectation("libvgpu.so").hooks


def rt_hooks() -> tuple[str, ...]:
    """Return the hooks that libvruntime.so must export."""
    profile = profile_for("ascend", "", "acl-dlopened")
    assert profile is not None
    return profile.expectation("libvruntime.so").hooks


def _functions(names: tuple[str, ...], prefix: str = "") -> str:
    return "".join(f"{prefix} int {name}(void) {{ return 0; }}\n" for name in names)


def vgpu(
    *flags: str,
    libraries: tuple[str, ...] = ("cuda", "nvidia-ml"),
    soname: str = "libvgpu.so",
    without: tuple[str, ...] = (),
    extra: str = "",
    prefix: str = "",
    scripts: str = "",
) -> bytes:
    """Return a libvgpu.so; ``libraries`` are kept in NEEDED, ``without`` are hooks left out."""
    names = tuple(name for name in vgpu_hooks() if name not in without)
    source = (
        f'#include <stdlib.h>\n{_functions(names, prefix)}char *env(void) {{ return getenv("X"); }}\n{extra}'
    )
    words = ["-shared", "-fPIC", "-Wl,--no-as-needed", *(f"-l{name}" for name in libraries)]
    words += [f"-Wl,-soname,{soname}"] if soname else []
    return compile_c(source, *words, *flags, scripts=scripts)


def _ascend_source(weak: tuple[str, ...], strong: tuple[str, ...], *, acl: bool) -> str:
    lines = ["#include <stdio.h>", "int memcpy_s(void);"]
    lines += [f"int __attribute__((weak)) {name}(void);" for name in weak]
    lines += [f"int {name}(void);" for name in strong]
    lines += ["int aclrtGetSocName(void);"] if acl else []
    calls = [*weak, *strong, "memcpy_s", *(["aclrtGetSocName"] if acl else [])]
    body = " ".join(f"sum += {name}();" for name in calls)
    lines.append(f'int work(void) {{ int sum = 0; {body} printf("%d", sum); return sum; }}')
    return "\n".join(lines) + "\n"


def vruntime(
    *flags: str,
    weak: tuple[str, ...] = DCMI,
    strong: tuple[str, ...] = (),
    acl: bool = False,
    libraries: tuple[str, ...] = ("c_sec",),
    without: tuple[str, ...] = (),
    extra: str = "",
    compiler: str = "gcc",
) -> bytes:
    """Return a libvruntime.so; ``acl`` refers to libascendcl, which ``libraries`` must then hold."""
    names = tuple(name for name in rt_hooks() if name not in without)
    source = _ascend_source(weak, strong, acl=acl) + _functions(names) + extra
    links = [f"-l{name}" for name in libraries]
    words = ["-shared", "-fPIC", "-Wl,-z,now", "-Wl,-soname,libvruntime.so", "-Wl,--as-needed", *links]
    return compile_c(source, *words, *flags, compiler=compiler)


def monitor(
    *flags: str,
    weak: tuple[str, ...] = DCMI,
    strong: tuple[str, ...] = (),
    acl: bool = False,
    libraries: tuple[str, ...] = ("c_sec",),
    pie: tuple[str, ...] = ("-pie", "-fPIE"),
    compiler: str = "gcc",
) -> bytes:
    """Return an enpu-monitor; ``pie`` are the flags that say what kind of executable it is."""
    source = _ascend_source(weak, strong, acl=acl) + "int main(void) { return work(); }\n"
    links = [f"-l{name}" for name in libraries]
    words = [*pie, "-Wl,--as-needed", "-Wl,--allow-shlib-undefined", *links]
    return compile_c(source, *words, *flags, compiler=compiler)


class Elf:
    """A 64-bit little-endian ELF file whose header, segments and dynamic table are patched by field names."""

    HEADER: Final = {
        "class": (4, "B"),
        "data": (5, "B"),
        "ident_version": (6, "B"),
        "os_abi": (7, "B"),
        "abi_version": (8, "B"),
        "type": (16, "H"),
        "machine": (18, "H"),
        "version": (20, "I"),
        "phoff": (32, "Q"),
        "shoff": (40, "Q"),
        "phentsize": (54, "H"),
        "phnum": (56, "H"),
        "shentsize": (58, "H"),
        "shnum": (60, "H"),
    }
    SEGMENT: Final = {
        "type": (0, "I"),
        "flags": (4, "I"),
        "offset": (8, "Q"),
        "vaddr": (16, "Q"),
        "filesz": (32, "Q"),
        "memsz": (40, "Q"),
        "align": (48, "Q"),
    }

    def __init__(self, data: bytes) -> None:
        self._data = bytearray(data)

    @property
    def bytes(self) -> bytes:
        """The file as it is now."""
        return bytes(self._data)

    def header(self, **fields: int) -> Elf:
        """Set fields of the ELF header."""
        for name, value in fields.items():
            offset, code = self.HEADER[name]
            struct.pack_into(f"<{code}", self._data, offset, value)
        return self

    def get(self, name: str) -> int:
        """Return a field of the ELF header."""
        offset, code = self.HEADER[name]
        value: int = struct.unpack_from(f"<{code}", self._data, offset)[0]
        return value

    def segment(self, kind: int, nth: int = 0, **fields: int) -> Elf:
        """Set fields of the ``nth`` program header of type ``kind``."""
        start = self._segments(kind)[nth]
        for name, value in fields.items():
            offset, code = self.SEGMENT[name]
            struct.pack_into(f"<{code}", self._data, start + offset, value)
        return self

    def segment_field(self, kind: int, name: str, nth: int = 0) -> int:
        """Return a field of the ``nth`` program header of type ``kind``."""
        offset, code = self.SEGMENT[name]
        value: int = struct.unpack_from(f"<{code}", self._data, self._segments(kind)[nth] + offset)[0]
        return value

    def dynamic(self, tag: int, value: int) -> Elf:
        """Set the value of the first dynamic entry with ``tag``."""
        struct.pack_into("<Q", self._data, self._entry(tag) + 8, value)
        return self

    def retag(self, tag: int, new: int) -> Elf:
        """Give the first dynamic entry with ``tag`` another tag."""
        struct.pack_into("<Q", self._data, self._entry(tag), new)
        return self

    def dynamic_value(self, tag: int) -> int:
        """Return the value of the first dynamic entry with ``tag``."""
        value: int = struct.unpack_from("<Q", self._data, self._entry(tag) + 8)[0]
        return value

    def offset_of(self, tag: int) -> int:
        """Return where in the file the table that dynamic entry ``tag`` points at begins."""
        address = self.dynamic_value(tag)
        for nth in range(len(self._segments(1))):
            start, size = self.segment_field(1, "vaddr", nth), self.segment_field(1, "filesz", nth)
            if start <= address < start + size:
                return self.segment_field(1, "offset", nth) + address - start
        raise KeyError(tag)

    def put(self, offset: int, code: str, *values: int) -> Elf:
        """Write numbers at ``offset``."""
        struct.pack_into(f"<{code}", self._data, offset, *values)
        return self

    def replace(self, old: bytes, new: bytes) -> Elf:
        """Replace every occurrence of ``old`` by ``new`` of the same length."""
        assert len(old) == len(new)
        assert old in self._data
        self._data = bytearray(bytes(self._data).replace(old, new))
        return self

    def _segments(self, kind: int) -> list[int]:
        starts = (self.get("phoff") + 56 * index for index in range(self.get("phnum")))
        return [at for at in starts if struct.unpack_from("<I", self._data, at)[0] == kind]

    def _entry(self, tag: int) -> int:
        at = self.segment_field(2, "offset")
        while True:
            found = struct.unpack_from("<Q", self._data, at)[0]
            if found == tag:
                return at
            if not found:
                raise KeyError(tag)
            at += 16


def write_elf(
    *,
    bits: int = 64,
    order: str = "<",
    machine: int = 62,
    needed: tuple[str, ...] = ("libc.so.6",),
    functions: tuple[str, ...] = ("hook",),
    gnu: bool = False,
) -> bytes:
    """Return a small shared library of any class and byte order, written byte by byte.

    Its one segment holds header, program headers, dynamic table, DT_HASH (or a DT_GNU_HASH of one bucket),
    symbols and strings.
    """
    word = "Q" if bits == 64 else "I"
    strings = bytearray(b"\0")

    def name(text: str) -> int:
        strings.extend(text.encode() + b"\0")
        return len(strings) - len(text) - 1

    libraries = [name(library) for library in needed]
    names = [name(function) for function in functions]
    header, entry = (64, 56) if bits == 64 else (52, 32)
    dynamic_at = -(-(header + 2 * entry) // 16) * 16
    tags = 2 * struct.calcsize(f"={word}") * (len(libraries) + 6)
    hash_at = dynamic_at + tags
    count = len(names) + 1
    if gnu:
        hashes = [_gnu_hash(function) & ~1 for function in functions]
        hashes[-1] |= 1
        table = struct.pack(f"{order}4I{word}I", 1, 1, 1, 0, (1 << bits) - 1, 1)
        table += struct.pack(f"{order}{len(hashes)}I", *hashes)
    else:
        chain = [0, *range(2, count), 0]
        table = struct.pack(f"{order}{3 + count}I", 1, count, 1, *chain)
    symbols_at = -(-(hash_at + len(table)) // 8) * 8
    symbol = struct.Struct(order + ("IBBHQQ" if bits == 64 else "IIIBBH"))
    rows = [symbol.pack(*([0] * 6))]
    for at in names:
        fields = (at, 0x12, 0, 1, 64, 1) if bits == 64 else (at, 64, 1, 0x12, 0, 1)
        rows.append(symbol.pack(*fields))
    strings_at = symbols_at + symbol.size * count
    entries = [(1, at) for at in libraries]
    entries += [(0x6FFFFEF5 if gnu else 4, hash_at), (5, strings_at), (6, symbols_at), (10, len(strings))]
    entries += [(11, symbol.size), (0, 0)]
    size = strings_at + len(strings)
    ident = b"\x7fELF" + bytes((bits // 32, 1 if order == "<" else 2, 1)) + bytes(9)
    head = struct.pack(
        f"{order}HHI3{word}I6H",
        3,
        machine,
        1,
        0,
        header,
        0,
        0,
        header,
        entry,
        2,
        64 if bits == 64 else 40,
        0,
        0,
    )
    segments = b""
    for kind, offset, length, align in ((1, 0, size, 4096), (2, dynamic_at, tags, 8)):
        fields = (kind, 5, offset, offset, offset, length, length, align)
        if bits == 32:
            fields = (kind, offset, offset, offset, length, length, 5, align)
        segments += struct.pack(order + ("IIQQQQQQ" if bits == 64 else "8I"), *fields)
    image = bytearray(size)
    for at, piece in (
        (0, ident + head + segments),
        (dynamic_at, b"".join(struct.pack(f"{order}2{word}", *pair) for pair in entries)),
        (hash_at, table),
        (symbols_at, b"".join(rows)),
        (strings_at, bytes(strings)),
    ):
        image[at : at + len(piece)] = piece
    return bytes(image)


def _gnu_hash(text: str) -> int:
    value = 5381
    for byte in text.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value
