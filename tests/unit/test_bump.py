"""The comparison as Markdown, rendered by GitHub's own renderer: hostile text stays text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cmarkgfm import github_flavored_markdown_to_html
from cmarkgfm.cmark import Options

from tests.unit.result_samples import HOSTILE, RESULT, hostile
from xbtasks.compare import compare
from xbtasks.reporting.bump import render

if TYPE_CHECKING:
    from xbtasks.result import Result


def tags(before: Result, after: Result) -> list[str]:
    """Return what is between angle brackets on the page."""
    text = render(compare(before, after)).encode("utf-8", "replace").decode()
    page = github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE)
    return [piece.partition(">")[0] for piece in page.split("<")[1:]]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    assert tags(hostile(text), RESULT) == tags(hostile("harmless"), RESULT)
    assert tags(RESULT, hostile(text)) == tags(RESULT, hostile("harmless"))


def test_nothing_changed_is_said() -> None:
    text = render(compare(RESULT, RESULT))
    assert text.startswith("## FAIL → FAIL: no difference\n")
    assert "Cases compared: 5, artifacts compared: 1." in text
    assert "SIMULATED" in text
    assert "SIMULATED" not in render(compare(*[replace(RESULT, simulated=False)] * 2))
