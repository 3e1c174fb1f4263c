"""The tables of the HTML page: each has a caption, its headers a scope, its cells on a phone their labels."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from xbtasks.checks import Status, Verdict
from xbtasks.places import case_numbers
from xbtasks.reporting.markup import Markup, element, join
from xbtasks.result import verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xbtasks.checks import CaseReport, Check
    from xbtasks.elf.summary import ElfSummary
    from xbtasks.errors import ExitCode
    from xbtasks.places import Place
    from xbtasks.result import ArtifactRecord, BuildRecord

__all__ = [
    "artifact_section",
    "build_section",
    "case_sections",
    "check_table",
    "error_note",
    "grid_section",
    "place_notes",
    "section",
    "signed",
    "time_section",
]

_SIGNS: Final = {"PASS": "✓", "FAIL": "✗", "ERROR": "!", "WARN": "▲", "SKIP": "–", "INFO": "i"}  # noqa: RUF001
_OUTCOMES: Final = {"built": "PASS", "up to date": "PASS", "failed": "FAIL"}
_ORDER: Final = (Status.FAIL, Status.WARN, Status.SKIP, Status.PASS, Status.INFO)
_WORST: Final = (Verdict.FAIL, Verdict.ERROR, Verdict.SKIP, Verdict.PASS)
_MOST_NAMES: Final = 2000
_FEW_HOSTS: Final = 3


def signed(word: str, *, text: str = "", class_: str = "status") -> Markup:
    """Return a status or verdict: a sign for the eye and the word for everybody."""
    sign = element("span", _SIGNS[word], aria_hidden="true")
    return element("span", sign, text or word, class_=f"{class_} {word.lower()}")


def section(title: str, anchor: str, *children: str) -> Markup:
    """Return a section with a heading that the table of contents leads to."""
    heading = element("h2", title, id=anchor)
    return element("section", heading, *children, aria_labelledby=anchor)


def error_note(code: ExitCode, text: str) -> Markup:
    """Return a line about something that could not be done, beside the cases."""
    return element("li", signed(verdict_of(code)), element("span", text, class_="text"))


def place_notes(found: Sequence[Place]) -> Iterator[Markup]:
    """Yield a line for each build and case that did not pass, or passed on terms; the worst first."""
    several = len({place.host for place in found}) > 1
    notes: list[tuple[int, Markup]] = []
    for place in found:
        where = f"{place.stage} on {place.host}" if several else place.stage
        notes += [
            (0, _note(Verdict.FAIL, "builds", f"build of {where}", build.reason))
            for build in place.builds
            if build.outcome == "failed"
        ]
        notes += [
            (
                _WORST.index(case.verdict),
                _note(case.verdict, _anchor(place, case), f"{case.id} of {where}", case.reason),
            )
            for case in place.cases
            if case.reason
        ]
    yield from (note for _, note in sorted(notes, key=lambda each: each[0]))


def _note(verdict: Verdict, anchor: str, name: str, reason: str) -> Markup:
    link = element("a", name, href=f"#{anchor}")
    return element("li", signed(verdict), element("span", link, f": {reason}", class_="text"))


def grid_section(found: Sequence[Place]) -> Markup:
    """Return the tables of verdicts, one for each host: a line for each stage, a column for each case."""
    numbers = case_numbers(found)
    hosts = tuple(dict.fromkeys(place.host for place in found))
    if len(hosts) == 1:
        table = _grid(found, numbers, "Verdict of each case on each stage")
        return section("Overview", "overview", element("div", table, class_="card"))
    folds = (_host_fold(found, host, numbers, few=len(hosts) <= _FEW_HOSTS) for host in hosts)
    return section("Overview", "overview", *folds)


def _host_fold(found: Sequence[Place], host: str, numbers: Sequence[str], *, few: bool) -> Markup:
    """Return the table of one host behind a fold, open where something is wrong or hosts are few."""
    here = [place for place in found if place.host == host]
    counts = Counter(case.verdict for place in here for case in place.cases)
    counts[Verdict.FAIL] += sum(build.outcome == "failed" for place in here for build in place.builds)
    worst = next((verdict for verdict in _WORST if counts[verdict]), Verdict.SKIP)
    worst = Verdict.PASS if worst is Verdict.SKIP and counts[Verdict.PASS] else worst
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in _WORST if counts[verdict])
    title = element("span", host, class_="title")
    summary = element("summary", signed(worst), title, element("span", said, class_="soft"))
    table = _grid(here, numbers, f"Verdict of each case on each stage of {host}")
    return element(
        "details", summary, table, class_="card", open=few or worst in (Verdict.FAIL, Verdict.ERROR)
    )


def _grid(found: Sequence[Place], numbers: Sequence[str], caption: str) -> Markup:
    heads = ["Stage", "Build", *(f"Case {number}" for number in numbers)]
    body = element("tbody", *(_grid_line(place, numbers) for place in found), role="rowgroup")
    return _table(caption, heads, [body], class_="grid")


def _grid_line(place: Place, numbers: Iterable[str]) -> Markup:
    cells = [_cell("Build", _marks(_build_mark(build) for build in place.builds))]
    cells += [
        _cell(f"Case {number}", _marks(_case_mark(place, case) for case in place.numbered(number)))
        for number in numbers
    ]
    name = element("th", element("code", place.stage), scope="row", role="rowheader")
    return element("tr", name, *cells, role="row")


def _build_mark(build: BuildRecord) -> Markup:
    took = element("span", f"{build.seconds:.1f} s", class_="time")
    return join((signed(_OUTCOMES[build.outcome], text=build.outcome), took if build.seconds else ""))


def _marks(marks: Iterable[Markup]) -> Markup:
    return join(marks) or element("span", "not run", class_="soft")


def _case_mark(place: Place, case: CaseReport) -> Markup:
    took = element("span", f"{case.seconds:.1f} s", class_="time")
    return element("a", signed(case.verdict), took if case.seconds else "", href=f"#{_anchor(place, case)}")


def _anchor(place: Place, case: CaseReport) -> str:
    """Return the id of a case's fold: numbers only, so that no text of a run can make another's."""
    index = next(number for number, each in enumerate(place.cases) if each is case)
    return f"case-{place.number}-{index}"


def case_sections(found: Sequence[Place]) -> Iterator[Markup]:
    """Yield the cases of each stage, each behind a fold that is open where it did not pass."""
    several = len({place.host for place in found}) > 1
    for place in found:
        if not place.cases:
            continue
        where = f" on {place.host}" if several else ""
        yield element("h3", element("code", place.stage), where)
        for case in place.cases:
            yield _case_fold(place, case)


def _case_fold(place: Place, case: CaseReport) -> Markup:
    counts = Counter(row.status for row in case.checks)
    said = ", ".join(f"{counts[status]} {status}" for status in _ORDER if counts[status])
    summary = element(
        "summary",
        signed(case.verdict),
        element("span", f"{case.id} {case.title}", class_="title"),
        element("span", " · ".join(filter(None, (said, f"{case.seconds:.1f} s"))), class_="soft"),
    )
    reason = [element("div", element("p", case.reason, class_="text"), class_="body")] if case.reason else []
    rows = [check_table(case.checks, f"Checks of {case.id} on {place.stage}")] if case.checks else []
    opened = case.verdict in (Verdict.FAIL, Verdict.ERROR)
    return element("details", summary, *reason, *rows, id=_anchor(place, case), class_="card", open=opened)


def check_table(rows: Iterable[Check], caption: str) -> Markup:
    """Return the rows of a case, what failed first; a row that failed says what was expected and observed."""
    lines = (_check_line(row) for row in sorted(rows, key=lambda row: _ORDER.index(row.status)))
    body = element("tbody", *lines, role="rowgroup")
    return _table(caption, ["Status", "Check", "Detail"], [body], class_="checks")


def _check_line(row: Check) -> Markup:
    name = element("th", element("code", row.id), scope="row", role="rowheader", class_="id")
    versus: list[str] = []
    if row.expected or row.observed:
        pairs = (("Expected", row.expected), ("Observed", row.observed))
        parts = (part for k, v in pairs for part in (element("dt", k), element("dd", v or "nothing")))
        versus = [element("dl", *parts, class_="versus")]
    cells = (
        _cell("", signed(row.status)),
        name,
        _cell("", element("div", row.detail, class_="text"), *versus),
    )
    return element("tr", *cells, role="row", class_="failed" if row.status is Status.FAIL else False)


def build_section(found: Sequence[Place]) -> Markup:
    """Return what became of each stage's build."""
    several = len({place.host for place in found}) > 1
    lines = (
        _build_line(build, f" on {place.host}" if several else "")
        for place in found
        for build in place.builds
    )
    body = element("tbody", *lines, role="rowgroup")
    table = _table("Build of each stage", ["Outcome", "Stage", "Why", "Time"], [body], class_="checks")
    return section("Builds", "builds", element("div", table, class_="card"))


def _build_line(build: BuildRecord, where: str) -> Markup:
    return element(
        "tr",
        _cell("", signed(_OUTCOMES[build.outcome], text=build.outcome)),
        element("th", element("code", build.stage), where, scope="row", role="rowheader"),
        _cell("", element("div", build.reason, class_="text") if build.reason else ""),
        _cell("", f"{build.seconds:.1f} s" if build.seconds else "", class_="number"),
        role="row",
        class_="failed" if build.outcome == "failed" else False,
    )


def artifact_section(found: Sequence[Place]) -> Markup:
    """Return a fold for each artifact: its digest, and what the loader sees of it."""
    several = len({place.host for place in found}) > 1
    folds = []
    for place in found:
        where = f" on {place.host}" if several else ""
        for artifact in place.artifacts:
            summary = element(
                "summary",
                element("span", artifact.path, class_="title mono"),
                element("span", f"{artifact.stage}{where} · {artifact.size:,} bytes", class_="soft"),
            )
            facts = element("dl", *_pairs(_artifact_facts(artifact)), class_="versus")
            folds.append(
                element(
                    "details",
                    summary,
                    element("div", facts, *_names(artifact.elf), class_="body"),
                    class_="card",
                )
            )
    return section("Artifacts", "artifacts", *folds)


def _pairs(facts: Iterable[tuple[str, str]]) -> Iterator[Markup]:
    for name, value in facts:
        yield element("dt", name)
        yield element("dd", value or "none")


def _artifact_facts(artifact: ArtifactRecord) -> Iterator[tuple[str, str]]:
    yield "sha256", artifact.sha256
    yield "Image", artifact.image
    if artifact.pin:
        yield "Source pin", artifact.pin
    elf = artifact.elf
    if elf is None:
        return
    yield "Kind", f"{elf.type}, {elf.arch}"
    yield "SONAME", elf.soname or ""
    yield "NEEDED", ", ".join(elf.needed)
    yield "GLIBC need", ", ".join(filter(None, (elf.glibc, *elf.glibc_tags)))
    yield "RPATH, RUNPATH", ", ".join(filter(None, (elf.rpath, elf.runpath)))


def _names(elf: ElfSummary | None) -> Iterator[Markup]:
    """Yield the folds of an artifact's exported functions and undefined symbols."""
    if elf is None:
        return
    lists = (
        ("exported functions", elf.exported),
        ("imported symbols", elf.imports),
        ("weak imports", elf.weak_imports),
    )
    for title, names in lists:
        if names:
            more = len(names) - _MOST_NAMES
            items = [element("li", name) for name in names[:_MOST_NAMES]]
            items += [element("li", f"and {more} more")] if more > 0 else []
            yield element(
                "details", element("summary", f"{len(names)} {title}"), element("ul", *items, class_="names")
            )


def time_section(found: Sequence[Place]) -> Markup:
    """Return how long each build and case took, each beside its share of the longest."""
    several = len({place.host for place in found}) > 1
    entries = []
    for place in found:
        where = f" on {place.host}" if several else ""
        entries += [(f"{place.stage}{where}", "build", each.seconds) for each in place.builds if each.seconds]
        entries += [(f"{place.stage}{where}", each.id, each.seconds) for each in place.cases if each.seconds]
    longest = max(seconds for _, _, seconds in entries)
    lines = (
        element(
            "tr",
            element("th", element("code", place), scope="row", role="rowheader"),
            _cell("", what, class_="what"),
            _cell("", _bar(seconds / longest, building=what == "build"), class_="share"),
            _cell("", f"{seconds:.1f} s", class_="number"),
            role="row",
        )
        for place, what, seconds in entries
    )
    body = element("tbody", *lines, role="rowgroup")
    table = _table(
        "Time of each build and case", ["Stage", "What", "Share of the longest", "Time"], [body], "times"
    )
    return section("Time", "time", element("div", table, class_="card"))


def _bar(share: float, *, building: bool) -> Markup:
    rect = element(
        "rect",
        width=f"{max(share * 100, 0.5):.1f}%",
        height="100%",
        rx="3",
        class_="building" if building else False,
    )
    return element("svg", rect, class_="bar", aria_hidden="true")


def _table(caption: str, heads: Sequence[str], bodies: Iterable[Markup], class_: str) -> Markup:
    """Return a table; its roles are spelt out because a phone's style takes the default ones away."""
    cells = (_head(head, class_="number" if head == "Time" else "") for head in heads)
    line = element("tr", *cells, role="row")
    top = element("thead", line, role="rowgroup")
    return element("table", element("caption", caption), top, *bodies, role="table", class_=class_)


def _head(text: str, class_: str) -> Markup:
    return element("th", text, scope="col", role="columnheader", class_=class_ or False)


def _cell(label: str, *children: str, class_: str = "") -> Markup:
    return element("td", *children, role="cell", data_label=label or False, class_=class_ or False)
