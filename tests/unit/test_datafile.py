"""Data files: what they hold comes whole, and every other form is one line that says where."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, TypedDict

import pytest

from xbtasks import datafile
from xbtasks.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pathlib import Path


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Row(TypedDict):
    name: str
    cases: list[int]


class Needed(TypedDict):
    chosen: str | None
    colour: Colour


class Form(Needed, total=False):
    rows: list[Row]
    by_name: dict[str, Row]


WHOLE = {
    "chosen": None,
    "colour": "blue",
    "rows": [{"name": "one", "cases": [1, 2]}],
    "by_name": {"two": {"name": "two", "cases": []}},
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "somewhere"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "somewhere", raising=False)
    return folder


def test_a_whole_file_comes_as_values(package: Path) -> None:
    (package / "data.json").write_text(json.dumps(WHOLE))
    found = datafile.read("somewhere", "data.json", Form)
    assert found == WHOLE
    assert found["colour"] is Colour.BLUE


def test_toml_comes_as_values_too(package: Path) -> None:
    (package / "data.toml").write_text('chosen = "x"\ncolour = "red"\n[[rows]]\nname = "a"\ncases = []\n')
    found = datafile.read("somewhere", "data.toml", Form)
    assert found == {"chosen": "x", "colour": "red", "rows": [{"name": "a", "cases": []}]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"chosen": 1}, "chosen is 1, not a text"),
        ({"colour": "green"}, "colour is 'green', not one of red, blue"),
        ({"colour": ["red"]}, "colour is ['red'], not one of red, blue"),
        ({"rows": "one"}, "rows is 'one', not a list"),
        ({"rows": [WHOLE["by_name"]]}, "rows: 1: 'two' is not a key here, which are name, cases"),
        ({"rows": [*WHOLE["rows"], {"name": "b"}]}, "rows: 2 (b): cases is missing"),  # type: ignore[misc]
        ({"rows": [{"name": "b", "cases": [True]}]}, "rows: 1 (b): cases: 1 is True, not a whole number"),
        ({"rows": [{"name": "b", "cases": "12"}]}, "rows: 1 (b): cases is '12', not a list"),
        ({"by_name": {"k": 3}}, "by_name: k is 3, not a table"),
        ({"by_name": []}, "by_name is [], not a table"),
        ({"rws": []}, "'rws' is not a key here, which are chosen, colour, rows, by_name"),
    ],
)
def test_another_form_is_one_line_that_names_the_place(
    package: Path, change: dict[str, object], said: str
) -> None:
    (package / "data.json").write_text(json.dumps({**WHOLE, **change}))
    with pytest.raises(UsageError) as caught:
        datafile.read("somewhere", "data.json", Form)
    assert caught.value.message == f"somewhere/data.json: {said}"
    assert caught.value.exit_code is ExitCode.USAGE


@pytest.mark.parametrize("key", ["chosen", "colour"])
def test_a_key_that_must_be_there_is_missed(package: Path, key: str) -> None:
    (package / "data.json").write_text(json.dumps({name: WHOLE[name] for name in WHOLE if name != key}))
    with pytest.raises(UsageError, match=rf"somewhere/data\.json: {key} is missing$"):
        datafile.read("somewhere", "data.json", Form)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("data.json", "[]", "the whole is [], not a table"),
        ("data.json", "{", "can't be parsed: Expecting property name"),
        ("data.toml", "a = It", "can't be parsed: Invalid value (at line 1"),
        ("data.json", b"\xff", "can't be parsed: 'utf-8'"),
        ("data.json", None, "can't be read: No such file"),
    ],
)
def test_a_file_that_is_none(package: Path, name: str, text: str | bytes | None, said: str) -> None:
    if text is not None:
        (package / name).write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError) as caught:
        datafile.read("somewhere", name, Form)
    assert said in caught.value.message
    assert caught.value.message.startswith(f"somewhere/{name}")
