"""Where the checkout is found, and how its files and links are seen."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from xbtasks.checkout.tree import Checkout, Kind, find_repo
from xbtasks.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pathlib import Path

DOCKERFILE = "pack/Dockerfile"


def make(root: Path, *, git: bool = True) -> Path:
    (root / "pack").mkdir(parents=True)
    (root / DOCKERFILE).write_text("FROM a\n")
    if git:
        (root / ".git").mkdir()
    return root


class TestFindRepo:
    def test_explicit(self, tmp_path: Path) -> None:
        root = make(tmp_path / "a b", git=False)
        assert find_repo(str(root), DOCKERFILE, tmp_path) == root

    def test_explicit_is_relative_to_the_current_directory(self, tmp_path: Path) -> None:
        assert find_repo("x", DOCKERFILE, make(tmp_path / "x").parent) == tmp_path / "x"

    def test_explicit_knows_the_home_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert find_repo("~/x", DOCKERFILE, make(tmp_path / "x") / "pack") == tmp_path / "x"

    def test_explicit_beats_the_current_one(self, tmp_path: Path) -> None:
        assert find_repo(str(make(tmp_path / "x")), DOCKERFILE, make(tmp_path / "y")) == tmp_path / "x"

    @pytest.mark.parametrize("inside", [".", "pack", "pack/deep/er"])
    def test_git_top_level_around(self, tmp_path: Path, inside: str) -> None:
        here = make(tmp_path / "x") / inside
        here.mkdir(parents=True, exist_ok=True)
        assert find_repo(None, DOCKERFILE, here) == tmp_path / "x"

    def test_worktree_has_a_git_file(self, tmp_path: Path) -> None:
        root = make(tmp_path / "x", git=False)
        (root / ".git").write_text("gitdir: /somewhere\n")
        assert find_repo(None, DOCKERFILE, root / "pack") == root

    def test_empty_counts_as_unset(self, tmp_path: Path) -> None:
        assert find_repo("", DOCKERFILE, make(tmp_path / "x")) == tmp_path / "x"

    @pytest.mark.parametrize(
        ("explicit", "problem"),
        [
            ("gone", "does not exist"),
            ("file", "is not a directory"),
            ("empty", "has no pack/Dockerfile"),
            ("~nobody-here/x", "can't be read"),
        ],
    )
    def test_explicit_that_is_none(self, tmp_path: Path, explicit: str, problem: str) -> None:
        (tmp_path / "file").touch()
        (tmp_path / "empty").mkdir()
        with pytest.raises(UsageError) as caught:
            find_repo(explicit, DOCKERFILE, make(tmp_path / "here") / "..")
        assert problem in str(caught.value)
        assert caught.value.exit_code is ExitCode.USAGE
        assert "XB_" in caught.value.hint

    def test_none_around(self, tmp_path: Path) -> None:
        (tmp_path / "x/.git").mkdir(parents=True)
        with pytest.raises(UsageError) as caught:
            find_repo(None, DOCKERFILE, tmp_path / "x")
        assert f"{tmp_path / 'x'} has no {DOCKERFILE}" in caught.value.message
        for way in ("XB_REPO", "--repo", "inv demo"):
            assert way in caught.value.hint
        assert "\n" not in str(caught.value)

    def test_without_git_around(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="is in no git checkout"):
            find_repo(None, DOCKERFILE, make(tmp_path / "x", git=False))

    def test_of_another_repository_inside_is_not_taken(self, tmp_path: Path) -> None:
        (make(tmp_path / "x") / "sub/.git").mkdir(parents=True)
        with pytest.raises(UsageError, match="has no pack/Dockerfile"):
            find_repo(None, DOCKERFILE, tmp_path / "x/sub")

    def test_that_can_t_be_entered(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> bool:
            raise PermissionError(13, "Permission denied", "/secret")

        monkeypatch.setattr(type(tmp_path), "is_dir", refuse)
        with pytest.raises(UsageError, match=r"can't be read: .*Permission denied"):
            find_repo("x", DOCKERFILE, tmp_path)


class TestDockerfile:
    def test_absolute_inside(self, tmp_path: Path) -> None:
        root = make(tmp_path / "x")
        assert Checkout(root, str(root / DOCKERFILE)).dockerfile == DOCKERFILE

    def test_is_cleaned(self, tmp_path: Path) -> None:
        assert Checkout(make(tmp_path / "x"), "pack/../pack//./Dockerfile").dockerfile == DOCKERFILE

    @pytest.mark.parametrize("name", ["../Dockerfile", "..", "pack/../../x/../Dockerfile", "/etc/passwd"])
    def test_outside(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "Dockerfile").write_text("FROM a\n")
        with pytest.raises(UsageError, match="lies outside of the checkout"):
            Checkout(make(tmp_path / "x"), name)

    @pytest.mark.parametrize(
        ("name", "problem"),
        [("gone", "is missing"), ("pack", "is not a file"), ("pack/Dockerfile/x", "is missing")],
    )
    def test_none(self, tmp_path: Path, name: str, problem: str) -> None:
        with pytest.raises(UsageError, match=problem):
            Checkout(make(tmp_path / "x"), name)

    def test_behind_a_link(self, tmp_path: Path) -> None:
        root = make(tmp_path / "x")
        (root / "link").symlink_to("/pack/Dockerfile")
        place = Checkout(root, "link").dockerfile_place
        assert (place.links, place.end) == (("link",), DOCKERFILE)

    def test_behind_a_link_that_leads_out(self, tmp_path: Path) -> None:
        root = make(tmp_path / "x")
        (tmp_path / "out").write_text("FROM a\n")
        (root / "link").symlink_to(tmp_path / "out")
        with pytest.raises(UsageError, match="link to nothing"):
            Checkout(root, "link")

    def test_that_can_t_be_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        checkout = Checkout(make(tmp_path / "x"), DOCKERFILE)

        def refuse(*_: object) -> bytes:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(tmp_path), "read_bytes", refuse)
        with pytest.raises(UsageError, match="pack/Dockerfile can't be read: Permission denied"):
            checkout.read(DOCKERFILE)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = make(tmp_path / "x", git=False)
    (root / "d/e").mkdir(parents=True)
    (root / "d/f").write_text("f")
    (root / "d/run").write_text("r")
    (root / "d/run").chmod(0o755)
    return Checkout(root, DOCKERFILE)


class TestFollow:
    @pytest.mark.parametrize(
        ("target", "end"),
        [
            ("d/f", "d/f"),
            ("/d/f", "d/f"),
            ("./d/../d/f", "d/f"),
            ("../../../../d/f", "d/f"),
            ("d", "d"),
            ("/", "."),
            (".", "."),
            ("d/", "d"),
        ],
    )
    def test_link(self, checkout: Checkout, target: str, end: str) -> None:
        checkout.path("l").symlink_to(target)
        place = checkout.follow("l")
        assert (place.links, place.end, place.problem) == (("l",), end, "")

    def test_link_in_a_directory(self, checkout: Checkout) -> None:
        checkout.path("d/l").symlink_to("f")
        assert checkout.follow("d/l").end == "d/f"
        checkout.path("d/m").symlink_to("../d/l")
        assert checkout.follow("d/m").links == ("d/m", "d/l")
        checkout.path("d/e/n").symlink_to("/d/f")
        assert checkout.follow("d/e/n").end == "d/f"

    def test_link_to_a_directory_on_the_way(self, checkout: Checkout) -> None:
        checkout.path("l").symlink_to("d")
        assert checkout.follow("l/f") == checkout.follow("/l/./f")
        assert (checkout.follow("l/f").links, checkout.follow("l/f").end) == (("l",), "d/f")

    @pytest.mark.parametrize("target", ["/etc/passwd", "gone", "../../etc/passwd", "d/f/x"])
    def test_link_to_nothing_in_the_checkout(self, checkout: Checkout, target: str) -> None:
        checkout.path("l").symlink_to(target)
        assert checkout.follow("l").problem == "is a link to nothing"

    def test_links_in_a_circle(self, checkout: Checkout) -> None:
        checkout.path("l").symlink_to("m")
        checkout.path("m").symlink_to("l")
        assert checkout.follow("l").problem == "is behind too many links"

    @pytest.mark.parametrize("path", ["gone", "d/gone", "d/f/x", "gone/x"])
    def test_nothing(self, checkout: Checkout, path: str) -> None:
        assert checkout.follow(path).problem == "is missing"

    def test_root(self, checkout: Checkout) -> None:
        assert checkout.follow(".").end == "."


class TestKind:
    def test_all(self, checkout: Checkout) -> None:
        checkout.path("l").symlink_to("gone")
        kinds = [checkout.kind(path) for path in ("d/f", "d/run", "d", "l", "gone", "d/f/x")]
        assert kinds == [Kind.FILE, Kind.EXECUTABLE, Kind.DIRECTORY, Kind.LINK, None, None]

    def test_fifo_is_refused_and_not_read(self, checkout: Checkout) -> None:
        os.mkfifo(checkout.path("d/fifo"))
        with pytest.raises(UsageError, match="d/fifo is neither a file nor a directory nor a link"):
            checkout.kind("d/fifo")

    def test_socket_is_left_out(self, checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(checkout.path("d"))  # the name of a socket is short
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("s")
        assert checkout.kind("d/s") is None
        assert "d/s" not in set(checkout.leaves("d", checkout.ignored()))


class TestLeaves:
    def leaves(self, checkout: Checkout, path: str = ".") -> list[str]:
        return sorted(checkout.leaves(path, checkout.ignored()))

    def test_are_files_links_and_empty_directories(self, checkout: Checkout) -> None:
        checkout.path("d/l").symlink_to("/gone")
        checkout.path("d/m").symlink_to(".")
        assert self.leaves(checkout) == ["d/e", "d/f", "d/l", "d/m", "d/run", "pack/Dockerfile"]

    def test_of_one_path(self, checkout: Checkout) -> None:
        assert self.leaves(checkout, "d/f") == ["d/f"]
        assert self.leaves(checkout, "d/e") == ["d/e"]
        assert self.leaves(checkout, "gone") == []

    @pytest.mark.parametrize(
        ("rules", "leaves"),
        [
            ("d", ["pack/Dockerfile"]),
            ("d/f", ["d/e", "d/run", "pack/Dockerfile"]),
            ("d\n!d/f", ["d/f", "pack/Dockerfile"]),
            ("d/e\npack", ["d/f", "d/run"]),
            ("**/*u*", ["d/e", "d/f", "pack/Dockerfile"]),
            ("pack/Dockerfile", ["d/e", "d/f", "d/run", "pack"]),
        ],
    )
    def test_without_what_is_ignored(self, checkout: Checkout, rules: str, leaves: list[str]) -> None:
        checkout.path(".dockerignore").write_text(rules + "\n.dockerignore\n")
        assert self.leaves(Checkout(checkout.root, DOCKERFILE)) == leaves

    def test_ignore_file_of_the_dockerfile_wins(self, checkout: Checkout) -> None:
        checkout.path(".dockerignore").write_text("d\n")
        checkout.path(f"{DOCKERFILE}.dockerignore").write_text("d/f\n")
        again = Checkout(checkout.root, DOCKERFILE)
        assert again.ignore_files == (f"{DOCKERFILE}.dockerignore", ".dockerignore")
        assert again.ignored().ignores("d/f")
        assert not again.ignored().ignores("d/run")

    def test_malformed_rule(self, checkout: Checkout) -> None:
        checkout.path(".dockerignore").write_text("[\n")
        with pytest.raises(UsageError, match=r"^\.dockerignore: "):
            Checkout(checkout.root, DOCKERFILE).ignored()
