"""Variable expansion: the forms of the Dockerfile reference, then random words against another port."""

from __future__ import annotations

import re

import pytest
from e2b_dockerfile_utils import ShellLex
from hypothesis import given, settings
from hypothesis import strategies as st

from xbtasks.checkout.dockerfile.expansion import ExpansionError, expand, shell_words

VARIABLES = {"A": "1", "EMPTY": "", "PATH": "/a/b/c.tar.gz", "STARS": "a*c*e", "BLANK": "x  y"}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("$A", "1"),
        ("${A}", "1"),
        ("$A$A", "11"),
        ("x${A}y", "x1y"),
        ("$AB", ""),
        ("$UNSET", ""),
        ("${UNSET}", ""),
        ("${UNSET:-d}", "d"),
        ("${UNSET-d}", "d"),
        ("${EMPTY:-d}", "d"),
        ("${EMPTY-d}", ""),
        ("${A:-d}", "1"),
        ("${A:+d}", "d"),
        ("${A+d}", "d"),
        ("${EMPTY:+d}", ""),
        ("${EMPTY+d}", "d"),
        ("${UNSET+d}", ""),
        ("${UNSET:-${A}2}", "12"),
        ("${UNSET:-${UNSET:-e}}", "e"),
        ("${UNSET:-a b}", "a b"),
        ("${UNSET:-'}'}", "}"),
        ("${A:?no}", "1"),
        ("${PATH#*/}", "a/b/c.tar.gz"),
        ("${PATH##*/}", "c.tar.gz"),
        ("${PATH%.*}", "/a/b/c.tar"),
        ("${PATH%%.*}", "/a/b/c"),
        ("${PATH%/*}", "/a/b"),
        ("${PATH#x}", "/a/b/c.tar.gz"),
        ("${PATH#?}", "a/b/c.tar.gz"),
        ("${STARS#a\\*}", "c*e"),
        ("${STARS%\\**}", "a*c"),
        ("${PATH/a/x}", "/x/b/c.tar.gz"),
        ("${PATH//a/x}", "/x/b/c.txr.gz"),
        ("${PATH/\\//x}", "xa/b/c.tar.gz"),
        ("${PATH/b*r/x}", "/a/x.gz"),
        ("${PATH/nothing/x}", "/a/b/c.tar.gz"),
        ("${PATH//?/x}", "x" * 13),
        ("'$A'", "$A"),
        ('"$A"', "1"),
        ("\"'$A'\"", "'1'"),
        ("'a'\"b\"c", "abc"),
        ("\\$A", "$A"),
        ('"\\$A"', "$A"),
        ('"\\a"', "\\a"),
        ("\\a", "a"),
        ("a\\", "a"),
        ("$", "$"),
        ("a$", "a$"),
        ("$$", ""),
        ("$1", ""),
        ("<<EOF", "<<EOF"),
        ("a b", "a b"),
        ("", ""),
    ],
)
def test_value(word: str, value: str) -> None:
    assert expand(word, VARIABLES).value == value


@pytest.mark.parametrize(
    "word",
    [
        *(
            "${A",
            "${",
            "${}",
            "${:-a}",
            "${{A}}",
            "${A!b}",
            "${A:#b}",
            "${A:/a/b}",
            "${A:",
            "'a",
            '"a',
            '"a\\',
        ),
        *("${A:-b", "${UNSET:?}", "${UNSET?gone}", "${EMPTY:?}", "${PATH#\\a}", "${PATH/a", "${PATH/a/b"),
        "${A:-" * 100,
    ],
)
def test_refused(word: str) -> None:
    with pytest.raises(ExpansionError):
        expand(word, VARIABLES)


def test_message_of_a_required_variable() -> None:
    with pytest.raises(ExpansionError, match=r"UNSET: say which"):
        expand("${UNSET:?say which}", VARIABLES)


def test_other_escape() -> None:
    assert expand("`$A\\$A", VARIABLES, "`").value == "$A\\1"


def test_names_what_it_looked_up() -> None:
    expansion = expand("$A-${UNSET:-$EMPTY}'$PATH'", VARIABLES)
    assert (expansion.found, expansion.unset) == ({"A", "EMPTY"}, {"UNSET"})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("a\\ b c", ["a b", "c"]),
        ("$A ${B:-c d}", ["$A", "${B:-c", "d}"]),
        ("cat << EOF", ["cat", "<< EOF"]),
        ("", []),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert shell_words(line) == words


def test_raw_words_keep_quotes_and_escapes() -> None:
    assert shell_words("<<'a b' c\\ d", raw_quotes=True, raw_escapes=True) == ["<<'a b'", "c\\ d"]


PIECES = st.sampled_from(
    [
        *(
            "$A",
            "$UNSET",
            "${A}",
            "${EMPTY",
            "${PATH",
            "${UNSET",
            "${STARS",
            "}",
            ":-",
            ":+",
            "-",
            "+",
            "?",
            "#",
        ),
        *(
            "##",
            "%",
            "%%",
            "/",
            "//",
            "*",
            "a",
            "b",
            "'",
            '"',
            "\\",
            " ",
            "<",
            "<<",
            "é",
            "$",
            "{",
            "1",
            "_",
            ".",
        ),
    ]
)


@settings(max_examples=2000, deadline=None)
@given(st.lists(PIECES, max_size=10).map("".join), st.sampled_from(["\\", "`"]))
def test_any_word_agrees_with_the_port(word: str, escape: str) -> None:
    try:
        ours: str | None = expand(word, VARIABLES, escape).value
    except ExpansionError:
        ours = None
    if "//" in word and "*" in word:
        return  # Python's re.sub, unlike Go, replaces the empty match right after a match once more
    try:
        theirs: str | None = ShellLex(escape, env=VARIABLES, skip_unset_env=False).process_word(word)
    except ValueError:
        theirs = None
    assert ours == theirs


@pytest.mark.parametrize("line", ["${EMPTY///}", "x${EMPTY//a/b}"])
def test_an_unset_variable_comes_back_as_buildkit_gives_it(line: str) -> None:
    assert shell_words(line) == [line.replace("//", "/", 1)]


@settings(max_examples=1000, deadline=None)
@given(st.lists(PIECES, max_size=10).map("".join), st.booleans(), st.booleans())
def test_any_words_agree_with_the_port(line: str, raw_quotes: bool, raw_escapes: bool) -> None:
    try:
        ours: list[str] | None = shell_words(line, raw_quotes=raw_quotes, raw_escapes=raw_escapes)
    except ExpansionError:
        ours = None
    if re.search(r"\$\{\w+//", line):
        return  # BuildKit's lexer gives an unset variable's text back with one slash, the port with both
    try:
        theirs: list[str] | None = ShellLex(
            "\\", raw_quotes=raw_quotes, raw_escapes=raw_escapes
        ).process_words(line)
        theirs = [word for word in theirs if word]  # the port takes an empty pair of quotes for a word
    except ValueError:
        theirs = None
    assert ours == theirs
