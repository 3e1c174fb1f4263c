"""Data to a host through its shell alone: no scp, no sftp, constant memory, and never in part.

Data crosses as one stream: its sha256 on a line, then base64. A program on the host lets it count only when
all of it has arrived with that sha256; what was there before stays as it was until then.
"""

from __future__ import annotations

import binascii
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from xbtasks.errors import CannotJudge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["StreamPayload", "progress_lines"]

_BLOCK: Final = 57 * 4096  # bytes; a multiple of 3, so that pieces of base64 can stand one after another
_LARGE: Final = 16 * 2**20  # bytes


def progress_lines(what: str, say: Callable[[str], None]) -> Callable[[int, int], None]:
    """Return a progress that says, of what takes a while, each tenth of the way."""

    def told(read: int, size: int) -> None:
        if size >= _LARGE and (read * 10 // size) > (max(read - _BLOCK, 0) * 10 // size):
            say(f"  sending {what}: {read * 100 // size} % of {size / 2**20:.0f} MiB")

    return told


@dataclass(frozen=True, slots=True)
class StreamPayload:
    """An open file as a payload, and the one that closes it.

    ``size`` is in bytes; ``progress`` is told, from another thread, how many bytes of how many were read.
    """

    file: BinaryIO
    size: int
    sha256: str
    progress: Callable[[int, int], None]

    @classmethod
    def of(cls, file: BinaryIO, progress: Callable[[int, int], None]) -> StreamPayload:
        """Read ``file`` once, to know what will be sent.

        Raises:
            OSError: it can't be read.
        """
        digest, size = hashlib.sha256(), 0
        for block in _blocks(file):
            digest.update(block)
            size += len(block)
        return cls(file, size, digest.hexdigest(), progress)

    def __enter__(self) -> StreamPayload:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def chunks(self) -> Iterator[bytes]:
        """Yield the sha256 and the base64 of the file.

        Raises:
            CannotJudge: it can't be read any more.
        """
        yield f"{self.sha256}\n".encode()
        read = 0
        try:
            for block in _blocks(self.file):
                yield binascii.b2a_base64(block)
                read += len(block)
                self.progress(read, self.size)
        except OSError as error:
            raise CannotJudge(f"what is sent can't be read any more: {error.strerror}") from error


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while block := file.read(_BLOCK):
        yield block
