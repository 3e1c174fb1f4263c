"""A result as GitHub's Markdown, for a job summary or a comment.

Tables are HTML blocks without a blank line, which no Markdown is read in, and whatever a run found stands in
``<code>``, where GitHub makes no mention, reference or link of it: hostile text stays text.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from xbtasks.checks import Status, Verdict
from xbtasks.places import case_numbers, places
from xbtasks.reporting.words import sentence

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xbtasks.checks import CaseReport, Check
    from xbtasks.places import Place
    from xbtasks.result import BuildRecord, Result

__all__ = ["code", "render", "table"]

_SIGNS: Final = {
    "PASS": "✅",
    "FAIL": "❌",
    "ERROR": "⛔",
    "WARN": "⚠️",
    "SKIP": "⏭️",
    "INFO": "ℹ️",  # noqa: RUF001 - the sign, not the letter
}
_OUTCOMES: Final = {"built": Verdict.PASS, "up to date": Verdict.PASS, "failed": Verdict.FAIL}
_ORDER: Final = (Status.FAIL, Status.WARN, Status.SKIP, Status.PASS, Status.INFO)
_LONGEST: Final = 2000
"""Characters of one text: what is longer is cut, and says so."""


def render(result: Result, *, room: int | None = None) -> str:
    """Return ``result`` as Markdown of at most ``room`` bytes.

    Where there is too little room, the rows of the last cases give way, with a line that says so; where
    even the summary doesn't fit, nothing is returned.
    """
    head = "\n".join(_head(result)) + "\n"
    left = None if room is None else room - len(head.encode("utf-8", "replace"))
    if left is not None and left < 0:
        return ""
    parts = [head]
    details = list(_details(result))
    for number, text in enumerate(details):
        note = f"\n{len(details) - number} more did not fit here.\n"
        if left is not None and left < len(text.encode("utf-8", "replace")) + len(note):
            parts += [note] if left >= len(note) else []
            break
        parts.append(text)
        left = None if left is None else left - len(text.encode("utf-8", "replace"))
    return "".join(parts)


def _head(result: Result) -> Iterator[str]:
    yield f"## {_SIGNS[result.verdict]} {result.verdict}"
    yield ""
    yield sentence(result)
    yield ""
    if result.simulated:
        yield "> [!WARNING]"
        yield "> **SIMULATED**: the engine is the simulated accelerator host; no accelerator was involved."
        yield ""
    facts = (
        ("Command", result.command),
        ("Reason", result.reason),
        ("Host", result.host),
        ("Engine", result.engine),
        ("Run", result.run),
        ("Exit code", str(int(result.exit_code))),
        ("Evidence", result.evidence),
    )
    yield "<table>"
    for name, value in facts:
        if value:
            yield f"<tr><th align=left>{name}</th><td>{code(value)}</td></tr>"
    yield "</table>"
    yield ""
    found = places(result)
    if found:
        yield from _grid(found)
        yield ""


def _grid(found: Sequence[Place]) -> Iterator[str]:
    """Yield the table of verdicts: a line for each stage (on each host), a column for each case."""
    numbers = case_numbers(found)
    several = len({place.host for place in found}) > 1
    heads = [
        *(["Host"] if several else []),
        "Stage",
        "Build",
        *(f"Case {_plain(number)}" for number in numbers),
    ]
    yield from table(heads, (_grid_cells(place, numbers, host=several) for place in found))


def _grid_cells(place: Place, numbers: Sequence[str], *, host: bool) -> Sequence[str]:
    cells = [*([code(place.host)] if host else []), code(place.stage), _build_cell(place.builds)]
    return [*cells, *(_case_cell(place.numbered(number)) for number in numbers)]


def _build_cell(builds: Sequence[BuildRecord]) -> str:
    cells = (f"{_signed(_OUTCOMES[each.outcome], each.outcome)} {each.seconds:.1f} s" for each in builds)
    return "<br>".join(cells) or "–"  # noqa: RUF001 - a dash


def _case_cell(cases: Sequence[CaseReport]) -> str:
    cells = (f"{_signed(each.verdict)} {each.seconds:.1f} s" for each in cases)
    return "<br>".join(cells) or "–"  # noqa: RUF001 - a dash


def _details(result: Result) -> Iterator[str]:
    """Yield a fold for each thing that did not pass, what failed first."""
    if result.command == "preflight":
        yield _fold("Preflight", _table(result.preflight), open_=True)
    found = places(result)
    several = len({place.host for place in found}) > 1
    for place in found:
        for build in place.builds:
            if build.outcome == "failed":
                where = f" on {code(place.host)}" if several else ""
                yield _fold(
                    f"{_signed(Verdict.FAIL)} build of {code(place.stage)}{where}", [code(build.reason)]
                )
    order = (Verdict.FAIL, Verdict.ERROR, Verdict.SKIP, Verdict.PASS)
    cases = [(place, case) for place in found for case in place.cases]
    for place, case in sorted(cases, key=lambda each: order.index(each[1].verdict)):
        where = f" on {code(place.host)}" if several else ""
        title = f"{_signed(case.verdict)} {code(case.id)} {code(case.title)}, {code(case.stage)}{where}"
        reason = [f"<p>{code(case.reason)}</p>"] if case.reason else []
        yield _fold(title, [*reason, *_table(case.checks)], open_=case.verdict is Verdict.FAIL)


def _fold(title: str, lines: Iterable[str], *, open_: bool = False) -> str:
    body = "\n".join(lines)
    return f"<details{' open' if open_ else ''}>\n<summary>{title}</summary>\n{body}\n</details>\n\n"


def _table(rows: Iterable[Check]) -> list[str]:
    ordered = sorted(rows, key=lambda row: _ORDER.index(row.status))
    if not ordered:
        return []
    versus = any(row.expected or row.observed for row in ordered)
    heads = ("Status", "Check", "Detail", *(("Expected", "Observed") if versus else ()))
    return table(heads, (_row_cells(row, versus=versus) for row in ordered))


def _row_cells(row: Check, *, versus: bool) -> Sequence[str]:
    texts = (row.id, row.detail, *((row.expected, row.observed) if versus else ()))
    return (_signed(row.status), *map(code, texts))


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table; its cells are Markdown already."""
    lines = ["<table>", f"<tr>{''.join(f'<th align=left>{head}</th>' for head in heads)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>" for cells in rows]
    return [*lines, "</table>"]


def _signed(word: str, text: str = "") -> str:
    return f"{_SIGNS[word]} {text or word}"


def code(text: str) -> str:
    """Return ``text`` as code, on one line, cut where it is very long."""
    plain = _plain(text)
    return f"<code>{plain}</code>" if plain else ""


def _plain(text: str) -> str:
    line = "".join(char if char.isprintable() else " " for char in text).strip()
    if len(line) > _LONGEST:
        line = f"{line[:_LONGEST]} … ({len(line) - _LONGEST} more characters)"
    return escape(line)
