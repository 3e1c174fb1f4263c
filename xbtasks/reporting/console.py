"""What a person sees while a run goes on: plain lines, the build's steps among them."""

from __future__ import annotations

import os
import re
import sys
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, TextIO

from xbtasks.reporting.progress import BuildProgress
from xbtasks.reporting.text import one_line
from xbtasks.typed import as_typed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xbtasks.checks import CaseReport
    from xbtasks.reporting.screen import Screen
    from xbtasks.result import Result

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


class Console:
    """Writes for people. Text that can't be encoded is replaced."""

    def __init__(self, out: TextIO | None = None, hide: re.Pattern[str] | None = None) -> None:
        self.out = out or sys.stdout
        self.hide = hide
        self.stage = ""
        self.progress = BuildProgress()
        self._screen: Screen | None = None
        self._writing = threading.Lock()
        self.can_draw = self.out.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")
        self.colour = self.can_draw and not os.environ.get("NO_COLOR")
        codes = ("0", *_COLOURS.values()) if self.colour else ()
        self._ours = {"\n", *(f"\x1b[{code}m" for code in codes)}

    def say(self, text: str = "") -> None:
        """Print a line, or several; control characters other than our own colours are made harmless."""
        encoding = self.out.encoding or "utf-8"
        safe = "".join(
            part if part in self._ours else "".join(c if c.isprintable() else " " for c in part)
            for part in _COLOURED.split(as_typed(text))
        )
        self._write(safe.encode(encoding, "replace").decode(encoding))

    def _write(self, text: str) -> None:
        """Put lines that are safe where they go."""
        if self._screen is not None:
            self._screen.say(text)
            return
        with self._writing:  # print writes a line's end apart
            print(text, file=self.out, flush=True)

    @property
    def can_ask(self) -> bool:
        """Whether a person can answer: stdin is a terminal."""
        return sys.stdin is not None and sys.stdin.isatty()

    def ask(self, question: str) -> str:
        """Return the answer to ``question``, empty at the end of the input.

        The question is on stderr where stdout goes to a file: nobody would see it, and the file is data.
        """
        where = self.out if self.out.isatty() else sys.stderr
        with self._screen.paused() if self._screen is not None else nullcontext():
            print(one_line(question), end=" ", file=where, flush=True)
            return sys.stdin.readline().strip()

    def draw(self, screen: Screen | None) -> None:
        """Print above ``screen`` from now on; None takes it away."""
        if self._screen is not None:
            self._screen.close()
        self._screen = screen
        if screen is not None:
            screen.open()

    def status(self, word: str) -> str:
        """Return a status or verdict word, coloured on a terminal."""
        code = _COLOURS.get(word)
        return f"\x1b[{code}m{word}\x1b[0m" if self.colour and code else word

    def live(self, chunk: bytes) -> None:
        """Show what a build says of its steps as it says it; a step's own output stays in the log."""
        for text in self.shown(self.progress.take(chunk)):
            self.say(f"    {text}")

    def shown(self, lines: Iterable[str]) -> list[str]:
        """Return the lines of a build that nobody wants hidden."""
        return [line for line in lines if not (self.hide and self.hide.search(line))]

    def begins(self, stage: str) -> None:
        """Print a stage's name over the lines about it."""
        self.say(stage)

    def doing(self, stage: str, case: int, what: str) -> None:
        """Take what is done now: here the lines tell."""
        del case, what
        if stage != self.stage:  # another build, which counts its steps anew
            self.stage, self.progress = stage, BuildProgress()

    def judged(self, report: CaseReport) -> None:
        """Take what became of a case: here the lines tell."""

    def announce(self, result: Result) -> None:
        """Show a result where people look first, if there is such a place beside what was printed."""

    def close(self) -> None:
        """Leave the place as it was found."""
        self.draw(None)


class PrefixedConsole(Console):
    """The lines of one of several runs at once, each behind a prefix. Nobody is asked anything here."""

    def __init__(self, base: Console, prefix: str, ended: threading.Event) -> None:
        super().__init__(base.out, base.hide)
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

    def begins(self, stage: str) -> None:
        """Print nothing: the prefix names the stage."""
