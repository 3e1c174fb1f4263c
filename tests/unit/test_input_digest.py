"""The input digest: what changes it, and what must not."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stage_samples import NAME, plant, stage

from xbtasks.backends.base import Platform
from xbtasks.checkout.stages import context_files, discover, input_digest
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AMD64 = Platform.AMD64


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return plant(tmp_path)


def digests(repo: Path, *lines: str, top: str = "", end: str = "") -> tuple[str, ...]:
    found = stage(repo, *lines, top=top, end=end)
    return tuple(input_digest(found, platform, repo) for platform in Platform)


LINES = ("COPY src /x", "RUN --mount=src=run.sh,target=/r z")


def touch(repo: Path) -> None:
    for path in (repo / "src/a.c", repo / "src", repo / "pack/Dockerfile"):
        os.utime(path, (1, 1))


def rewrite(repo: Path) -> None:
    """Make the same tree in another order."""
    moved = repo / "moved"
    (repo / "src").rename(moved)
    (repo / "src").mkdir()
    for each in sorted(moved.iterdir(), reverse=True):
        each.rename(repo / "src" / each.name)
    moved.rmdir()


SAME: dict[str, Callable[[Path], object]] = {
    "time stamps": touch,
    "order in a directory": rewrite,
    "a file elsewhere": lambda repo: (repo / "other/o").write_text("changed"),
    "a new file elsewhere": lambda repo: (repo / "new").touch(),
    "modes but the owner's exec bit": lambda repo: (repo / "src/a.c").chmod(0o675),
}
CHANGED: dict[str, Callable[[Path], object]] = {
    "content": lambda repo: (repo / "src/deep/c.c").write_text("changed"),
    "content of the same length": lambda repo: (repo / "src/a.c").write_text("SRC/A.C"),
    "exec bit": lambda repo: (repo / "src/a.c").chmod(0o744),
    "exec bit gone": lambda repo: (repo / "run.sh").chmod(0o644),
    "deleted file": lambda repo: (repo / "src/deep/c.c").unlink(),
    "deleted input": lambda repo: (repo / "run.sh").unlink(),
    "new file": lambda repo: (repo / "src/new").touch(),
    "renamed file": lambda repo: (repo / "src/a.c").rename(repo / "src/z.c"),
    "renamed empty directory": lambda repo: (repo / "src/deep/empty").rename(repo / "src/deep/void"),
    "empty directory gone": lambda repo: (repo / "src/deep/empty").rmdir(),
    "link target": lambda repo: ((repo / "src/link").unlink(), (repo / "src/link").symlink_to("b.c")),
    "link made a file": lambda repo: ((repo / "src/link").unlink(), (repo / "src/link").write_text("a.c")),
    "contents swapped": lambda repo: (
        (repo / "src/a.c").write_text("src/b.c"),
        (repo / "src/b.c").write_text("src/a.c"),
    ),
    "ignore file": lambda repo: (repo / ".dockerignore").write_text("# nothing\n"),
}


class TestDigest:
    def test_form(self, repo: Path) -> None:
        amd64, arm64 = digests(repo, *LINES)
        assert len(amd64) == 64
        assert int(amd64, 16)
        assert amd64 != arm64

    @pytest.mark.parametrize("change", SAME.values(), ids=SAME)
    def test_same_after(self, repo: Path, change: Callable[[Path], object]) -> None:
        before = digests(repo, *LINES)
        change(repo)
        assert digests(repo, *LINES) == before

    @pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
    def test_other_after(self, repo: Path, change: Callable[[Path], object]) -> None:
        found = stage(repo, *LINES)
        before = input_digest(found, AMD64, repo)
        change(repo)
        assert input_digest(found, AMD64, repo) != before
        assert input_digest(stage(repo, *LINES), AMD64, repo) != before

    def test_names_and_targets_don_t_run_together(self, repo: Path) -> None:
        (repo / "src/p").symlink_to("linkq")
        before = digests(repo, *LINES)
        (repo / "src/p").unlink()
        (repo / "src/plink").symlink_to("q")
        assert digests(repo, *LINES) != before

    def test_counts_values_of_arguments(self, repo: Path) -> None:
        found = stage(repo, *LINES, "ARG A=1")
        other = replace(
            found, recipes=tuple(replace(recipe, arguments=(("A", "2"),)) for recipe in found.recipes)
        )
        assert input_digest(found, AMD64, repo) != input_digest(other, AMD64, repo)

    def test_same_in_another_place(self, repo: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        before = digests(repo, *LINES)
        other = tmp_path_factory.mktemp("other") / "x"
        shutil.copytree(repo, other, symlinks=True)
        assert digests(other, *LINES) == before

    def test_what_is_ignored_does_not_count(self, repo: Path) -> None:
        (repo / ".dockerignore").write_text("src/deep\n")
        before = digests(repo, *LINES)
        (repo / "src/deep/c.c").write_text("changed")
        assert digests(repo, *LINES) == before

    @pytest.mark.parametrize(
        ("top", "lines", "end"),
        [
            ("# comment\n\n", LINES, ""),
            ("ARG UNUSED=2\n", LINES, ""),
            ("", ("COPY src /x", "", "# why", "RUN --mount=src=run.sh,target=/r z"), ""),
            ("", LINES, "FROM a AS other\nRUN b\n"),
            ("FROM a AS other\nCOPY other /\n", LINES, ""),
        ],
    )
    def test_same_after_an_edit_elsewhere(
        self, repo: Path, top: str, lines: tuple[str, ...], end: str
    ) -> None:
        before = digests(repo, *LINES, top="ARG UNUSED=1\n")
        assert digests(repo, *lines, top=top, end=end) == before

    @pytest.mark.parametrize(
        "lines",
        [
            ("COPY src /y", LINES[1]),
            (*LINES, "RUN y"),
            LINES[::-1],
            (LINES[0], "RUN --mount=src=run.sh,target=/r zz"),
            (*LINES, "ENV A=b"),
            (*LINES, "RUN <<E\n# in a heredoc\nE"),
        ],
    )
    def test_other_after_an_edit_of_the_stage(self, repo: Path, lines: tuple[str, ...]) -> None:
        assert digests(repo, *lines) != digests(repo, *LINES)

    def test_pin_counts_only_where_it_is_used(self, repo: Path) -> None:
        used = (*LINES, "ARG LIB_HAMI_CORE_COMMIT")
        one, two = "ARG LIB_HAMI_CORE_COMMIT=1\n", "ARG LIB_HAMI_CORE_COMMIT=2\n"
        assert digests(repo, *used, top=one) != digests(repo, *used, top=two)
        assert digests(repo, *LINES, top=one) == digests(repo, *LINES, top=two)

    def test_counts_the_stages_it_needs(self, repo: Path) -> None:
        def with_base(line: str) -> tuple[str, ...]:
            return digests(repo, "COPY --from=base /x /x", top=f"FROM a AS base\n{line}\n")

        assert with_base("RUN b") != with_base("RUN c")
        before = with_base("COPY other /")
        (repo / "other/o").write_text("changed")
        assert with_base("COPY other /") != before

    def test_of_a_leg_counts_for_its_platform_only(self, repo: Path) -> None:
        def alias(leg: str) -> tuple[str, ...]:
            text = f"FROM a AS t-amd64\nRUN b\nFROM a AS t-arm64\n{leg}\nFROM t-${{TARGETARCH}} AS {NAME}\n"
            (repo / "pack/Dockerfile").write_text(text)
            (found,) = discover(repo, "pack/Dockerfile").stages
            return tuple(input_digest(found, platform, repo) for platform in Platform)

        one, two = alias("RUN c"), alias("RUN d")
        assert one[0] == two[0]
        assert one[1] != two[1]

    def test_reads_large_files_in_pieces(self, repo: Path) -> None:
        with (repo / "src/large").open("wb") as file:
            file.truncate(64 << 20)
        before = digests(repo, "COPY src/large /x")
        with (repo / "src/large").open("r+b") as file:
            file.seek(63 << 20)
            file.write(b"x")
        assert digests(repo, "COPY src/large /x") != before

    def test_file_that_vanishes_is_one_line(self, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        found = stage(repo, *LINES)

        def refuse(*_: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(type(repo), "open", refuse)
        with pytest.raises(UsageError, match=r"run\.sh can't be read: Permission denied"):
            input_digest(found, AMD64, repo)

    def test_names_that_are_no_utf8(self, repo: Path) -> None:
        raw = os.fsencode(repo / "src") + b"/\xff"
        before = digests(repo, *LINES)
        with open(raw, "wb"):  # noqa: PTH123 - a name in bytes
            pass
        assert digests(repo, *LINES) != before


NAMES = st.sampled_from(["a", "b", "a.c", "é", "x y", "-", "#"])
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map(tuple),
    st.one_of(st.binary(max_size=4), st.just("link")),
    max_size=6,
)


def write(root: Path, tree: dict[tuple[str, ...], bytes | str], order: list[tuple[str, ...]]) -> None:
    for parts in order:
        path = root.joinpath("tree", *parts)
        if any(parts[:at] in tree for at in range(1, len(parts))):
            continue  # below a file
        path.parent.mkdir(parents=True, exist_ok=True)
        content = tree[parts]
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.symlink_to("/nowhere")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TREES, TREES, st.randoms(use_true_random=False))
def test_digest_tells_trees_apart_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory,
    one: dict[tuple[str, ...], bytes | str],
    two: dict[tuple[str, ...], bytes | str],
    random: st.randoms,
) -> None:
    def digest(
        tree: dict[tuple[str, ...], bytes | str], order: list[tuple[str, ...]]
    ) -> tuple[str, list[object]]:
        root = tmp_path_factory.mktemp("r")
        (root / "pack").mkdir()
        (root / "tree").mkdir()
        write(root, tree, order)
        found = stage(root, "COPY tree /x")
        seen: list[object] = [
            (
                path,
                absolute.is_symlink(),
                b"" if absolute.is_symlink() or absolute.is_dir() else absolute.read_bytes(),
            )
            for path, absolute in context_files(found, root)
        ]
        for path in root.rglob("*"):
            os.utime(path, (random.randint(1, 99), random.randint(1, 99)), follow_symlinks=False)
        return input_digest(found, AMD64, root), seen

    shuffled = list(one)
    random.shuffle(shuffled)
    (first, first_seen), (again, _), (second, second_seen) = (
        digest(one, list(one)),
        digest(one, shuffled),
        digest(two, list(two)),
    )
    assert first == again
    assert (first == second) == (first_seen == second_seen)
