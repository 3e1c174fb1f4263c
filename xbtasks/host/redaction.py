"""Evidence without names: hosts and users replaced, consistently, so that it still replays.

A name is replaced in every text: what was asked, what was answered, what was said about it. The frames of
the answers are made anew, since their digests cover the text. Streams that are no text (files from images)
stay as they are: they came out of containers, which know neither the host's name nor the user's.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError, reason_of
from xbtasks.host import frame
from xbtasks.host.programs import programs

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["NAMES", "pseudonyms", "redact"]

NAMES: Final = "names.json"
"""Beside evidence: whom it may name. It never gets into what is redacted."""

_SAY_NOTHING: Final = frozenset(("", "local", "localhost", "127.0.0.1", "::1", "root", "nobody"))

_BEFORE: Final = rb"(?:(?<![\w.-])|(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4}))"
"""What a name begins after: no letter of a longer one. The end of an escape of JSON's is no letter."""


def pseudonyms(hosts: Iterable[str], users: Iterable[str]) -> dict[str, str]:
    """Return what stands for each name; names that tell nothing of anybody are left out."""
    named: dict[str, str] = {}
    for kind, names in (("host", hosts), ("user", users)):
        telling = dict.fromkeys(name for name in names if name not in _SAY_NOTHING)
        named |= {name: f"{kind}-{number}" for number, name in enumerate(telling, 1) if name not in named}
    return named


def redact(source: Path, target: Path, names: dict[str, str]) -> None:
    """Write the evidence of ``source`` to the new directory ``target`` with each of ``names`` replaced.

    A name that is also a word of what xbtasks asks or a host answers is replaced there too: a replay of
    ``target`` shows whether it still says the same.

    Raises:
        UsageError: ``source`` holds no evidence, ``target`` can't be written, or a name is a word of xbtasks'
            own programs.
    """
    written = {form: name for name in names for form in (_escaped(name), name.encode())}
    words = b"|".join(re.escape(form) for form in sorted(written, key=lambda form: (-len(form), form)))
    pattern = re.compile(_BEFORE + rb"(?:%s)(?![\w-])" % words)

    for text in programs():
        if names and (word := pattern.search(text.encode())):
            raise UsageError(
                f"{word[0].decode()!r} is also a word of xbtasks' own programs, it can't be replaced"
            )

    def change(data: bytes) -> bytes:
        if not names or b"\0" in data:
            return data
        return pattern.sub(lambda match: names[written[match[0]]].encode(), data)

    try:
        target.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise UsageError(f"{target} can't be made: {error.strerror}") from error
    try:
        for path in sorted(path for path in source.rglob("*") if path.name != NAMES):
            # what a person calls a host is also the name of its folder in a matrix
            there = target / change(str(path.relative_to(source)).encode()).decode()
            if path.is_dir():
                there.mkdir()
            elif path.name == "stdout.gz" and path.parent.parent.name == "steps":
                marker = str(json.loads((path.parent / "step.json").read_bytes())["marker"])
                _write_gzip(there, frame.rewrite(marker, gzip.decompress(path.read_bytes()), change))
            elif path.suffix == ".gz":
                _write_gzip(there, change(gzip.decompress(path.read_bytes())))
            else:
                there.write_bytes(change(path.read_bytes()))
    except (KeyError, OSError, ValueError) as error:
        shutil.rmtree(target, ignore_errors=True)
        raise UsageError(f"{source} can't be redacted: {reason_of(error)}") from error


def _escaped(name: str) -> bytes:
    """Return a name as JSON writes it."""
    return json.dumps(name)[1:-1].encode()


def _write_gzip(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, compresslevel=1, mtime=0))
