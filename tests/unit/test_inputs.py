"""What a stage's build reads: inputs and minimal context."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from stage_samples import NAME, plant, stage

from xbtasks.backends.base import Platform
from xbtasks.checkout.stages import context_files, discover, input_digest
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return plant(tmp_path)


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
        assert input_digest(found, Platform.AMD64, repo)

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
