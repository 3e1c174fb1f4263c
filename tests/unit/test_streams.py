"""Streams that are closed, full, or that nobody reads: no traceback, no run that is stopped by it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.workplace import PROJECT, program

if TYPE_CHECKING:
    from pathlib import Path

STARTS = {"xb": ["./xb"], "inv": [str(program("inv"))], "python": [sys.executable, "-m", "xbtasks"]}


def end_of(words: list[str], redirected: str, home: Path) -> tuple[int, str]:
    """Run a command line with a shell's redirections; return its exit code and what was on both streams."""
    shell = f'"$@" {redirected}'
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell, "bash", *words],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize(
    "redirected", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "| :", "2>&1 | :", "2> >(:)", "2>/dev/full"]
)
@pytest.mark.parametrize(
    ("words", "code"), [(["knobs"], 0), (["knobs", "--json"], 0), (["verify"], 2), (["explain", "zzz"], 2)]
)
def test_the_exit_code_is_the_commands_own(
    start: list[str], redirected: str, words: list[str], code: int, tmp_path: Path
) -> None:
    ended, text = end_of([*start, *words], redirected, tmp_path)
    assert ended == code
    assert "Traceback" not in text
    assert "BrokenPipe" not in text


@pytest.mark.parametrize("words", [["--list"], ["--help"], ["--version"], ["verify", "--help"]])
@pytest.mark.parametrize("redirected", [">&-", "| :"])
def test_a_list_or_help_that_nobody_reads(words: list[str], redirected: str, tmp_path: Path) -> None:
    assert end_of(["./xb", *words], redirected, tmp_path) == (0, "")


@pytest.mark.parametrize("words", [["--list"], ["verify", "--help"], ["knobs"], ["knobs", "--json"]])
def test_a_full_disk_behind_stdout_is_told(words: list[str], tmp_path: Path) -> None:
    ended, text = end_of(["./xb", *words], ">/dev/full", tmp_path)
    assert ended == 4
    assert "error: the output can't be written: No space left on device\n" in text
    assert "Traceback" not in text


def test_no_file_of_ours_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    opens = "from xbtasks.streams import install; install(); import os; print(os.open('/', os.O_RDONLY))"
    said = tmp_path / "said"
    shell = f'"$@" >&- 2>&- <&- 3>"{said}"'
    code = opens.replace("print(", "os.write(3, b'%d' % ").removesuffix(")") + ")"
    subprocess.run(["bash", "-c", shell, "bash", sys.executable, "-c", code], cwd=PROJECT, check=True)
    assert int(said.read_text()) > 3
