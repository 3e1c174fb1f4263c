"""The Markdown, rendered by GitHub's own renderer (cmark-gfm) and read back as a browser would."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.result_samples import EMPTY, HOSTILE, OTHER, RESULT, STAGE, hostile
from xbtasks.reporting.markdown import render
from xbtasks.result import merge

if TYPE_CHECKING:
    from xbtasks.result import Result

TAGS = {"h2", "table", "tr", "td", "th", "code", "br", "details", "summary", "p"}


class Page(HTMLParser):
    """What a reader sees: tags, and the texts that stand in ``code``."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.codes: list[str] = []
        self.text = ""
        self._code = False
        text = render(result).encode("utf-8", "replace").decode()
        self.feed(github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE))
        self.close()
        self.codes = [" ".join(code.split()) for code in self.codes]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "code":
            self.codes.append("")
            self._code = True

    def handle_endtag(self, tag: str) -> None:
        self._code = self._code and tag != "code"

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._code:
            self.codes[-1] += data


def seen(text: str) -> str:
    """Return ``text`` as a page shows it: on one line, what can't be printed as a blank."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    page, harmless = Page(hostile(text)), Page(hostile("harmless"))
    assert set(page.tags) <= TAGS
    assert page.tags == harmless.tags
    assert page.attributes <= {"align", "open"}
    assert page.codes == [seen(code.replace("harmless", text)) for code in harmless.codes]


@settings(deadline=None)
@given(st.text(min_size=1))
def test_any_text_stays_text(text: str) -> None:
    page = Page(replace(hostile("harmless"), engine=text))
    assert set(page.tags) <= TAGS
    assert seen(text) in [*page.codes, ""]


def test_the_grid_has_a_line_for_each_stage_and_a_column_for_each_case() -> None:
    text = render(RESULT)
    grid = text.split("<table>")[2].splitlines()
    assert re.findall(r"<th[^>]*>([^<]*)", grid[1]) == ["Stage", "Build", "Case 1", "Case 2", "Case 3"]
    assert STAGE in grid[2]
    assert re.findall(r"FAIL|PASS|SKIP|ERROR|built|failed|–", grid[2]) == ["built", "FAIL", "SKIP", "PASS"]  # noqa: RUF001
    assert OTHER in grid[3]
    assert re.findall(r"FAIL|PASS|SKIP|ERROR|built|failed|–", grid[3]) == ["failed", "SKIP", "ERROR", "–"]  # noqa: RUF001


def test_several_hosts_have_a_column() -> None:
    hosts = [replace(RESULT, host="a"), replace(RESULT, host="b")]
    text = render(merge(hosts, run="m", command="matrix", evidence=""))
    rows = [line for line in text.splitlines() if line.startswith("<tr><td><code>")]
    assert [re.findall("<code>([^<]*)</code>", row)[:2] for row in rows[:4]] == [
        [host, stage] for host in ("a", "b") for stage in (STAGE, OTHER)
    ]


def test_what_failed_stands_first_and_open_and_says_expected_and_observed() -> None:
    folds = render(RESULT).split("<details")[1:]
    assert [re.search("PASS|FAIL|SKIP|ERROR", fold)[0] for fold in folds] == [  # type: ignore[index]
        *("FAIL", "FAIL", "ERROR", "SKIP", "SKIP", "PASS")
    ]
    assert folds[1].startswith(" open>")
    row = re.search("<tr>.*nvidia.case1.mode</code>.*", folds[1])
    assert row is not None
    assert "<code>0644</code></td><td><code>0600</code>" in row[0]


def test_a_simulated_run_says_so() -> None:
    assert "SIMULATED" in Page(RESULT).text
    assert "SIMULATED" not in Page(replace(RESULT, simulated=False)).text


def test_a_run_that_measured_nothing_says_so() -> None:
    assert "SKIP" in Page(EMPTY).text


@pytest.mark.parametrize("room", [0, 10, 100, 1000, 1500, 2000, 2500, 3000, 10_000])
def test_no_more_is_rendered_than_there_is_room_for(room: int) -> None:
    text = render(RESULT, room=room)
    assert len(text.encode()) <= room
    assert text in ("", render(RESULT)) or "more did not fit here" in text
    assert not text or "FAIL" in text.splitlines()[0]


def test_a_very_long_text_is_cut_and_says_so() -> None:
    text = render(replace(RESULT, engine="x" * 100_000))
    assert len(text) < 20_000
    assert "98000 more characters" in text
