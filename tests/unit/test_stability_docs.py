"""What the page of promises names is what the code has."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest

from tests.markdown import read_page
from tests.workplace import PROJECT
from xbtasks.checks import Status, Verdict
from xbtasks.errors import ExitCode
from xbtasks.result import SCHEMA
from xbtasks.tasks import ns

PAGE: Final = read_page(PROJECT / "docs/stability.md")
TEXT: Final = PAGE.path.read_text()
DOCUMENT: Final = json.loads((PROJECT / f"xbtasks/schema/result-{SCHEMA}.json").read_text())


def test_every_task_is_promised_or_not() -> None:
    named = [name for names in PAGE.block("promise: tasks").codes(0) for name in names]
    assert sorted(named) == sorted(name.replace("_", "-") for name in ns.task_names)


def test_exit_codes_and_their_names() -> None:
    block = PAGE.block("promise: exit-codes")
    assert list(zip(block.column(0), block.column(1), strict=True)) == [
        (str(int(code)), code.name) for code in ExitCode
    ]


@pytest.mark.parametrize(
    ("row", "schema"),
    [
        ("the result", DOCUMENT),
        *(
            (f"{'an' if name[0] == 'a' else 'a'} {name}", DOCUMENT["$defs"][name])
            for name in ("case", "check", "build", "artifact")
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_keys_are_those_that_the_schema_requires(row: str, schema: dict[str, list[str]]) -> None:
    block = PAGE.block("promise: result")
    keys = dict(zip(block.column(0), block.codes(1), strict=True))
    assert list(keys[row]) == schema["required"]
    assert len(keys) == 5


def test_the_form_number_the_verdicts_and_the_statuses() -> None:
    assert f"a key `schema`, which is {SCHEMA}." in TEXT
    told = re.search(r"A verdict is one of (.*); a status one of (.*)\. The", TEXT)
    assert told
    assert re.findall("`(.*?)`", told[1]) == [each.value for each in Verdict]
    assert re.findall("`(.*?)`", told[2]) == [each.value for each in Status]


def test_the_python_names_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XBTASKS_NOX", "")  # which the sessions set for the children of their nox
    from xbtasks import noxsessions

    assert "`xbtasks.tasks.ns`" in TEXT
    assert "`xbtasks.noxsessions`" in TEXT
    assert set(noxsessions.__all__) == {"verify", "case", "matrix", "demo"}
