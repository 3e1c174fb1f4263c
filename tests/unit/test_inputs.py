"""What a stage's build reads: inputs, minimal context, digest."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xbtasks.backends.base import Platform
from xbtasks.errors import UsageError
from xbtasks.stages import Stage, context_files, discover, input_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AMD64, ARM64 = Platform.AMD64, Platform.ARM64
NAME = "xbuild-nvidia-cuda-12"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for directory in ("src/deep/empty", "other", "pack"):
        (tmp_path / directory).mkdir(parents=True)
    for file in ("src/a.c", "src/b.c", "src/b.h", "src/deep/c.c", "other/o", "run.sh", "[x]", "secret"):
        (tmp_path / file).write_text(file)
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "src/link").symlink_to("a.c")
    return tmp_path


def stage(repo: Path, *lines: str, top: str = "", end: str = "") -> Stage:
    text = top + "\n".join([f"FROM a AS {NAME}", *lines, ""]) + end
    (repo / "pack/Dockerfile").write_text(text)
    (found,) = discover(repo, "pack/Dockerfile").stages
    return found


def inputs(repo: Path, *lines: str) -> list[tuple[str, str]]:
    return [(each.path, each.kind) for each in stage(repo, *lines).inputs]


def context(repo: Path, *lines: str) -> list[str]:
    files = context_files(stage(repo, *lines), repo)
    assert [path for path, _ in files] == sorted({path for path, _ in files})
    assert all(absolute == repo / path for path, absolute in files)
    return [path for path, _ in files if path != "pack/Dockerfile"]


class TestInputs:
    def test_each_once_and_sorted(self, repo: Path) -> None:
        found = stage(
            repo, "COPY src /x", "RUN --mount=src=run.sh,target=/r a", "COPY run.sh src/ /y/"
        ).inputs
        assert [(each.path, each.kind, [str(naming) for naming in each.named_by]) for each in found] == [
            ("run.sh", "file", ["mount in line 3", "copy in line 4"]),
            ("src", "dir", ["copy in line 2", "copy in line 4"]),
        ]

    @pytest.mark.parametrize("line", ["COPY gone /", "ADD gone /", "RUN --mount=src=gone,target=/x y"])
    def test_missing_one_is_named_and_no_error(self, repo: Path, line: str) -> None:
        found = stage(repo, line)
        assert [(each.path, each.kind, each.note) for each in found.missing] == [
            ("gone", "missing", "is missing")
        ]
        assert input_digest(found, AMD64, repo)

    @pytest.mark.parametrize(
        ("pattern", "paths"),
        [
            ("src/*.c", ["src/a.c", "src/b.c"]),
            ("src/?.h", ["src/b.h"]),
            ("src/[ab].c", ["src/a.c", "src/b.c"]),
            ("src/[^a].c", ["src/b.c"]),
            ("*/o", ["other/o"]),
            ("src/d*", ["src/deep"]),
            ("src/*/*.c", ["src/deep/c.c"]),
            ("[[]x]", ["[x]"]),
            ("s*/a.c", ["src/a.c"]),
            ("./src//../src/*.h", ["src/b.h"]),
            ("../src/*.h", ["src/b.h"]),
        ],
    )
    def test_wildcards_of_copy(self, repo: Path, pattern: str, paths: list[str]) -> None:
        assert [
            path for path, _ in inputs(repo, f'COPY ["{pattern.replace(chr(92), chr(92) * 4)}", "/x/"]')
        ] == paths

    def test_wildcards_mean_nothing_to_a_mount(self, repo: Path) -> None:
        assert inputs(repo, "RUN --mount=src=src/*.c,target=/x y") == [("src/*.c", "missing")]
        assert inputs(repo, "RUN --mount=src=[x],target=/x y") == [("[x]", "file")]

    def test_escaped_wildcard_is_none_and_keeps_its_escape(self, repo: Path) -> None:
        assert inputs(repo, 'COPY ["\\\\\\\\[x]", "/x/"]') == [("\\[x]", "missing")]

    def test_wildcard_that_matches_nothing_is_no_error(self, repo: Path) -> None:
        assert inputs(repo, "COPY *.zip /x/") == [("*.zip", "empty")]
        assert context(repo, "COPY *.zip /x/") == []

    def test_wildcard_in_a_missing_directory_is_one(self, repo: Path) -> None:
        assert inputs(repo, "COPY gone/*.c /x/") == [("gone/*.c", "missing")]

    def test_malformed_pattern(self, repo: Path) -> None:
        (found,) = stage(repo, "COPY src/[a /x/").missing
        assert found.note.startswith("is a malformed pattern")

    def test_parents(self, repo: Path) -> None:
        assert [path for path, _ in inputs(repo, "COPY --parents src/**/*.c /x/")] == [
            "src/a.c",
            "src/b.c",
            "src/deep/c.c",
        ]
        assert inputs(repo, "COPY --parents src/./deep/c.c /x/") == [("src/deep/c.c", "file")]
        assert inputs(repo, "COPY --parents src/**/*.zip /x/") == [("src/**/*.zip", "empty")]

    def test_wildcards_follow_links_before_them_only(self, repo: Path) -> None:
        (repo / "alias").symlink_to("src")
        assert inputs(repo, "COPY alias/*.h /x/") == [("alias/b.h", "file")]
        assert inputs(repo, "COPY al*/b.h /x/") == [("al*/b.h", "empty")]
        assert inputs(repo, "COPY al* /x/") == [("alias", "dir")]

    @pytest.mark.parametrize(
        "line", ["COPY secret /x/", "RUN --mount=src=secret,target=/x y", "COPY secret* /x/"]
    )
    def test_left_out_by_the_ignore_file(self, repo: Path, line: str) -> None:
        (repo / ".dockerignore").write_text("secret\n")
        (found,) = stage(repo, line).inputs
        if "*" in line:
            assert (found.path, found.kind) == ("secret*", "empty")
        else:
            assert (found.kind, found.note) == ("missing", "is left out by .dockerignore")

    def test_behind_a_link_left_out_by_the_ignore_file(self, repo: Path) -> None:
        (repo / "pack/Dockerfile.dockerignore").write_text("alias\n")
        (repo / "alias").symlink_to("run.sh")
        (found,) = stage(repo, "COPY alias /x/").missing
        assert found.note == "is left out by pack/Dockerfile.dockerignore"


class TestContext:
    def test_is_what_the_stage_names_and_the_dockerfile(self, repo: Path) -> None:
        files = context_files(stage(repo, "RUN --mount=src=run.sh,target=/r a", "COPY other /"), repo)
        assert files == (
            ("other/o", repo / "other/o"),
            ("pack/Dockerfile", repo / "pack/Dockerfile"),
            ("run.sh", repo / "run.sh"),
        )

    def test_directory_is_every_file_link_and_empty_directory(self, repo: Path) -> None:
        leaves = ["src/a.c", "src/b.c", "src/b.h", "src/deep/c.c", "src/deep/empty", "src/link"]
        assert context(repo, "RUN --mount=type=bind,source=src,target=/x y") == leaves

    def test_nothing_of_other_stages(self, repo: Path) -> None:
        (repo / "pack/Dockerfile").write_text(f"FROM a AS {NAME}\nRUN b\nFROM a\nCOPY src /\n")
        (found,) = discover(repo, "pack/Dockerfile").stages
        assert [path for path, _ in context_files(found, repo)] == ["pack/Dockerfile"]

    @pytest.mark.parametrize(
        ("target", "taken"),
        [
            ("src/a.c", ["alias", "src/a.c"]),
            ("/src/a.c", ["alias", "src/a.c"]),
            ("../../src/a.c", ["alias", "src/a.c"]),
            ("src/link", ["alias", "src/a.c", "src/link"]),
            ("other", ["alias", "other/o"]),
        ],
    )
    def test_link_comes_as_a_link_with_what_it_leads_to(
        self, repo: Path, target: str, taken: list[str]
    ) -> None:
        (repo / "alias").symlink_to(target)
        assert context(repo, "COPY alias /x") == taken
        assert context(repo, "RUN --mount=src=alias,target=/x y") == taken

    def test_link_never_leads_out(self, repo: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        outside = tmp_path_factory.mktemp("outside") / "file"
        outside.write_text("x")
        (repo / "alias").symlink_to(outside)
        (repo / "src/out").symlink_to(outside)
        assert "src/out" in context(repo, "COPY src /x")
        with pytest.raises(UsageError, match="alias, which is a link to nothing"):
            context(repo, "COPY alias /x")

    def test_holds_the_ignore_files_and_not_what_they_leave_out(self, repo: Path) -> None:
        (repo / ".dockerignore").write_text("**/*.h\n")
        assert context(repo, "COPY src /x") == [
            *(".dockerignore", "src/a.c", "src/b.c", "src/deep/c.c", "src/deep/empty", "src/link")
        ]
        (repo / "pack/Dockerfile.dockerignore").write_text("src/deep\n!src/deep/c.c\n")
        assert context(repo, "COPY src /x") == [
            *(".dockerignore", "pack/Dockerfile.dockerignore"),
            *("src/a.c", "src/b.c", "src/b.h", "src/deep/c.c", "src/link"),
        ]

    def test_whole_context(self, repo: Path) -> None:
        taken = context(repo, "RUN --mount=target=/x y")
        assert {"[x]", "secret", "src/deep/empty", "src/link"} < set(taken)

    def test_missing_input_is_an_error_that_names_it_and_its_line(self, repo: Path) -> None:
        with pytest.raises(UsageError) as caught:
            context(repo, "RUN a", "COPY gone /x")
        assert str(caught.value) == "pack/Dockerfile:3: copy needs gone, which is missing"

    def test_for_all_platforms_with_something_to_build(self, repo: Path) -> None:
        assert context(repo, "ARG TARGETARCH", "COPY $TARGETARCH* /x", "COPY o*/o /x") == ["other/o"]
        (repo / "arm64").touch()
        assert context(repo, "ARG TARGETARCH", "COPY $TARGETARCH* /x") == ["arm64"]
        (repo / "pack/Dockerfile").write_text(
            f"FROM --platform=linux/amd64 a AS {NAME}\nARG TARGETARCH\nCOPY $TARGETARCH* /x"
        )
        (found,) = discover(repo, "pack/Dockerfile").stages
        assert [path for path, _ in context_files(found, repo)] == ["pack/Dockerfile"]

    def test_fifo_is_refused(self, repo: Path) -> None:
        os.mkfifo(repo / "src/fifo")
        found = stage(repo, "COPY src /x")
        with pytest.raises(UsageError, match="src/fifo is neither"):
            context_files(found, repo)

    def test_dockerfile_behind_a_link(self, repo: Path) -> None:
        stage(repo, "RUN a")
        (repo / "Dockerfile").symlink_to("pack/Dockerfile")
        (found,) = discover(repo, "Dockerfile").stages
        assert [path for path, _ in context_files(found, repo)] == ["Dockerfile", "pack/Dockerfile"]


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
