"""Ctrl-C, SIGTERM and a closed terminal end the program with 130, at any moment, without a traceback.

While a task runs they raise ``KeyboardInterrupt``, so that what it began is ended and told. Before and after
there is nothing to end. One that whoever started us ignores, as ``nohup`` does, stays ignored.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

__all__ = ["end_at_once", "raised", "release"]

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_at_once() -> None:
    """Let a signal end the program on the spot."""
    _take(_end)


@contextmanager
def raised() -> Iterator[None]:
    """Let a signal raise ``KeyboardInterrupt`` meanwhile."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        _take(_raise)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def release() -> None:
    """Let through a Ctrl-C that was held back while this Python started."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _take(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _end(_number: int, _frame: FrameType | None) -> None:
    os._exit(ExitCode.INTERRUPTED)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
