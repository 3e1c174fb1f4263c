"""Configuration files: a YAML mapping of knob names to plain values, read as text with line numbers.

YAML's own reading of values (``no`` is false, ``12.10`` is 12.1, ``010`` is 8) is kept out: every
value stays the text that was typed and is parsed like a flag's or a variable's. An empty value
leaves its knob unset. Keys may be spelled with ``_`` or, as the flags are, with ``-``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError, reason_of
from xbtasks.knobs.table import KNOBS
from xbtasks.knobs.values import shown
from xbtasks.nearest import nearest as like

if TYPE_CHECKING:
    from pathlib import Path

    import yaml

__all__ = ["Entry", "compose", "knob_name", "nearest", "read_bytes", "read_knob_file"]

MAX_BYTES: Final = 64 * 1024
_INVOKE_KEYS: Final = frozenset({"debug", "run", "runners", "sudo", "tasks", "timeouts"})


@dataclass(frozen=True)
class Entry:
    """A value in a file: its text, and where it stands (``config/invoke.yaml line 12``)."""

    text: str
    place: str


def nearest(word: str, known: dict[str, str]) -> str:
    """Return the value of the key of ``known`` that is nearest to ``word``, or "" if none is near."""
    return next((known[name] for name in like(word, known, most=1)), "")


def read_knob_file(path: Path, label: str, *, required: bool) -> dict[str, Entry]:
    """Return the values that ``path`` gives, by knob name; an empty text means unset.

    ``label`` is how messages name the file. A missing file gives nothing, unless it is ``required``.

    Raises:
        UsageError: it can't be read, isn't a YAML mapping of known knobs to plain values, or names
            one twice.
    """
    data = read_bytes(path, label, required=required)
    if data is None:
        return {}
    entries: dict[str, Entry] = {}
    for key, value, line in _pairs(data, label):
        place = f"{label} line {line}"
        name = knob_name(key, place)
        if name in entries:
            raise UsageError(f"{place}: {name} is set twice", hint=f"first on {entries[name].place}")
        entries[name] = Entry(value, place)
    return entries


def read_bytes(path: Path, label: str, *, required: bool) -> bytes | None:
    """Return what a configuration file holds; None where there is none and it isn't ``required``.

    Raises:
        UsageError: it can't be read, or is too large.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        if required:
            raise UsageError(f"{label}: there is no such configuration file") from None
        return None
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "not a usable path"
        raise UsageError(f"{label}: can't be read: {reason}") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{label}: a configuration file has at most {MAX_BYTES} bytes")
    return data


def _decode(data: bytes, label: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{label} line {line}: not UTF-8 text") from None


def compose(data: bytes, label: str) -> yaml.Node | None:
    """Return the YAML document in ``data`` as nodes, whose values are the text that was typed; None if empty.

    Raises:
        UsageError: it is no UTF-8 text, or broken YAML.
    """
    import yaml

    text = _decode(data, label)
    try:
        root = yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise UsageError(f"{label} line {_error_line(error, text)}: broken YAML: {_problem(error)}") from None
    except RecursionError:
        raise UsageError(f"{label}: nested too deeply", hint="one 'name: value' a line") from None
    return None if isinstance(root, yaml.ScalarNode) and not root.value else root


def _pairs(data: bytes, label: str) -> list[tuple[str, str, int]]:
    """Return the key, value and line of every entry of the mapping in ``data``."""
    import yaml

    root = compose(data, label)
    if root is None:
        return []
    if not isinstance(root, yaml.MappingNode):
        line = root.start_mark.line + 1
        raise UsageError(f"{label} line {line}: not a mapping", hint="one 'name: value' a line")
    return [_pair(key, value, label) for key, value in root.value]


def _pair(key: yaml.Node, value: yaml.Node, label: str) -> tuple[str, str, int]:
    import yaml

    line = key.start_mark.line + 1
    if not isinstance(key, yaml.ScalarNode):
        raise UsageError(f"{label} line {line}: a key is the name of a knob")
    if not isinstance(value, yaml.ScalarNode):
        hint = "write a list of cards as 0,1" if key.value == "gpus" else ""
        raise UsageError(f"{label} line {line}: {shown(key.value)} takes one plain value", hint=hint)
    return key.value, value.value, line


def _error_line(error: yaml.YAMLError, text: str) -> int:
    import yaml

    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return mark.line + 1 if mark else 1
    position = getattr(error, "position", 0)
    return text.count("\n", 0, position) + 1


def _problem(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not readable"
    return shown(str(problem))[1:-1]


def knob_name(key: str, place: str) -> str:
    """Return the knob that ``key`` names.

    Raises:
        UsageError: it is none; the nearest is given.
    """
    names = {entry.name for entry in KNOBS}
    name = key.replace("-", "_")
    if name in names:
        return name
    if key in _INVOKE_KEYS:
        raise UsageError(
            f"{place}: {key} is a setting of Invoke, not a knob", hint="put it into ~/.invoke.yaml"
        )
    spellings = {entry.env.removeprefix("XB_").lower(): entry.name for entry in KNOBS}
    spellings |= {entry.env.lower(): entry.name for entry in KNOBS}
    spellings |= {entry.name: entry.name for entry in KNOBS}
    close = nearest(name.lower(), spellings)
    hint = f"did you mean {close}?" if close else "`inv knobs` lists them"
    raise UsageError(f"{place}: {shown(key)} is not a knob", hint=hint)
