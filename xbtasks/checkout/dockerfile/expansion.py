"""BuildKit's variable expansion: words of an instruction, with quotes, escapes and ``${...}``.

Contract: "Environment replacement" of the Dockerfile reference, with the details of BuildKit's
``frontend/dockerfile/shell``. Pure: text and variables in, text out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.checkout.dockerfile.lexing import is_space

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Expansion", "ExpansionError", "expand", "shell_words"]

_SPECIAL_PARAMETERS = frozenset("@*#?-$!0")
_MAX_NESTING = 64  # far more than anyone writes, far less than Python's stack


class ExpansionError(ValueError):
    """A word that BuildKit refuses to expand."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """An expanded word and the names of the variables it looked up: found ones and unset ones."""

    value: str
    found: frozenset[str]
    unset: frozenset[str]


def expand(word: str, variables: Mapping[str, str], escape: str = "\\") -> Expansion:
    """Return ``word`` with quotes removed and variables replaced; an unset one is empty.

    Raises:
        ExpansionError: an unfinished quote or brace, an unknown modifier, or ``${X:?message}`` of an unset X.
    """
    lexer = _Lexer(word, escape, variables)
    value = lexer.run("", raw_escapes=False)
    return Expansion(value, frozenset(lexer.found), frozenset(lexer.unset))


def shell_words(
    line: str, escape: str = "\\", *, raw_quotes: bool = False, raw_escapes: bool = False
) -> list[str]:
    """Return the words of ``line`` with variable references left as they stand.

    ``raw_quotes`` and ``raw_escapes`` keep those characters. ``<<`` takes the blanks after it into its word,
    so that ``<< EOF`` is one.

    Raises:
        ExpansionError: as for :func:`expand`.
    """
    lexer = _Lexer(line, escape, None, raw_quotes=raw_quotes)
    lexer.run("", raw_escapes=raw_escapes)
    return lexer.finished_words()


class _Lexer:
    """One pass over a word. ``variables`` None keeps references verbatim."""

    def __init__(
        self, text: str, escape: str, variables: Mapping[str, str] | None, *, raw_quotes: bool = False
    ) -> None:
        self._text = text
        self._at = 0
        self._escape = escape
        self._variables = variables
        self._raw_quotes = raw_quotes
        self._raw_escapes = False
        self._nesting = 0
        self._words: list[str] = []
        self._word = ""
        self.found: set[str] = set()
        self.unset: set[str] = set()

    def finished_words(self) -> list[str]:
        """Return the words seen."""
        return [*self._words, self._word] if self._word else list(self._words)

    def run(self, stop: str, *, raw_escapes: bool) -> str:
        """Return what stands before ``stop`` (consumed), or all of it where ``stop`` is empty."""
        if self._nesting > _MAX_NESTING:
            raise ExpansionError("substitutions are nested too deeply")
        outer_raw, outer_words, outer_word = self._raw_escapes, self._words, self._word
        self._raw_escapes = raw_escapes
        self._nesting += 1
        out: list[str] = []
        while (char := self._peek()) and char != stop:
            out.append(self._piece(char))
        self._nesting -= 1
        self._raw_escapes = outer_raw
        if stop:
            self._words, self._word = outer_words, outer_word
            if not char:
                raise ExpansionError(f"nothing closes the substitution, {stop!r} is missing")
            self._at += 1
        return "".join(out)

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    def _piece(self, char: str) -> str:
        if char == "$":
            piece = self._dollar()
            for each in piece:
                self._add(each)
            return piece
        if char == "<":
            piece = self._angle()
        elif char == "'":
            piece = self._single_quoted()
        elif char == '"':
            piece = self._double_quoted()
        elif char == self._escape:
            self._at += 1
            after = self._next()
            piece = (char if self._raw_escapes else "") + after
        else:
            self._at += 1
            self._add(char)
            return char
        self._word += piece
        return piece

    def _add(self, char: str) -> None:
        if not is_space(char):
            self._word += char
        elif self._word:
            self._words = [*self._words, self._word]
            self._word = ""

    def _angle(self) -> str:
        self._at += 1
        if self._peek() != "<":
            return "<"
        start = self._at
        self._at += 1
        while self._peek() and self._peek() in "\t\r ":
            self._at += 1
        return "<" + self._text[start : self._at]

    def _single_quoted(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise ExpansionError("unterminated single quote")
        inner = self._text[self._at + 1 : end]
        self._at = end + 1
        return f"'{inner}'" if self._raw_quotes else inner

    def _double_quoted(self) -> str:
        self._at += 1
        quote = '"' if self._raw_quotes else ""
        out = [quote]
        while char := self._peek():
            if char == "$":
                out.append(self._dollar())
                continue
            self._at += 1
            if char == '"':
                out.append(quote)
                return "".join(out)
            if char == self._escape:
                if self._raw_escapes:
                    out.append(char)
                after = self._peek()
                if not after:
                    break
                if after in ('"', "$", self._escape):
                    char = self._next()
            out.append(char)
        raise ExpansionError("unterminated double quote")

    def _dollar(self) -> str:
        self._at += 1
        if self._peek() != "{":
            name = self._name()
            if not name:
                return "$"
            value = self._lookup(name)
            return f"${name}" if value is None and self._variables is None else value or ""
        self._at += 1
        if self._peek() in ("{", "}", ":"):
            raise ExpansionError("bad substitution" if self._peek() else "nothing closes '${'")
        return self._braced(self._name())

    def _braced(self, name: str) -> str:
        operator = self._next()
        if operator == "}":
            value = self._lookup(name)
            return f"${{{name}}}" if value is None and self._variables is None else value or ""
        if operator == "/":
            return self._replacement(name)
        colon = operator == ":"
        if colon:
            operator = self._next()
        shown = ":" * colon + operator
        if not operator:
            raise ExpansionError("nothing closes '${'")
        if operator not in "+-?#%" or (colon and operator in "#%"):
            raise ExpansionError(f"unsupported modifier {shown!r} in a substitution")
        word = self.run("}", raw_escapes=operator in "#%")
        value = self._lookup(name)
        if value is None and self._variables is None:
            return f"${{{name}{shown}{word}}}"
        return _modified(name, value, operator, word, colon=colon)

    def _replacement(self, name: str) -> str:
        everywhere = self._peek() == "/"
        self._at += everywhere
        pattern = self.run("/", raw_escapes=True)
        replacement = self.run("}", raw_escapes=True)
        value = self._lookup(name)
        if value is None and self._variables is None:
            return f"${{{name}/{pattern}/{replacement}}}"
        return _replaced(value or "", _pattern(pattern), replacement, everywhere=everywhere)

    def _name(self) -> str:
        start = self._at
        first = self._peek()
        if first.isdecimal():
            while self._peek().isdecimal():
                self._at += 1
        elif first and first in _SPECIAL_PARAMETERS:
            self._at += 1
        else:
            while (char := self._peek()) and (char.isalpha() or char.isdecimal() or char == "_"):
                self._at += 1
        return self._text[start : self._at]

    def _lookup(self, name: str) -> str | None:
        value = None if self._variables is None else self._variables.get(name)
        (self.unset if value is None else self.found).add(name)
        return value


def _modified(name: str, value: str | None, operator: str, word: str, *, colon: bool) -> str:
    absent = value is None or (colon and not value)
    if operator == "-":
        return word if absent else value or ""
    if operator == "+":
        return "" if absent else word
    if operator == "?":
        if absent:
            raise ExpansionError(f"{name}: {word or 'is not allowed to be unset or empty'}")
        return value or ""
    longest = word.startswith(operator)
    pattern = _pattern(word[longest:])
    if operator == "#":
        ends = _prefix_ends(pattern, value or "")
        return (value or "")[_pick(ends, longest=longest) :]
    kept = (value or "")[::-1]
    ends = _prefix_ends(pattern[::-1], kept)
    return kept[_pick(ends, longest=longest) :][::-1]


_ANY_RUN = "*"
_ANY_CHAR = "?"


def _pattern(text: str) -> list[tuple[str, str]]:
    """Return the tokens of a shell pattern: ``("*", "")``, ``("?", "")`` or ``("", literal character)``."""
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char in (_ANY_RUN, _ANY_CHAR):
            tokens.append((char, ""))
            continue
        if char == "\\":
            escaped = text[at : at + 1]
            if escaped in ("}", "/"):
                continue
            if escaped not in ("*", "?", "\\"):
                raise ExpansionError(f"invalid escape in the pattern {text!r}")
            at += 1
            char = escaped
        tokens.append(("", char))
    return tokens


def _prefix_ends(pattern: list[tuple[str, str]], value: str) -> list[int]:
    """Return, in order, where in ``value`` a match of ``pattern`` that begins at its start can end."""
    ends = {0}
    for kind, literal in pattern:
        if kind == _ANY_RUN:
            ends = set(range(min(ends), len(value) + 1)) if ends else ends
        else:
            ends = {
                end + 1 for end in ends if end < len(value) and (kind == _ANY_CHAR or value[end] == literal)
            }
    return sorted(ends)


def _pick(ends: list[int], *, longest: bool) -> int:
    if not ends:
        return 0
    return ends[-1] if longest else ends[0]


def _replaced(value: str, pattern: list[tuple[str, str]], replacement: str, *, everywhere: bool) -> str:
    out: list[str] = []
    at = 0
    after_match = -1
    while at <= len(value):
        ends = _prefix_ends(pattern, value[at:])
        if ends and not (ends[-1] == 0 and at == after_match):
            out.append(replacement)
            after_match = at + ends[-1]
            if not everywhere:
                return "".join(out) + value[after_match:]
            if ends[-1]:
                at = after_match
                continue
        out.append(value[at : at + 1])
        at += 1
    return "".join(out)
