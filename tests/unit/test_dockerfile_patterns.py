"""Patterns: Go's ``filepath.Match`` by hand, ``.dockerignore`` rules also against another port of them."""

from __future__ import annotations

import pytest
from e2b_dockerfile_utils import PatternMatcher
from hypothesis import given, settings
from hypothesis import strategies as st

from xbtasks.checkout.dockerfile.patterns import (
    BadPatternError,
    IgnorePatterns,
    deep_match,
    has_wildcard,
    match,
)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a", "a", True),
        ("a", "ab", False),
        ("*", "a", True),
        ("*", "", True),
        ("*", "a/b", False),
        ("a*c", "abbc", True),
        ("a*/b", "abc/b", True),
        ("?", "a", True),
        ("?", "/", False),
        ("?", "é", True),
        ("a?b", "ab", False),
        ("[a-c]", "b", True),
        ("[a-c]", "d", False),
        ("[^a-c]", "d", True),
        ("[^a-c]", "b", False),
        ("[!a]", "!", True),
        ("[!a]", "b", False),
        ("[\\]a]", "]", True),
        ("[\\-x]", "-", True),
        ("[c-a]", "b", False),
        ("[^c-a]", "b", True),
        ("\\*", "*", True),
        ("\\*", "a", False),
        ("a.b", "axb", False),
        ("(a|b)+", "a", False),
        ("{a,b}", "a", False),
        ("~", "~", True),
        ("**", "a", True),
        ("**", "a/b", False),
        ("a", "a\n", False),
    ],
)
def test_match(pattern: str, path: str, matches: bool) -> None:
    assert match(pattern, path) is matches


@pytest.mark.parametrize(
    "pattern", ["[", "[a", "[]", "[]a]", "[-]", "[x-]", "[-x]", "[^", "a\\", "[\\", "[a-b-c]"]
)
def test_malformed(pattern: str) -> None:
    with pytest.raises(BadPatternError):
        match(pattern, "a")
    with pytest.raises(ValueError, match="pattern"):
        PatternMatcher([pattern])


@pytest.mark.parametrize(
    ("text", "wild"),
    [("a", False), ("a*", True), ("a?", True), ("[a", True), ("\\*", False), ("\\\\*", True)],
)
def test_wildcard(text: str, wild: bool) -> None:
    assert has_wildcard(text) is wild


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("a/**/c", "a/c", True),
        ("a/**/c", "a/b/b/c", True),
        ("a/**/*.h", "a/b/x.h", True),
        ("a/**/*.h", "a/b/x.c", False),
        ("a/*", "a/b/c", True),  # what lies under a match comes along
        ("a/*.c", "a/b/x.c", False),
    ],
)
def test_deep_match(pattern: str, path: str, matches: bool) -> None:
    assert deep_match(pattern, path) is matches


@pytest.mark.parametrize(
    ("rules", "ignored", "kept"),
    [
        ("", [], ["a", "a/b"]),
        ("# a\n\n  \n", [], ["a", "# a"]),
        ("a", ["a", "a/b", "a/b/c"], ["b/a", "ab"]),
        ("/a/", ["a", "a/b"], ["b/a"]),
        ("./a/../b", ["b"], ["a"]),
        (" a \r\nb\r\n", ["a", "b"], []),
        ("\ufeffa", ["a"], []),
        ("*", ["a", "a/b"], []),
        ("*/b", ["a/b", "a/b/c"], ["b", "a/a/b"]),
        ("**/b", ["b", "a/b", "a/a/b", "b/c"], ["ab"]),
        ("**b", ["b", "ab", "a/ab"], ["ba"]),
        ("a/**", ["a/b", "a/b/c"], ["a", "b"]),
        ("a/**/*.o", ["a/x.o", "a/b/c/x.o"], ["x.o", "a/x.c"]),
        ("a\n!a/keep", ["a", "a/b"], ["a/keep", "a/keep/x"]),
        ("!a\na", ["a"], []),
        ("*\n!*.md\nREADME*", ["x", "README.md"], ["a.md"]),
        ("**\n!src/**/*.c", ["x", "src/x.h", "src/a/b/x.o"], ["src/x.c", "src/a/b/x.c"]),
        ("**/c\n!a", ["a/c", "c"], ["a", "a/b"]),
        ("\\#x", ["#x"], ["x"]),
        (" #x", ["#x"], ["x"]),
        ("[ab]", ["a", "b/c"], ["c"]),
    ],
    ids=ascii,
)
def test_ignore(rules: str, ignored: list[str], kept: list[str]) -> None:
    patterns = IgnorePatterns(rules)
    oracle = PatternMatcher(rules.removeprefix("\ufeff").split("\n"))
    for path in ignored + kept:
        assert patterns.ignores(path) is (path in ignored), path
        assert oracle.matches(path) is (path in ignored), path


@pytest.mark.parametrize("rules", ["[", "a\n!\n", "!  "])
def test_refused_rules(rules: str) -> None:
    with pytest.raises(BadPatternError):
        IgnorePatterns(rules)


PARTS = st.sampled_from(
    ["a", "b", "ab", "a.c", "*", "**", "?", "*.c", "a*", "[ab]", "**a", "a**", "\\a", "#", ""]
)
RULES = st.lists(
    st.tuples(
        st.sampled_from(["", "", "!", " ", "/"]), st.lists(PARTS, min_size=1, max_size=3).map("/".join)
    ),
    max_size=4,
)
PATHS = st.lists(st.sampled_from(["a", "b", "ab", "a.c", "c", "b.c"]), min_size=1, max_size=4).map("/".join)


@settings(max_examples=1500, deadline=None)
@given(RULES, PATHS)
def test_any_rules_agree_with_the_port(rules: list[tuple[str, str]], path: str) -> None:
    lines = ["".join(rule) for rule in rules]
    try:
        theirs: bool | None = PatternMatcher(lines).matches(path)
    except ValueError:
        theirs = None
    try:
        ours: bool | None = IgnorePatterns("\n".join(lines)).ignores(path)
    except BadPatternError:
        ours = None
    assert ours is theirs
