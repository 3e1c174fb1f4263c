"""Files that can't be read or written: the system's own words, one wording, the right exit code."""

from __future__ import annotations

import ast
import errno
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.workplace import PROJECT, Done, make_checkout
from xbtasks.errors import CannotJudge, ExitCode, UsageError, disk_error, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ELSEWHERE = ("backends/ascend/probe.py", "sim/drivers/inventory.py", "sim/runtime.py")
"""Programs of a container or of the simulated host: what they say is for programs."""
TREES = {
    path: ast.parse(path.read_text())
    for path in sorted((PROJECT / "xbtasks").rglob("*.py"))
    if not str(path).endswith(ELSEWHERE)
}


def bare(handler: ast.ExceptHandler) -> Iterator[ast.expr]:
    """Yield where the text of a handler's exception itself becomes part of a text."""
    for node in ast.walk(handler):
        match node:
            case ast.FormattedValue(value=ast.Name(id=name)) if name == handler.name:
                yield node
            case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]) if name == handler.name:
                yield node
            case _:
                pass


def handlers(tree: ast.AST) -> Iterator[ast.ExceptHandler]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and node.type is not None:
            kinds = ast.unparse(node.type)
            if any(name in kinds for name in ("OSError", "PermissionError", "FileNotFoundError")):
                yield node


def test_no_message_has_pythons_words_for_an_error_of_the_system() -> None:
    wrong = [
        f"{path.relative_to(PROJECT)}:{node.lineno}: {ast.unparse(node)}"
        for path, tree in TREES.items()
        for handler in handlers(tree)
        for node in bare(handler)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, ExitCode.CANNOT_JUDGE),
        (errno.EDQUOT, ExitCode.CANNOT_JUDGE),
        (errno.EIO, ExitCode.CANNOT_JUDGE),
        (errno.EACCES, ExitCode.USAGE),
        (errno.EROFS, ExitCode.USAGE),
        (errno.ENOENT, ExitCode.USAGE),
    ],
)
def test_a_full_or_broken_disk_is_trouble_and_all_else_a_wrong_name(number: int, code: ExitCode) -> None:
    error = disk_error("x can't be written", OSError(number, os.strerror(number), "x"), hint="y")
    assert (error.exit_code, error.hint) == (code, "y")
    assert error.message == f"x can't be written: {os.strerror(number)}"
    assert isinstance(error, UsageError if code is ExitCode.USAGE else CannotJudge)


def test_what_is_no_error_of_the_system_has_its_own_text() -> None:
    assert (reason_of(ValueError("a")), reason_of(OSError("b"))) == ("a", "b")


@pytest.fixture(scope="module", params=["ro", "size=16k"])
def disk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder that is on a read-only mount, or on a disk that is full."""
    folder = tmp_path_factory.mktemp("disk")
    mounted = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(folder)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        if request.param != "ro":
            with pytest.raises(OSError, match="No space"):
                (folder / "all").write_bytes(b"x" * 65536)
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def typed(disk: Path, folder: Path, *words: str) -> Done:
    checkout = make_checkout(folder / "checkout", "FROM a AS xbuild-nvidia-cuda-12\nRUN b\n")
    done = subprocess.run(
        ["./xb", *words],
        cwd=PROJECT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_STATE_HOME": str(disk),
            "XB_REPO": str(checkout),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("line", ["verify xbuild-nvidia-cuda-12", "matrix", "preflight", "nvidia.case1"])
def test_evidence_that_can_not_be_kept(disk: Path, tmp_path: Path, line: str) -> None:
    full = (disk / "all").exists()
    done = typed(disk, tmp_path, *line.split())
    why = "No space left on device" if full else "Read-only file system"
    first = next(line for line in done.err.splitlines() if line.startswith("error: "))
    assert first.startswith(f"error: the evidence can't be kept in {disk}/xbtasks/runs/")
    assert first.endswith(f": {why}")
    assert done.err.endswith("\n  XDG_STATE_HOME names another place\n")
    assert done.code == (4 if full else 2)


@pytest.mark.parametrize("disk", ["ro"], indirect=True)
@pytest.mark.parametrize("form", ["json", "junit", "markdown", "html"])
def test_an_output_on_a_read_only_mount_is_said_before_anything_runs(
    disk: Path, tmp_path: Path, form: str
) -> None:
    done = typed(tmp_path, tmp_path, "verify", "xbuild-nvidia-cuda-12", f"--{form}={disk}/x")
    assert (done.code, done.out) == (2, "")
    assert done.err == f"error: {disk}/x can't be written: Read-only file system\n"


@pytest.mark.parametrize("word", ["preflight", "matrix"])
def test_a_disk_that_fills_up_in_a_run(tmp_path: Path, word: str) -> None:
    """The room that is left holds the beginning of a run, and not its steps."""
    folder = tmp_path / "state"
    folder.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(folder)]
    if subprocess.run(mounted, capture_output=True, check=False).returncode:
        pytest.skip("mounting is not allowed here")
    try:
        done = typed(folder, tmp_path, word)
        assert list(folder.rglob("run.json"))
    finally:
        subprocess.run(["umount", str(folder)], check=True)
    assert done.code == 4
    assert "the evidence can't be kept in " in done.err
    assert "Errno" not in done.text
    assert "Traceback" not in done.text
