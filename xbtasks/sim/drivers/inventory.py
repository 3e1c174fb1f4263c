"""The inventory file of the simulated host: which cards it has, and what is wrong with them.

One JSON document with a part for each vendor. A part that is missing means that vendor's default cards; an
empty list of cards means none. It is read again whenever it changes, also while the host is up.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final, TypeVar

from xbtasks.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Part", "read_part", "write_part"]

_Scalar = TypeVar("_Scalar", bool, int, str)


class Part:
    """An object of the document, read key by key. What nobody asked for is an error: :meth:`finish`."""

    def __init__(self, where: str, values: object) -> None:
        if not isinstance(values, dict):
            raise Refused(f"{where}: not an object")
        self.where = where
        self._left: dict[str, object] = dict(values)

    def has(self, key: str) -> bool:
        """Tell whether ``key`` is given."""
        return key in self._left

    def take(self, key: str, default: _Scalar) -> _Scalar:
        """Return the value of ``key``, which must be of the type of ``default``."""
        value = self._left.pop(key, default)
        kind = type(default)
        if type(value) is not kind or (kind is int and str(value).startswith("-")):
            raise Refused(f"{self.where}: {key} is {json.dumps(value)}, not {_KINDS[kind]}")
        return value

    def one_of(self, key: str, choices: tuple[str, ...], default: str) -> str:
        """Return the value of ``key``, which must be one of ``choices``."""
        value = self.take(key, default)
        if value not in choices:
            raise Refused(f"{self.where}: {key} is {json.dumps(value)}, not one of {', '.join(choices)}")
        return value

    def parts(self, key: str) -> list[Part]:
        """Return the objects in the list that ``key`` holds; none where it is missing."""
        values = self._left.pop(key, [])
        if not isinstance(values, list):
            raise Refused(f"{self.where}: {key} is not a list")
        return [Part(f"{self.where}: {key}[{place}]", value) for place, value in enumerate(values)]

    def finish(self) -> None:
        """Raise Refused if a key is left that nobody asked for."""
        if self._left:
            raise Refused(f"{self.where}: unknown: {', '.join(sorted(self._left))}")


_KINDS: Final[dict[type, str]] = {bool: "true or false", int: "a whole number", str: "a text"}


def read_part(file: Path, vendor: str) -> Part | None:
    """Return a vendor's part of the inventory, or None where the file or the part is missing.

    Raises Refused where the file isn't what it should be.
    """
    document = _document(file)
    return Part(f"{file}: {vendor}", document[vendor]) if vendor in document else None


def write_part(file: Path, vendor: str, values: Mapping[str, object]) -> None:
    """Replace a vendor's part of the inventory; the others stay."""
    document = _document(file) | {vendor: dict(values)}
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_text(json.dumps(document, indent=2) + "\n")
    fresh.replace(file)


def _document(file: Path) -> dict[str, object]:
    try:
        document: object = json.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Refused(f"{file}: {error}") from error
    if not isinstance(document, dict):
        raise Refused(f"{file}: not an object")
    return document
