"""Removing folders, and the lock that may be removed with them."""

from __future__ import annotations

import fcntl
import threading
from typing import TYPE_CHECKING

import pytest

from xbtasks.errors import Refused
from xbtasks.sim import folders
from xbtasks.sim.lock import locked

if TYPE_CHECKING:
    from pathlib import Path


def test_mount_points_are_read_with_their_blanks() -> None:
    text = (
        "22 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n"
        "30 22 0:25 / /mnt/my\\040disk\\134x rw shared:5 - tmpfs tmpfs rw\n"
    )
    assert folders.mount_points(text) == ("/", "/mnt/my disk\\x")


def test_children_go_and_the_lock_stays(tmp_path: Path) -> None:
    keep = tmp_path / "lock"
    keep.touch()
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/er/file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "deep")
    (tmp_path / "dangling").symlink_to("nowhere")
    folders.remove_children(tmp_path, but=keep)
    assert list(tmp_path.iterdir()) == [keep]


def test_what_a_link_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    (tmp_path / "state").mkdir()
    (tmp_path / "state/programs").symlink_to(tmp_path / "other")
    folders.remove_tree(tmp_path / "state")
    assert (tmp_path / "other/file").exists()


def test_nothing_is_removed_across_a_mount_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk/file").touch()
    monkeypatch.setattr(folders, "mount_points", lambda text: (f"{tmp_path}/disk",))
    with pytest.raises(Refused, match="is a mount point"):
        folders.remove_tree(tmp_path)
    assert (tmp_path / "disk/file").exists()


def test_an_absent_folder_is_removed_already(tmp_path: Path) -> None:
    folders.remove_tree(tmp_path / "absent")
    folders.remove_empty((tmp_path / "absent",))


def test_only_empty_folders_are_removed(tmp_path: Path) -> None:
    (tmp_path / "full/file").parent.mkdir()
    (tmp_path / "full/file").touch()
    (tmp_path / "empty").mkdir()
    folders.remove_empty((tmp_path / "full", tmp_path / "empty"))
    assert [child.name for child in tmp_path.iterdir()] == ["full"]


def test_the_lock_excludes_others_and_tells_who_waits(tmp_path: Path) -> None:
    told = threading.Event()
    entered = threading.Event()

    def second() -> None:
        with locked(tmp_path / "state", told.set):
            entered.set()

    with locked(tmp_path / "state", lambda: None):
        other = threading.Thread(target=second)
        other.start()
        assert told.wait(5)
        assert not entered.is_set()
    other.join(5)
    assert entered.is_set()


def test_who_waited_for_a_removed_lock_takes_the_new_one(tmp_path: Path) -> None:
    waiting = threading.Event()
    held: list[bool] = []

    def second() -> None:
        with locked(tmp_path / "state", waiting.set) as path, path.open() as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held.append(False)
            except BlockingIOError:
                held.append(True)

    with locked(tmp_path / "state", lambda: None) as path:
        other = threading.Thread(target=second)
        other.start()
        assert waiting.wait(5)
        path.unlink()
        path.parent.rmdir()
    other.join(5)
    assert held == [True]


def test_a_free_lock_makes_nobody_wait(tmp_path: Path) -> None:
    told: list[str] = []
    with locked(tmp_path, lambda: told.append("waiting")):
        assert (tmp_path / "lock").exists()
    assert told == []
