"""What a build's plain progress says of its steps. It is for the eye and decides nothing.

Read from buildx's plain form: a build has one form only, what its failure means is read from this one, and
the machine form (rawjson) is newer than buildx 0.13.1, which the private engine has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from xbtasks.reporting.text import one_line

__all__ = ["BuildProgress"]

_WIDEST: Final = 150
_STEP: Final = re.compile(r"\[([^\]]*?) ?(\d{1,4})/(\d{1,4})\] (.*)", re.ASCII)
_LAYER: Final = re.compile(
    r"sha256:[0-9a-f]+ ([\d.]{1,12})([kMGT]?)B / ([\d.]{1,12})([kMGT]?)B( |$)", re.ASCII
)
_SCALE: Final = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LONGEST_LINE: Final = 1 << 16


@dataclass
class _Vertex:
    """A numbered entry of the progress: a step of the Dockerfile where ``of`` is not 0."""

    headline: str
    name: str = ""
    what: str = ""
    of: int = 0
    layers: dict[str, float] = field(default_factory=dict)
    ended: bool = False

    @property
    def done(self) -> float:
        """How much of it is done, from 0 to 1; a download tells, all else is done at its end."""
        if self.ended:
            return 1.0
        return sum(self.layers.values()) / len(self.layers) if self.layers else 0.0


class BuildProgress:
    """Follows one build. ``step`` is what it does now, ``percent`` how far it is, as far as it tells."""

    def __init__(self) -> None:
        self._rest = b""
        self._vertices: dict[str, _Vertex] = {}
        self._percent = 0

    def take(self, chunk: bytes) -> list[str]:
        """Return what a chunk of it tells a person, as lines; a step's own output is left out."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self._rest = self._rest[-_LONGEST_LINE:]
        told = (self._line(one_line(line.decode(errors="replace"))) for line in lines)
        return [text for text in told if text]

    @property
    def step(self) -> str:
        """The step that was begun last and goes on, such as ``2/7 RUN make``."""
        going = [each.what for each in self._vertices.values() if not each.ended]
        return going[-1] if going else ""

    @property
    def percent(self) -> int | None:
        """Steps that are done, in percent of those that are known; it never falls. None while none is."""
        totals = {each.name: each.of for each in self._vertices.values() if each.of}
        if not totals:
            return None
        done = sum(each.done for each in self._vertices.values() if each.of)
        self._percent = max(self._percent, min(100, int(100 * done / sum(totals.values()))))
        return self._percent

    def _line(self, line: str) -> str:
        """Return what a line of the plain progress says of a step of the Dockerfile, or nothing."""
        number, _, rest = line.partition(" ")
        if not number.startswith("#") or not number[1:].isdigit():
            return ""
        vertex = self._vertices.get(number)
        if rest.startswith(("[", "exporting to", "importing to")) and not rest.startswith("[internal]"):
            if vertex is not None and vertex.headline == rest:
                return ""  # told again when the step goes on
            self._vertices[number] = _begun(rest)
            return f"{number} {_without_mounts(rest)}"[:_WIDEST]
        if vertex is None:
            return ""
        if layer := _LAYER.match(rest):
            vertex.layers[rest.partition(" ")[0]] = _share(layer)
        ended = rest.startswith(("DONE ", "ERROR", "CACHED", "CANCELED"))
        vertex.ended = vertex.ended or ended
        return f"{number} {rest}"[:_WIDEST] if ended else ""


def _begun(headline: str) -> _Vertex:
    step = _STEP.match(headline)
    if step is None or int(step[3]) == 0:
        return _Vertex(headline, what=headline)
    what = f"{step[2]}/{step[3]} {_without_mounts(step[4])}"
    return _Vertex(headline, step[1], what, int(step[3]))


def _share(layer: re.Match[str]) -> float:
    """Return how much of a layer is there, from 0 to 1."""
    try:
        got, total = float(layer[1]) * _SCALE[layer[2]], float(layer[3]) * _SCALE[layer[4]]
    except ValueError:  # "1.2.3"
        return 0.0
    return min(1.0, got / total) if total else 0.0


def _without_mounts(step: str) -> str:
    """Return a step's headline without the flags of its command, which fill a line and say little."""
    return " ".join(word for word in step.split() if not word.startswith("--"))
