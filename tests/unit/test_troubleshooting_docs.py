"""Every message that a user can read is quoted in troubleshooting.md, and nothing else is."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest

from tests.markdown import read_page
from tests.messages import HOLE, Message, Program, key, says_something
from tests.workplace import PROJECT
from xbtasks.host.failures import Failure

if TYPE_CHECKING:
    from pathlib import Path

PAGE: Final = PROJECT / "docs/references/troubleshooting.md"


@cache
def code() -> Program:
    return Program(PROJECT / "xbtasks")


@cache
def messages() -> tuple[Message, ...]:
    return tuple(code().messages())


@cache
def quotes() -> tuple[str, ...]:
    """Return what the page quotes, in the form that messages are compared in."""
    blocks = [block for block in read_page(PAGE).blocks if block.header[:1] == ("message",)]
    return tuple(key(quote) for block in blocks for row in block.codes(0) for quote in row)


@cache
def sources() -> tuple[str, ...]:
    """Return the modules whose messages are others' words."""
    (block,) = (block for block in read_page(PAGE).blocks if block.header[:1] == ("from",))
    return block.column(0)


@cache
def pattern(quote: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in quote.split(HOLE)))


def fits(quote: str, said: str) -> bool:
    """Whether a quote is of a message; ``…`` in it stands for anything."""
    return pattern(quote).fullmatch(said) is not None


def missing(program: Program, found: tuple[Message, ...]) -> list[str]:
    """Return what to add to the page, a line for each message that isn't there."""
    left: list[tuple[Message, str]] = []
    for message in found:
        said, module = key(message.template), message.module.removeprefix("xbtasks.")
        if not says_something(said):
            if module not in sources():
                left.append((message, f"a row under 'somebody else's words': | `{module}` | … | … |"))
        elif not any(fits(quote, said) for quote in quotes()):
            left.append((message, f"a row where it belongs: | `{message.template}` | cause | fix |"))
    return [f"{program.place(message)}: {what}" for message, what in left]


def test_every_message_has_an_entry() -> None:
    assert missing(code(), messages()) == [], "docs/references/troubleshooting.md lacks these messages"


def test_every_entry_is_of_a_message() -> None:
    said = {key(message.template) for message in messages()}
    said |= {str(kind) for kind in Failure}
    assert [quote for quote in quotes() if not any(fits(quote, each) for each in said)] == []
    modules = {m.module.removeprefix("xbtasks.") for m in messages() if not says_something(key(m.template))}
    assert set(sources()) - modules == set()


def test_a_quote_says_something() -> None:
    assert [quote for quote in quotes() if not says_something(quote)] == []


def test_no_quote_is_so_general_that_it_takes_in_what_it_was_not_written_for() -> None:
    general = {}
    said = {key(message.template) for message in messages()}
    for quote in quotes():
        taken = {each for each in said if fits(quote, each)}
        if len(taken) > 4:
            general[quote] = sorted(taken)
    assert general == {}


@pytest.mark.parametrize("kind", list(Failure))
def test_every_kind_of_failure_has_an_entry(kind: Failure) -> None:
    assert str(kind) in quotes()


def test_it_notices_a_new_error_and_a_new_row(tmp_path: Path) -> None:
    folder = tmp_path / "xbtasks"
    folder.mkdir()
    (folder / "errors.py").write_text("class XbError(Exception): ...\nclass UsageError(XbError): ...\n")
    (folder / "new.py").write_text(
        "def one(name):\n"
        "    raise UsageError(f'the moon hides behind {name}')\n"
        "def chosen(far):\n"
        "    kind = XbError if far else UsageError\n"
        "    raise kind(f'the sun is {far} away')\n"
        "def row(status, detail):\n"
        "    return Check('id', status, f'{1}: {detail}', 'a', 'b')\n"
        "def fine(detail):\n"
        "    return Check('id', Status.PASS, f'{1}: {detail}')\n"
        "def two():\n"
        "    row(Status.FAIL, 'a tide that nobody has seen')\n"
        "    fine('all is well')\n"
    )
    program = Program(folder)
    found = tuple(program.messages())
    assert "the moon hides behind …" in {message.template for message in found}
    assert "the sun is … away" in {message.template for message in found}
    told = missing(program, found)
    assert "xbtasks/new.py:2: a row where it belongs: | `the moon hides behind …` | cause | fix |" in told
    assert any(line.startswith("xbtasks/new.py:11:") and "a tide that nobody" in line for line in told)
    assert not any("all is well" in line for line in told)
