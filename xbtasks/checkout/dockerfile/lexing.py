"""How BuildKit cuts a line of a Dockerfile into keyword, flags and words."""

from __future__ import annotations

import re

__all__ = ["cut_keyword", "is_space", "leading_flags", "lstrip", "quoted_words", "split_blanks", "strip"]

_BLANKS = re.compile(r"[\t\v\f\r ]+")
_SPACES = frozenset(
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def is_space(char: str) -> bool:
    """Tell whether ``char`` is white space as Go's ``unicode.IsSpace`` sees it; Python differs."""
    return char in _SPACES


def lstrip(text: str) -> str:
    """Return ``text`` without leading white space."""
    at = 0
    while at < len(text) and text[at] in _SPACES:
        at += 1
    return text[at:]


def strip(text: str) -> str:
    """Return ``text`` without white space around it."""
    end = len(text)
    while end and text[end - 1] in _SPACES:
        end -= 1
    return lstrip(text[:end])


def cut_keyword(text: str) -> tuple[str, str]:
    """Return what stands before the first blanks of ``text``, and after them."""
    first, *rest = _BLANKS.split(text, maxsplit=1)
    return first, rest[0] if rest else ""


def split_blanks(text: str) -> tuple[str, ...]:
    """Return the words of ``text``; quotes and escapes mean nothing here."""
    return tuple(_BLANKS.split(text)) if text else ()


def quoted_words(text: str, escape: str) -> tuple[str, ...]:
    """Return the words of ``text``; quotes and escapes are kept and hold a word together."""
    words: list[str] = []
    word, quote, at = "", "", 0
    while at < len(text):
        char = text[at]
        at += 1
        if not quote and char in _SPACES:
            words.append(word)
            word = ""
            continue
        if char == escape and quote != "'":
            if at < len(text):
                word += char + text[at]
                at += 1
            continue
        if char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        word += char
    return tuple(each for each in (*words, word) if each)


def leading_flags(text: str, escape: str) -> tuple[tuple[str, ...], str]:
    """Return the leading ``--flags`` of ``text``, quotes and escapes resolved, and what follows them.

    BuildKit walks bytes here, not characters: a flag that isn't ASCII comes out as it does there.
    """
    line = text.encode("utf-8", "surrogateescape").decode("latin-1")
    flags: list[str] = []
    at = 0
    while True:
        while at < len(line) and line[at] in _SPACES:
            at += 1
        if not line.startswith("--", at):
            break
        flag, at = _flag(line, at, escape)
        if flag == "--":
            break
        flags.append(flag)
    return tuple(flags), line[at:].encode("latin-1").decode("utf-8", "surrogateescape")


def _flag(line: str, at: int, escape: str) -> tuple[str, int]:
    word, quote = "", ""
    while at < len(line) and (quote or line[at] not in _SPACES):
        char = line[at]
        at += 1
        if char == escape:
            word += line[at : at + 1]
            at += 1
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        else:
            word += char
    return word, at
