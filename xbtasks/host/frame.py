"""The frame: a step becomes a script for a POSIX ``sh``, its output becomes a reply, or is lost.

The only place where shell text is put together. Values reach it as argv and are quoted here.

Wire format, one line each, every line led by a marker that is random per run and numbered per step::

    <marker> begin <number of sections>
    <marker> section <name> <exit status> <seconds> <bytes> <sha256> <bytes> <sha256>
    <marker> o <base64 of stdout>      (any number)
    <marker> e <base64 of stderr>      (any number)
    <marker> end <number of sections> <sha256 of the section lines>

and, as the last line on stderr, ``<marker> over``. A host that lacks what the script needs answers
``<marker> abort <reason>`` instead.

Lines without the marker are noise (login banners, rc files, wall messages): counted, never read. A
frame that isn't whole to the last digest is lost, and a lost frame is never a verdict.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from xbtasks.errors import HostUnreachable, LostReply
from xbtasks.host.programs import program_text
from xbtasks.host.step import Reply, Section, SectionReply, Step

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["LOOP", "parse", "rewrite", "script"]

LOOP: Final = (
    "sh -c 'trap : TERM; while IFS= read -r n; do"
    ' s=$(dd bs=1 count=$n 2>/dev/null) || exit 96; (eval "$s") || exit 97; done\''
)
"""The command for a login shell of any kind that runs one script after another from its stdin.

Each comes behind a line with its length. A plain ``sh`` would read ahead into a payload and execute it; dd
takes just the script's bytes. A script that is killed ends the loop. The words mean the same to POSIX shells,
csh and fish.
"""


def script(step: Step, marker: str) -> str:
    """Return the shell text of ``step``; its reply is led by ``marker``.

    Raises:
        ValueError: a fault of the caller: a name that is no plain word, a NUL in a command, a payload that no
            section takes or several do.
    """
    _require_word(marker)
    payloads = sum(section.payload for section in step.sections)
    if payloads > 1 or (step.payload and not payloads):
        raise ValueError(f"step {step.name}: a payload needs one section to go to")
    lines = ["{", f"M={marker} A={payloads}", program_text("prologue").rstrip()]
    lines.append(rf"printf '\n%s begin {len(step.sections)}\n' " + '"$M"')
    for section in step.sections:
        _require_word(section.name)
        if any("\0" in word for word in section.argv):
            raise ValueError(f"section {section.name}: no command can be given a NUL")
        options = f"{section.name} {section.deadline:d} {section.live:d} {section.payload:d}"
        lines.append(f"section {options} {shlex.join(section.argv)}")
    # The braces make a script that was cut short a syntax error: it is run as a whole or not at all.
    return "\n".join((*lines, "finish", "}")) + "\n"


def parse(step: Step, marker: str, output: bytes, *, stderr: bytes = b"", seconds: float = 0.0) -> Reply:
    """Return the reply that ``output`` holds; ``stderr`` is noise, counted unless a section is live.

    Raises:
        HostUnreachable: the host's shell lacks what the script needs.
        LostReply: the frame is short, corrupt or missing.
    """
    framed, noise = _split(marker, output)
    if not any(section.live for section in step.sections):
        noise += _split(marker, stderr)[1]
    where = f"step {step.name}"
    if not framed:
        raise LostReply(f"{where}: no reply came back{_tail(noise)}")
    if framed[-1][0] == "abort":
        raise HostUnreachable(f"{where}: {_why_aborted(framed[-1][1:])}")
    if framed[0] != ["begin", str(len(step.sections))] or framed[-1][0] != "end":
        raise LostReply(f"{where}: the reply was cut short{_tail(noise)}")
    try:
        sections = _sections(step.sections, framed[1:-1], framed[-1])
    except ValueError as error:
        raise LostReply(f"{where}: the reply is corrupt: {error}") from error
    return Reply(step.name, sections, tuple(noise), seconds)


def rewrite(marker: str, output: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """Return ``output`` with each stream of its frame, and the noise around it, put through ``change``.

    A frame that isn't whole is left out, as nothing can be read from it.
    """
    import base64
    import hashlib

    framed, noise = _split(marker, output)
    lines = [change(line.encode()).decode(errors="replace") for line in noise]
    asked = tuple(Section(words[1], (), 0) for words in framed if words[0] == "section" and len(words) > 1)
    try:
        answers = _sections(asked, framed[1:-1], framed[-1])
    except (IndexError, ValueError):
        return "".join(f"{line}\n" for line in lines).encode()
    headers = []
    lines += ["", f"{marker} begin {len(answers)}"]
    for answer in answers:
        streams = {"o": change(answer.stdout), "e": change(answer.stderr)}
        sums = " ".join(f"{len(data)} {hashlib.sha256(data).hexdigest()}" for data in streams.values())
        headers.append(f"{answer.name} {answer.exit_status} {answer.seconds} {sums}")
        lines.append(f"{marker} section {headers[-1]}")
        for letter, data in streams.items():
            text = base64.b64encode(data).decode()
            lines += [f"{marker} {letter} {text[at : at + 76]}" for at in range(0, len(text), 76)]
    listing = "".join(f"{header}\n" for header in headers).encode()
    lines.append(f"{marker} end {len(answers)} {hashlib.sha256(listing).hexdigest()}")
    return ("\n".join(lines) + "\n").encode()


def _why_aborted(words: list[str]) -> str:
    match words:
        case ["tool", name]:
            return f"the host's shell lacks {name}"
        case ["tmp"]:
            return "no temporary directory can be made on the host (TMPDIR, else /tmp)"
        case _:
            return f"the script gave up: {' '.join(words)}"


def _require_word(word: str) -> None:
    if not word or not all(char.isascii() and (char.isalnum() or char in "-._") for char in word):
        raise ValueError(f"not a plain word: {word!r}")


def _split(marker: str, output: bytes) -> tuple[list[list[str]], list[str]]:
    lead = marker.encode() + b" "
    framed: list[list[str]] = []
    noise: list[str] = []
    *lines, rest = output.split(b"\n")
    for line in (*lines, b"" if rest.startswith(lead) else rest):
        if line == lead + b"over":
            continue
        if line.startswith(lead):
            framed.append(line[len(lead) :].decode("ascii", "replace").split(" "))
        elif line.strip():
            noise.append(line.decode(errors="replace"))
    return framed, noise


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
        encoded = "".join(lines)
        data = base64.b64decode(encoded, validate=True)
        if base64.b64encode(data).decode() != encoded:
            raise ValueError("a stream is not encoded as it was sent")
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
                # timeout(1) answers 124, or 137 when it had to kill, and 143 in BusyBox; a command may end so
                # too, but sooner
                timed_out=exit_status in (124, 137, 143) and took >= section.deadline,
            )
        )
    return tuple(replies)
