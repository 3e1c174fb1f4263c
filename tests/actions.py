"""What GitHub Actions' runner makes of a step's output, by the rules of its own source.

``::name properties::data`` at the beginning of a line (after blanks), else ``##[name properties]data``
anywhere in it; only names that it knows; nothing between ``::stop-commands::word`` and ``::word::``. It
compares as a culture does, to which some characters don't exist: they are left out first.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["obeyed"]

_NAMES = (
    *("add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "notice"),
    *("remove-matcher", "save-state", "set-env", "set-output", "stop-commands", "warning"),
)
_SECOND = re.compile(r"\s*::(?P<name>[^\s:]+)(?: (?P<properties>.*?))?::(?P<data>.*)", re.DOTALL)
_FIRST = re.compile(r".*?##\[(?P<name>[^\s\]]+)(?: (?P<properties>[^\]]*))?\](?P<data>.*)", re.DOTALL)
_IGNORED = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"


def obeyed(output: str) -> list[tuple[str, str, str]]:
    """Return the commands that are obeyed, as (name, properties, data)."""
    found: list[tuple[str, str, str]] = []
    word = ""
    for line in re.split(r"\r\n|\n|\r", output):
        seen = "".join(char for char in line if not _ignored(char))
        names = (word,) if word else _NAMES
        match = next(
            (each for each in (_SECOND.match(seen), _FIRST.match(seen)) if each and each["name"] in names),
            None,
        )
        if match is None:
            continue
        if word:
            word = ""
            continue
        if match["name"] == "stop-commands":
            word = match["data"]
            continue
        found.append((match["name"], _plain(match["properties"] or ""), _plain(match["data"])))
    return found


def _ignored(char: str) -> bool:
    return char in _IGNORED or (char != "\t" and unicodedata.category(char) in ("Cf", "Cc", "Mn", "Me"))


def _plain(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text
