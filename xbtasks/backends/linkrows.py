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
from xbtasks.elf import BadElf, glibc_version, read_elf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xbtasks.backends.profiles import Expectation
    from xbtasks.elf import ElfFacts, ElfHeader, Symbol

__all__ = ["Demands", "Rows", "elf_rows"]

_MACHINE: Final = {Platform.AMD64: 62, Platform.ARM64: 183}
_INTERP: Final = {
    Platform.AMD64: "/lib64/ld-linux-x86-64.so.2",
    Platform.ARM64: "/lib/ld-linux-aarch64.so.1",
}
_MACHINE_NAME: Final = {Platform.AMD64: "x86-64", Platform.ARM64: "AArch64"}
_ET_DYN: Final = 3
_DCMI: Final = ("dcmi_", "dcmiv2_")
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

    def passed(self, name: str, detail: str) -> Check:
        """Return a PASS row."""
        return self.row(name, Status.PASS, detail)

    def failed(self, name: str, detail: str, expected: str, observed: str) -> Check:
        """Return a FAIL row."""
        return Check(self.id(name), Status.FAIL, f"{self.artifact}: {detail}", expected, observed)

    def row(self, name: str, status: Status, detail: str) -> Check:
        """Return a row without an expectation."""
        return Check(self.id(name), status, f"{self.artifact}: {detail}")

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
    yield row.passed("elf", f"a whole ELF file: {len(facts.symbols)} dynamic symbols")
    yield _arch_row(row, facts.header, demands)
    yield _type_row(row, facts, expectation, demands)
    yield from _needed_rows(row, facts, expectation, demands)
    yield from _dcmi_rows(row, facts, expectation)
    yield from _hook_rows(row, facts, expectation)
    yield from _dynamic_rows(row, facts, expectation)
    yield from _glibc_rows(row, facts, expectation, demands)


def _arch_row(row: Rows, header: ElfHeader, demands: Demands) -> Check:
    platform = demands.platform
    note = "; judged from its bytes, nothing of it was run on this host" if demands.foreign else ""
    expected = f"{_MACHINE_NAME[platform]}, 64-bit little-endian ({platform})"
    if (header.machine, header.bits, header.little_endian) == (_MACHINE[platform], 64, True):
        return row.passed("arch", f"{header}{note}")
    return row.failed("arch", f"not built for {platform}{note}", expected, str(header))


def _type_row(row: Rows, facts: ElfFacts, expectation: Expectation, demands: Demands) -> Check:
    interp = _INTERP[demands.platform]
    program = facts.pie or facts.interp is not None
    if facts.header.type != _ET_DYN:
        observed = f"ELF type {facts.header.type_name}"
        if facts.header.type_name == "EXEC":
            observed = "a position-dependent executable (EXEC)"
    elif program:
        observed = f"a position-independent executable run by {facts.interp or 'no interpreter'}"
    else:
        observed = "a shared library"
    if expectation.type is FileType.SHARED:
        good, expected = facts.header.type == _ET_DYN and not program, "a shared library"
        why = "a file that isn't a shared library can't be preloaded"
    else:
        good = facts.header.type == _ET_DYN and facts.interp == interp
        expected = f"a position-independent executable run by {interp}"
        why = "the container's loader can't run it, or it lost its hardening (-pie)"
    return row.passed("type", observed) if good else row.failed("type", why, expected, observed)


def _needed_rows(row: Rows, facts: ElfFacts, expectation: Expectation, demands: Demands) -> Iterator[Check]:
    observed = _list(facts.needed)
    missing = [name for name in expectation.needed if name not in facts.needed]
    if missing:
        why = expectation.hint(*missing)
        detail = f"NEEDED lacks {_list(missing)}{f': {why}' if why else ''}"
        yield row.failed("needed", detail, _list(expectation.needed), observed)
    elif demands.known:
        yield row.passed("needed", f"NEEDED {observed}")
    else:
        yield row.row("needed", Status.WARN, f"NEEDED {observed}; what this source pin must link isn't known")
    waived = [name for name in expectation.waived if name not in facts.needed]
    if waived:
        detail = f"the profile accepts that NEEDED lacks {_list(waived)}"
        yield row.row("needed-waived", Status.INFO, detail)
    paths = [name for name in facts.needed if "/" in name]
    wrong = [name for name in facts.needed if name in expectation.forbidden]
    if paths:
        why = "a path in NEEDED exists only where it was built: the library linked had no SONAME"
        yield row.failed("needed-forbidden", why, "names without a path", _list(paths))
    elif wrong:
        why = f"NEEDED has {_list(wrong)}: {expectation.hint(*wrong) or 'this source does not link it'}"
        yield row.failed("needed-forbidden", why, f"no {_list(expectation.forbidden)}", _list(wrong))
    elif demands.known:
        names = f"no {_list(expectation.forbidden)} and " if expectation.forbidden else ""
        yield row.passed("needed-forbidden", f"{names}no path in NEEDED")
    else:
        detail = "no path in NEEDED; what this source pin must not link isn't known"
        yield row.row("needed-forbidden", Status.WARN, detail)
    known = {*expectation.needed, *expectation.forbidden, *expectation.allowed, *expectation.waived}
    extra = [name for name in facts.needed if name not in known and name not in paths]
    if extra:
        detail = f"NEEDED also has {_list(extra)}: where it is absent every process dies at its start"
        yield row.row("needed-extra", Status.WARN, detail)


def _dcmi_rows(row: Rows, facts: ElfFacts, expectation: Expectation) -> Iterator[Check]:
    linkage = expectation.dcmi_linkage
    if linkage is DcmiLinkage.NONE:
        return
    dcmi = [symbol for symbol in facts.symbols if symbol.name.startswith(_DCMI)]
    weak = {symbol.name for symbol in dcmi if not symbol.defined and symbol.binding == "WEAK"}
    observed = _list(_linkage(symbol) for symbol in dcmi) or "no dcmi symbol"
    defined = [symbol.name for symbol in dcmi if symbol.defined]
    strong = sorted({symbol.name for symbol in dcmi if not symbol.defined} - weak)
    if linkage is DcmiLinkage.UNKNOWN:
        if defined:
            yield row.failed("dcmi-weak", "it defines dcmi itself", "dcmi undefined", observed)
        else:
            detail = f"{len(weak)} weak and {len(strong)} strong; what this source pin must have isn't known"
            yield row.row("dcmi-weak", Status.WARN, detail)
        return
    expected = (
        f"weak undefined {_list(expectation.weak)}" if expectation.weak else "strong undefined dcmi symbols"
    )
    missing = [name for name in expectation.weak if name not in weak]
    if defined:
        yield row.failed("dcmi-weak", f"it defines {_list(defined)} itself", expected, observed)
    elif linkage is DcmiLinkage.STRONG:
        good = strong and not weak
        detail = f"{len(strong)} strong undefined symbols, bound by NEEDED"
        why = "dcmi isn't bound by NEEDED: does the profile fit the source pin?"
        yield row.passed("dcmi-weak", detail) if good else row.failed("dcmi-weak", why, expected, observed)
    elif strong or missing:
        what = f"strong: {_list(strong)}" if strong else f"not there: {_list(missing)}"
        yield row.failed("dcmi-weak", f"{what}; {expectation.hint('dcmi')}", expected, observed)
    else:
        yield row.passed("dcmi-weak", f"{len(weak)} weak undefined symbols")


def _linkage(symbol: Symbol) -> str:
    return f"{symbol.name} ({symbol.binding.lower()} {'defined' if symbol.defined else 'undefined'})"


def _hook_rows(row: Rows, facts: ElfFacts, expectation: Expectation) -> Iterator[Check]:
    exported = facts.exported
    missing = [name for name in expectation.hooks if name not in exported]
    if missing:
        why = expectation.hint("hooks") if len(missing) > 1 else expectation.hint(*missing, "hooks")
        detail = f"{len(missing)} hooks aren't exported functions: {_list(missing)}; {why}"
        observed = f"{len(expectation.hooks) - len(missing)} of them, {len(exported)} exported functions"
        yield row.failed("hooks", detail, _list(expectation.hooks), observed)
    elif expectation.hooks:
        yield row.passed("hooks", f"all {len(expectation.hooks)} required hooks are exported functions")
    counts = [(prefix, sum(name.startswith(prefix) for name in exported)) for prefix in expectation.counts]
    detail = ", ".join(f"{count} {prefix}*" for prefix, count in counts)
    yield row.row("hook-count", Status.INFO, f"exports {len(exported)} functions: {detail}")


def _dynamic_rows(row: Rows, facts: ElfFacts, expectation: Expectation) -> Iterator[Check]:
    if expectation.soname is not None:
        if facts.soname == expectation.soname:
            yield row.passed("soname", facts.soname)
        else:
            why = "programs and the loader know it by another name"
            yield row.failed("soname", why, expectation.soname, facts.soname or "none")
    paths = [
        f"{tag} {value}"
        for tag, value in (("RPATH", facts.rpath), ("RUNPATH", facts.runpath))
        if value is not None
    ]
    if paths:
        why = "libraries are searched where it was built: link with CMAKE_SKIP_RPATH, or strip it"
        yield row.failed("rpath", why, "neither RPATH nor RUNPATH", _list(paths))
    else:
        yield row.passed("rpath", "neither RPATH nor RUNPATH")
    if facts.textrel:
        why = "code that isn't position-independent was linked in: compile all of it with -fPIC"
        yield row.failed("textrel", why, "no text relocations", "text relocations (TEXTREL)")
    else:
        yield row.passed("textrel", "no text relocations")


def _glibc_rows(row: Rows, facts: ElfFacts, expectation: Expectation, demands: Demands) -> Iterator[Check]:
    private = [f"{name} (GLIBC_PRIVATE)" for name in facts.users_of("GLIBC_PRIVATE")]
    if "GLIBC_PRIVATE" in facts.glibc_tags and not private:
        private.append("GLIBC_PRIVATE")
    private += [
        s.name for s in facts.symbols if not s.defined and not s.version and s.name in expectation.private
    ]
    if private:
        why = expectation.hint(*(name.partition(" ")[0] for name in private)) or (
            "glibc's own internals change with every release: it runs only with the glibc it was built with"
        )
        yield row.failed("glibc-private", why, "no private glibc symbol", _list(private))
    else:
        yield row.passed("glibc-private", "no private glibc symbol")
    need, names = _need(facts)
    tags = f"; also {_list(facts.glibc_tags)}" if facts.glibc_tags else ""
    text = f"needs {names}{tags}" if need else f"needs no numbered GLIBC version{tags}"
    limits = (
        ("glibc", demands.max_glibc, "at most", "XB_MAX_GLIBC allows"),
        ("glibc-image", demands.image_glibc, "the workload image's", "the workload image has"),
    )
    for name, limit, bound, says in limits:
        if limit is None:
            continue
        unknown = [tag for tag in facts.glibc_tags if tag not in _TAG_SINCE and tag != "GLIBC_PRIVATE"]
        if need is not None and need > limit:
            why = f"{text}, {says} {_dotted(limit)}: build it on a base with an older glibc"
            yield row.failed(name, why, f"{bound} GLIBC_{_dotted(limit)}", f"GLIBC_{_dotted(need)}")
        elif unknown:
            why = f"which glibc brought {_list(unknown)} isn't known here, so it can't be compared"
            yield row.failed(name, why, f"{bound} GLIBC_{_dotted(limit)}", _list(unknown))
        else:
            yield row.passed(name, f"{text}; {says} {_dotted(limit)}")
    if demands.max_glibc is None:
        yield row.row("glibc", Status.INFO, text)


def _need(facts: ElfFacts) -> tuple[tuple[int, ...] | None, str]:
    """Return the glibc that the file needs, versions that aren't numbers included, and what needs it."""
    needs = {
        need.version: glibc_version(need.version) or _TAG_SINCE.get(need.version)
        for need in facts.version_needs
        if not need.weak
    }
    numbers = {version: number for version, number in needs.items() if number is not None}
    if not numbers:
        return None, ""
    version, number = max(numbers.items(), key=lambda item: item[1])
    users = facts.users_of(version)
    more = f" and {len(users) - 3} more" if len(users) > 3 else ""
    since = f" (GLIBC_{_dotted(number)})" if version in _TAG_SINCE else ""
    return number, f"{version}{since}{f' for {_list(users[:3])}{more}' if users else ''}"


def _dotted(number: tuple[int, ...]) -> str:
    return ".".join(map(str, number))


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
