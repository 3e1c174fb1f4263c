"""What a person sees while a run goes on: plain lines, the build's steps among them."""

from __future__ import annotations

import os
import re
import sys
import threading
from typing import TextIO

__all__ = ["Console", "PrefixedConsole", "one_line"]

_COLOURS = {
    "PASS": "32",
    "FAIL": "31",
    "ERROR": "31",
    "WARN": "33",
    "SKIP": "33",
    "INFO": "36",
    "BETTER": "32",
    "WORSE": "31",
}
_COLOURED = re.compile(r"(\n|\x1b\[(?:0|3[1236])m)")


def one_line(text: str) -> str:
    """Return ``text`` on one line, its control characters (escape sequences too) made harmless."""
    return "".join(char if char.isprintable() else " " for char in text).strip()


class Console:
    """Writes for people. Text that can't be encoded is replaced; a closed pipe ends the run quietly."""

    def __init__(self, out: TextIO | None = None, hide: re.Pattern[str] | None = None) -> None:
        self._out = out or sys.stdout
        self._hide = hide
        self._rest = b""
        self._steps: dict[str, str] = {}
        self._writing = threading.Lock()
        self.colour = (
            self._out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        )
        codes = ("0", *_COLOURS.values()) if self.colour else ()
        self._ours = {"\n", *(f"\x1b[{code}m" for code in codes)}

    def say(self, text: str = "") -> None:
        """Print a line, or several; control characters other than our own colours are made harmless."""
        encoding = self._out.encoding or "utf-8"
        safe = "".join(
            part if part in self._ours else "".join(c if c.isprintable() else " " for c in part)
            for part in _COLOURED.split(text)
        )
        with self._writing:  # print writes a line's end apart
            print(safe.encode(encoding, "replace").decode(encoding), file=self._out, flush=True)

    @property
    def can_ask(self) -> bool:
        """Whether a person can answer: stdin is a terminal."""
        return sys.stdin is not None and sys.stdin.isatty()

    def ask(self, question: str) -> str:
        """Return the answer to ``question``, empty at the end of the input.

        The question is on stderr where stdout goes to a file: nobody would see it, and the file is data.
        """
        where = self._out if self._out.isatty() else sys.stderr
        print(one_line(question), end=" ", file=where, flush=True)
        return sys.stdin.readline().strip()

    def status(self, word: str) -> str:
        """Return a status or verdict word, coloured on a terminal."""
        code = _COLOURS.get(word)
        return f"\x1b[{code}m{word}\x1b[0m" if self.colour and code else word

    def live(self, chunk: bytes) -> None:
        """Show what a build says of its steps as it says it; a step's own output stays in the log."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            text = self._progress(one_line(line.decode(errors="replace")))
            if text and not (self._hide and self._hide.search(text)):
                self.say(f"    {text}")

    def _progress(self, line: str) -> str:
        """Return what a line of BuildKit's plain progress says of a step of the Dockerfile, or nothing."""
        number, _, rest = line.partition(" ")
        if line.startswith("ERROR: "):
            return line[:_WIDEST]
        if not number.startswith("#") or not number[1:].isdigit():
            return ""
        if rest.startswith(("[", "exporting to")) and not rest.startswith("[internal]"):
            if self._steps.get(number) == rest:
                return ""  # told again when the step goes on
            self._steps[number] = rest
            return f"{number} {_without_mounts(rest)}"[:_WIDEST]
        ended = rest.startswith(("DONE ", "ERROR", "CACHED", "CANCELED"))
        return f"{number} {rest}"[:_WIDEST] if ended and number in self._steps else ""


class PrefixedConsole(Console):
    """The lines of one of several runs at once, each behind a prefix. Nobody is asked anything here."""

    def __init__(self, base: Console, prefix: str, ended: threading.Event) -> None:
        super().__init__(base._out, base._hide)  # noqa: SLF001 - its own kind
        self._base = base
        self._prefix = prefix
        self._ended = ended

    @property
    def can_ask(self) -> bool:
        """Whether a person can answer: not here."""
        return False

    def say(self, text: str = "") -> None:
        """Print each line behind the prefix, until everything has ended."""
        if not self._ended.is_set():
            self._base.say("\n".join(f"{self._prefix} {line}" for line in text.split("\n")))


_WIDEST = 150


def _without_mounts(step: str) -> str:
    """Return a step's headline without the flags of its command, which fill a line and say little."""
    return " ".join(word for word in step.split() if not word.startswith("--"))
