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
from struct import unpack_from
from typing import TYPE_CHECKING

from xbtasks.elf.image import BadElf, ElfHeader, Image, NotElf, open_image, read_header
from xbtasks.elf.symbols import Strings, Symbol, read_symbols

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

_NEEDED, _STRTAB, _STRSZ, _SONAME, _RPATH, _SYMBOLIC = 1, 5, 10, 14, 15, 16
_TEXTREL, _BIND_NOW, _RUNPATH, _FLAGS, _RELR, _FLAGS_1 = 22, 24, 29, 30, 36, 0x6FFFFFFB
_VERDEF, _VERNEED = 0x6FFFFFFC, 0x6FFFFFFE
_DF_SYMBOLIC, _DF_TEXTREL, _DF_BIND_NOW, _DF_1_NOW, _DF_1_PIE = 0x2, 0x4, 0x8, 0x1, 0x08000000
_VER_FLG_BASE, _VER_FLG_WEAK = 1, 2
_RELR_TAG = "GLIBC_ABI_DT_RELR"
_GLIBC = re.compile(r"GLIBC_(\d{1,6}(?:\.\d{1,6})*)", re.ASCII)


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
        """Return the names of the undefined symbols that need ``version``, sorted."""
        return tuple(sorted(s.name for s in self.symbols if not s.defined and s.version == version))


def glibc_version(version: str) -> tuple[int, ...] | None:
    """Return ``GLIBC_2.28`` as ``(2, 28)``, or None for a name that isn't a numbered glibc version."""
    match = _GLIBC.fullmatch(version)
    return tuple(int(part) for part in match[1].split(".")) if match else None


def libc_version(data: bytes) -> tuple[int, ...] | None:
    """Return the version of the glibc whose libc.so.6 ``data`` is, or None if it is another library.

    Raises:
        BadElf: ``data`` isn't a whole ELF file.
    """
    facts = read_elf(data)
    if facts.soname != "libc.so.6":
        return None
    numbers = (glibc_version(version) for version in facts.version_definitions)
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
    strings = Strings(image, first)
    version_needs, names = _version_needs(image, first, strings)
    definitions, defined_names = _version_definitions(image, first, strings)
    libc_needs = [need.version for need in version_needs if need.library == "libc.so.6"]
    if _RELR in first and libc_needs and _RELR_TAG not in libc_needs:
        reason = f"relative relocations (DT_RELR) without a need of {_RELR_TAG}: no glibc loads it rightly"
        raise image.bad(reason)
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
        symbols=read_symbols(image, first, strings, {**names, **defined_names}),
        version_needs=version_needs,
        version_definitions=definitions,
    )


def _version_needs(
    image: Image, dynamic: dict[int, int], strings: Strings
) -> tuple[tuple[VersionNeed, ...], dict[int, str]]:
    needs: list[VersionNeed] = []
    names: dict[int, str] = {}
    if _VERNEED not in dynamic:
        return (), names
    budget = len(image.data) // 16
    for at, (_version, count, file, aux, _next) in _chain(
        image, dynamic[_VERNEED], "HHIII", 16, "the version needs"
    ):
        library = strings.at(file)
        entries = _chain(image, at + aux, "IHHII", 16, "the version needs") if count else iter(())
        for _at, (_hash, flags, other, name, _following) in entries:
            budget -= 1
            if budget < 0:
                raise image.bad("the version needs run in circles")
            needs.append(VersionNeed(library, strings.at(name), weak=bool(flags & _VER_FLG_WEAK)))
            names[other & 0x7FFF] = needs[-1].version
    return tuple(needs), names


def _version_definitions(
    image: Image, dynamic: dict[int, int], strings: Strings
) -> tuple[tuple[str, ...], dict[int, str]]:
    names: dict[int, str] = {}
    if _VERDEF not in dynamic:
        return (), names
    found = []
    for at, (_v, flags, number, count, _hash, aux, _next) in _chain(
        image, dynamic[_VERDEF], "HHHHIII", 20, "the version definitions"
    ):
        if not count:
            raise image.bad("a version definition without a name")
        (name, _following) = unpack_from(
            image.order + "II", image.at_address(at + aux, 8, "the version definitions")
        )
        names[number & 0x7FFF] = strings.at(name)
        if not flags & _VER_FLG_BASE:
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
            raise image.bad(f"{what} overlap")
        address += entry[-1]
