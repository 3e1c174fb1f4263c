"""Ctrl-C while the program starts: exit 130 and no traceback, whatever is being imported then."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.workplace import PROJECT, program

if TYPE_CHECKING:
    from pathlib import Path

HOOK = """
import os, signal, sys

class Interrupting:
    place = os.environ.get("XBTEST_INTERRUPTED_AT")

    def find_spec(self, name, path=None, target=None):
        if name == self.place:
            os.environ["XBTEST_INTERRUPTED_AT"] = self.place = ""
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
if Interrupting.place == "the second start" and "xbtasks.typed" in sys._xoptions:
    os.kill(os.getpid(), signal.SIGINT)
"""
"""A sitecustomize that sends its own process a Ctrl-C at the import of one module."""

IN_THE_LAUNCHER = ["xbtasks.bootstrap", "hashlib", "xbtasks.errors", "the second start"]
IN_A_TASK = ["xbtasks.knobs.settings", "xbtasks.reporting.listing"]
BEFORE = ["xbtasks.tasks", "invoke.collection", "xbtasks.tasks.root", "xbtasks.knobs.table"]
FIRST = ["xbtasks.interrupts", "xbtasks.streams", "invoke.program"]


def interrupted(argv: list[str], place: str, folder: Path) -> tuple[int, str]:
    (folder / "sitecustomize.py").write_text(HOOK)
    done = subprocess.run(
        argv,
        cwd=PROJECT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(folder),
            "XBTEST_INTERRUPTED_AT": place,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("place", [*IN_THE_LAUNCHER, *FIRST, *BEFORE])
def test_xb_before_a_task_runs(place: str, tmp_path: Path) -> None:
    assert interrupted(["./xb", "knobs"], place, tmp_path) == (130, "")


@pytest.mark.parametrize("place", [place for place in BEFORE if place != "invoke.collection"])
def test_inv_once_it_reads_our_tasks(place: str, tmp_path: Path) -> None:
    assert interrupted([str(program("inv")), "knobs"], place, tmp_path) == (130, "")


@pytest.mark.parametrize("start", ["./xb", str(program("inv"))])
@pytest.mark.parametrize("place", IN_A_TASK)
def test_a_task_tells_it(start: str, place: str, tmp_path: Path) -> None:
    assert interrupted([start, "knobs"], place, tmp_path) == (130, "error: interrupted\n")


@pytest.mark.parametrize("place", ["xbtasks.noxsessions", "xbtasks.checkout.stages"])
def test_nox_while_it_reads_our_sessions(place: str, tmp_path: Path) -> None:
    assert interrupted([str(program("nox")), "--list"], place, tmp_path) == (130, "")


def test_one_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    ignoring = ["sh", "-c", 'trap "" INT; exec ./xb knobs']
    code, text = interrupted(ignoring, "xbtasks.reporting.listing", tmp_path)
    assert (code, "XB_MODE" in text) == (0, True)
