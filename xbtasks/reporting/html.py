"""A result as one HTML page that needs nothing else: no script, no request, its style within.

Read from the top: the verdict and why, the grid of stages and cases, then each case's rows, builds, artifacts
and times; what passed is folded away. A status is a word and a sign, never a colour alone.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from xbtasks import __version__
from xbtasks.checks import Status, Verdict
from xbtasks.places import places
from xbtasks.reporting.markup import Markup, element, join
from xbtasks.reporting.pagetables import (
    artifact_section,
    build_section,
    case_sections,
    check_table,
    error_note,
    grid_section,
    place_notes,
    section,
    signed,
    time_section,
)
from xbtasks.reporting.words import EXITS, sentence
from xbtasks.result import started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.result import Result

__all__ = ["render"]

_MEANING: Final = {
    Verdict.PASS: "shown to hold: each required check has a row that passed",
    Verdict.FAIL: "shown to be broken: a row tells what was expected and what was observed",
    Verdict.ERROR: "could not be judged: nothing was shown to be right or wrong",
    Verdict.SKIP: "not measured",
    Status.WARN: "worth knowing; changes no verdict",
    Status.INFO: "for the record",
}
_MOST_NOTES: Final = 12
_MOST_HOSTS: Final = 3
_SIMULATED: Final = "SIMULATED: the engine is the simulated accelerator host; no accelerator was involved."


def render(result: Result) -> str:
    """Return ``result`` as a page."""
    style = files("xbtasks.reporting").joinpath("page.css").read_text("utf-8")
    body = element("body", *_body(result))
    page = element("html", _head(result, style), body, lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


def _head(result: Result, style: str) -> Markup:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    simulated = "SIMULATED " if result.simulated else ""
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("link", rel="icon", href="data:,"),
        element("title", f"{simulated}{result.verdict}: xbtasks {result.command} {result.run}"),
        Markup(f"<style>{style}</style>"),
    )


def _body(result: Result) -> Iterator[Markup]:
    sections = [each for each in _sections(result) if each]
    yield element("a", "Skip to the results", href="#results", class_="skip-link")
    if result.simulated:
        yield element("p", _SIMULATED, class_="simulated", role="note")
    yield element("header", *_header(result))
    yield element("main", *sections, id="results")
    yield element(
        "footer",
        f"xbtasks {__version__}, result document 1. This page is whole: it loads nothing and runs no script.",
    )


def _header(result: Result) -> Iterator[Markup]:
    found = places(result)
    stages = len({place.stage for place in found})
    on = f" of {stages} stages" if stages > 1 else ""
    title = element("div", element("h1", f"xbtasks {result.command}{on}"), element("p", sentence(result)))
    yield element("div", signed(result.verdict, class_="word"), title, class_="hero")
    facts = (element("div", element("dt", name), element("dd", value)) for name, value in _facts(result))
    yield element("dl", *facts, class_="facts card")
    notes = [*(error_note(code, text) for code, text in result.errors), *place_notes(found)]
    if notes:
        more = len(notes) - _MOST_NOTES
        notes[_MOST_NOTES:] = [element("li", f"and {more} more, see below")] if more > 0 else []
        yield element("div", element("h2", "In short"), element("ul", *notes), class_="notes card")
    items = (element("li", element("a", name, href=f"#{anchor}")) for name, anchor in _contents(result))
    yield element("nav", element("ul", *items), aria_label="Sections")


def _facts(result: Result) -> Iterator[tuple[str, str]]:
    begun = started(result.run)
    if begun is not None:
        yield "When", element("time", f"{begun:%Y-%m-%d %H:%M:%S} UTC", datetime=begun.isoformat())
    hosts = result.host.split(", ")
    yield "Host", result.host or "none" if len(hosts) <= _MOST_HOSTS else f"{len(hosts)} hosts"
    yield "Engine", result.engine or "none answered"
    if result.run:
        yield "Run", element("code", result.run)
    if any(_times(result)):
        yield "Time on the host", _duration(sum(_times(result)))
    yield "Exit code", f"{int(result.exit_code)}: {EXITS[result.exit_code]}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes >= 2 else f"{seconds:.1f} s"


def _contents(result: Result) -> Iterator[tuple[str, str]]:
    """Yield name and anchor of each section that is there."""
    contents = (
        ("Overview", "overview", places(result)),
        ("Cases", "cases", result.cases),
        ("Builds", "builds", result.builds),
        ("Artifacts", "artifacts", result.artifacts),
        ("Time", "time", _timed(result)),
        ("Host", "host", result.preflight),
        ("Evidence", "evidence", result.evidence),
        ("What the words mean", "words", True),
    )
    yield from ((name, anchor) for name, anchor, present in contents if present)


def _timed(result: Result) -> bool:
    return sum(seconds > 0 for seconds in _times(result)) > 1


def _times(result: Result) -> list[float]:
    return [build.seconds for build in result.builds] + [case.seconds for case in result.cases]


def _sections(result: Result) -> Iterator[Markup]:
    found = places(result)
    if found:
        yield grid_section(found)
    if result.cases:
        yield section("Cases", "cases", *case_sections(found))
    if result.builds:
        yield build_section(found)
    if result.artifacts:
        yield artifact_section(found)
    if _timed(result):
        yield time_section(found)
    if result.preflight:
        yield _preflight(result)
    if result.evidence:
        yield _evidence(result.evidence)
    words = (
        part
        for word, meaning in _MEANING.items()
        for part in (element("dt", signed(word)), element("dd", meaning))
    )
    yield section("What the words mean", "words", element("dl", *words, class_="legend card"))


def _preflight(result: Result) -> Markup:
    found = result.preflights
    folds = []
    for host, rows in found.items():
        counts = Counter(row.status for row in rows)
        said = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
        who, whose = (host, host) if len(found) > 1 else ("this host", "the host")
        summary = element(
            "summary",
            element("span", f"What {who} can do", class_="title"),
            element("span", said, class_="soft"),
        )
        table = check_table(rows, f"Preflight rows of {whose}")
        folds.append(element("details", summary, table, class_="card", open=result.command == "preflight"))
    return section("Hosts" if len(found) > 1 else "Host", "host", *folds)


def _evidence(directory: str) -> Markup:
    summary = element(
        "summary", element("span", "Where every question and answer of this run is kept", class_="title")
    )
    text = join(
        (
            element("p", element("code", directory)),
            element(
                "p",
                "The same verdict follows from it without the host: ",
                element("code", "inv replay"),
                " with this directory.",
            ),
        )
    )
    return section(
        "Evidence",
        "evidence",
        element("details", summary, element("div", text, class_="body"), class_="card"),
    )
