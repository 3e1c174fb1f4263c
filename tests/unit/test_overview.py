"""The list of tasks as a person sees it."""

from __future__ import annotations

import os
import re
import subprocess

import pytest

from tests.workplace import PROJECT, program
from xbtasks.tasks import ns
from xbtasks.tasks.overview import GROUPS


def listed(*words: str) -> str:
    done = subprocess.run(
        [program("inv"), *words],
        cwd=PROJECT,
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_task_is_listed_once_under_a_title() -> None:
    text = listed("--list")
    names = re.findall(r"^  ([a-z][\w.]*)", text, re.MULTILINE)
    assert sorted(names) == sorted(ns.task_names)
    titles = re.findall(r"^(\S.*):$", text, re.MULTILINE)
    assert titles == [title for title, _ in GROUPS]
    assert names[:2] == ["changed", "verify"]


def test_a_task_is_said_in_a_line_of_a_terminal() -> None:
    text = listed("--list")
    assert all(len(line) <= 80 for line in text.splitlines()[:-1])
    flags = "TASK --help shows its flags; a STAGE is one that `stages` lists."
    assert text.endswith(f"\n{program('inv')} {flags}\n")
    words = [str(ns[name].__doc__).partition("\n")[0] for name in ns.task_names if "report" not in name]
    assert [line for line in words if len(line) > 54] == []


@pytest.mark.parametrize(
    "words", [["--list", "sim"], ["--list", "--list-depth=1"], ["--list", "-F", "nested"]]
)
def test_a_part_or_another_form_is_invokes_own(words: list[str]) -> None:
    assert "sim" in listed(*words)
    assert "Every day" not in listed(*words)


def test_help_says_more_than_the_list() -> None:
    text = listed("changed", "--help")
    assert "  Say which stages this branch touches, and what to run.\n" in text
    assert "untracked files count" in text
