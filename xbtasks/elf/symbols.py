"""The dynamic symbols of an ELF file: how many there are, and which the loader would really find.

A symbol counts as exported only if ld.so's own search would end at it: it is in the hash table, in
the chain of its own hash, global or weak, visible, and not of a hidden or local version.

Contract: System V ABI (gABI) chapter 5 and ``DT_GNU_HASH`` as glibc 2.36's dl-lookup.c reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import iter_unpack
from typing import TYPE_CHECKING, Final

from xbtasks.elf.image import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xbtasks.elf.image import Image

__all__ = ["Strings", "Symbol", "read_symbols"]

_PLTRELSZ, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ = 2, 4, 5, 6, 7, 8
_STRSZ, _SYMENT, _REL, _RELSZ, _PLTREL, _JMPREL = 10, 11, 17, 18, 20, 23
_GNU_HASH, _VERSYM = 0x6FFFFEF5, 0x6FFFFFF0
_BINDINGS: Final = {0: "LOCAL", 1: "GLOBAL", 2: "WEAK", 10: "UNIQUE"}
_TYPES: Final = {
    0: "NOTYPE",
    1: "OBJECT",
    2: "FUNC",
    3: "SECTION",
    4: "FILE",
    5: "COMMON",
    6: "TLS",
    10: "IFUNC",
}
_VISIBLE = (0, 3)  # default and protected; internal and hidden are not
_GNU_TABLE = "the GNU symbol hash table"
_CLASSIC_TABLE = "the symbol hash table"


@dataclass(frozen=True, slots=True)
class Symbol:
    """One entry of the dynamic symbol table.

    ``version`` is the version it needs (undefined) or carries (defined), "" for none. ``exported``
    says that the loader would bind an unversioned reference of another object to it.
    """

    name: str
    binding: str
    type: str
    defined: bool
    exported: bool
    version: str = ""


class Strings:
    """The dynamic string table."""

    def __init__(self, image: Image, dynamic: Mapping[int, int]) -> None:
        if _STRTAB not in dynamic or _STRSZ not in dynamic:
            raise image.bad("the dynamic table names no string table")
        self._image = image
        self._bytes = image.at_address(dynamic[_STRTAB], dynamic[_STRSZ], "the dynamic string table")

    def raw(self, offset: int) -> bytes:
        """Return the bytes of the string at ``offset``; raises `BadElf` where there is none."""
        end = self._bytes.find(b"\0", offset) if offset < len(self._bytes) else -1
        if end < 0:
            raise self._image.bad(f"a name lies outside the dynamic string table (offset {offset:#x})")
        return self._bytes[offset:end]

    def at(self, offset: int) -> str:
        """Return the string at ``offset``, with what can't be printed escaped."""
        return printable(self.raw(offset))


@dataclass(frozen=True, slots=True)
class _Entry:
    name: bytes
    info: int
    other: int
    section: int


def read_symbols(
    image: Image, dynamic: Mapping[int, int], strings: Strings, versions: Mapping[int, str]
) -> tuple[Symbol, ...]:
    """Return the dynamic symbols in the order of their table; ``versions`` are names by version number.

    Raises:
        BadElf: the tables don't hold together.
    """
    if _SYMTAB not in dynamic:
        raise image.bad("the dynamic table names no symbol table")
    gnu = _gnu(image, dynamic[_GNU_HASH]) if _GNU_HASH in dynamic else None
    count = _count(image, dynamic, gnu)
    entries = _entries(image, dynamic, strings, count)
    names = [entry.name for entry in entries]
    search = _search_classic(image, dynamic[_HASH], names) if gnu is None else _search_gnu(image, gnu, names)
    found = frozenset(search)
    versyms: tuple[int, ...] = (1,) * count
    if _VERSYM in dynamic:
        versyms = image.numbers(dynamic[_VERSYM], count, "H", "the symbol versions")
    symbols = []
    for index in range(1, count):
        entry = entries[index]
        version, hidden = versyms[index] & 0x7FFF, versyms[index] & 0x8000
        if version > 1 and version not in versions:
            raise image.bad(f"symbol {index} has version {version}, which no version table lists")
        binding = _BINDINGS.get(entry.info >> 4) or str(entry.info >> 4)
        defined = entry.section != 0
        visible = binding in ("GLOBAL", "WEAK", "UNIQUE") and entry.other & 3 in _VISIBLE
        symbols.append(
            Symbol(
                name=printable(entry.name),
                binding=binding,
                type=_TYPES.get(entry.info & 15) or str(entry.info & 15),
                defined=defined,
                exported=defined and visible and index in found and version > 0 and not hidden,
                version=versions[version] if version > 1 else "",
            )
        )
    return tuple(symbols)


def _entries(image: Image, dynamic: Mapping[int, int], strings: Strings, count: int) -> list[_Entry]:
    wide = image.header.bits == 64
    size = 24 if wide else 16
    if dynamic.get(_SYMENT, size) != size:
        raise image.bad(f"dynamic symbols of {dynamic[_SYMENT]} bytes, not {size}")
    raw = image.at_address(dynamic[_SYMTAB], count * size, "the dynamic symbol table")
    fields = iter_unpack(image.order + ("IBBHQQ" if wide else "IIIBBH"), raw)
    start = 1 if wide else 3  # the 32-bit form has value and size before info
    return [_Entry(strings.raw(entry[0]), *entry[start : start + 3]) for entry in fields]


def _count(image: Image, dynamic: Mapping[int, int], gnu: _GnuHash | None) -> int:
    """Return how many dynamic symbols there are, the empty first one included.

    DT_HASH says so. DT_GNU_HASH covers all up to the last hashed one; where nothing is hashed, the symbols
    that the relocations name are all that the loader ever uses.
    """
    if _HASH in dynamic:
        _buckets, classic = image.numbers(dynamic[_HASH], 2, "I", _CLASSIC_TABLE)
        if gnu is not None and gnu.end > classic:
            raise image.bad(f"DT_GNU_HASH covers {gnu.end} symbols, DT_HASH {classic}")
        return max(classic, 1)
    if gnu is None:
        raise image.bad("neither DT_HASH nor DT_GNU_HASH: no symbol can be looked up")
    return max(gnu.end, 1 + max(_relocated(image, dynamic), default=0))


def _relocated(image: Image, dynamic: Mapping[int, int]) -> Iterator[int]:
    """Yield the numbers of the symbols that the relocations name."""
    word, shift = ("Q", 32) if image.header.bits == 64 else ("I", 8)
    plt = 3 if dynamic.get(_PLTREL) == _RELA else 2
    tables = ((_RELA, _RELASZ, 3), (_REL, _RELSZ, 2), (_JMPREL, _PLTRELSZ, plt))
    for start, length, words in tables:
        if start in dynamic:
            raw = image.at_address(dynamic[start], dynamic.get(length, 0), "the relocations")
            size = words * (8 if word == "Q" else 4)
            for entry in iter_unpack(image.order + word * words, raw[: len(raw) // size * size]):
                yield entry[1] >> shift


@dataclass(frozen=True, slots=True)
class _GnuHash:
    """DT_GNU_HASH: ``chain`` is that of the symbols from ``first`` up to ``end``, not included."""

    first: int
    end: int
    bloom: tuple[int, ...]
    shift: int
    buckets: tuple[int, ...]
    chain: tuple[int, ...]


def _gnu(image: Image, address: int) -> _GnuHash:
    count, first, words, shift = image.numbers(address, 4, "I", _GNU_TABLE)
    if not count or not words or words & (words - 1):
        raise image.bad(f"{_GNU_TABLE} has {count} buckets and {words} filter words")
    bits = image.header.bits
    bloom = image.numbers(address + 16, words, "Q" if bits == 64 else "I", _GNU_TABLE)
    address += 16 + words * bits // 8
    buckets = image.numbers(address, count, "I", _GNU_TABLE)
    last = max(buckets)
    if last == 0:
        return _GnuHash(first, first, bloom, shift, buckets, ())
    if last < first:
        raise image.bad(f"{_GNU_TABLE} points at symbol {last}, before its first ({first})")
    address += 4 * count
    for word in image.rest(address + 4 * (last - first), "I", _GNU_TABLE):
        last += 1
        if word & 1:
            chain = image.numbers(address, last - first, "I", _GNU_TABLE)
            return _GnuHash(first, last, bloom, shift, buckets, chain)
    raise image.bad(f"{_GNU_TABLE} has a chain without an end")


def _search_gnu(image: Image, table: _GnuHash, names: list[bytes]) -> Iterator[int]:
    """Yield the numbers of the symbols that a search by their own name comes to."""
    bits = image.header.bits
    seen = 0
    for bucket, start in enumerate(table.buckets):
        index = start
        while index:
            seen += 1
            if index < table.first or seen > len(table.chain):
                raise image.bad(f"{_GNU_TABLE} has chains that overlap or begin before its first symbol")
            word = table.chain[index - table.first]
            value = _gnu_hash(names[index])
            filtered = table.bloom[value // bits % len(table.bloom)]
            mask = 1 << value % bits | 1 << (value >> table.shift) % bits
            if value % len(table.buckets) == bucket and value | 1 == word | 1 and filtered & mask == mask:
                yield index
            index = 0 if word & 1 else index + 1


def _search_classic(image: Image, address: int, names: list[bytes]) -> Iterator[int]:
    """Yield the numbers of the symbols that a search by their own name comes to."""
    count, symbols = image.numbers(address, 2, "I", _CLASSIC_TABLE)
    buckets = image.numbers(address + 8, count, "I", _CLASSIC_TABLE)
    chain = image.numbers(address + 8 + 4 * count, symbols, "I", _CLASSIC_TABLE)
    seen = 0
    for bucket, start in enumerate(buckets):
        index = start
        while index:
            seen += 1
            if index >= symbols or seen > symbols:
                raise image.bad(f"{_CLASSIC_TABLE} runs in circles or past its end")
            if _classic_hash(names[index]) % count == bucket:
                yield index
            index = chain[index]


def _gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = value * 33 + byte & 0xFFFFFFFF
    return value


def _classic_hash(name: bytes) -> int:
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value
