"""The page as bytes: what a browser makes of it is shown in tests/integration/test_page.py."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.result_samples import EMPTY, HOSTILE, OTHER, RESULT, RESULTS, STAGE, hostile
from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode
from xbtasks.reporting.html import render
from xbtasks.reporting.markup import Markup, element, visible
from xbtasks.reporting.pagetables import error_note
from xbtasks.result import merge

if TYPE_CHECKING:
    from xbtasks.result import Result

VOID: Final = {"meta", "link", "br"}


class Page(HTMLParser):
    """Elements with their attributes, texts, and whether every element is closed in its turn."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.style = ""
        self._open: list[str] = []
        self.feed(render(result))
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            self.style += data
        else:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def values(self, attribute: str) -> list[str]:
        return [attributes[attribute] or "" for _, attributes in self.elements if attribute in attributes]


def shape(page: Page) -> list[tuple[str, tuple[str, ...]]]:
    """Return the elements and the names of their attributes."""
    return [(tag, tuple(attributes)) for tag, attributes in page.elements]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    page, harmless = Page(hostile(text)), Page(hostile("harmless"))
    assert shape(page) == shape(harmless)
    assert page.texts.count(visible(text)) >= 20
    assert page.values("href") == harmless.values("href")
    assert page.values("id") == harmless.values("id")


@settings(deadline=None, max_examples=50)
@given(st.text(min_size=1))
def test_any_text_stays_text(text: str) -> None:
    page = Page(replace(RESULT, engine=text))
    assert shape(page) == shape(Page(RESULT))
    assert visible(text) in page.texts


@settings(deadline=None)
@given(RESULTS)
def test_any_result_makes_a_whole_page(result: Result) -> None:
    page = Page(result)
    assert page.texts.count(result.verdict) >= 1
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    for target in page.values("href"):
        assert target == "data:," or target.removeprefix("#") in ids


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    page = Page(RESULT)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "img", "iframe", "object", "embed", "form", "base"}
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in ("style", "src", "srcset")}
    assert all(target.startswith("#") or target == "data:," for target in page.values("href"))
    assert "url(" not in page.style
    assert "@import" not in page.style
    (policy,) = [each["content"] or "" for each in page.all("meta") if "http-equiv" in each]
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]


def test_a_reader_of_screens_finds_its_way() -> None:
    page = Page(
        merge([replace(RESULT, host="a"), replace(RESULT, host="b")], run="m", command="matrix", evidence="e")
    )
    counts = Counter(tag for tag, _ in page.elements)
    assert [counts[tag] for tag in ("header", "main", "footer", "nav", "h1")] == [1] * 5
    assert counts["caption"] == counts["table"] > 5
    assert {each.get("scope") for each in page.all("th")} == {"col", "row"}
    roles = {"table": "table", "tr": "row", "td": "cell", "thead": "rowgroup", "tbody": "rowgroup"}
    for tag, role in roles.items():
        assert {each.get("role") for each in page.all(tag)} == {role}
    assert all(each.get("aria-labelledby") in page.values("id") for each in page.all("section"))
    assert page.all("html") == [{"lang": "en"}]


def test_a_status_is_a_word_and_not_a_colour_alone() -> None:
    page = render(RESULT)
    for word, sign in {"PASS": "✓", "FAIL": "✗", "ERROR": "!", "SKIP": "–", "WARN": "▲", "INFO": "i"}.items():  # noqa: RUF001
        assert f'class="status {word.lower()}"><span aria-hidden="true">{sign}</span>{word}</span>' in page


def section_of(page: str, anchor: str) -> str:
    """Return the section under the heading ``anchor``."""
    return page.partition(f'<section aria-labelledby="{anchor}">')[2].partition("</section>")[0]


def test_the_grid_has_a_line_for_each_stage_and_a_cell_for_each_case() -> None:
    grid = section_of(render(RESULT), "overview")
    rows = re.findall("<tr.*?</tr>", grid)
    assert re.findall("<th[^>]*>(.*?)</th>", rows[0]) == ["Stage", "Build", "Case 1", "Case 2", "Case 3"]
    words = [re.findall(r"</span>(\w+)</span>|(not run)", row) for row in rows[1:]]
    assert [["".join(word) for word in row] for row in words] == [
        ["built", "FAIL", "SKIP", "PASS"],
        ["failed", "SKIP", "ERROR", "not run"],
    ]
    assert [name for name in (STAGE, OTHER) if name in rows[1]] == [STAGE]


def test_what_failed_is_open_and_what_passed_is_folded() -> None:
    folds = re.findall(
        r'<details id="[^"]*" class="card"( open)?><summary>.*?</span>(\w+)</span>', render(RESULT)
    )
    assert [(word, bool(opened)) for opened, word in folds] == [
        *(("FAIL", True), ("SKIP", False), ("PASS", False), ("SKIP", False), ("ERROR", True))
    ]


def test_the_same_case_on_two_hosts_is_linked_to_its_own_rows() -> None:
    two = merge(
        [replace(RESULT, host="a"), replace(RESULT, host="b")], run="m", command="matrix", evidence=""
    )
    links = re.findall('href="#(case-[^"]*)"', section_of(render(two), "overview"))
    assert len(links) == len(set(links)) == 10


def test_a_simulated_run_says_so_before_anything_else() -> None:
    assert Page(RESULT).texts[1:2] == ["SIMULATED FAIL: xbtasks verify 20260102-030405-abcdef"]
    assert any(text.startswith("SIMULATED: the engine") for text in Page(RESULT).texts[:5])
    assert "SIMULATED" not in render(replace(RESULT, simulated=False))


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (RESULT, "Of 5 cases, 1 passed, 1 failed, 1 could not be judged, 2 not measured."),
        (replace(RESULT, cases=RESULT.cases[2:3]), "Of 1 case, 1 passed."),
        (EMPTY, "No case was run."),
        (replace(EMPTY, command="preflight"), "Only the host was looked at: no stage was judged."),
        (
            replace(EMPTY, command="build", builds=RESULT.builds[:1]),
            "No case was run: this says nothing of what was built.",
        ),
    ],
)
def test_the_first_sentence_says_how_many_cases_ended_how(result: Result, said: str) -> None:
    assert f"<p>{said}</p>" in render(result)


def test_each_host_of_several_has_its_own_rows() -> None:
    one, two = (replace(RESULT, host=host) for host in ("gpu-1", "gpu-2"))
    text = section_of(render(merge((one, two), run="m", command="matrix", evidence="")), "host")
    assert re.findall("What (.*?) can do", text) == ["gpu-1", "gpu-2"]
    assert text.count("docker 26.1.5") == 2
    assert "What this host can do" in render(one)


def test_the_facts_of_an_artifact_are_shown() -> None:
    text = section_of(render(RESULT), "artifacts")
    for fact in ("libcuda.so.1, libnvidia-ml.so.1, libc.so.6", "2.34", "cuMemAlloc_v2", "0" * 64, "5" * 40):
        assert fact in text


def test_many_reasons_do_not_bury_the_page() -> None:
    many = replace(
        RESULT, cases=tuple(replace(RESULT.cases[0], reason=f"r{n}") for n in range(40)), errors=()
    )
    short = render(many).partition("In short")[2].partition("</ul>")[0]
    assert short.count("<li>") == 13
    assert "and 29 more, see below" in short
    assert Verdict.FAIL in short


def test_only_what_an_element_made_is_not_escaped() -> None:
    assert element("b", "<i>", Markup("<i>"), title='"<') == '<b title="&quot;&lt;">&lt;i&gt;<i></b>'
    assert visible("a\x1b\u202e\ud800\nb") == "a\\x1b\\u202e\\ud800\nb"


def test_many_hosts_are_folded_but_for_those_where_something_did_not_pass() -> None:
    passed = replace(RESULT, cases=RESULT.cases[2:3], builds=(), errors=())
    hosts = [replace(RESULT if n == 3 else passed, host=f"h{n}") for n in range(5)]
    page = section_of(render(merge(hosts, run="m", command="matrix", evidence="")), "overview")
    folds = re.findall(
        r'<details class="card"( open)?><summary>.*?</span>(\w+)</span><span class="title">(\w+)', page
    )
    assert folds == [(" open" if n == 3 else "", "FAIL" if n == 3 else "PASS", f"h{n}") for n in range(5)]
    few = section_of(render(merge(hosts[:3], run="m", command="matrix", evidence="")), "overview")
    assert few.count('<details class="card" open>') == 3


def test_a_host_where_only_the_build_failed_is_not_shown_as_passed() -> None:
    failed = replace(RESULT, cases=RESULT.cases[2:4], errors=())
    two = merge(
        [replace(failed, host="a"), replace(failed, host="b")], run="m", command="matrix", evidence=""
    )
    words = re.findall(r"<summary><span class=\"status (\w+)\"", section_of(render(two), "overview"))
    assert words == ["fail", "fail"]


@pytest.mark.parametrize("code", [code for code in ExitCode if code is not ExitCode.PASSED])
def test_what_stands_beside_the_cases_has_the_verdict_of_its_exit_code(code: ExitCode) -> None:
    note = error_note(code, "why")
    shown = {word for word in ("PASS", "FAIL", "ERROR", "SKIP") if word in note}
    assert shown == {replace(EMPTY, errors=((code, "why"),)).verdict}
