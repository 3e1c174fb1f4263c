"""Bytes of an ELF file as facts: what the dynamic loader would see, and nothing else.

Symbols, versions and libraries are read the way ld.so reads them: from the program headers and the
dynamic table, never from section headers, which may be stripped or lie. A file that the loader
would refuse, or whose tables don't hold together, raises `BadElf` with a reason; nothing else
is ever raised, and the work is bounded by the file's size.

Contract: System V ABI (gABI) chapters 4 and 5, the GNU extensions as glibc 2.36 reads them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from struct import iter_unpack, unpack_from
from typing import TYPE_CHECKING, Final

from xbtasks.elfimage import BadElf, ElfHeader, Image, NotElf, open_image, printable, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BadElf",
    "ElfFacts",
    "ElfHeader",
    "NotElf",
    "Symbol",
    "VersionNeed",
    "glibc_version",
    "libc_version",
    "read_elf",
    "read_header",
]

_NEEDED, _PLTRELSZ, _HASH, _STRTAB, _SYMTAB, _RELA, _RELASZ = 1, 2, 4, 5, 6, 7, 8
_STRSZ, _SYMENT, _SONAME, _RPATH, _SYMBOLIC, _REL, _RELSZ = 10, 11, 14, 15, 16, 17, 18
_PLTREL, _TEXTREL, _JMPREL, _BIND_NOW, _RUNPATH, _FLAGS, _RELR = 20, 22, 23, 24, 29, 30, 36
_GNU_HASH, _VERSYM, _FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFB
_VERDEF, _VERDEFNUM, _VERNEED, _VERNEEDNUM = 0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF
_DF_SYMBOLIC, _DF_TEXTREL, _DF_BIND_NOW, _DF_1_NOW, _DF_1_PIE = 0x2, 0x4, 0x8, 0x1, 0x08000000
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
_GLIBC = re.compile(r"GLIBC_(\d{1,6}(?:\.\d{1,6})*)", re.ASCII)


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


@dataclass(frozen=True, slots=True)
class VersionNeed:
    """A symbol version that ``library`` must define, else ld.so refuses (``weak``: only warns)."""

    library: str
    version: str
    weak: bool = False


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """What the dynamic loader sees of a shared library or a dynamically linked executable.

    ``rpath``, ``runpath``, ``soname`` and ``interp`` are None where the file has none. ``needed`` is in
    the file's order, ``version_definitions`` holds the versions that the file itself defines.
    """

    header: ElfHeader
    size: int
    needed: tuple[str, ...]
    soname: str | None
    rpath: str | None
    runpath: str | None
    interp: str | None
    pie: bool
    textrel: bool
    symbolic: bool
    bind_now: bool
    relr: bool
    symbols: tuple[Symbol, ...]
    version_needs: tuple[VersionNeed, ...]
    version_definitions: tuple[str, ...]

    @property
    def exported(self) -> frozenset[str]:
        """Names of the functions that the loader would bind other objects to."""
        return frozenset(s.name for s in self.symbols if s.exported and s.type in ("FUNC", "IFUNC"))

    @property
    def undefined(self) -> tuple[Symbol, ...]:
        """The undefined symbols."""
        return tuple(s for s in self.symbols if not s.defined)

    @property
    def glibc_need(self) -> tuple[int, ...] | None:
        """The highest numeric GLIBC version that the file needs, or None if it needs none."""
        numbers = (glibc_version(need.version) for need in self.version_needs if not need.weak)
        return max((number for number in numbers if number is not None), default=None)

    @property
    def glibc_tags(self) -> tuple[str, ...]:
        """The needs of GLIBC that aren't numbers: ``GLIBC_PRIVATE``, ``GLIBC_ABI_DT_RELR`` and the like."""
        versions = (need.version for need in self.version_needs)
        return tuple(
            dict.fromkeys(v for v in versions if v.startswith("GLIBC_") and glibc_version(v) is None)
        )

    def users_of(self, version: str) -> tuple[str, ...]:
        """Return the names of the undefined symbols that need ``version``."""
        return tuple(s.name for s in self.symbols if not s.defined and s.version == version)


def glibc_version(version: str) -> tuple[int, ...] | None:
    """Return ``GLIBC_2.28`` as ``(2, 28)``, or None for a name that isn't a numbered glibc version."""
    match = _GLIBC.fullmatch(version)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def libc_version(data: bytes) -> tuple[int, ...] | None:
    """Return the version of glibc that ``data`` (a libc.so.6) defines, or None if it isn't a glibc.

    Raises:
        BadElf: ``data`` isn't a whole ELF file.
    """
    numbers = (glibc_version(version) for version in read_elf(data).version_definitions)
    return max((number for number in numbers if number is not None), default=None)


def read_elf(data: bytes) -> ElfFacts:
    """Return the facts of the ELF file ``data``.

    Raises:
        BadElf: it isn't a whole, dynamically linked ELF file that the loader would take; `NotElf`
            if it isn't ELF at all. Nothing else is raised, whatever the bytes.
    """
    image = open_image(data)
    table = image.dynamic()
    first: dict[int, int] = {}
    for tag, value in table:
        first.setdefault(tag, value)
    strings = _Strings(image, first)
    version_needs, names = _version_needs(image, first, strings)
    definitions, defined_names = _version_definitions(image, first, strings)
    flags, flags_1 = first.get(_FLAGS, 0), first.get(_FLAGS_1, 0)

    def text(tag: int) -> str | None:
        return strings.at(first[tag]) if tag in first else None

    return ElfFacts(
        header=image.header,
        size=len(data),
        needed=tuple(strings.at(value) for tag, value in table if tag == _NEEDED),
        soname=text(_SONAME),
        rpath=text(_RPATH),
        runpath=text(_RUNPATH),
        interp=image.interp(),
        pie=bool(flags_1 & _DF_1_PIE),
        textrel=_TEXTREL in first or bool(flags & _DF_TEXTREL),
        symbolic=_SYMBOLIC in first or bool(flags & _DF_SYMBOLIC),
        bind_now=_BIND_NOW in first or bool(flags & _DF_BIND_NOW) or bool(flags_1 & _DF_1_NOW),
        relr=_RELR in first,
        symbols=_symbols(image, first, strings, {**names, **defined_names}),
        version_needs=version_needs,
        version_definitions=definitions,
    )


class _Strings:
    """The dynamic string table."""

    def __init__(self, image: Image, dynamic: dict[int, int]) -> None:
        if _STRTAB not in dynamic or _STRSZ not in dynamic:
            raise image.bad("the dynamic table names no string table")
        self._image = image
        self._bytes = image.at_address(dynamic[_STRTAB], dynamic[_STRSZ], "the dynamic string table")

    def at(self, offset: int) -> str:
        """Return the string at ``offset``, with what can't be printed escaped."""
        end = self._bytes.find(b"\0", offset) if offset < len(self._bytes) else -1
        if end < 0:
            raise self._image.bad(f"a name lies outside the dynamic string table (offset {offset:#x})")
        return printable(self._bytes[offset:end])


def _symbols(
    image: Image, dynamic: dict[int, int], strings: _Strings, versions: dict[int, str]
) -> tuple[Symbol, ...]:
    if _SYMTAB not in dynamic:
        raise image.bad("the dynamic table names no symbol table")
    wide = image.header.bits == 64
    size = 24 if wide else 16
    if dynamic.get(_SYMENT, size) != size:
        raise image.bad(f"dynamic symbols of {dynamic[_SYMENT]} bytes, not {size}")
    count, first_hashed = _symbol_count(image, dynamic)
    raw = image.at_address(dynamic[_SYMTAB], count * size, "the dynamic symbol table")
    versyms: tuple[int, ...] = ()
    if _VERSYM in dynamic:
        versyms = image.numbers(dynamic[_VERSYM], count, "H", "the symbol versions")
    symbols = []
    layout = image.order + ("IBBHQQ" if wide else "IIIBBH")
    for index, entry in enumerate(iter_unpack(layout, raw)):
        name, info, other, section = entry[:4] if wide else (entry[0], *entry[3:])
        if not index:
            continue
        defined = section != 0
        version = versyms[index] if versyms else 1
        number, hidden = version & 0x7FFF, bool(version & 0x8000)
        if number > 1 and number not in versions:
            raise image.bad(f"symbol {index} has version {number}, which no version table lists")
        binding = info >> 4
        symbols.append(
            Symbol(
                name=strings.at(name),
                binding=_BINDINGS.get(binding) or str(binding),
                type=_TYPES.get(info & 15) or str(info & 15),
                defined=defined,
                exported=defined
                and binding in (1, 2, 10)
                and other & 3 in (0, 3)
                and index >= first_hashed
                and number > 0
                and not hidden,
                version=versions.get(number, "") if number > 1 else "",
            )
        )
    return tuple(symbols)


def _symbol_count(image: Image, dynamic: dict[int, int]) -> tuple[int, int]:
    """Return how many dynamic symbols there are and the first one that the loader can look up by name.

    DT_HASH says how many. DT_GNU_HASH covers the hashed symbols up to the last; where it is empty, the
    symbols that the relocations name are all that the loader ever uses.
    """
    classic = gnu = -1
    first = 1
    if _HASH in dynamic:
        buckets, classic = image.numbers(dynamic[_HASH], 2, "I", "the symbol hash table")
        image.numbers(dynamic[_HASH] + 8, buckets + classic, "I", "the symbol hash table")
    if _GNU_HASH in dynamic:
        gnu, first = _gnu_count(image, dynamic[_GNU_HASH])
    if classic < 0 and gnu < 0:
        raise image.bad("neither DT_HASH nor DT_GNU_HASH: no symbol can be looked up")
    if classic >= 0:
        if gnu > classic:
            raise image.bad(f"DT_GNU_HASH covers {gnu} symbols, DT_HASH {classic}")
        return classic, first
    return max(gnu, 1 + max(_relocated(image, dynamic), default=0)), first


def _gnu_count(image: Image, address: int) -> tuple[int, int]:
    what = "the GNU symbol hash table"
    buckets, first, bloom, _shift = image.numbers(address, 4, "I", what)
    if not buckets or not bloom or bloom & (bloom - 1):
        raise image.bad(f"{what} has {buckets} buckets and {bloom} filter words")
    start = address + 16 + bloom * image.header.bits // 8
    last = max(image.numbers(start, buckets, "I", what))
    if last == 0:
        return first, first
    if last < first:
        raise image.bad(f"{what} points at symbol {last}, before its first ({first})")
    chains = start + 4 * buckets
    for word in image.rest(chains + 4 * (last - first), "I", what):
        last += 1
        if word & 1:
            return last, first
    raise image.bad(f"{what} has a chain without an end")


def _relocated(image: Image, dynamic: dict[int, int]) -> Iterator[int]:
    """Yield the numbers of the symbols that the relocations name."""
    wide = image.header.bits == 64
    tables = [(_RELA, _RELASZ, 3), (_REL, _RELSZ, 2)]
    if _JMPREL in dynamic:
        tables.append((_JMPREL, _PLTRELSZ, 3 if dynamic.get(_PLTREL) == _RELA else 2))
    for start, length, words in tables:
        if start in dynamic:
            raw = image.at_address(dynamic[start], dynamic.get(length, 0), "the relocations")
            size = words * (8 if wide else 4)
            for entry in iter_unpack(
                image.order + ("Q" if wide else "I") * words, raw[: len(raw) // size * size]
            ):
                yield entry[1] >> (32 if wide else 8)


def _version_needs(
    image: Image, dynamic: dict[int, int], strings: _Strings
) -> tuple[tuple[VersionNeed, ...], dict[int, str]]:
    needs: list[VersionNeed] = []
    names: dict[int, str] = {}
    if _VERNEED not in dynamic:
        return (), names
    budget = len(image.data) // 16
    for at, (_version, count, file, aux, _next) in _chain(
        image, dynamic[_VERNEED], "HHIII", 16, "version needs"
    ):
        library = strings.at(file)
        entries = _chain(image, at + aux, "IHHII", 16, "version needs") if count else iter(())
        for _at, (_hash, flags, other, name, _following) in entries:
            budget -= 1
            if budget < 0:
                raise image.bad("the version needs run in circles")
            needs.append(VersionNeed(library, strings.at(name), weak=bool(flags & 2)))
            names[other & 0x7FFF] = needs[-1].version
    return tuple(needs), names


def _version_definitions(
    image: Image, dynamic: dict[int, int], strings: _Strings
) -> tuple[tuple[str, ...], dict[int, str]]:
    names: dict[int, str] = {}
    if _VERDEF not in dynamic:
        return (), names
    layout = "HHHHIII"
    base = 1
    found = []
    for at, (_v, flags, number, count, _hash, aux, _next) in _chain(
        image, dynamic[_VERDEF], layout, 20, "version definitions"
    ):
        if not count:
            raise image.bad("a version definition without a name")
        (name, _following) = unpack_from(
            image.order + "II", image.at_address(at + aux, 8, "version definitions")
        )
        names[number & 0x7FFF] = strings.at(name)
        if not flags & base:
            found.append(names[number & 0x7FFF])
    return tuple(found), names


def _chain(
    image: Image, address: int, layout: str, size: int, what: str
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the entries of a list whose last field is the distance to the next entry, 0 at the end."""
    while True:
        entry = unpack_from(image.order + layout, image.at_address(address, size, what))
        yield address, entry
        if not entry[-1]:
            return
        if entry[-1] < size:
            raise image.bad(f"the {what} overlap")
        address += entry[-1]
