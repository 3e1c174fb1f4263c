"""Text of a Dockerfile → its instructions.

Contract: the Dockerfile reference, with the details of BuildKit's ``frontend/dockerfile/parser``: parser
directives, comments, continuations, heredocs, flags and JSON forms. No variable is expanded here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from xbtasks.checkout.dockerfile.expansion import ExpansionError, shell_words
from xbtasks.checkout.dockerfile.lexing import (
    cut_keyword,
    leading_flags,
    lstrip,
    quoted_words,
    split_blanks,
    strip,
)
from xbtasks.errors import UsageError

__all__ = ["Dockerfile", "Heredoc", "Instruction", "heredoc_of", "parse"]

_MAX_LINE = 64 * 1024 - 1  # bytes, newline included: BuildKit refuses longer lines
_DIRECTIVE = re.compile(r"([a-zA-Z][a-zA-Z0-9]*)[\t\n\f\r ]*=[\t\n\f\r ]*(.+?)[\t\n\f\r ]*\Z")
_DIRECTIVES = frozenset({"syntax", "escape", "check"})
_HEREDOC = re.compile(r"([0-9]*)<<(-?)[\t\n\f\r ]*([^<]*)\Z")
_LEADING_TABS = re.compile(r"^\t+", re.MULTILINE)
_CONTINUATION = {
    "\\": re.compile(r"(?:(?<=[^\\])|^)\\[ \t]*\Z"),
    "`": re.compile(r"(?:(?<=[^`])|^)`[ \t]*\Z"),
}
_STRING_KEYWORDS = frozenset({"STOPSIGNAL", "USER", "WORKDIR", "MAINTAINER"})
_LIST_KEYWORDS = frozenset({"ADD", "COPY", "VOLUME"})
_SHELL_KEYWORDS = frozenset({"RUN", "CMD", "ENTRYPOINT", "SHELL"})
_PAIR_KEYWORDS = frozenset({"ENV", "LABEL"})
_KEYWORDS = (
    frozenset({"ARG", "EXPOSE", "FROM", "HEALTHCHECK", "ONBUILD"})
    | _STRING_KEYWORDS
    | _LIST_KEYWORDS
    | _SHELL_KEYWORDS
    | _PAIR_KEYWORDS
)
_HEREDOC_KEYWORDS = frozenset({"ADD", "COPY", "RUN"})


@dataclass(frozen=True, slots=True)
class Heredoc:
    """A heredoc of an instruction.

    ``content`` is raw, ``strip_tabs`` says that ``<<-`` opened it, ``expand`` that its name wasn't quoted.
    """

    name: str
    content: str
    strip_tabs: bool
    expand: bool
    file_descriptor: int

    @property
    def text(self) -> str:
        """What the heredoc holds once the tabs that ``<<-`` drops are gone."""
        return _LEADING_TABS.sub("", self.content) if self.strip_tabs else self.content


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction.

    ``keyword`` is upper case; ``flags`` are written ``--name=value``, their quotes removed; ``args`` are what
    BuildKit splits the rest into: one string for a shell form, key, value, key, value … for ENV and LABEL;
    ``source`` is the continued line joined; ``line`` and ``end_line`` count from 1; ``trigger`` is what an
    ONBUILD holds.
    """

    keyword: str
    flags: tuple[str, ...]
    args: tuple[str, ...]
    json: bool
    source: str
    line: int
    end_line: int
    heredocs: tuple[Heredoc, ...] = field(default=())
    trigger: Instruction | None = field(default=None)

    def flag_values(self, name: str) -> tuple[str, ...]:
        """Return the values of every ``--name=value`` flag."""
        start = f"--{name}="
        return tuple(flag[len(start) :] for flag in self.flags if flag.startswith(start))

    @property
    def text(self) -> str:
        """The instruction in canonical form: keyword in upper case, comments gone, heredocs after it."""
        line = self.keyword + self.source[len(self.keyword) :]
        return "\n".join((line, *(f"{heredoc.content}{heredoc.name}" for heredoc in self.heredocs)))


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """A parsed Dockerfile: its name for messages, parser directives, escape character and instructions."""

    name: str
    directives: tuple[tuple[str, str], ...]
    escape: str
    instructions: tuple[Instruction, ...]


def parse(text: str, name: str = "Dockerfile") -> Dockerfile:
    """Return the instructions of a Dockerfile's ``text``; ``name`` stands in messages.

    Raises:
        UsageError: what BuildKit's parser refuses, with file name and line number.
    """
    return _Parser(text, name).parse()


def heredoc_of(word: str) -> Heredoc | None:
    """Return the heredoc that ``word`` (``<<EOF``, ``3<<-"EOF"``) opens, its content empty, or None.

    Raises:
        ExpansionError: the quotes of its name don't close.
    """
    match = _HEREDOC.match(word)
    names = shell_words(match[3]) if match else []
    if match is None or len(names) != 1:
        return None
    raw = "".join(shell_words(match[3], raw_quotes=True))
    quoted = sum(map(raw.count, "'\"")) != sum(map(names[0].count, "'\""))
    return Heredoc(names[0], "", match[2] == "-", not quoted, int(match[1][-9:] or 0))


class _Parser:
    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._lines: list[str] = re.findall(r"[^\n]*\n|[^\n]+\Z", text.removeprefix("\ufeff"))
        self._at = 0
        self._escape = "\\"
        self._directives: dict[str, str] = {}
        self._in_directives = True

    def parse(self) -> Dockerfile:
        instructions: list[Instruction] = []
        while self._at < len(self._lines):
            joined, line = self._joined_line()
            if line:
                instructions.append(self._with_heredocs(self._instruction(joined, line), joined))
        if not instructions:
            raise self._refused(max(self._at, 1), "no instructions in this file")
        return Dockerfile(self._name, tuple(self._directives.items()), self._escape, tuple(instructions))

    def _refused(self, line: int, problem: str) -> UsageError:
        return UsageError(f"{self._name}:{line}: {problem}")

    def _next_line(self) -> str:
        line = self._lines[self._at]
        self._at += 1
        if len(line) * 4 > _MAX_LINE and len(line.encode("utf-8", "surrogateescape")) > _MAX_LINE:
            raise self._refused(self._at, f"a line longer than {_MAX_LINE} bytes, which BuildKit refuses")
        return line

    def _joined_line(self) -> tuple[str, int]:
        """Return the next line with its continuations and its number, or 0 where it holds nothing."""
        line = lstrip(self._next_line().rstrip("\r\n"))
        start = self._at
        if self._in_directives:
            self._in_directives = self._is_directive(line)
        if line.startswith("#"):
            return "", 0
        joined, ended = self._without_continuation(line)
        if ended and not joined:
            return "", 0
        while not ended and self._at < len(self._lines):
            more = self._next_line().rstrip("\r\n")
            if not lstrip(more) or lstrip(more).startswith("#"):
                continue
            more, ended = self._without_continuation(more)
            joined += more
        return joined, start

    def _is_directive(self, line: str) -> bool:
        match = _DIRECTIVE.match(lstrip(line[1:])) if line.startswith("#") else None
        key = match[1].lower() if match else ""
        if match is None or key not in _DIRECTIVES:
            return False
        if key in self._directives:
            raise self._refused(self._at, f"only one {key} parser directive can be used")
        if key == "escape":
            if match[2] not in _CONTINUATION:
                raise self._refused(self._at, f"the escape directive takes \\ or `, not {match[2][:20]!a}")
            self._escape = match[2]
        self._directives[key] = match[2]
        return True

    def _without_continuation(self, line: str) -> tuple[str, bool]:
        match = _CONTINUATION[self._escape].search(line)
        return (line[: match.start()], False) if match else (line, True)

    def _instruction(self, joined: str, line: int) -> Instruction:
        source = strip(joined)
        keyword, rest = cut_keyword(source)
        if keyword.upper() not in _KEYWORDS:
            raise self._refused(line, f"unknown instruction {keyword[:40]!a}")
        flags, rest = leading_flags(rest, self._escape)
        rest = strip(rest)
        trigger: Instruction | None = None
        args: tuple[str, ...] = ()
        json = False
        if keyword.upper() == "ONBUILD":
            trigger = self._trigger(rest, line)
        else:
            args, json = self._arguments(keyword.upper(), rest, line)
        return Instruction(keyword.upper(), flags, args, json, source, line, self._at, (), trigger)

    def _trigger(self, rest: str, line: int) -> Instruction:
        keyword = cut_keyword(rest)[0].upper()
        if keyword in ("", "ONBUILD", "FROM", "MAINTAINER"):
            raise self._refused(line, f"ONBUILD takes an instruction, and not {keyword or 'nothing'}")
        return self._instruction(rest, line)

    def _arguments(self, keyword: str, rest: str, line: int) -> tuple[tuple[str, ...], bool]:
        if keyword in _PAIR_KEYWORDS:
            return self._pairs(keyword, rest, line), False
        if keyword == "ARG":
            return quoted_words(rest, self._escape), False
        if keyword in _STRING_KEYWORDS:
            return ((rest,) if rest else ()), False
        if keyword in _LIST_KEYWORDS:
            words = self._json_array(rest, line)
            return (split_blanks(rest), False) if words is None else (words, True)
        if keyword in _SHELL_KEYWORDS:
            return self._command(rest, line)
        if keyword == "HEALTHCHECK":
            kind, rest = cut_keyword(rest)
            command, json = self._command(rest, line)
            return ((kind, *command), json) if kind else ((), False)
        return split_blanks(rest), False

    def _command(self, rest: str, line: int) -> tuple[tuple[str, ...], bool]:
        words = self._json_array(rest, line)
        if words is None:
            return ((rest,) if rest else ()), False
        return words, True

    def _json_array(self, rest: str, line: int) -> tuple[str, ...] | None:
        if not rest.startswith("["):
            return None
        from json import loads

        try:
            items: object = loads(rest, parse_constant=_no_constant)
        except (ValueError, RecursionError):  # then it is a shell form, which only looks like an array
            return None
        if not isinstance(items, list):
            return None
        words = tuple(item for item in items if isinstance(item, str))
        if len(words) != len(items):
            raise self._refused(line, "an array in JSON form may hold nothing but strings")
        return words

    def _pairs(self, keyword: str, rest: str, line: int) -> tuple[str, ...]:
        words = quoted_words(rest, self._escape)
        if not words:
            raise self._refused(line, f"{keyword} requires at least one argument")
        if "=" not in words[0]:
            key, value = cut_keyword(rest)
            if key == rest:
                raise self._refused(line, f"{keyword} must have two arguments")
            return key, value
        pairs: list[str] = []
        for word in words:
            key, equals, value = word.partition("=")
            if not equals or not key:
                raise self._refused(line, f"{keyword} takes name=value, not {word[:40]!a}")
            pairs += (key, value)
        return tuple(pairs)

    def _with_heredocs(self, instruction: Instruction, joined: str) -> Instruction:
        holder = instruction.trigger or instruction
        if holder.keyword not in _HEREDOC_KEYWORDS or "<<" not in joined:
            return instruction
        opened = self._opened_heredocs(joined, instruction.line)
        heredocs = tuple(self._read_heredoc(each, instruction.line) for each in opened)
        trigger = instruction.trigger
        if trigger:
            trigger = replace(trigger, heredocs=heredocs, end_line=self._at)
        return replace(instruction, heredocs=heredocs, end_line=self._at, trigger=trigger)

    def _opened_heredocs(self, joined: str, line: int) -> list[Heredoc]:
        try:
            words = shell_words(joined, raw_quotes=True, raw_escapes=True)
        except ExpansionError:  # BuildKit leaves a line whose quotes don't close to the shell: no heredocs
            return []
        try:
            return [heredoc for word in words if (heredoc := heredoc_of(word))]
        except ExpansionError as error:
            raise self._refused(line, f"{error} in the name of a heredoc") from error

    def _read_heredoc(self, opened: Heredoc, line: int) -> Heredoc:
        content: list[str] = []
        while self._at < len(self._lines):
            raw = self._next_line()
            end = raw.rstrip("\r\n")
            if (end.lstrip("\t") if opened.strip_tabs else end) == opened.name:
                return replace(opened, content="".join(content))
            content.append(raw)
        raise self._refused(line, f"unterminated heredoc {opened.name[:40]!a}")


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
