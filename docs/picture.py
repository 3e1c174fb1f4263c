"""The picture of the README, made of a real run: ``nox -s picture`` writes docs/picture.svg.

The run is what a user types on the simulated host. `seen` is what a picture says without all that differs
from run to run, so that a test can tell whether the picture is of the present output.
"""

from __future__ import annotations

import html
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = PROJECT / "docs/picture.svg"
COMMAND: Final = ("verify", "xbuild-nvidia-cuda-13", "--cases", "1")
WIDTH: Final = 112
_SCREEN: Final = (200, 400)  # lines and columns: nothing scrolls out, and no long path is broken
_CODES: Final = {"red": 31, "green": 32, "brown": 33, "cyan": 36}  # by pyte's names

_FRAME: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As rich's own, but for the fonts: a picture that is looked at must not fetch anything."""

_TEXT: Final = re.compile(r'<text class="xb-r\d+" [^>]*?x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')
_MASKS: Final = (
    (r"sha256:? ?[0-9a-f]{12,}…?", "DIGEST"),
    (r"\b[0-9a-f]{40,}\b", "DIGEST"),
    (r"/[\w./-]{8,}", "PATH"),
    (r"engine docker \S+", "engine docker VERSION"),
    (r"x86-64|AArch64", "MACHINE"),
    (r"linux/(?:amd64|arm64)", "PLATFORM"),
    (r"GLIBC_[\d.]+( for [\w, ]+? more)?", "GLIBC"),
    (r"\d+\.\d+|\d{2,}", "N"),
)


def record(command: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, int]:
    """Run xbtasks on a terminal; returns what stands there in the end, in colour, and its exit status."""
    child, ours = pty.fork()
    if not child:
        os.chdir(PROJECT)
        words = [sys.executable, "-m", "xbtasks", *command]
        os.execve(sys.executable, words, {**environment, "TERM": "xterm", "COLUMNS": str(WIDTH)})  # noqa: S606
    ioctl(ours, TIOCSWINSZ, struct.pack("HHHH", *_SCREEN, 0, 0))
    shown = b""
    while select.select([ours], [], [], 300)[0]:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not chunk:
            break
        shown += chunk
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(ours)
    return _screen(shown), status


def _screen(shown: bytes) -> str:
    """Return what stands on a terminal in the end: what a live board overwrote is gone."""
    import pyte

    height, width = _SCREEN
    screen = pyte.Screen(width, height)
    pyte.ByteStream(screen).feed(shown)
    lines = []
    for row in range(height):
        line, colour = "", "default"
        for column in range(width):
            char = screen.buffer[row][column]
            if char.fg != colour:
                colour = char.fg
                line += f"\x1b[{_CODES.get(colour, 0)}m"
            line += char.data
        lines.append(line.rstrip() if colour == "default" else f"{line.rstrip()}\x1b[0m")
    return "\n".join(lines).rstrip() + "\n"


def draw(shown: str) -> str:
    """Return the picture of what a terminal showed."""
    from rich.console import Console
    from rich.terminal_theme import MONOKAI
    from rich.text import Text

    console = Console(
        file=io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor"
    )
    console.print(Text.from_ansi(shown), soft_wrap=True)
    svg = console.export_svg(title="xbtasks", theme=MONOKAI, code_format=_FRAME, unique_id="xb")
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def words_of(svg: str) -> str:
    """Return the text that a picture shows, line by line."""
    lines: dict[float, dict[float, str]] = {}
    for x, y, text in _TEXT.findall(svg):
        lines.setdefault(float(y), {})[float(x)] = html.unescape(text).replace("\xa0", " ")
    return "\n".join("".join(text for _, text in sorted(parts.items())) for _, parts in sorted(lines.items()))


def seen(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return what stays the same from run to run; ``names`` are replaced first."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    for name, shown in (names or {}).items():
        text = text.replace(name, shown)
    # what a build still has to do depends on its cache
    lines = [line for line in text.splitlines() if not line.startswith("    #")]
    text = " ".join(re.sub(r"[-+|]{2,}|\|", " ", "\n".join(lines)).split())
    for pattern, word in _MASKS:
        text = re.sub(pattern, word, text)
    return text


def main() -> int:
    """Make the picture on the simulated host, in a state of its own."""
    with tempfile.TemporaryDirectory() as folder:
        own = {**os.environ, "XDG_STATE_HOME": folder}
        own = {name: value for name, value in own.items() if not name.startswith(("XB_", "NO_COLOR"))}

        def xbtasks(*words: str) -> str:
            argv = [sys.executable, "-m", "xbtasks", *words]
            return subprocess.run(
                argv, cwd=PROJECT, env=own, check=True, capture_output=True, text=True
            ).stdout

        xbtasks("sim.up")
        try:
            host = json.loads(xbtasks("sim.status", "--json"))["environment"]
            shown, status = record(COMMAND, {**own, **host})
        finally:
            xbtasks("sim.down")
    if status:
        print(shown)
        return status
    typed = f"$ ./xb {' '.join(COMMAND)}\n"
    PICTURE.write_text(draw(typed + shown.replace(folder, "/root/.local/state")), encoding="utf-8")
    print(f"wrote {PICTURE.relative_to(PROJECT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
