"""Completion in real shells: what Tab makes of a command line."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shutil
import subprocess
import termios
import time
from typing import TYPE_CHECKING

import pytest

from tests.workplace import PROJECT, SAMPLE, program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAB = "\t"


def variables(home: Path) -> dict[str, str]:
    return {
        "PATH": f"{program('inv').parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "TERM": "dumb",
        "XB_REPO": str(SAMPLE),
        "XDG_STATE_HOME": str(home),
    }


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def script(shell: str, name: str = "./xb") -> str:
    done = subprocess.run(
        [name, "--print-completion-script", shell], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return done.stdout


class Terminal:
    """A shell on a terminal of its own, in the project."""

    def __init__(self, argv: list[str], home: Path) -> None:
        child, self._ours = pty.fork()
        if not child:
            termios.tcsetwinsize(0, (24, 250))
            os.chdir(PROJECT)
            os.execvpe(argv[0], argv, variables(home))
        self.child = child

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, text: str) -> str:
        """Return what is shown up to ``text``, which must come."""
        shown, end = b"", time.monotonic() + 60
        while text.encode() not in shown:
            if not select.select([self._ours], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{text!r} never came: {shown!r}")
            shown += os.read(self._ours, 65536)
        return shown.decode(errors="replace")

    def source(self, file: Path) -> None:
        self.type(f"PS1='ready> '; source {file}; echo so\\urced\n")
        self.until("sourced")

    def completed(self, line: str) -> list[str]:
        """Return the words of what Tab makes of ``line``: they are printed instead of run."""
        self.type(f"{line}{TAB}\x01printf '<%s>' \x05; echo do\\ne\n")
        shown = self.until("done")
        assert "rror" not in shown
        return re.findall(r"<([^<>%\x00-\x1f]*)>", shown)

    def close(self) -> None:
        os.close(self._ours)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.child, 0)


@pytest.fixture(params=["bash", "zsh"], scope="module")
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    needs(request.param)
    home = tmp_path_factory.mktemp("home")
    (home / "script").write_text(script(request.param))
    argv = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}[request.param]
    terminal = Terminal(argv, home)
    terminal.source(home / "script")
    yield terminal
    terminal.close()


@pytest.mark.parametrize(
    ("typed", "last"),
    [
        ("./xb prefl", "preflight"),
        ("./xb nvidia.case2 xbuild-nvidia-cuda-12 --no-thr", "--no-throttle"),
        ("./xb verify xbuild-n", "xbuild-nvidia-cuda-1"),
        ("./xb verify --stage xbuild-ascend-cann-9-95", "xbuild-ascend-cann-9-950"),
        ("./xb verify --platform=linux/ar", "--platform=linux/arm64"),
        ("./xb stages --backend n", "nvidia"),
        ("./xb replay READ", "README.md"),
        ("./xb verify --mem 7", "7"),
        ("./xb nonsense --x", "--x"),
    ],
)
def test_tab_completes(shell: Terminal, typed: str, last: str) -> None:
    assert shell.completed(typed) == [*typed.split()[:-1], last]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("./xb verify xbuild-nv", ["xbuild-nvidia-cuda-12", "xbuild-nvidia-cuda-13"]),
        ("./xb verify --stage=xbuild-nv", ["--stage=xbuild-nvidia-cuda-12", "--stage=xbuild-nvidia-cuda-13"]),
        ("./xb prefl", ["preflight"]),
        ("./xb stages --backend ", ["ascend", "nvidia"]),
        ("./xb ascend.case1 --host-k", ["--host-keys"]),
        ("./xb replay READ", ["README.md"]),
    ],
)
def test_fish_completes(tmp_path: Path, typed: str, offered: list[str]) -> None:
    needs("fish")
    (tmp_path / "script").write_text(script("fish"))
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {tmp_path}/script; complete -C '{typed}'"],
        cwd=PROJECT,
        env=variables(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == offered
    assert done.stderr == ""


def test_invokes_own_script_completes_values_too(tmp_path: Path) -> None:
    (tmp_path / "script").write_text(script("bash", str(program("inv"))))
    terminal = Terminal(["bash", "--norc", "--noprofile", "-i"], tmp_path)
    try:
        terminal.source(tmp_path / "script")
        typed = "inv verify --stage xbuild-ascend-cann-9-95"
        assert terminal.completed(typed)[-1] == "xbuild-ascend-cann-9-950"
        assert terminal.completed("inv stages --backend n")[-1] == "nvidia"
    finally:
        terminal.close()


def test_an_unknown_shell_is_refused() -> None:
    done = subprocess.run(
        ["./xb", "--print-completion-script", "tcsh"], cwd=PROJECT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == "error: no completion for 'tcsh'; there is bash, zsh and fish\n"
