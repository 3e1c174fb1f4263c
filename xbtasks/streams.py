"""Our stdin, stdout and stderr, whatever this program was started with.

One that is closed is the null device: no file of ours gets its number. Who stops reading, as ``head`` does,
stops nothing: the text is dropped, and the run goes on, keeps its evidence and ends with its own exit code.
Text that is lost to anything else, as a full disk, is told at the end.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

from xbtasks.errors import CannotJudge

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["install", "loss"]


class _Output(io.FileIO):
    """Takes all that is written, waiting for whoever reads; what can't be written any more is dropped."""

    def __init__(self, number: int) -> None:
        super().__init__(number, "w", closefd=False)
        self.lost: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        if self.lost is None:
            try:
                while (written := super().write(data)) is None:  # a full pipe that doesn't block
                    select.select([], [self], [])
            except OSError as error:
                self.lost = error
            else:
                return written
        return memoryview(data).nbytes


_stdout: list[_Output] = []


def install() -> None:
    """Make the streams of this process so; safe to call twice, and where a test or a program has its own."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
    if sys.stdout is sys.__stdout__ and not _stdout:
        output = _Output(1)
        sys.stdout = _text(output, sys.stdout)
        _stdout.append(output)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _text(_Output(2), sys.stderr)


def loss() -> CannotJudge | None:
    """Return the error that text for stdout was lost, if any was and somebody would have read it."""
    if not _stdout:
        return None
    sys.stdout.flush()
    lost = _stdout[0].lost
    if lost is None or isinstance(lost, BrokenPipeError):
        return None
    return CannotJudge(f"the output can't be written: {lost.strerror}")


def _text(output: _Output, like: TextIO | None) -> TextIO:
    """Return a text stream into ``output`` that is as Python made the one of old."""
    if like is None:
        return io.TextIOWrapper(io.BufferedWriter(output), encoding="utf-8", errors="replace")
    like.flush()
    # write_through, as with python -u, would leave the text in the buffer below
    at_once = getattr(like, "line_buffering", False) or getattr(like, "write_through", False)
    return io.TextIOWrapper(
        io.BufferedWriter(output), encoding=like.encoding, errors=like.errors, line_buffering=at_once
    )
