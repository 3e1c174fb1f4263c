"""Rows about one ELF file: what the loader sees in it against what the profile expects.

Every row that says that something is absent comes from a dynamic table that was read to its end: a file
that can't be read gives no such row, and the case then FAILs it as not reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.backends.base import Platform
from xbtasks.backends.profiles import DcmiLinkage, FileType
from xbtasks.checks import Check, Status
from xbtasks.elf.facts import BadElf, glibc_version, read_elf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xbtasks.backends.profiles import Expectation
    from xbtasks.elf.facts import ElfFacts, ElfHeader

__all__ = ["Demands", "Rows", "elf_rows"]

_MACHINE: Final = {Platform.AMD64: 62, Platform.ARM64: 183}
_MACHINE_NAME: Final = {Platform.AMD64: "x86-64", Platform.ARM64: "AArch64"}
_INTERP: Final = {
    Platform.AMD64: "/lib64/ld-linux-x86-64.so.2",
    Platform.ARM64: "/lib/ld-linux-aarch64.so.1",
}
_ET_EXEC, _ET_DYN = 2, 3
_DCMI: Final = ("dcmi_", "dcmiv2_")
_PRIVATE: Final = "GLIBC_PRIVATE"
_TAG_SINCE: Final = {"GLIBC_ABI_DT_RELR": (2, 36)}
"""The glibc that first defined a version that isn't a number (glibc 2.36, NEWS)."""


@dataclass(frozen=True, slots=True)
class Demands:
    """What is asked of every artifact of a run; ``known`` says that a profile knows the source pin."""

    platform: Platform
    known: bool
    max_glibc: tuple[int, ...] | None
    image_glibc: tuple[int, ...] | None
    foreign: bool


@dataclass(frozen=True, slots=True)
class Rows:
    """Makes the rows of one artifact: each id is the case's, each detail names the artifact."""

    case: str
    artifact: str

    def id(self, name: str) -> str:
        """Return the stable id of the check called ``name``."""
        return f"{self.case}.{name}"

    def row(self, name: str, status: Status, detail: str) -> Check:
        """Return a row without an expectation."""
        return Check(self.id(name), status, f"{self.artifact}: {detail}")

    def passed(self, name: str, detail: str) -> Check:
        """Return a PASS row."""
        return self.row(name, Status.PASS, detail)

    def failed(self, name: str, detail: str, expected: str, observed: str) -> Check:
        """Return a FAIL row."""
        return Check(self.id(name), Status.FAIL, f"{self.artifact}: {detail}", expected, observed)

    def not_reached(self, name: str, cause: str) -> Check:
        """Return the FAIL row of a check that ``cause`` (another row's detail) kept from being judged."""
        cause = cause.removeprefix(f"{self.artifact}: ")
        return self.failed(name, f"not reached: {cause}", "a file that can be read", "not judged")


def elf_rows(row: Rows, data: bytes, expectation: Expectation, demands: Demands) -> Iterator[Check]:
    """Yield the rows about the ELF file ``data``; what could not be judged is left out."""
    try:
        facts = read_elf(data)
    except BadElf as error:
        yield row.failed("elf", error.reason, "a whole ELF file that the loader takes", error.reason)
        if error.header is not None:
            yield _arch_row(row, error.header, demands)
        return
    yield row.passed("elf", f"a whole ELF file, {len(facts.symbols)} dynamic symbols")
    yield _arch_row(row, facts.header, demands)
    yield _type_row(row, facts, expectation, demands)
    yield _needed_row(row, facts, expectation, demands)
    yield from _needed_waived_row(row, facts, expectation)
    yield _needed_forbidden_row(row, facts, expectation, demands)
    yield from _undefined_rows(row, facts, expectation)
    yield from _dcmi_rows(row, facts, expectation)
    yield from _hook_rows(row, facts, expectation)
    yield from _soname_rows(row, facts, expectation)
    yield _rpath_row(row, facts)
    yield _textrel_row(row, facts)
    yield from _glibc_rows(row, facts, demands)


def _arch_row(row: Rows, header: ElfHeader, demands: Demands) -> Check:
    platform = demands.platform
    note = "; judged from its bytes, nothing of it was run on this host" if demands.foreign else ""
    if (header.machine, header.bits, header.little_endian) == (_MACHINE[platform], 64, True):
        return row.passed("arch", f"{header}{note}")
    expected = f"{_MACHINE_NAME[platform]}, 64-bit little-endian ({platform})"
    return row.failed("arch", f"not built for {platform}{note}", expected, str(header))


def _type_row(row: Rows, facts: ElfFacts, expectation: Expectation, demands: Demands) -> Check:
    interp = _INTERP[demands.platform]
    movable = facts.header.type == _ET_DYN
    program = facts.pie or facts.interp is not None
    if facts.header.type == _ET_EXEC:
        observed = "a position-dependent executable"
    elif not movable:
        observed = f"ELF type {facts.header.type_name}"
    elif program:
        observed = f"a position-independent executable for {facts.interp or 'no interpreter'}"
    else:
        observed = "a shared library"
    if expectation.type is FileType.SHARED:
        good, expected = movable and not program, "a shared library"
        why = "only a shared library can be preloaded"
    else:
        good, expected = movable and facts.interp == interp, f"a position-independent executable for {interp}"
        why = "the container has no such loader, or the link lost -pie"
    return row.passed("type", observed) if good else row.failed("type", why, expected, observed)


def _needed_row(row: Rows, facts: ElfFacts, expectation: Expectation, demands: Demands) -> Check:
    observed = _list(facts.needed) or "nothing"
    missing = [name for name in expectation.needed if name not in facts.needed]
    if missing:
        why = expectation.hint(*missing) or "the stage did not link it"
        return row.failed("needed", f"no {_list(missing)}: {why}", _list(expectation.needed), observed)
    if demands.known:
        return row.passed("needed", observed)
    return row.row("needed", Status.WARN, f"{observed}; what this source pin must link isn't known")


def _needed_waived_row(row: Rows, facts: ElfFacts, expectation: Expectation) -> Iterator[Check]:
    waived = [name for name in expectation.waived if name not in facts.needed]
    if waived:
        yield row.row("needed-waived", Status.INFO, f"the profile accepts no NEEDED of {_list(waived)}")


def _needed_forbidden_row(row: Rows, facts: ElfFacts, expectation: Expectation, demands: Demands) -> Check:
    paths = [name for name in facts.needed if "/" in name]
    wrong = [name for name in facts.needed if name in expectation.forbidden]
    if paths:
        why = "a path in NEEDED exists only where it was built: the library that was linked has no SONAME"
        return row.failed("needed-forbidden", why, "names without a path", _list(paths))
    if wrong:
        why = expectation.hint(*wrong) or "this source doesn't link it"
        expected = f"no {_list(expectation.forbidden)}"
        return row.failed("needed-forbidden", f"{_list(wrong)}: {why}", expected, _list(facts.needed))
    if demands.known:
        without = "".join(f"no {name}, " for name in expectation.forbidden)
        return row.passed("needed-forbidden", f"{without}no entry with a path")
    detail = "no entry with a path; what this source pin must not link isn't known"
    return row.row("needed-forbidden", Status.WARN, detail)


def _undefined_rows(row: Rows, facts: ElfFacts, expectation: Expectation) -> Iterator[Check]:
    """Judge that each strong undefined symbol has a library that can define it.

    A shared library links even if a source file was left out; then the first call, or with BIND_NOW the
    first process, ends in a symbol lookup error. glibc's symbols carry versions, which the loader checks
    against the library; the others are known by their names.
    """
    known = {*expectation.needed, *expectation.forbidden, *expectation.allowed, *expectation.waived}
    extra = [name for name in facts.needed if name not in known]
    if extra:
        why = (
            expectation.hint(*(f"extra {name}" for name in extra)) or "where it is absent every process dies"
        )
        yield row.row("needed-extra", Status.WARN, f"NEEDED also has {_list(extra)}: {why}")
    patterns = [pattern for library, pattern in expectation.providers if library in facts.needed]
    orphans = [
        symbol.name
        for symbol in facts.undefined
        if symbol.binding != "WEAK"
        and not symbol.version
        and not any(_fits(symbol.name, p) for p in patterns)
    ]
    if not orphans:
        yield row.passed("undefined", "NEEDED has a library for every strong undefined symbol")
    elif extra:
        yield row.passed("undefined", f"{_list(orphans)} may come from {_list(extra)}")
    else:
        why = expectation.hint(*orphans) or "a source file was left out, or a library wasn't linked"
        detail = f"no library in NEEDED defines {_list(orphans)}: {why}"
        yield row.failed("undefined", detail, "a library for every strong undefined symbol", _list(orphans))


def _fits(name: str, pattern: str) -> bool:
    """Whether ``name`` fits ``pattern``, which has its ``*`` at the beginning or at the end."""
    return name.endswith(pattern[1:]) if pattern[0] == "*" else name.startswith(pattern.removesuffix("*"))


def _dcmi_rows(row: Rows, facts: ElfFacts, expectation: Expectation) -> Iterator[Check]:
    linkage = expectation.dcmi_linkage
    if linkage is DcmiLinkage.NONE:
        return
    dcmi = [symbol for symbol in facts.symbols if symbol.name.startswith(_DCMI)]
    defined = {symbol.name for symbol in dcmi if symbol.defined}
    weak = {symbol.name for symbol in dcmi if not symbol.defined and symbol.binding == "WEAK"}
    strong = {symbol.name for symbol in dcmi} - defined - weak
    missing = [name for name in expectation.weak if name not in weak | strong | defined]
    parts = (("weak", weak), ("strong", strong), ("defined", defined))
    observed = "; ".join(f"{word}: {_list(sorted(names))}" for word, names in parts if names) or "none"
    expected = f"weak: {_list(expectation.weak)}"
    if linkage is DcmiLinkage.UNKNOWN:
        detail = f"{observed}; what this source pin must have isn't known"
        yield row.row("dcmi-weak", Status.WARN, detail)
    elif defined:
        detail = "it defines dcmi itself: libdcmi is linked in, or stubbed"
        yield row.failed("dcmi-weak", detail, expected if expectation.weak else "strong", observed)
    elif linkage is DcmiLinkage.STRONG:
        if strong and not weak:
            yield row.passed("dcmi-weak", f"{len(strong)} strong undefined symbols, which NEEDED binds")
        else:
            why = "this source refers to dcmi strongly: does the profile fit the source pin?"
            yield row.failed("dcmi-weak", why, "strong undefined dcmi symbols", observed)
    elif strong or missing:
        what = f"strong: {_list(sorted(strong))}" if strong else f"absent: {_list(missing)}"
        yield row.failed("dcmi-weak", f"{what}; {expectation.hint('dcmi')}", expected, observed)
    else:
        yield row.passed("dcmi-weak", f"{len(weak)} weak undefined symbols")


def _hook_rows(row: Rows, facts: ElfFacts, expectation: Expectation) -> Iterator[Check]:
    exported = facts.exported
    missing = [name for name in expectation.hooks if name not in exported]
    if missing:
        most = 2 * len(missing) > len(expectation.hooks)
        why = expectation.hint("hooks") if most else expectation.hint(*missing)
        detail = f"{_list(missing)} not exported: {why or 'a program that calls it is not limited'}"
        have = len(expectation.hooks) - len(missing)
        observed = f"{have} of {len(expectation.hooks)}; "
        observed += _list(f"{name} {_why_not(facts, name)}" for name in missing)
        yield row.failed("hooks", detail, f"exported functions {_list(expectation.hooks)}", observed)
    elif expectation.hooks:
        yield row.passed("hooks", f"all {len(expectation.hooks)} required hooks are exported functions")
    counts = ((prefix, sum(name.startswith(prefix) for name in exported)) for prefix in expectation.counts)
    detail = ", ".join([f"exports {len(exported)} functions", *(f"{n} {prefix}*" for prefix, n in counts)])
    yield row.row("hook-count", Status.INFO, detail)


def _why_not(facts: ElfFacts, name: str) -> str:
    """Say why ``name`` isn't an exported function."""
    found = [symbol for symbol in facts.symbols if symbol.name == name]
    if not found:
        return "absent"
    if not found[0].defined:
        return "undefined"
    return f"not a function ({found[0].type})" if found[0].exported else "hidden"


def _soname_rows(row: Rows, facts: ElfFacts, expectation: Expectation) -> Iterator[Check]:
    if expectation.soname is None:
        return
    if facts.soname == expectation.soname:
        yield row.passed("soname", facts.soname)
    else:
        why = "it is another library, or was renamed after it was linked"
        yield row.failed("soname", why, expectation.soname, facts.soname or "none")


def _rpath_row(row: Rows, facts: ElfFacts) -> Check:
    tags = (("RPATH", facts.rpath), ("RUNPATH", facts.runpath))
    found = [f"{tag} {value}" for tag, value in tags if value is not None]
    if not found:
        return row.passed("rpath", "neither RPATH nor RUNPATH")
    why = "libraries would be searched where it was built: link with CMAKE_SKIP_RPATH"
    return row.failed("rpath", why, "neither RPATH nor RUNPATH", _list(found))


def _textrel_row(row: Rows, facts: ElfFacts) -> Check:
    if not facts.textrel:
        return row.passed("textrel", "no text relocations")
    why = "code that isn't position-independent was linked in: compile all of it with -fPIC"
    return row.failed("textrel", why, "no text relocations", "text relocations (TEXTREL)")


def _glibc_rows(row: Rows, facts: ElfFacts, demands: Demands) -> Iterator[Check]:
    if _PRIVATE in facts.glibc_tags:
        why = "glibc's internals change with every release: it runs only with the glibc it was built with"
        users = _list(facts.users_of(_PRIVATE)) or _PRIVATE
        yield row.failed("glibc-private", f"{users}: {why}", f"no need of {_PRIVATE}", users)
    else:
        yield row.passed("glibc-private", f"no need of {_PRIVATE}")
    need, names = _glibc_need(facts)
    text = f"needs {names}" if need else "needs no numbered GLIBC version"
    unknown = [tag for tag in facts.glibc_tags if tag not in _TAG_SINCE and tag != _PRIVATE]
    if unknown:
        text += f"; also {_list(unknown)}"
    limits = (
        ("glibc", demands.max_glibc, "XB_MAX_GLIBC allows"),
        ("glibc-image", demands.image_glibc, "the workload image has"),
    )
    for name, limit, says in limits:
        if limit is None:
            continue
        expected = f"at most GLIBC_{_dotted(limit)}"
        if need is not None and need > limit:
            why = f"{text}, {says} {_dotted(limit)}: build it on a base with an older glibc"
            yield row.failed(name, why, expected, f"GLIBC_{_dotted(need)}")
        elif unknown:
            why = f"no number is known for {_list(unknown)}, so it can't be compared with {_dotted(limit)}"
            yield row.failed(name, why, expected, _list(unknown))
        else:
            yield row.passed(name, f"{text}; {says} {_dotted(limit)}")
    if demands.max_glibc is None:
        yield row.row("glibc", Status.INFO, text)


def _glibc_need(facts: ElfFacts) -> tuple[tuple[int, ...] | None, str]:
    """Return the glibc that the file needs, tags whose glibc is known included, and what needs it."""
    numbers = {
        need.version: number
        for need in facts.version_needs
        if not need.weak and (number := glibc_version(need.version) or _TAG_SINCE.get(need.version))
    }
    if not numbers:
        return None, ""
    version, number = max(numbers.items(), key=lambda item: item[1])
    users = facts.users_of(version)
    more = f" and {len(users) - 3} more" if len(users) > 3 else ""
    since = f" (glibc {_dotted(number)})" if version in _TAG_SINCE else ""
    return number, f"{version}{since}{f' for {_list(users[:3])}{more}' if users else ''}"


def _dotted(number: tuple[int, ...]) -> str:
    return ".".join(map(str, number))


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
