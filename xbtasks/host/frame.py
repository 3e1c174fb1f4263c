"""The frame: a step becomes a script for a POSIX ``sh``, its output becomes a reply, or is lost.

The only place where shell text is put together. Values reach it as argv and are quoted here.

Wire format, one line each, every line led by a marker that is random per run and numbered per step::

    <marker> begin <number of sections>
    <marker> section <name> <exit status> <seconds> <bytes> <sha256> <bytes> <sha256>
    <marker> o <base64 of stdout>      (any number)
    <marker> e <base64 of stderr>      (any number)
    <marker> end <number of sections> <sha256 of the section lines>

Lines without the marker are noise (login banners, rc files, wall messages): counted, never read. A
frame that isn't whole to the last digest is lost, and a lost frame is never a verdict.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from xbtasks.errors import HostUnreachable, LostReply
from xbtasks.host.step import Reply, Section, SectionReply, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["bootstrap", "parse", "script"]

# Each section runs in the background and is waited for, so that a signal to this shell reaches it:
# timeout(1) leads a process group of its own. fd 3 keeps the payload, which background jobs lose as fd 0.
_PROLOGUE = r"""
export LC_ALL=C
umask 077
exec 3<&0 </dev/null
T=$(mktemp -d "${TMPDIR:-/tmp}/xbtasks.XXXXXXXX") || { printf '\n%s abort tmp\n' "$M"; exit 97; }
P=
trap 'rm -rf "$T"' EXIT
trap 'trap "" HUP INT TERM; [ -n "$P" ] && kill -TERM "$P" 2>/dev/null && wait "$P"; exit 143' HUP INT TERM
for tool in base64 sha256sum timeout sed wc tee mkfifo; do
  command -v "$tool" >/dev/null 2>&1 || { printf '\n%s abort tool %s\n' "$M" "$tool"; exit 97; }
done
: >"$T/headers"
N=0
digest() { set -- $(sha256sum <"$1"); printf %s "$1"; }
size() { set -- $(wc -c <"$1"); printf %s "$1"; }
body() { base64 <"$1" | sed "s/^/$M $2 /"; }
section() {
  name=$1 deadline=$2 live=$3 payload=$4; shift 4
  : >"$T/o"; : >"$T/e"; L=
  begun=$(date +%s)
  if [ "$payload" = 1 ]; then exec 4<&3; else exec 4</dev/null; fi
  if [ "$live" = 1 ]; then
    rm -f "$T/live"; mkfifo "$T/live"
    tee "$T/e" <"$T/live" >&2 & L=$!
    timeout -k 5 "$deadline" "$@" <&4 >"$T/o" 2>"$T/live" 3<&- 4<&- & P=$!
  else
    timeout -k 5 "$deadline" "$@" <&4 >"$T/o" 2>"$T/e" 3<&- 4<&- & P=$!
  fi
  wait "$P"; status=$?; P=
  [ -z "$L" ] || wait "$L"
  exec 4<&-
  ended=$(date +%s)
  line="$name $status $((ended - begun)) $(size "$T/o") $(digest "$T/o") $(size "$T/e") $(digest "$T/e")"
  printf '%s\n' "$line" >>"$T/headers"
  printf '%s section %s\n' "$M" "$line"
  body "$T/o" o
  body "$T/e" e
  N=$((N + 1))
}
"""
_EPILOGUE = r"""
printf '%s end %s %s\n' "$M" "$N" "$(digest "$T/headers")"
"""


def script(step: Step, marker: str) -> str:
    """Return the shell text of ``step``; its reply is led by ``marker``.

    Raises:
        ValueError: the marker or a section's name isn't a plain word (a fault of the caller).
    """
    _require_word(marker)
    lines = [f"M={marker}", _PROLOGUE.strip(), rf"printf '\n%s begin {len(step.sections)}\n' " + '"$M"']
    for section in step.sections:
        _require_word(section.name)
        options = f"{section.name} {section.deadline:d} {section.live:d} {section.payload:d}"
        lines.append(f"section {options} {shlex.join(section.argv)}")
    lines.append(_EPILOGUE.strip())
    return "\n".join(lines) + "\n"


def bootstrap(script_length: int) -> str:
    """Return the command for a login shell of any kind that runs the first ``script_length`` bytes of stdin.

    A plain ``sh`` would read ahead into the payload and execute it; dd takes just the script's bytes.
    Measured right under dash, bash and tcsh.
    """
    return f"sh -c 'eval \"$(dd bs=1 count={script_length:d} 2>/dev/null)\"'"


def parse(step: Step, marker: str, output: bytes, *, stderr: bytes = b"", seconds: float = 0.0) -> Reply:
    """Return the reply that ``output`` holds; ``stderr`` is noise, counted unless a section is live.

    Raises:
        HostUnreachable: the host's shell lacks what the script needs.
        LostReply: the frame is short, corrupt or missing.
    """
    framed, noise = _split(marker, output)
    if not any(section.live for section in step.sections):
        noise += _lines(stderr)
    where = f"step {step.name}"
    if not framed:
        raise LostReply(f"{where}: no reply came back{_tail(noise)}")
    if framed[-1][0] == "abort":
        raise HostUnreachable(f"{where}: {_ABORTS.get(framed[-1][1], 'the shell gave up')} {framed[-1][-1]}")
    if framed[0] != ["begin", str(len(step.sections))] or framed[-1][0] != "end":
        raise LostReply(f"{where}: the reply was cut short{_tail(noise)}")
    try:
        sections = _sections(step.sections, framed[1:-1], framed[-1])
    except ValueError as error:
        raise LostReply(f"{where}: the reply is corrupt: {error}") from error
    return Reply(step.name, sections, tuple(noise), seconds)


_ABORTS = {
    "tool": "the host's shell lacks",
    "tmp": "no temporary directory can be made on the host:",
}


def _require_word(word: str) -> None:
    if not word or not all(char.isascii() and (char.isalnum() or char in "-._") for char in word):
        raise ValueError(f"not a plain word: {word!r}")


def _split(marker: str, output: bytes) -> tuple[list[list[str]], list[str]]:
    lead = marker.encode() + b" "
    framed: list[list[str]] = []
    noise: list[str] = []
    for line in output.split(b"\n"):
        if line.startswith(lead):
            framed.append(line[len(lead) :].decode("ascii", "replace").split(" "))
        elif line.strip():
            noise.append(line.decode(errors="replace"))
    return framed, noise


def _lines(data: bytes) -> list[str]:
    return [line for line in data.decode(errors="replace").splitlines() if line.strip()]


def _tail(noise: Iterable[str]) -> str:
    last = list(noise)[-1:]
    return f" (the last line seen was {last[0].strip()[:200]!r})" if last else ""


def _sections(asked: tuple[Section, ...], body: list[list[str]], end: list[str]) -> tuple[SectionReply, ...]:
    import base64
    import hashlib

    headers = [words[1:] for words in body if words[0] == "section"]
    listing = "".join(" ".join(words) + "\n" for words in headers).encode()
    if end != ["end", str(len(asked)), hashlib.sha256(listing).hexdigest()]:
        raise ValueError("the section lines don't match their digest")
    if [words[0] for words in headers] != [section.name for section in asked]:
        raise ValueError("other sections came back than were asked for")
    streams: list[dict[str, list[str]]] = []
    for words in body:
        if words[0] == "section":
            streams.append({"o": [], "e": []})
        elif words[0] in ("o", "e") and len(words) == 2 and streams:
            streams[-1][words[0]].append(words[1])
        else:
            raise ValueError(f"unknown line {words[0]!r}")

    def stream(lines: list[str], size: str, digest: str) -> bytes:
        data = base64.b64decode("".join(lines), validate=True)
        if len(data) != int(size) or hashlib.sha256(data).hexdigest() != digest:
            raise ValueError("a stream doesn't match its length and digest")
        return data

    replies = []
    for section, header, lines in zip(asked, headers, streams, strict=True):
        name, status, seconds, out_size, out_digest, err_size, err_digest = header
        exit_status, took = int(status), int(seconds)
        replies.append(
            SectionReply(
                name=name,
                exit_status=exit_status,
                stdout=stream(lines["o"], out_size, out_digest),
                stderr=stream(lines["e"], err_size, err_digest),
                seconds=took,
                # timeout(1) answers 124, or 137 when it had to kill; a command may end so too, but sooner
                timed_out=exit_status in (124, 137) and took >= section.deadline,
            )
        )
    return tuple(replies)
