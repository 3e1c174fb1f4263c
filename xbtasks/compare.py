"""What changed from one result to another: verdicts, checks, and what the loader sees of each artifact.

The question it answers is what a change of source, pin or base image did. Pure: two results in, values out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from xbtasks.checks import Status, Verdict
from xbtasks.places import places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xbtasks.checks import CaseReport, Check
    from xbtasks.elf.summary import ElfSummary
    from xbtasks.places import Place
    from xbtasks.result import ArtifactRecord, Result

__all__ = ["Change", "Comparison", "compare"]

_VERDICTS: Final = (Verdict.PASS, Verdict.SKIP, Verdict.ERROR, Verdict.FAIL)
_STATUSES: Final = (Status.PASS, Status.INFO, Status.SKIP, Status.WARN, Status.FAIL)
_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is another in the second result.

    ``subject`` is a case, an artifact, ``the stage`` or ``the run``; ``place`` is its stage (on its host).
    ``trend`` is ``worse`` or ``better`` for verdicts and checks, else ``changed``. ``before`` and ``after``
    are what people compare; of a list of names ``lost`` and ``gained`` say which.
    """

    subject: str
    what: str
    before: str
    after: str
    trend: str = "changed"
    lost: tuple[str, ...] = ()
    gained: tuple[str, ...] = ()
    detail: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """All changes from ``before`` to ``after``.

    ``cases`` and ``artifacts`` count what both of them have; ``places`` are the stages that were looked at.
    """

    before: Result
    after: Result
    changes: tuple[Change, ...]
    cases: int
    artifacts: int
    places: tuple[str, ...]


def compare(before: Result, after: Result) -> Comparison:
    """Return what changed.

    Stages are compared by name, hosts by name where a result has several. Where each result has one stage,
    the two are compared whatever their names.
    """
    pairs = tuple(_pairs(places(before), places(after)))
    changes = [*_run_changes(before, after)]
    cases = artifacts = 0
    for name, one, two in pairs:
        if one is None or two is None:
            was, now = ("run" if place else "not run" for place in (one, two))
            changes.append(Change("the stage", "run", was, now, place=name))
            continue
        found = (*_stage_changes(one, two), *_case_changes(one, two), *_artifact_changes(one, two))
        changes += [replace(change, place=name) for change in found]
        cases += len(_cases(one).keys() & _cases(two).keys())
        artifacts += len(_artifacts(one).keys() & _artifacts(two).keys())
    return Comparison(before, after, tuple(changes), cases, artifacts, tuple(name for name, _, _ in pairs))


def _pairs(
    before: tuple[Place, ...], after: tuple[Place, ...]
) -> Iterator[tuple[str, Place | None, Place | None]]:
    """Yield each stage (on its host) with what both results have of it."""
    if len(before) == len(after) == 1:
        names = dict.fromkeys((before[0].stage, after[0].stage))
        yield " → ".join(names), before[0], after[0]
        return
    several = any(len({place.host for place in found}) > 1 for found in (before, after))

    def by_key(found: Iterable[Place]) -> dict[tuple[str, str], Place]:
        return {(place.stage, place.host if several else ""): place for place in found}

    one, two = by_key(before), by_key(after)
    for key in dict.fromkeys((*one, *two)):
        stage, host = key
        yield f"{stage} on {host}" if host else stage, one.get(key), two.get(key)


def _run_changes(before: Result, after: Result) -> Iterator[Change]:
    if before.verdict is not after.verdict:
        trend = _trend(_VERDICTS.index(before.verdict), _VERDICTS.index(after.verdict))
        yield Change("the run", "verdict", before.verdict, after.verdict, trend)
    for what, one, two in (
        ("engine", before.engine, after.engine),
        ("host", before.host, after.host),
        ("simulated", _yes(before.simulated), _yes(after.simulated)),
    ):
        if one != two:
            yield Change("the run", what, one or _NONE, two or _NONE)


def _stage_changes(before: Place, after: Place) -> Iterator[Change]:
    was, fails = _build_failed(before), _build_failed(after)
    if was != fails:
        words = {True: "failed", False: "not failed"}
        yield Change("the stage", "build", words[was], words[fails], _trend(was, fails))
    pins = [", ".join(dict.fromkeys(each.pin for each in place.artifacts)) for place in (before, after)]
    if pins[0] != pins[1] and before.artifacts and after.artifacts:
        yield Change("the stage", "source pin", pins[0] or "unknown", pins[1] or "unknown")


def _case_changes(before: Place, after: Place) -> Iterator[Change]:
    one, two = _cases(before), _cases(after)
    for case in dict.fromkeys((*one, *two)):
        yield from _one_case(case, one.get(case), two.get(case))


def _build_failed(place: Place) -> bool:
    return any(build.outcome == "failed" for build in place.builds)


def _cases(place: Place) -> dict[str, CaseReport]:
    return {case.id: case for case in place.cases}


def _one_case(subject: str, before: CaseReport | None, after: CaseReport | None) -> Iterator[Change]:
    if before is None or after is None:
        was, now = (case.verdict if case else "not run" for case in (before, after))
        yield Change(subject, "verdict", was, now, detail=after.reason if after else "")
        return
    if before.verdict is not after.verdict:
        trend = _trend(_VERDICTS.index(before.verdict), _VERDICTS.index(after.verdict))
        yield Change(subject, "verdict", before.verdict, after.verdict, trend, detail=after.reason)
    one, two = _rows(before.checks), _rows(after.checks)
    # a case that was skipped, or ended half way, has no rows for reasons that say nothing of each of them
    judged = all(case.verdict in (Verdict.PASS, Verdict.FAIL) for case in (before, after))
    for key in dict.fromkeys((*one, *two)):
        rows = [row for row in (one.get(key), two.get(key)) if row is not None]
        if judged or len(rows) == 2 or rows[0].status is Status.FAIL:
            yield from _one_check(subject, one.get(key), two.get(key))


def _rows(checks: Iterable[Check]) -> dict[tuple[str, int], Check]:
    """Return the rows by id and, where an id has several (one per artifact), their number."""
    rows: dict[tuple[str, int], Check] = {}
    seen: dict[str, int] = {}
    for row in checks:
        seen[row.id] = seen.get(row.id, 0) + 1
        rows[row.id, seen[row.id]] = row
    return rows


def _one_check(subject: str, before: Check | None, after: Check | None) -> Iterator[Change]:
    one, two = (row.status if row else None for row in (before, after))
    row = after or before
    if one is two or row is None:
        return
    trend = "changed"
    if one is not None and two is not None:
        trend = _trend(_STATUSES.index(one), _STATUSES.index(two))
    elif two is Status.FAIL or one is Status.FAIL:
        trend = "worse" if two is Status.FAIL else "better"
    detail = row.detail
    if two is Status.FAIL and row.observed:
        detail += f" (observed {row.observed})"
    yield Change(subject, row.id, one or "no row", two or "no row", trend, detail=detail)


def _artifact_changes(before: Place, after: Place) -> Iterator[Change]:
    one, two = _artifacts(before), _artifacts(after)
    for path in dict.fromkeys((*one, *two)):
        yield from _one_artifact(path, one.get(path), two.get(path))


def _artifacts(place: Place) -> dict[str, ArtifactRecord]:
    return {artifact.path: artifact for artifact in place.artifacts}


def _one_artifact(
    subject: str, before: ArtifactRecord | None, after: ArtifactRecord | None
) -> Iterator[Change]:
    if before is None or after is None:
        was, now = ("found" if each else "not found, or not looked at" for each in (before, after))
        yield Change(subject, "file", was, now)
        return
    if before.sha256 == after.sha256:
        return
    yield Change(subject, "sha256", before.sha256, after.sha256)
    if before.size != after.size:
        detail = f"{after.size - before.size:+,} bytes"
        yield Change(subject, "size", f"{before.size:,}", f"{after.size:,}", detail=detail)
    if before.elf is not None and after.elf is not None:
        yield from _elf_changes(subject, before.elf, after.elf)
    elif (before.elf is None) is not (after.elf is None):
        was, now = ("known" if each.elf else "not kept, or no ELF file" for each in (before, after))
        yield Change(subject, "ELF facts", was, now)


def _elf_changes(subject: str, before: ElfSummary, after: ElfSummary) -> Iterator[Change]:
    for what, one, two in (
        ("type", before.type, after.type),
        ("architecture", before.arch, after.arch),
        ("SONAME", before.soname, after.soname),
        ("GLIBC need", before.glibc, after.glibc),
        ("RPATH", before.rpath, after.rpath),
        ("RUNPATH", before.runpath, after.runpath),
        ("interpreter", before.interp, after.interp),
        ("text relocations", _yes(before.textrel), _yes(after.textrel)),
        ("BIND_NOW", _yes(before.bind_now), _yes(after.bind_now)),
    ):
        if one != two:
            yield Change(subject, what, one or _NONE, two or _NONE)
    if before.needed != after.needed:
        was, now = (", ".join(each.needed) or _NONE for each in (before, after))
        yield _names(subject, "NEEDED", (was, now), before.needed, after.needed)
    for what, old, new in (
        ("exported functions", before.exported, after.exported),
        ("imported symbols", before.imports, after.imports),
        ("weak imports", before.weak_imports, after.weak_imports),
        ("GLIBC tags", before.glibc_tags, after.glibc_tags),
    ):
        if old != new:
            yield _names(subject, what, (str(len(old)), str(len(new))), old, new)


def _names(
    subject: str, what: str, shown: tuple[str, str], before: tuple[str, ...], after: tuple[str, ...]
) -> Change:
    was, now = frozenset(before), frozenset(after)
    lost = tuple(name for name in before if name not in now)
    gained = tuple(name for name in after if name not in was)
    return Change(subject, what, *shown, lost=lost, gained=gained)


def _trend(before: int, after: int) -> str:
    """Return which way a rank went; the higher one is the worse."""
    return "worse" if after > before else "better"


def _yes(value: bool) -> str:  # noqa: FBT001 - a value, not a switch
    return "yes" if value else "no"
