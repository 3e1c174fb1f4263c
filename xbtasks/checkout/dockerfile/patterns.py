"""Patterns over paths: Go's ``filepath.Match`` for COPY and ADD, and moby's matcher for ``.dockerignore``.

Paths are relative to the context root, with ``/``. Contract: Go's ``path/filepath``, moby's patternmatcher.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

__all__ = ["BadPatternError", "IgnorePatterns", "deep_match", "has_wildcard", "match"]


class BadPatternError(ValueError):
    """A pattern that Go refuses: an open ``[``, an empty range or a dangling ``\\``."""


def has_wildcard(text: str) -> bool:
    """Tell whether ``text`` holds an unescaped ``*``, ``?`` or ``[``."""
    return re.search(r"[*?\[]", re.sub(r"\\.?", "", text, flags=re.DOTALL)) is not None


def match(pattern: str, path: str) -> bool:
    """Tell whether all of ``path`` matches ``pattern``; ``*`` and ``?`` don't match ``/``.

    Raises:
        BadPatternError: the pattern is malformed.
    """
    return re.compile(_regex(pattern) + r"\Z", re.DOTALL).match(path) is not None


def _regex(pattern: str, *, deep: bool = False) -> str:
    """Return the regular expression of ``pattern``; ``deep`` lets ``**`` cross directories."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*" and deep and pattern.startswith("*", at):
            at += 2 if pattern.startswith("*/", at) else 1
            out.append("(?:.*/)?" if at < len(pattern) else ".*")
        elif char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            piece, at = _class(pattern, at)
            out.append(piece)
        elif char == "\\":
            if at == len(pattern):
                raise BadPatternError(f"{pattern!r} ends with an escape")
            out.append(re.escape(pattern[at]))
            at += 1
        else:
            out.append(re.escape(char))
    return "".join(out)


def _class(pattern: str, at: int) -> tuple[str, int]:
    """Return the regular expression of the class that begins after ``[`` at ``at``, and where it ends."""
    negated = pattern.startswith("^", at)
    at += negated
    ranges: list[str] = []
    while not (ranges and pattern.startswith("]", at)):
        low, at = _class_char(pattern, at)
        high = low
        if pattern.startswith("-", at):
            high, at = _class_char(pattern, at + 1)
        ranges.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else "")
    inner = "".join(ranges)
    if not inner:
        return ("(?:[^/]|/)" if negated else r"(?!)"), at + 1
    return f"[{'^' * negated}{inner}]", at + 1


def _class_char(pattern: str, at: int) -> tuple[str, int]:
    char = pattern[at : at + 1]
    if char in ("", "-", "]"):
        raise BadPatternError(f"{pattern!r} holds a malformed [...]")
    if char == "\\":
        at += 1
        char = pattern[at : at + 1]
    if not char:
        raise BadPatternError(f"{pattern!r} holds an open [")
    return char, at + 1


@dataclass(frozen=True, slots=True)
class _Rule:
    regex: re.Pattern[str]
    includes: bool


def deep_match(pattern: str, path: str) -> bool:
    """Tell whether ``path`` or a directory above it matches ``pattern``, where ``**`` crosses directories.

    Raises:
        BadPatternError: the pattern is malformed.
    """
    return re.compile(_regex(pattern, deep=True) + r"(?:/.*)?\Z", re.DOTALL).match(path) is not None


class IgnorePatterns:
    """The rules of a ``.dockerignore`` file; none ignores nothing."""

    def __init__(self, text: str = "") -> None:
        """Read the rules in ``text``.

        Raises:
            BadPatternError: a malformed rule.
        """
        self._rules = tuple(_rule(line) for line in text.removeprefix("\ufeff").split("\n") if _is_rule(line))
        self.has_exceptions = any(rule.includes for rule in self._rules)

    def ignores(self, path: str) -> bool:
        """Tell whether the build leaves ``path`` out: the last rule that matches it or a parent decides."""
        parts = path.split("/")
        above = [False] * len(self._rules)
        ignored = False
        for depth in range(1, len(parts) + 1):
            current = "/".join(parts[:depth])
            ignored = False
            for at, rule in enumerate(self._rules):
                above[at] = above[at] or (rule.includes == ignored and bool(rule.regex.match(current)))
                if above[at]:
                    ignored = not rule.includes
        return ignored


def _is_rule(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _rule(line: str) -> _Rule:
    pattern = line.strip()
    includes = pattern.startswith("!")
    if includes:
        pattern = pattern[1:].strip()
        if not pattern:
            raise BadPatternError("a lone '!' excepts nothing")
    pattern = posixpath.normpath(re.sub("/+", "/", pattern))
    if len(pattern) > 1:
        pattern = pattern.removeprefix("/")
    return _Rule(re.compile(_rule_regex(pattern), re.DOTALL), includes)


def _rule_regex(pattern: str) -> str:
    match(pattern, ".")
    end = pattern[2:]
    if pattern.startswith("**") and not end.startswith("/") and not re.search(r"[*?\[\]\\]", end):
        return f".*{re.escape(end)}\\Z"  # moby takes ``**x`` for any path that ends with ``x``
    return _regex(pattern, deep=True) + r"\Z"
