"""What a result keeps of an artifact's ELF file, small enough to store and enough to compare two builds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.elf.facts import BadElf, read_elf

if TYPE_CHECKING:
    from xbtasks.elf.facts import ElfFacts, Symbol

__all__ = ["ElfSummary", "summarize"]


@dataclass(frozen=True, slots=True)
class ElfSummary:
    """The facts of a shared library or an executable that a change of its source or build may move.

    ``soname``, ``rpath``, ``runpath`` and ``interp`` are None where the file has none. ``glibc`` is the
    highest numbered GLIBC version it needs (``2.34``), or empty; ``glibc_tags`` are needs without a number.
    ``exported`` names the functions that others would be bound to, the hooks among them. ``imports`` and
    ``weak_imports`` are its undefined symbols, ``name`` or ``name@VERSION``. Names are sorted.
    """

    arch: str
    type: str
    soname: str | None
    needed: tuple[str, ...]
    rpath: str | None
    runpath: str | None
    interp: str | None
    glibc: str
    glibc_tags: tuple[str, ...]
    textrel: bool
    bind_now: bool
    exported: tuple[str, ...]
    imports: tuple[str, ...]
    weak_imports: tuple[str, ...]


def summarize(data: bytes) -> ElfSummary | None:
    """Return the summary of the ELF file ``data``, or None where the loader would not take it."""
    try:
        facts = read_elf(data)
    except BadElf:
        return None
    weak = {_spelt(symbol) for symbol in facts.undefined if symbol.binding == "WEAK"}
    strong = {_spelt(symbol) for symbol in facts.undefined if symbol.binding != "WEAK"}
    return ElfSummary(
        arch=str(facts.header),
        type=_type(facts),
        soname=facts.soname,
        needed=facts.needed,
        rpath=facts.rpath,
        runpath=facts.runpath,
        interp=facts.interp,
        glibc=".".join(map(str, facts.glibc_need or ())),
        glibc_tags=facts.glibc_tags,
        textrel=facts.textrel,
        bind_now=facts.bind_now,
        exported=tuple(sorted(facts.exported)),
        imports=tuple(sorted(strong)),
        weak_imports=tuple(sorted(weak)),
    )


def _type(facts: ElfFacts) -> str:
    if facts.header.type_name != "DYN":
        return facts.header.type_name
    return "executable (PIE)" if facts.pie or facts.interp is not None else "shared library"


def _spelt(symbol: Symbol) -> str:
    return f"{symbol.name}@{symbol.version}" if symbol.version else symbol.name
