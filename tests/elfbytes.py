"""ELF files patched at named places, or written byte by byte."""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["Elf", "write_elf"]


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
