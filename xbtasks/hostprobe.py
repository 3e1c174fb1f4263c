"""Asking a host's tools: one section looks a tool up and asks it, and its answers come back as values.

Every line that a probe prints is led by a tag of ours, so what a tool says can never be taken for what
the probe says. A tool is looked for on PATH and in the places given; "absent" is only said when every
one of them could be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from xbtasks.host.step import Section

if TYPE_CHECKING:
    from xbtasks.host.step import SectionReply

__all__ = ["Answer", "Answers", "Lookup", "Tool", "Trouble", "Unusable", "one_line", "probe", "unusable"]

# The trap keeps this shell until the tool has ended, so that timeout(1) kills a tool that ignores TERM.
_PRELUDE = r"""
trap 'exit 143' TERM
say() { printf '%s\n' "$2" | sed "s/^/$1 /"; }
see() {
  case $1 in /*) d=$1 ;; *) return 0 ;; esac
  while [ -n "$d" ] && [ ! -e "$d" ]; do d=${d%/*}; done
  [ ! -d "${d:-/}" ] || [ -x "${d:-/}" ]
}
find() {
  name=$1; tool=; denied=; hidden=
  set -f; old=$IFS; IFS=:
  # shellcheck disable=SC2086 # both are split at their colons
  set -- $PATH $2
  IFS=$old; set +f
  for dir in "$@"; do
    if ! see "$dir"; then hidden=${hidden:-$dir}
    elif [ -f "$dir/$name" ] && [ -x "$dir/$name" ]; then tool=$dir/$name; say found "$tool"; return 0
    elif [ -f "$dir/$name" ]; then denied=${denied:-$dir/$name}
    fi
  done
  if [ -n "$denied" ]; then say denied "$denied"
  elif [ -n "$hidden" ]; then say hidden "$hidden"
  else say absent "$name"; fi
  return 1
}
ask() { tag=$1; shift; out=$("$@"); status=$?; say "$tag.status" "$status"; say "$tag" "$out"; }
"""


def probe(name: str, text: str, deadline: int, *values: str) -> Section:
    """Return a section that runs the constant shell ``text`` with ``values`` as its ``$1`` and on.

    ``text`` may use ``find NAME [DIRECTORY:…]`` (sets ``$tool``), ``ask TAG COMMAND…`` (sets ``$out`` and
    ``$status``), ``say TAG LINE``
    and ``see DIRECTORY`` (whether what is in it can be seen).
    """
    return Section(name, ("sh", "-c", _PRELUDE + text, "xb", *values), deadline)


class Trouble(StrEnum):
    """Why a tool or what stands behind it can't be used."""

    ABSENT = "absent"
    HIDDEN = "hidden"
    NOT_EXECUTABLE = "not executable"
    TIMED_OUT = "timed out"
    NO_DEVICE = "no device"
    NO_DRIVER = "driver not loaded"
    NO_LIBRARY = "library missing"
    MISMATCH = "driver/library mismatch"
    PERMISSION = "permission denied"
    BUSY = "device busy"
    LOST = "device lost"
    UNSUPPORTED = "not supported"
    UNREADABLE = "unreadable answer"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Unusable:
    """A typed reason why not; ``text`` is one line for a person and decides nothing."""

    trouble: Trouble
    text: str


class Lookup(StrEnum):
    """What looking for a tool came to."""

    FOUND = "found"
    DENIED = "denied"
    HIDDEN = "hidden"
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that was looked for.

    ``path`` is where it is (FOUND, DENIED), the directory that couldn't be seen (HIDDEN), else its name.
    """

    lookup: Lookup
    path: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answered to one question."""

    exit_status: int
    stdout: str


class Answers:
    """The tagged lines of a probe's section."""

    def __init__(self, section: SectionReply) -> None:
        self.name = section.name
        self.timed_out = section.timed_out
        self.seconds = section.seconds
        self.stderr = section.error_text
        self._lines: dict[str, list[str]] = {}
        for line in section.text.split("\n"):
            tag, blank, rest = line.partition(" ")
            if blank:
                self._lines.setdefault(tag, []).append(rest)

    def lines(self, tag: str) -> tuple[str, ...]:
        """Return the lines under ``tag``, in order."""
        return tuple(self._lines.get(tag, ()))

    def first(self, tag: str) -> str:
        """Return the first line under ``tag``, or an empty string."""
        return next(iter(self._lines.get(tag, ())), "")

    def answer(self, tag: str) -> Answer | None:
        """Return what ``ask TAG`` brought, or None if it wasn't asked or didn't come to its end."""
        status = self.first(f"{tag}.status")
        if not status.isdecimal():
            return None
        return Answer(int(status), "\n".join(self.lines(tag)))

    @property
    def tool(self) -> Tool:
        """What ``find`` came to."""
        for lookup in Lookup:
            if path := self.first(lookup.value):
                return Tool(lookup, path)
        return Tool(Lookup.UNKNOWN)


def unusable(answers: Answers, name: str) -> Unusable | None:
    """Return why tool ``name`` of a probe couldn't be asked to the end, or None if it could."""
    tool = answers.tool
    path = one_line(tool.path)
    if answers.timed_out:
        where = path if tool.lookup is Lookup.FOUND else name
        return Unusable(Trouble.TIMED_OUT, f"{where} did not answer within {answers.seconds} s")
    match tool.lookup:
        case Lookup.FOUND:
            return None
        case Lookup.DENIED:
            return Unusable(Trouble.NOT_EXECUTABLE, f"{path} is there, but this user may not run it")
        case Lookup.HIDDEN:
            text = f"{name} was not found, and {path} can't be searched by this user"
            return Unusable(Trouble.HIDDEN, text)
        case Lookup.ABSENT:
            return Unusable(Trouble.ABSENT, f"{name} is neither on PATH nor in its usual places")
        case Lookup.UNKNOWN:
            return Unusable(Trouble.FAILED, f"{name} couldn't be looked for: {one_line(answers.stderr)}")


def one_line(text: str, limit: int = 300) -> str:
    """Return ``text`` as one printable line of at most ``limit`` characters."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    line = " ".join(shown.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
