"""What a command does not need it does not import; what it costs is measured by bench/bench_list.py."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.workplace import PROJECT, SAMPLE, program

if TYPE_CHECKING:
    from pathlib import Path

HEAVY = {"fabric", "paramiko", "elftools", "tabulate", "rich", "jinja2", "yaml", "cryptography", "hypothesis"}


def imported(*words: str, folder: Path = PROJECT) -> set[str]:
    """Return the top-level packages that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "XB_REPO": str(SAMPLE)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 2), done.stderr[-2000:]
    return {name.split(".")[0] for name in re.findall(r"\|\s+([\w.]+)$", done.stderr, re.MULTILINE)}


@pytest.fixture(scope="module")
def invokes_own(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return what Invoke imports by itself, with nothing but an empty task."""
    folder = tmp_path_factory.mktemp("empty")
    (folder / "tasks.py").write_text("from invoke import task\n\n@task\ndef nothing(c):\n    pass\n")
    found = imported(str(program("inv")), "--list", folder=folder)
    assert "invoke" in found
    return found


@pytest.mark.parametrize("words", [("--list",), ("verify", "--help"), ("nope",)])
def test_a_look_at_the_tasks_imports_nothing_heavy(invokes_own: set[str], words: tuple[str, ...]) -> None:
    found = imported(str(program("inv")), *words) - invokes_own
    assert "xbtasks" in found
    assert not found & HEAVY


def test_the_program_xb_is_as_lean(invokes_own: set[str]) -> None:
    assert not (imported("-m", "xbtasks", "--list") - invokes_own) & HEAVY


def test_wrong_knobs_are_found_without_the_means_of_a_run(invokes_own: set[str]) -> None:
    found = imported(str(program("inv")), "verify", "--mem", "4g") - invokes_own
    assert "xbtasks" in found
    assert not found & (HEAVY - {"yaml"})  # the user's file is YAML
