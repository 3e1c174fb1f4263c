"""Files to a host, through its shell alone: no scp, no sftp, constant memory, and never a wrong file.

A file crosses as base64, gzipped first where that pays. The host gives it its name when it is whole and has
the sha256 that was sent; what lay there before stays as it was until then. A file that is there already, with
the same content and mode, is not sent.
"""

from __future__ import annotations

import binascii
import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Final

from xbtasks.errors import CannotJudge, LostReply, Refused, UsageError
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from xbtasks.host.step import Host, SectionReply

__all__ = ["FilePayload", "LocalFile", "Progress", "progress_lines", "put_files"]

_BLOCK: Final = 57 * 4096  # bytes; a multiple of 3, so that pieces of base64 can stand one after another
_PAYS: Final = 0.9  # gzip where it leaves less than this of the first block
_LARGE: Final = 16 * 2**20  # bytes
_REFUSALS: Final = {65: "it was corrupt when it arrived"}


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file here, and the absolute (or ``~/``) path and mode that it is to have on a host."""

    source: Path
    target: str
    mode: int


Progress = Callable[[LocalFile, int, int], None]
"""Is told, from another thread, how many bytes of how many of a file have been read for sending."""


def progress_lines(say: Callable[[str], None]) -> Progress:
    """Return a progress that says, of files that take a while, each tenth of the way."""

    def told(file: LocalFile, read: int, size: int) -> None:
        if size >= _LARGE and (read * 10 // size) > ((read - _BLOCK) * 10 // size):
            say(f"  sending {file.source.name}: {read * 100 // size} % of {size / 2**20:.0f} MiB")

    return told


@dataclass(frozen=True, slots=True)
class FilePayload:
    """A local file as a payload. ``size`` is in bytes; ``progress`` is told how many have been read."""

    source: Path
    size: int
    sha256: str
    gzipped: bool
    progress: Callable[[int], None]

    @classmethod
    def of(cls, source: Path, progress: Callable[[int], None]) -> FilePayload:
        """Read ``source`` once, to know what will be sent.

        Raises:
            UsageError: it can't be read.
        """
        digest, size, gzipped = hashlib.sha256(), 0, False
        try:
            with source.open("rb") as file:
                for block in _blocks(file):
                    if not size:
                        gzipped = len(zlib.compress(block, 1)) < len(block) * _PAYS
                    digest.update(block)
                    size += len(block)
        except OSError as error:
            raise UsageError(f"{source} can't be read: {error.strerror}") from error
        return cls(source, size, digest.hexdigest(), gzipped, progress)

    def chunks(self) -> Iterator[bytes]:
        """Yield the file as base64.

        Raises:
            CannotJudge: it can't be read any more, or is not what was read before.
        """
        digest, sent, rest = hashlib.sha256(), 0, b""
        squeeze = zlib.compressobj(wbits=31) if self.gzipped else None
        try:
            with self.source.open("rb") as file:
                for block in _blocks(file):
                    digest.update(block)
                    sent += len(block)
                    rest += squeeze.compress(block) if squeeze else block
                    whole = len(rest) // _BLOCK * _BLOCK
                    if whole:
                        yield binascii.b2a_base64(rest[:whole])
                        rest = rest[whole:]
                    self.progress(sent)
        except OSError as error:
            raise CannotJudge(f"{self.source} can't be read any more: {error.strerror}") from error
        yield binascii.b2a_base64(rest + (squeeze.flush() if squeeze else b""))
        if digest.hexdigest() != self.sha256:
            raise CannotJudge(f"{self.source} changed while it was being sent", hint="run the command again")


def put_files(
    host: Host, files: Iterable[LocalFile], deadline: int, progress: Progress
) -> tuple[LocalFile, ...]:
    """Put ``files`` on ``host`` and return those that had to be sent.

    ``deadline`` (seconds) holds for each file.

    Raises:
        UsageError: a local file can't be read; nothing was touched on the host.
        Refused: something else than a file lies at a target.
        CannotJudge: a file did not arrive; what lay at its target is unchanged.
    """
    payloads = [(file, _payload(file, progress)) for file in files]
    if not payloads:
        return ()
    look = Section("files", program("file_state", *(file.target for file, _ in payloads)), deadline)
    states = _read_states(host.run(Step("files", (look,)))["files"], len(payloads))
    sent = []
    for (file, payload), (kind, mode, digest) in zip(payloads, states, strict=True):
        if kind not in ("file", "missing"):
            raise Refused(f"{file.target} is a {kind} on the host, not replaced by a file")
        if (kind, mode, digest) == ("file", f"{file.mode:o}", payload.sha256):
            continue
        encoding = "gzip" if payload.gzipped else "plain"
        argv = program("put_file", file.target, f"{file.mode:04o}", payload.sha256, encoding)
        step = Step("put-file", (Section("put-file", argv, deadline, payload=True),), payload=payload)
        _require_put(file, host.run(step)["put-file"])
        sent.append(file)
    return tuple(sent)


def _payload(file: LocalFile, progress: Progress) -> FilePayload:
    def told(read: int) -> None:
        progress(file, read, payload.size)

    payload = FilePayload.of(file.source, told)
    return payload


def _read_states(answer: SectionReply, count: int) -> list[tuple[str, str, str]]:
    if not answer.ok:
        raise CannotJudge(f"the files on the host can't be looked at: {answer.error_text.strip()[:300]}")
    lines = [line.split(" ") for line in answer.text.splitlines()]
    if len(lines) != count or any(len(words) != 3 for words in lines):
        raise LostReply("the state of the files on the host came back damaged")
    return [(kind, mode, digest) for kind, mode, digest in lines]


def _require_put(file: LocalFile, answer: SectionReply) -> None:
    if answer.ok:
        return
    reason = "it took too long" if answer.timed_out else _REFUSALS.get(answer.exit_status, "it was not put")
    said = answer.error_text.strip().replace("\n", " ")[:300]
    raise CannotJudge(f"{file.target}: {reason}{f': {said}' if said else ''}")


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block
