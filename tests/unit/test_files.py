from __future__ import annotations

import os
from pathlib import Path

import pytest

from xbtasks.errors import CannotJudge, UsageError
from xbtasks.files import require_writable, write_atomically


def test_a_file_is_written_whole_with_the_umasks_mode(tmp_path: Path) -> None:
    target = tmp_path / "result.json"
    before = os.umask(0o027)
    try:
        write_atomically(str(target), "one")
    finally:
        os.umask(before)
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("one", 0o640)
    write_atomically(str(target), "two")
    assert target.read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "result.json"
    target.write_text("before")

    def full(self: Path, other: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(CannotJudge, match="No space left"):
        write_atomically(str(target), "after")
    assert target.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_pipe_is_written_into_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    require_writable(str(pipe))
    write_atomically(str(pipe), "{}")
    assert os.read(reader, 10) == b"{}"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["", "{tmp}", "{tmp}/none/result.json", "{tmp}/file/result.json", "a\0b"])
def test_a_name_that_can_not_be_written_is_said_beforehand(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError):
        require_writable(name.format(tmp=tmp_path))


def test_a_folder_without_write_permission_is_said_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(**_: object) -> None:
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr("tempfile.TemporaryFile", denied)
    with pytest.raises(UsageError, match=r"json can't be written: Permission denied$"):
        require_writable(str(tmp_path / "result.json"))


def test_a_good_name_is_let_pass_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("result.json", "./result.json", str(tmp_path / "a b's.json")):
        require_writable(name)
    assert list(tmp_path.iterdir()) == []
    require_writable("/dev/stdout")
