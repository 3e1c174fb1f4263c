"""Streams that are closed, full, or that nobody reads: no traceback, no run that is stopped by it."""

from __future__ import annotations

import fcntl
import json
import os
import struct
import subprocess
import sys
import time
from termios import FIONREAD
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


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
@pytest.mark.parametrize("words", [["--list"], ["verify", "--help"], ["knobs"], ["knobs", "--json"]])
def test_a_full_disk_behind_stdout_is_told(start: list[str], words: list[str], tmp_path: Path) -> None:
    ended, text = end_of([*start, *words], ">/dev/full", tmp_path)
    assert ended == 4
    assert "error: the output can't be written: No space left on device\n" in text
    assert "Traceback" not in text


@pytest.mark.parametrize("start", STARTS.values(), ids=STARTS)
def test_a_reader_that_is_slow_gets_everything(start: list[str], tmp_path: Path) -> None:
    """A pipe that doesn't block, as some programs give to what they start, is full for a while."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    os.set_blocking(writer, False)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    words = [*start, "explain", "--json"]
    with subprocess.Popen(
        words, cwd=PROJECT, env=environment, stdout=writer, stderr=subprocess.PIPE, text=True
    ) as child:
        os.close(writer)
        assert child.stderr is not None
        with os.fdopen(reader) as stream:
            # once it is full, nobody reads for as long as the program would take to fail
            while fcntl.ioctl(stream, FIONREAD, b"\0" * 4) != struct.pack("i", 4096):
                assert child.poll() is None, child.stderr.read()
                time.sleep(0.01)
            time.sleep(0.3)
            text = stream.read()
        assert (child.wait(), "Traceback" in child.stderr.read()) == (0, False)
    assert len(text) > 2 * 4096
    json.loads(text)


def test_what_is_said_is_there_at_once_where_python_is_told_to_buffer_nothing(tmp_path: Path) -> None:
    says = "import os, sys; print('said', file=sys.stderr); os._exit(0)"
    code = f"from xbtasks.streams import install; install(); {says}"
    done = subprocess.run([sys.executable, "-u", "-c", code], cwd=PROJECT, capture_output=True, text=True)
    assert done.stderr == "said\n"


TASKS = """
import signal, os
from invoke import task
from xbtasks.tasks import ns

@task
def long(_):
    try:
        os.kill(os.getpid(), signal.SIGNAL)
        print("not reached")
    finally:
        print("ended well")

@task
def talk(_):
    print("much")

ns.add_task(long)
ns.add_task(talk)
"""


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_task_of_the_operators_own_ends_what_it_began(signal: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.replace("SIGNAL", signal))
    words = [str(program("inv")), "--search-root", str(tmp_path), "long"]
    assert end_of(words, "", tmp_path) == (130, "ended well\n")


def test_a_task_of_the_operators_own_that_could_not_tell_says_so(tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    words = [str(program("inv")), "--search-root", str(tmp_path), "talk"]
    assert end_of(words, ">/dev/full", tmp_path) == (
        4,
        "error: the output can't be written: No space left on device\n",
    )


def test_no_file_of_ours_gets_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    opens = "from xbtasks.streams import install; install(); import os; print(os.open('/', os.O_RDONLY))"
    said = tmp_path / "said"
    shell = f'"$@" >&- 2>&- <&- 3>"{said}"'
    code = opens.replace("print(", "os.write(3, b'%d' % ").removesuffix(")") + ")"
    subprocess.run(["bash", "-c", shell, "bash", sys.executable, "-c", code], cwd=PROJECT, check=True)
    assert int(said.read_text()) > 3
