"""A terminal that a test can read: what a person sees after all that a program wrote."""

from __future__ import annotations

import io

import pyte

__all__ = ["Terminal"]


class Terminal(io.TextIOBase):
    """A terminal of so many columns and lines, with all that has scrolled off its top."""

    def __init__(self, columns: int = 80, lines: int = 24) -> None:
        self._screen = pyte.HistoryScreen(columns, lines, history=10000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self.written = b""

    @property
    def encoding(self) -> str:  # type: ignore[override] # the base class has an attribute
        return "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.feed(text.replace("\n", "\r\n").encode())  # as a terminal's driver does
        return len(text)

    def feed(self, data: bytes) -> None:
        self.written += data
        self._stream.feed(data)

    @property
    def screen(self) -> list[str]:
        """The lines that are seen, without those below the last one."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip("\n").split("\n")

    @property
    def everything(self) -> list[str]:
        """All lines, from the first that was ever written."""
        width = self._screen.columns
        above = ["".join(line[at].data for at in range(width)).rstrip() for line in self._screen.history.top]
        return above + self.screen

    @property
    def cursor_shown(self) -> bool:
        return not self._screen.cursor.hidden

    @property
    def columns(self) -> int:
        return int(self._screen.columns)

    def resize(self, columns: int) -> None:
        self._screen.resize(columns=columns)
