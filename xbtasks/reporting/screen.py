"""The board on a terminal, below the lines that are said. Imported only where there is one: rich is heavy.

The cursor is never hidden, so whatever ends the program leaves the terminal as it was.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from xbtasks.reporting.board import RUNNING, WAITING, Board, Line, clock

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Screen"]

_COLOURS = {"PASS": "green", "FAIL": "red", "ERROR": "red", "SKIP": "yellow", RUNNING: "cyan", WAITING: "dim"}
_NARROW = 60
_LOWEST = 4  # lines
_MARGIN = 4  # columns for the ^C that a terminal shows at the cursor; one that begins a line would stay
_REDRAWN = 4  # times a second


class _Terminal(RichConsole):
    """A terminal whose cursor stays visible."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: FBT001, FBT002 - rich's own signature
        """Leave the cursor alone."""
        del show
        return False


class Screen:
    """Draws a board until it is closed. ``say`` prints above it."""

    def __init__(self, board: Board, out: TextIO, *, colour: bool) -> None:
        self._console = _Terminal(
            file=out,
            force_terminal=True,
            color_system="standard" if colour else None,
            no_color=not colour,
            legacy_windows=False,
            _environ={},  # what variables say is decided already; COLUMNS is not told of a new size
        )
        self._live = Live(
            _Drawing(board),
            console=self._console,
            refresh_per_second=_REDRAWN,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=sys.stderr is not None and sys.stderr.isatty(),
        )

    def open(self) -> None:
        """Show the board."""
        self._live.start(refresh=True)

    def close(self) -> None:
        """Remove the board; what was said stays."""
        self._live.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Take the board away while somebody is asked."""
        shown = self._live.is_started
        self.close()
        try:
            yield
        finally:
            if shown:
                self.open()

    def say(self, text: str) -> None:
        """Print lines, which may have colours of ours, above the board."""
        self._console.print(Text.from_ansi(text), soft_wrap=True)


class _Drawing:
    """The board as it is at the moment when it is drawn."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def __rich_console__(self, console: RichConsole, options: ConsoleOptions) -> RenderResult:
        width, height = console.size
        width = max(1, width - _MARGIN)
        if height < _LOWEST:
            return
        view = self._board.view(height - 2)
        narrow = width < _NARROW
        rows = [_cells(line)[: 4 if narrow else 5] for line in view.lines]
        fixed = [max((cell_len(row[at].plain) for row in rows), default=0) for at in range(3)]
        table = Table.grid(padding=(0, 1))
        table.width = width
        for at, cells in enumerate(fixed):
            table.add_column(no_wrap=True, justify="right" if at else "left", min_width=cells)
        table.add_column(
            no_wrap=True,
            overflow="ellipsis",
            ratio=1 if narrow else None,
            max_width=None if narrow else width // 2,
        )
        if not narrow:
            table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        for row in rows:
            table.add_row(*row)
        yield table
        if view.footer:
            footer = Text(view.footer, style="dim", no_wrap=True, overflow="ellipsis")
            footer.truncate(width, overflow="ellipsis")
            yield footer


def _cells(line: Line) -> tuple[Text, ...]:
    return (
        Text(line.state, style=_COLOURS.get(line.state, "")),
        Text("" if line.seconds is None else clock(line.seconds)),
        Text("" if line.percent is None else f"{line.percent}%"),
        Text(line.name),
        Text(line.what, style="dim" if line.state == WAITING else ""),
    )
