"""An ELF file's outer form: header, segments, and bytes by their address in memory.

Every read is checked against the file's end, and every count against its size, so that no byte of the
file can make a reader fail otherwise than by `BadElf`, or work for longer than the file is large.

Contract: System V ABI (gABI) chapters 4 and 5; what glibc 2.36's ld.so refuses is refused.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from struct import calcsize, iter_unpack, unpack_from
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BadElf", "ElfHeader", "Image", "NotElf", "open_image", "printable", "read_header"]

_MAGIC = b"\x7fELF"
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_SHT_NULL, _SHT_NOBITS = 0, 8
_TYPES: Final = {0: "NONE", 1: "REL (object file)", 2: "EXEC", 3: "DYN", 4: "CORE"}
_FORMS: Final = (
    (b"!<arch>\n", "an ar archive (a static library)"),
    (b"!<thin>\n", "a thin ar archive (a static library)"),
    (b"version https://git-lfs", "a Git LFS pointer: the file itself was never fetched"),
    (b"#!", "a script"),
    (b"\x1f\x8b", "gzip data"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\xfd7zXZ", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"MZ", "a Windows program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\xca\xfe\xba\xbe", "a macOS program"),
)


class BadElf(Exception):
    """The bytes aren't a whole ELF file that the loader would take; ``header`` where it could be read."""

    def __init__(self, reason: str, header: ElfHeader | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.header = header


class NotElf(BadElf):
    """The bytes aren't an ELF file at all; the reason says what they are."""


@dataclass(frozen=True, slots=True)
class ElfHeader:
    """The identification of an ELF file; numbers are those of the gABI."""

    bits: int
    little_endian: bool
    os_abi: int
    type: int
    machine: int

    @property
    def type_name(self) -> str:
        """``DYN``, ``EXEC`` …, or the number in hexadecimal."""
        return _TYPES.get(self.type) or f"{self.type:#x}"

    @property
    def machine_name(self) -> str:
        """``x86-64``, ``AArch64``, another machine's name as in the gABI, or the number in hexadecimal."""
        from elftools.elf.enums import ENUM_E_MACHINE

        for name, number in ENUM_E_MACHINE.items():
            if number == self.machine and name.startswith("EM_"):
                return _MACHINES.get(name) or name.removeprefix("EM_")
        return f"{self.machine:#x}"

    @property
    def endianness(self) -> str:
        """``little-endian`` or ``big-endian``."""
        return "little-endian" if self.little_endian else "big-endian"

    def __str__(self) -> str:
        return f"{self.machine_name}, {self.bits}-bit {self.endianness}"


_MACHINES: Final = {"EM_X86_64": "x86-64", "EM_AARCH64": "AArch64"}


@dataclass(frozen=True, slots=True)
class _Segment:
    type: int
    flags: int
    offset: int
    address: int
    size: int
    memory_size: int
    align: int


def printable(raw: bytes) -> str:
    """Return ``raw`` as text; what isn't printable UTF-8 is escaped, so that no name can break a table."""
    text = raw.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def read_header(data: bytes) -> ElfHeader:
    """Return the identification of ``data``, even where the rest of the file is broken.

    Raises:
        NotElf: the bytes aren't ELF.
        BadElf: the header is cut short, or of no known class or byte order.
    """
    if not data.startswith(_MAGIC):
        raise NotElf(_form_of(data))
    if len(data) < 52:
        raise BadElf(f"truncated: an ELF header cut short ({len(data)} bytes)")
    if data[4] not in (1, 2):
        raise BadElf(f"ELF class {data[4]} is neither 32-bit (1) nor 64-bit (2)")
    if data[5] not in (1, 2):
        raise BadElf(f"ELF data encoding {data[5]} is neither little-endian (1) nor big-endian (2)")
    order = "<" if data[5] == 1 else ">"
    kind, machine = unpack_from(order + "HH", data, 16)
    return ElfHeader(32 * data[4], data[5] == 1, data[7], kind, machine)


def _form_of(data: bytes) -> str:
    if not data:
        return "an empty file"
    for start, form in _FORMS:
        if data.startswith(start):
            return f"not ELF: {form}"
    if not data.strip(b"\0"):
        return f"not ELF: {len(data)} zero bytes"
    head = data[:4096]
    try:
        text = head.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if text and all(c.isprintable() or c.isspace() for c in text):
        words = text.upper()
        if "GNU LD SCRIPT" in words or any(
            f"{word}(" in words.replace(" ", "") for word in ("INPUT", "GROUP")
        ):
            return "not ELF: a linker script"
        if words.lstrip().startswith(("<!DOCTYPE", "<HTML")):
            return "not ELF: an HTML page"
        return "not ELF: a text file"
    return f"not ELF: it begins with {data[:4].hex(' ')}"


def open_image(data: bytes) -> Image:
    """Return the image of ``data`` after checking header, segments and sections against the file's end.

    Raises:
        BadElf: see `Image`.
    """
    image = Image(data, read_header(data))
    image.check()
    return image


class Image:
    """The bytes of an ELF file, by address; each method raises `BadElf` where the file doesn't hold."""

    def __init__(self, data: bytes, header: ElfHeader) -> None:
        self.data = data
        self.header = header
        self.order = "<" if header.little_endian else ">"

    def bad(self, reason: str) -> BadElf:
        """Return the error for ``reason``, with the header."""
        return BadElf(reason, self.header)

    def check(self) -> None:
        """Check what ld.so checks before it maps anything, and that the file is whole."""
        header = self.header
        if len(self.data) < (64 if header.bits == 64 else 52):
            raise self.bad(f"truncated: an ELF header cut short ({len(self.data)} bytes)")
        version = unpack_from(self.order + "I", self.data, 20)[0]
        if self.data[6] != 1 or version != 1:
            raise self.bad(f"ELF version {self.data[6]}/{version}, want 1")
        if header.os_abi not in (0, 3) or self.data[8] or any(self.data[9:16]):
            raise self.bad(f"OS ABI {header.os_abi}, version {self.data[8]}: not for Linux")
        self._check_sections()
        self._check_segments()

    def _check_sections(self) -> None:
        wide = self.header.bits == 64
        start = unpack_from(self.order + ("Q" if wide else "I"), self.data, 40 if wide else 32)[0]
        size, count, _names = unpack_from(self.order + "HHH", self.data, 58 if wide else 46)
        if not start:
            return
        layout = "IIQQQQIIQQ" if wide else "IIIIIIIIII"
        if size != calcsize("=" + layout):
            raise self.bad(f"section headers of {size} bytes, want {calcsize('=' + layout)}")
        if not count:
            count = unpack_from(self.order + layout, self._slice(start, size, "the section headers"))[5]
        table = self._slice(start, count * size, "the section headers")
        for section in iter_unpack(self.order + layout, table):
            if section[1] not in (_SHT_NULL, _SHT_NOBITS):
                self._check_end(section[4], section[5], "a section")

    def _check_segments(self) -> None:
        if not self.segments:
            raise self.bad(f"no program headers: {self.header.type_name}, not a linked file")
        loads = self._loads
        if not loads:
            raise self.bad("no segment to load")
        for segment in loads:
            if segment.size > segment.memory_size:
                raise self.bad(f"a segment of {segment.size} bytes in {segment.memory_size} bytes of memory")
            if segment.align > 1 and (
                segment.align & (segment.align - 1) or (segment.address - segment.offset) % segment.align
            ):
                raise self.bad(f"a segment that isn't aligned ({segment.address:#x}, {segment.align:#x})")
        if any(one.address + one.memory_size > two.address for one, two in pairwise(loads)):
            raise self.bad("segments that overlap or aren't in the order of their addresses")

    @cached_property
    def segments(self) -> tuple[_Segment, ...]:
        """The program headers, each checked to lie inside the file."""
        wide = self.header.bits == 64
        start = unpack_from(self.order + ("Q" if wide else "I"), self.data, 32 if wide else 28)[0]
        size, count = unpack_from(self.order + "HH", self.data, 54 if wide else 42)
        if not count:
            return ()
        layout = "IIQQQQQQ" if wide else "IIIIIIII"
        if size != calcsize("=" + layout):
            raise self.bad(f"program headers of {size} bytes, want {calcsize('=' + layout)}")
        found = []
        for entry in iter_unpack(
            self.order + layout, self._slice(start, count * size, "the program headers")
        ):
            if wide:
                kind, flags, offset, address, _physical, length, memory, align = entry
            else:
                kind, offset, address, _physical, length, memory, flags, align = entry
            found.append(_Segment(kind, flags, offset, address, length, memory, align))
            self._check_end(offset, length, "a segment")
        return tuple(found)

    def dynamic(self) -> tuple[tuple[int, int], ...]:
        """Return the entries of the dynamic table up to its end mark, as (tag, value)."""
        tables = [s for s in self.segments if s.type == _PT_DYNAMIC]
        if not tables:
            raise self.bad("no dynamic table (PT_DYNAMIC): statically linked, or not linked at all")
        if len(tables) > 1:
            raise self.bad(f"{len(tables)} dynamic tables")
        table = tables[0]
        if not table.size:
            raise self.bad("an empty dynamic table: split-off debug information, not the file itself")
        what = "the dynamic table"
        size = 16 if self.header.bits == 64 else 8
        raw = self.at_address(table.address, table.size // size * size, what)
        if raw != self._slice(table.offset, len(raw), what):
            raise self.bad("the dynamic table's offset and address name different bytes")
        entries: list[tuple[int, int]] = []
        for tag, value in iter_unpack(self.order + ("QQ" if size == 16 else "II"), raw):
            if not tag:
                return tuple(entries)
            entries.append((tag, value))
        raise self.bad("the dynamic table has no end mark")

    def interp(self) -> str | None:
        """Return the program interpreter, or None if the file names none."""
        for segment in self.segments:
            if segment.type == _PT_INTERP:
                return printable(
                    self._slice(segment.offset, segment.size, "the interpreter").partition(b"\0")[0]
                )
        return None

    def at_address(self, address: int, size: int, what: str) -> bytes:
        """Return ``size`` bytes at ``address`` of the loaded file."""
        _segment, offset = self._find(address, size, what)
        return self._slice(offset, size, what)

    def numbers(self, address: int, count: int, code: str, what: str) -> tuple[int, ...]:
        """Return ``count`` numbers of struct's ``code`` at ``address``."""
        raw = self.at_address(address, count * calcsize("=" + code), what)
        return unpack_from(f"{self.order}{count}{code}", raw)

    def rest(self, address: int, code: str, what: str) -> Iterator[int]:
        """Yield numbers of struct's ``code`` from ``address`` on, to the end of the file's segment."""
        size = calcsize("=" + code)
        segment, offset = self._find(address, size, what)
        length = (segment.offset + segment.size - offset) // size * size
        for (number,) in iter_unpack(self.order + code, self._slice(offset, length, what)):
            yield number

    @cached_property
    def _loads(self) -> tuple[_Segment, ...]:
        return tuple(s for s in self.segments if s.type == _PT_LOAD)

    @cached_property
    def _addresses(self) -> tuple[int, ...]:
        return tuple(s.address for s in self._loads)

    def _find(self, address: int, size: int, what: str) -> tuple[_Segment, int]:
        """Return the segment that holds ``size`` bytes at ``address``, and their offset in the file."""
        index = bisect_right(self._addresses, address) - 1
        if index >= 0:
            segment = self._loads[index]
            if address + size <= segment.address + segment.size:
                return segment, segment.offset + address - segment.address
        raise self.bad(f"{what} at {address:#x} ({size} bytes) isn't in any loaded segment")

    def _slice(self, offset: int, size: int, what: str) -> bytes:
        self._check_end(offset, size, what)
        return self.data[offset : offset + size]

    def _check_end(self, offset: int, size: int, what: str) -> None:
        if offset + size > len(self.data):
            raise self.bad(f"truncated: {what} ends at byte {offset + size}, the file at {len(self.data)}")
