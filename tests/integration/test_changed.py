"""What a branch touches, told by real git: kinds of change, kinds of repository."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.gitkit import ISOLATED, Repository
from tests.workplace import PROJECT, Done, program
from xbtasks.checkout.stages import discover, input_digest
from xbtasks.checkout.tree import Checkout, Kind
from xbtasks.errors import CannotJudge, UsageError
from xbtasks.history.before import CheckoutBefore
from xbtasks.history.divergence import How, diverge
from xbtasks.history.git import Git, clean_environment
from xbtasks.history.touched import State, Touched, find_touched

if TYPE_CHECKING:
    from collections.abc import Callable

DOCKERFILE = "pack/gpustack-operator/Dockerfile"
EXTERNAL = "pack/gpustack-operator/external"
TEXT = f"""\
ARG CANN="cann:8"
ARG CUDA="cuda:12"
ARG LIB_UBS_VIRT_ENPU_COMMIT="aaaa"
ARG LIB_HAMI_CORE_COMMIT="bbbb"
ARG GO="1.26"

# the tools of all
FROM tools:1 AS tools
RUN make tools

FROM ${{CANN}} AS xbuild-ascend-cann-8-910b
ARG LIB_UBS_VIRT_ENPU_COMMIT
RUN --mount=type=bind,src={EXTERNAL}/ascend/build.sh,target=/b.sh \\
    --mount=type=bind,src={EXTERNAL}/common,target=/common sh /b.sh

FROM other:9 AS xbuild-ascend-cann-9-950
COPY --from=tools /bin /bin
RUN --mount=type=bind,src={EXTERNAL}/ascend/build.sh,target=/b.sh sh /b.sh 9

FROM ${{CUDA}} AS xbuild-nvidia-cuda-12
ARG LIB_HAMI_CORE_COMMIT
COPY {EXTERNAL}/nvidia/patches/*.patch /patches/
RUN --mount=type=bind,src={EXTERNAL}/common,target=/common sh /common/run.sh

FROM vendor:1 AS xbuild-thead-ppu
RUN --mount=type=bind,src={EXTERNAL}/thead/build.sh,target=/b.sh sh /b.sh

FROM golang:${{GO}} AS final
COPY --from=xbuild-nvidia-cuda-12 /out /nvidia
RUN go build
"""
A8, A9, NV = "xbuild-ascend-cann-8-910b", "xbuild-ascend-cann-9-950", "xbuild-nvidia-cuda-12"
ALL = {A8, A9, NV}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in ISOLATED.items():
        monkeypatch.setenv(name, value)


def plant(folder: Path) -> Repository:
    """Make an operator's repository with one commit on main, and stand on a branch."""
    made = Repository(folder).start()
    made.write(DOCKERFILE, TEXT)
    for name in ("ascend/build.sh", "common/run.sh", "common/deep/a.c", "nvidia/patches/1.patch"):
        made.write(f"{EXTERNAL}/{name}", f"{name}\n" * 20)
    made.write(f"{EXTERNAL}/nvidia/README.md", "about\n")
    made.write(f"{EXTERNAL}/thead/build.sh", "x\n")
    made.write("pkg/main.go", "package main\n")
    made.write(".gitignore", "*.o\n")
    (made.folder / EXTERNAL / "common/link").symlink_to("run.sh")
    made.commit()
    made.git("switch", "--quiet", "--create", "branch")
    return made


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    return plant(tmp_path / "operator")


def look(repo: Repository, base: str = "") -> Touched:
    return find_touched(repo.folder, DOCKERFILE, base)


def states(found: Touched) -> tuple[set[str], set[str]]:
    return set(found.named(State.TOUCHED)), set(found.named(State.OFFERED))


def said(found: Touched) -> str:
    """Return all that is said of the stages and beside them."""
    return "\n".join([*(each.text for stage in found.stages for each in stage.reasons), *found.notes])


def docker(old: str, new: str) -> Callable[[Repository], object]:
    return lambda repo: repo.edit(DOCKERFILE, old, new)


def relink(repo: Repository) -> None:
    (repo.folder / EXTERNAL / "common/link").unlink()
    (repo.folder / EXTERNAL / "common/link").symlink_to("deep")


def file_to_directory(repo: Repository) -> None:
    (repo.folder / EXTERNAL / "common/deep/a.c").unlink()
    repo.write(f"{EXTERNAL}/common/deep/a.c/b", "x")


def directory_to_link(repo: Repository) -> None:
    shutil.rmtree(repo.folder / EXTERNAL / "common/deep")
    (repo.folder / EXTERNAL / "common/deep").symlink_to(".")


def submodule(repo: Repository) -> None:
    other = Repository(repo.folder / EXTERNAL / "common/sub").start()
    other.write("a")
    other.commit()


CHANGES: dict[str, tuple[Callable[[Repository], object], set[str], set[str], str]] = {
    "nothing": (lambda repo: None, set(), set(), ""),
    "a file that no stage reads": (
        lambda repo: repo.write("pkg/main.go", "x"),
        set(),
        set(),
        "no stage reads pkg/main.go",
    ),
    "a stage's text": (docker("sh /b.sh 9", "sh /b.sh 10"), {A9}, set(), "instructions changed: RUN "),
    "an instruction less": (docker("ARG LIB_HAMI_CORE_COMMIT\n", ""), {NV}, set(), "instructions removed"),
    "a stage that another one copies from": (
        docker("make tools", "make all"),
        {A9},
        set(),
        "changed: RUN make all",
    ),
    "a pin": (
        docker('="bbbb"', '="cccc"'),
        {NV},
        set(),
        "LIB_HAMI_CORE_COMMIT bbbb became cccc",
    ),
    "the ARG of a base image": (
        docker("cann:8", "cann:9"),
        {A8},
        set(),
        "base image cann:8 became cann:9",
    ),
    "a base image": (docker("other:9", "other:10"), {A9}, set(), "base image other:9 became other:10"),
    "a comment": (docker("# the tools", "# The tools"), set(), set(), "what no build reads: comments"),
    "a blank line": (docker("FROM tools", "\n\nFROM tools"), set(), set(), "what no build reads"),
    "an ARG that no stage uses": (docker("1.26", "1.27"), set(), ALL, "builder stages: line 5"),
    "an ARG from outside that a stage uses now": (
        docker("COMMIT\nCOPY", "COMMIT\nARG GO\nCOPY"),
        {NV},
        set(),
        "ARG GO is 1.26",
    ),
    "an instruction outside": (docker("go build", "go test"), set(), ALL, "builder stages: line 30"),
    "one outside that is gone": (docker("RUN go build\n", ""), set(), ALL, "line 30 of old"),
    "one outside that copies from a stage": (docker("/out /nvidia", "/out /n"), set(), {NV}, "line 29"),
    "a stage that no backend knows": (
        docker("vendor:1", "vendor:2"),
        set(),
        set(),
        "xbuild-thead-ppu changed: no backend here knows it",
    ),
    "a mounted file": (
        lambda repo: repo.edit(f"{EXTERNAL}/ascend/build.sh", "ascend", "x"),
        {A8, A9},
        set(),
        f"{EXTERNAL}/ascend/build.sh modified (mount)",
    ),
    "a file deep in a mounted folder": (
        lambda repo: repo.edit(f"{EXTERNAL}/common/deep/a.c", "common", "x"),
        {A8, NV},
        set(),
        "deep/a.c modified (mount)",
    ),
    "a new file in a mounted folder": (
        lambda repo: repo.write(f"{EXTERNAL}/common/new.c"),
        {A8, NV},
        set(),
        "common/new.c new, untracked",
    ),
    "a new file in a new folder": (
        lambda repo: repo.write(f"{EXTERNAL}/common/n/e/w.c"),
        {A8, NV},
        set(),
        "n/e/w.c new, untracked",
    ),
    "a new match of a COPY": (
        lambda repo: repo.write(f"{EXTERNAL}/nvidia/patches/2.patch"),
        {NV},
        set(),
        "2.patch new, untracked (copy)",
    ),
    "a copied file renamed": (
        lambda repo: repo.git(
            "mv", f"{EXTERNAL}/nvidia/patches/1.patch", f"{EXTERNAL}/nvidia/patches/3.patch"
        ),
        {NV},
        set(),
        f"3.patch renamed from {EXTERNAL}/nvidia/patches/1.patch",
    ),
    "an input renamed away": (
        lambda repo: repo.git("mv", f"{EXTERNAL}/common/run.sh", "pkg/run.sh"),
        {A8, NV},
        set(),
        "common/run.sh renamed to pkg/run.sh",
    ),
    "an input deleted": (
        lambda repo: (repo.folder / EXTERNAL / "ascend/build.sh").unlink(),
        {A8, A9},
        set(),
        "ascend/build.sh deleted",
    ),
    "a folder of inputs deleted": (
        lambda repo: shutil.rmtree(repo.folder / EXTERNAL / "common"),
        {A8, NV},
        set(),
        "common/deep/a.c deleted",
    ),
    "an exec bit": (
        lambda repo: (repo.folder / EXTERNAL / "common/run.sh").chmod(0o755),
        {A8, NV},
        set(),
        "run.sh made executable (mount)",
    ),
    "another link": (relink, {A8, NV}, set(), "common/link leads elsewhere"),
    "a file made a folder": (file_to_directory, {A8, NV}, set(), "a.c deleted"),
    "a folder made a link": (directory_to_link, {A8, NV}, set(), "deep/a.c deleted"),
    "a repository in a mounted folder": (submodule, {A8, NV}, set(), "common/sub"),
    "a file under external that no stage reads": (
        lambda repo: repo.write(f"{EXTERNAL}/nvidia/README.md", "x"),
        set(),
        {NV},
        "README.md modified: no stage reads it",
    ),
    "a file of the other backend that no stage reads": (
        lambda repo: repo.write(f"{EXTERNAL}/ascend/notes"),
        set(),
        {A8, A9},
        "notes new, untracked: no stage reads it",
    ),
    "external at the top": (lambda repo: repo.write("external/nvidia/x"), set(), {NV}, "no stage reads it"),
    "external of no backend": (
        lambda repo: repo.write(f"{EXTERNAL}/thead/build.sh", "y"),
        set(),
        set(),
        "no backend here knows",
    ),
    "a file beside the backends' folders": (
        lambda repo: repo.write(f"{EXTERNAL}/toolchain.sh"),
        set(),
        ALL,
        "toolchain.sh new, untracked: no stage reads it",
    ),
    "an ignore file": (
        lambda repo: repo.write(".dockerignore", "pkg\n"),
        ALL,
        set(),
        ".dockerignore changed",
    ),
    "a file that git ignores": (lambda repo: repo.write(f"{EXTERNAL}/common/a.o", "x"), set(), set(), ""),
    "a new stage": (
        lambda repo: repo.write(DOCKERFILE, f"{TEXT}FROM a AS xbuild-nvidia-cuda-13\n"),
        {"xbuild-nvidia-cuda-13"},
        set(),
        "the merge base has no such stage",
    ),
    "a stage less": (
        docker(f"FROM other:9 AS {A9}\nCOPY --from=tools /bin /bin\n", f"FROM other:9 AS {A9}0\n"),
        {f"{A9}0"},
        set(),
        "",
    ),
    "a time stamp": (lambda repo: os.utime(repo.folder / DOCKERFILE, (1, 1)), set(), set(), ""),
}


class TestKinds:
    @pytest.mark.parametrize("how", ["unstaged", "staged", "committed"])
    @pytest.mark.parametrize("kind", CHANGES)
    def test_touches_exactly(self, repo: Repository, kind: str, how: str) -> None:
        change, touched, offered, words = CHANGES[kind]
        change(repo)
        if how != "unstaged":
            repo.git("add", "--all")
        elif kind in ("nothing", "a time stamp"):
            assert look(repo).files == ()
        if how == "committed":
            repo.commit()
        found = look(repo)
        assert states(found) == (touched, offered)
        assert words.replace("new, untracked", "new, untracked" if how == "unstaged" else "added") in said(
            found
        )
        assert found.to_verify == tuple(
            stage.name for state in State for stage in found.stages if stage.state is state
        )

    def test_a_change_taken_back_in_the_working_tree_is_none(self, repo: Repository) -> None:
        repo.edit(f"{EXTERNAL}/common/run.sh", "common", "x")
        repo.commit()
        repo.edit(f"{EXTERNAL}/common/run.sh", "x", "common")
        assert states(look(repo)) == (set(), set())

    def test_what_main_did_since_is_not_the_branchs(self, repo: Repository) -> None:
        repo.git("switch", "--quiet", "main")
        repo.edit(DOCKERFILE, "bbbb", "dddd")
        repo.commit()
        repo.git("switch", "--quiet", "branch")
        repo.edit(f"{EXTERNAL}/ascend/build.sh", "ascend", "x")
        assert states(look(repo)) == ({A8, A9}, set())

    def test_a_leg_touches_its_platform_alone(self, repo: Repository) -> None:
        legs = (
            "FROM a AS x-amd64\nRUN b\nFROM a AS x-arm64\nRUN c\n"
            "FROM x-${TARGETARCH} AS xbuild-nvidia-cuda-13\n"
        )
        repo.write(DOCKERFILE, legs)
        repo.commit()
        base = repo.git("rev-parse", "HEAD")
        repo.edit(DOCKERFILE, "RUN c", "RUN d")
        (stage,) = look(repo, base).stages
        assert [str(platform) for platform in stage.platforms] == ["linux/arm64"]
        assert [each.text for each in stage.reasons] == ["instructions changed: RUN d, on linux/arm64 alone"]

    def test_a_missing_input_is_named(self, repo: Repository) -> None:
        (repo.folder / EXTERNAL / "ascend/build.sh").unlink()
        assert look(repo).stages[0].missing == (f"{EXTERNAL}/ascend/build.sh",)

    def test_digests_are_those_of_the_stage_then_and_now(self, repo: Repository) -> None:
        before = {stage.name: stage for stage in discover(repo.folder, DOCKERFILE).stages}
        was = {name: input_digest(stage, stage.platforms[0], repo.folder) for name, stage in before.items()}
        repo.edit(DOCKERFILE, "bbbb", "cccc")
        (stage,) = look(repo).stages
        (now,) = [each for each in discover(repo.folder, DOCKERFILE).stages if each.name == NV]
        assert stage.digests[0] == (
            now.platforms[0],
            was[NV],
            input_digest(now, now.platforms[0], repo.folder),
        )

    def test_a_removed_stage_is_named(self, repo: Repository) -> None:
        repo.edit(DOCKERFILE, f"AS {A9}", "AS gone")
        found = look(repo)
        assert found.removed == (A9,)

    def test_a_rewritten_dockerfile_without_stages_has_nothing_to_run(self, repo: Repository) -> None:
        repo.write(DOCKERFILE, "FROM scratch AS none\n")
        found = look(repo)
        assert (found.stages, set(found.removed)) == ((), ALL)


class TestFiles:
    @pytest.mark.parametrize(
        "name", [b"a b", b"new\nline", b"\xff\xfe", b"'\"$(id)", b"-x", "\u00e9".encode()]
    )
    def test_any_name(self, repo: Repository, name: bytes) -> None:
        folder = os.fsencode(repo.folder / EXTERNAL / "common")
        for at, step in enumerate((b"1", b"2")):
            with open(os.path.join(folder, name), "wb") as file:  # noqa: PTH123, PTH118 - bytes
                file.write(step)
            found = look(repo)
            assert states(found) == ({A8, NV}, set())
            assert os.fsencode(found.files[0].path).endswith(b"/" + name)
            if not at:
                repo.commit()
                repo.git("branch", "--force", "main")
                assert states(look(repo)) == (set(), set())

    def test_line_endings_that_git_converts_are_no_change(self, repo: Repository) -> None:
        repo.write(".gitattributes", "*.sh text eol=crlf\n")
        repo.commit()
        repo.git("branch", "--force", "main")
        (repo.folder / EXTERNAL / "common/run.sh").unlink()
        repo.git("checkout", "--", EXTERNAL)
        assert b"\r\n" in (repo.folder / EXTERNAL / "common/run.sh").read_bytes()
        assert states(look(repo)) == (set(), set())
        with (repo.folder / EXTERNAL / "common/run.sh").open("ab") as file:
            file.write(b"more\r\n")
        found = look(repo)
        assert states(found) == ({A8, NV}, set())
        # the old content is what a checkout would have written, so that taking it back is no change
        before = found.stages[0].digests[0][1]
        repo.git("checkout", "--", EXTERNAL)
        stage = discover(repo.folder, DOCKERFILE).stages[0]
        assert input_digest(stage, stage.platforms[0], repo.folder) == before

    def test_modes_that_git_does_not_look_at_are_no_change(self, repo: Repository) -> None:
        repo.git("config", "core.fileMode", "false")
        (repo.folder / EXTERNAL / "common/run.sh").chmod(0o755)
        assert states(look(repo)) == (set(), set())

    def test_a_submodule_at_another_commit_touches(self, repo: Repository, tmp_path: Path) -> None:
        library = Repository(tmp_path / "library").start()
        library.write("a", "1")
        library.commit()
        where = f"{EXTERNAL}/common/sub"
        repo.git(
            "-c", "protocol.file.allow=always", "submodule", "add", "--quiet", str(library.folder), where
        )
        repo.commit()
        repo.git("branch", "--force", "main")
        assert states(look(repo)) == (set(), set())
        inside = Repository(repo.folder / where)
        inside.write("a", "2")
        assert states(look(repo)) == ({A8, NV}, set())  # not committed
        inside.commit()
        assert states(look(repo)) == ({A8, NV}, set())

    def test_a_conflict_touches(self, repo: Repository) -> None:
        for branch, text in (("branch", "mine\n"), ("main", "theirs\n")):
            repo.git("switch", "--quiet", branch)
            repo.write(f"{EXTERNAL}/common/run.sh", text)
            repo.commit()
        repo.git("switch", "--quiet", "branch")
        repo.git("merge", "main", code=1)
        assert states(look(repo)) == ({A8, NV}, set())

    def test_files_with_hidden_changes_are_named(self, repo: Repository) -> None:
        repo.git("update-index", "--assume-unchanged", f"{EXTERNAL}/common/run.sh", "pkg/main.go")
        assert f"git was told to see no change in {EXTERNAL}/common/run.sh (" in said(look(repo))

    def test_what_lies_behind_a_new_link_was_not_there(self, repo: Repository) -> None:
        directory_to_link(repo)
        git = Git(repo.folder)
        before = CheckoutBefore(repo.folder, DOCKERFILE, git, diverge(git, ""))
        assert (repo.folder / EXTERNAL / "common/deep/run.sh").is_file()
        assert before.kind(f"{EXTERNAL}/common/deep/run.sh") is None
        assert before.names(f"{EXTERNAL}/common/deep") == ["a.c"]

    def test_a_new_folder_counts_where_its_files_are_left_out(self, repo: Repository) -> None:
        repo.write(".dockerignore", "**/*.tmp\n")
        repo.commit()
        repo.git("branch", "--force", "main")
        repo.write(f"{EXTERNAL}/common/new/x.tmp")
        assert states(look(repo)) == ({A8, NV}, set())  # as BuildKit has it: an empty folder
        repo.write(f"{EXTERNAL}/common/deep/x.tmp")
        (repo.folder / EXTERNAL / "common/new/x.tmp").unlink()
        (repo.folder / EXTERNAL / "common/new").rmdir()
        assert states(look(repo)) == (set(), set())

    def test_a_link_as_dockerfile(self, repo: Repository) -> None:
        (repo.folder / "real").write_text(TEXT)
        (repo.folder / DOCKERFILE).unlink()
        (repo.folder / DOCKERFILE).symlink_to("../../real")
        repo.commit()
        repo.git("branch", "--force", "main")
        repo.edit("real", "bbbb", "cccc")
        assert states(look(repo)) == ({NV}, set())


class TestRepositories:
    def test_the_default_is_origins_main_then_its_head(self, repo: Repository, tmp_path: Path) -> None:
        clone = Repository(tmp_path / "clone")
        repo.git("clone", "--quiet", "--branch", "branch", str(repo.folder), str(clone.folder))
        base = look(clone).divergence.base
        assert (base.ref, base.default) == ("origin/main", True)
        clone.git("update-ref", "-d", "refs/remotes/origin/main")
        clone.git("remote", "set-head", "origin", "branch")
        assert look(clone).divergence.base.ref == "origin/branch"

    def test_another_remotes_head_and_master_are_defaults_too(self, repo: Repository, tmp_path: Path) -> None:
        repo.git("branch", "--move", "main", "trunk")
        repo.git("switch", "--quiet", "trunk")
        clone = Repository(tmp_path / "clone")
        repo.git(
            "clone", "--quiet", "--origin", "up", "--branch", "trunk", str(repo.folder), str(clone.folder)
        )
        assert look(clone).divergence.base.ref == "up/trunk"
        repo.git("branch", "master", "trunk")
        assert look(repo).divergence.base.ref == "master"

    def test_a_tag_called_like_the_default_is_not_taken(self, repo: Repository, tmp_path: Path) -> None:
        clone = Repository(tmp_path / "clone")
        repo.git("clone", "--quiet", "--branch", "branch", str(repo.folder), str(clone.folder))
        clone.edit(DOCKERFILE, "bbbb", "cccc")
        clone.commit()
        clone.git("tag", "origin/main")
        assert states(look(clone)) == ({NV}, set())

    def test_a_detached_head_and_a_worktree(self, repo: Repository, tmp_path: Path) -> None:
        repo.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"))
        tree = Repository(tmp_path / "tree")
        tree.edit(DOCKERFILE, "bbbb", "cccc")
        assert states(look(tree)) == ({NV}, set())
        assert states(look(repo)) == (set(), set())

    def test_a_checkout_below_the_top_of_its_repository(self, repo: Repository, tmp_path: Path) -> None:
        outer = Repository(tmp_path / "outer").start()
        shutil.copytree(
            repo.folder, outer.folder / "in/ner", symlinks=True, ignore=shutil.ignore_patterns(".git")
        )
        outer.write(f"{EXTERNAL}/nvidia/x")
        outer.commit()
        inner = Repository(outer.folder / "in/ner")
        outer.write(f"{EXTERNAL}/nvidia/x", "not this checkout's")
        assert states(look(inner)) == (set(), set())
        inner.edit(f"{EXTERNAL}/common/run.sh", "common", "x")
        inner.write(f"{EXTERNAL}/common/n/ew")
        assert [each.path for each in look(inner).files] == [
            f"{EXTERNAL}/common/n/ew",
            f"{EXTERNAL}/common/run.sh",
        ]
        assert states(look(inner)) == ({A8, NV}, set())

    def test_variables_of_a_hook_and_tools_of_the_user_change_nothing(
        self, repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        repo.edit(DOCKERFILE, "bbbb", "cccc")
        Repository(tmp_path / "elsewhere").start()
        trap = tmp_path / "trap"
        trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\nexit 1\n")
        trap.chmod(0o755)
        for name, value in {
            "GIT_DIR": str(tmp_path / "elsewhere/.git"),
            "GIT_WORK_TREE": "/",
            "GIT_INDEX_FILE": "/nonexistent",
            "GIT_EXTERNAL_DIFF": str(trap),
            "GIT_PAGER": str(trap),
            "GIT_TRACE": "1",
            "GIT_LITERAL_PATHSPECS": "1",
        }.items():
            monkeypatch.setenv(name, value)
        config = repo.folder / ".git/config"
        config.write_text(
            config.read_text() + f"[core]\n\tpager={trap}\n\tfsmonitor={trap}\n\thooksPath={tmp_path}\n"
            f"[diff]\n\texternal={trap}\n\trenames=copies\n\tnoprefix=true\n\trelative=false\n\torderFile=/dev/null\n"
            f"[color]\n\tui=always\n[status]\n\tshowUntrackedFiles=no\n"
        )
        assert states(look(repo)) == ({NV}, set())
        assert not (tmp_path / "sprung").exists()

    def test_nothing_in_the_repository_is_written(self, repo: Repository) -> None:
        repo.edit(DOCKERFILE, "bbbb", "cccc")
        os.utime(repo.folder / "pkg/main.go", (1, 1))
        before = {path: path.lstat().st_mtime_ns for path in (repo.folder / ".git").rglob("*")}
        look(repo)
        assert before == {path: path.lstat().st_mtime_ns for path in (repo.folder / ".git").rglob("*")}

    def test_a_dockerfile_that_came_with_the_branch_makes_every_stage_new(self, repo: Repository) -> None:
        base = repo.git("commit-tree", "-m", "empty", repo.git("hash-object", "-t", "tree", "/dev/null"))
        repo.git("reset", "--quiet", "--soft", base)
        repo.commit()
        found = look(repo, base)
        assert states(found) == (ALL, set())
        assert "is missing; so every stage counts as new" in said(found)

    def test_a_broken_dockerfile_at_the_merge_base(self, repo: Repository) -> None:
        repo.write(DOCKERFILE, "NONSENSE\n")
        base = repo.commit()
        repo.write(DOCKERFILE, TEXT)
        found = look(repo, base)
        assert states(found) == (ALL, set())
        assert "unknown instruction 'NONSENSE'" in said(found)


class TestRefusals:
    def test_an_unknown_base_names_the_nearest(self, repo: Repository) -> None:
        with pytest.raises(UsageError, match=r"no commit, branch or tag 'mian' here.*did you mean main\?"):
            look(repo, "mian")
        with pytest.raises(UsageError, match=r"did you mean main\?"):
            look(repo, "upstream/main")

    @pytest.mark.parametrize("base", ["--help", "-x", "a b", "\n", "HEAD:pkg", "main..branch"])
    def test_what_is_no_commit_is_refused(self, repo: Repository, base: str) -> None:
        with pytest.raises(UsageError, match="no commit, branch or tag"):
            look(repo, base)

    def test_a_branch_that_was_not_fetched(self, repo: Repository) -> None:
        repo.git("remote", "add", "origin", "/nonexistent")
        with pytest.raises(UsageError, match="git fetch origin feature-9"):
            look(repo, "origin/feature-9")

    def test_no_branch_to_compare_with(self, repo: Repository) -> None:
        repo.git("branch", "--delete", "main")
        with pytest.raises(UsageError, match="name one with --base"):
            look(repo)

    def test_a_shallow_clone_without_the_merge_base(self, repo: Repository, tmp_path: Path) -> None:
        repo.write("pkg/x")
        repo.commit()
        clone = Repository(tmp_path / "clone")
        address = f"file://{repo.folder}"
        repo.git(
            "clone", "--quiet", "--depth=1", "--no-single-branch", "-b", "branch", address, str(clone.folder)
        )
        with pytest.raises(CannotJudge, match=r"shallow clone doesn't reach back.*--unshallow"):
            look(clone)
        clone.git("fetch", "--quiet", "--unshallow")
        assert states(look(clone)) == (set(), set())

    def test_histories_without_a_common_commit(self, repo: Repository) -> None:
        repo.git("switch", "--quiet", "--orphan", "alone")
        repo.write(DOCKERFILE, TEXT)
        repo.commit()
        with pytest.raises(CannotJudge, match="this branch and main have no commit in common"):
            look(repo)

    def test_a_branch_without_a_commit(self, repo: Repository) -> None:
        repo.git("symbolic-ref", "HEAD", "refs/heads/new")
        with pytest.raises(UsageError, match="no commit yet"):
            look(repo)

    def test_no_repository(self, tmp_path: Path) -> None:
        bare = Repository(tmp_path)
        bare.write(DOCKERFILE, TEXT)
        with pytest.raises(UsageError, match="is not the work tree of a git repository"):
            look(bare)

    def test_no_git(self, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", "/nonexistent")
        with pytest.raises(CannotJudge, match="git is not installed"):
            look(repo)

    @pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give the checkout to somebody else")
    def test_somebody_elses_checkout(self, repo: Repository) -> None:
        os.chown(repo.folder, 12345, 12345)
        os.chown(repo.folder / ".git", 12345, 12345)
        with pytest.raises(UsageError, match=r"belongs to another user.*safe\.directory"):
            look(repo)

    def test_a_lost_object(self, repo: Repository) -> None:
        repo.edit(f"{EXTERNAL}/common/run.sh", "common", "x")
        blob = repo.git("rev-parse", f"HEAD:{EXTERNAL}/common/run.sh")
        (repo.folder / ".git/objects" / blob[:2] / blob[2:]).unlink()
        with pytest.raises(CannotJudge, match="git"):
            look(repo)


def test_only_configuration_is_kept_of_gits_variables() -> None:
    kept = clean_environment({"GIT_DIR": "x", "GIT_CONFIG_GLOBAL": "y", "HOME": "z", "GIT_TRACE": "1"})
    assert {name for name in kept if name not in ("LC_ALL", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT")} == {
        "GIT_CONFIG_GLOBAL",
        "HOME",
    }


NAMES = (
    *(f"{EXTERNAL}/common/{name}" for name in ("run.sh", "deep", "deep/a.c", "deep/b/c", "link", "new")),
    *(f"{EXTERNAL}/nvidia/patches/{name}" for name in ("1.patch", "2.patch", "x")),
    *(f"{EXTERNAL}/ascend/build.sh", ".dockerignore", "pkg/main.go"),
)
PATHS = st.sampled_from(NAMES)
EDITS = st.lists(
    st.tuples(PATHS, st.sampled_from(["write", "delete", "link", "exec", "commit", "stage", "ignore"])),
    max_size=8,
)


def apply(repo: Repository, path: str, edit: str) -> None:
    """Change the working tree in one way, whatever is there; what can't be done is not."""
    place = repo.folder / path
    if edit == "commit":
        repo.commit()
    elif edit == "stage":
        repo.git("add", "--all")
    elif edit == "ignore":
        repo.write(".dockerignore", f"{path}\n")
    elif edit == "exec" and place.is_file() and not place.is_symlink():
        place.chmod(0o755)
    elif edit in ("delete", "write", "link"):
        for each in (place, *place.parents):
            if each.is_symlink() or (each.is_file() and each != place):
                each.unlink()
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        if edit == "write":
            place.write_text(f"{edit} {path}")
        elif edit == "link":
            place.symlink_to("run.sh")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_the_same_stages_as_two_real_checkouts_tell(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[str, str]]
) -> None:
    repo = plant(tmp_path_factory.mktemp("operator"))
    repo.git("worktree", "add", "--quiet", str(old := tmp_path_factory.mktemp("old")), "main")
    for path, edit in edits:
        apply(repo, path, edit)
    found = look(repo)

    def digests(folder: Path) -> dict[str, str]:
        return {
            stage.name: "".join(input_digest(stage, platform, folder) for platform in stage.platforms)
            for stage in discover(folder, DOCKERFILE).stages
        }

    _require_same(CheckoutBefore(repo.folder, DOCKERFILE, Git(repo.folder), found.divergence), old)
    before, now = digests(old), digests(_clean_copy(repo, tmp_path_factory.mktemp("now")))
    assert set(found.named(State.TOUCHED)) == {name for name in now if now[name] != before[name]}
    changed = {change.path for change in diverge(Git(repo.folder), "").changes if change.how is not How.MODE}
    assert all(path in changed or any(path == each.path for each in found.files) for path in changed)


@example([], [(f"{EXTERNAL}/common/run.sh", "write")], "--assume-unchanged")
@example([], [(f"{EXTERNAL}/common/run.sh", "delete")], "--skip-worktree")
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(committed=EDITS, later=EDITS, hides=st.sampled_from(["", "--assume-unchanged", "--skip-worktree"]))
def test_a_commit_tells_what_a_checkout_of_it_tells_whatever_the_working_tree_holds(
    tmp_path_factory: pytest.TempPathFactory,
    committed: list[tuple[str, str]],
    later: list[tuple[str, str]],
    hides: str,
) -> None:
    repo = plant(tmp_path_factory.mktemp("operator"))
    for path, edit in committed:
        apply(repo, path, edit)
    commit = repo.commit()
    there = Repository(tmp_path_factory.mktemp("then"))
    repo.git("worktree", "add", "--quiet", "--detach", str(there.folder), commit)
    if hides:
        repo.git("update-index", hides, f"{EXTERNAL}/common/run.sh" if _tracked(repo) else DOCKERFILE)
    for path, edit in later:
        if (path, edit) != (DOCKERFILE, "delete") and edit not in ("commit", "stage"):
            apply(repo, path, edit)
    _without_empty_directories(repo.folder)
    told, found = look(there), find_touched(repo.folder, DOCKERFILE, "", commit)
    assert (found.stages, found.untouched, found.removed) == (told.stages, told.untouched, told.removed)
    assert (found.files, found.notes) == (told.files, told.notes)
    assert found.divergence.tip == commit


def _tracked(repo: Repository) -> bool:
    return bool(repo.git("ls-files", f"{EXTERNAL}/common/run.sh"))


def _require_same(before: CheckoutBefore, old: Path) -> None:
    """Compare the checkout as it was with one that is, path by path; nobody asks for one behind a link."""
    real = Checkout(old, DOCKERFILE)
    for path in (*NAMES, *(f"{name}/{leaf}" for name in NAMES for leaf in ("a.c", "run.sh", "deep"))):
        parts = path.split("/")
        if any(real.kind("/".join(parts[:at])) is Kind.LINK for at in range(1, len(parts))):
            continue
        kind = before.kind(path)
        if kind is Kind.DIRECTORY and real.kind(path) is None:  # an empty one, of which git knows nothing
            assert not any(each.is_symlink() or each.is_file() for each in before.path(path).rglob("*"))
            continue
        assert kind == real.kind(path), path
        if kind in (Kind.FILE, Kind.EXECUTABLE):
            assert (before.read(path), before.sha256(path)) == (real.read(path), real.sha256(path))
        elif kind is Kind.LINK:
            assert before.target(path) == real.target(path)
        elif kind is Kind.DIRECTORY:
            assert _files(before, path) == _files(real, path)


def _files(checkout: Checkout, folder: str) -> list[str]:
    names = checkout.names(folder)
    return [name for name in names if checkout.kind(f"{folder}/{name}") is not Kind.DIRECTORY]


def _clean_copy(repo: Repository, folder: Path) -> Path:
    """Return a copy of the working tree without the empty directories that git knows nothing of."""
    shutil.copytree(
        repo.folder, folder, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git")
    )
    _without_empty_directories(folder)
    return folder


def _without_empty_directories(folder: Path) -> None:
    for place, folders, files in os.walk(folder, topdown=False):
        inside = not files and not any(os.path.lexists(Path(place) / name) for name in folders)
        if inside and ".git" not in Path(place).parts:
            os.rmdir(place)  # noqa: PTH106 - os.walk gives texts


class TestCommand:
    """What a user types."""

    @staticmethod
    def inv(repo: Repository, *words: str) -> Done:
        done = subprocess.run(
            [program("inv"), "changed", *words],
            cwd=PROJECT,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "XB_REPO": str(repo.folder), **ISOLATED},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def test_nothing_to_do(self, repo: Repository) -> None:
        done = self.inv(repo, "--exit-code")
        assert (done.code, done.err) == (0, "")
        assert done.out.endswith("\nnothing to do: no stage is touched\n")

    def test_says_why_and_what_to_run(self, repo: Repository) -> None:
        repo.edit(DOCKERFILE, "bbbb", "b" * 40)
        repo.write(f"{EXTERNAL}/ascend/notes")
        done = self.inv(repo)
        merge_base = repo.git("rev-parse", "main")[:12]
        assert done.out == (
            f"the working tree against main (the default), from the merge base {merge_base}\n\n"
            "touched, their build reads something else now:\n"
            f"  {NV}\n"
            "      LIB_HAMI_CORE_COMMIT bbbb became bbbbbbbbbbbb\n\n"
            "offered, their build reads nothing that changed, but a change is close by:\n"
            f"  {A8}\n"
            f"  {A9}\n"
            f"      {EXTERNAL}/ascend/notes new, untracked: no stage reads it\n\n"
            "to run:\n" + "".join(f"  {program('inv')} verify {stage}\n" for stage in (NV, A8, A9))
        )
        assert done.code == 0
        assert self.inv(repo, "--exit-code").code == 1

    def test_many_reasons_are_cut_for_people_and_whole_in_json(self, repo: Repository) -> None:
        for number in range(9):
            repo.write(f"{EXTERNAL}/common/{number}")
        done = self.inv(repo, "--json", "--base=main")
        assert "and 3 more, which --json lists" in done.err
        document = done.document
        assert (document["schema"], document["base"]["ref"], document["base"]["default"]) == (
            1,
            "main",
            False,
        )
        assert document["base"]["merge_base"] == document["head"] == repo.git("rev-parse", "HEAD")
        stage = document["stages"][0]
        assert (stage["name"], stage["state"], len(stage["reasons"])) == (A8, "touched", 9)
        assert {each["because"] for each in stage["reasons"]} == {"input"}
        assert all(len(each["before"]) == len(each["now"]) == 64 for each in stage["digests"].values())
        assert document["untouched"] == [A9]
        assert document["files"][0] == {
            "path": f"{EXTERNAL}/common/0",
            "how": "new, untracked",
            "stages": [A8, NV],
        }
        assert document["commands"] == [f"{program('inv')} verify {stage}" for stage in (A8, NV)]

    def test_an_error_is_a_line_and_what_to_do(self, repo: Repository) -> None:
        done = self.inv(repo, "--base", "mian")
        assert (done.code, done.out) == (2, "")
        assert done.err == (
            "error: no commit, branch or tag 'mian' here to compare with\n  did you mean main?\n"
        )

    def test_hostile_names_stay_text(self, repo: Repository) -> None:
        repo.write(f"{EXTERNAL}/common/\x1b[31mred\n")
        done = self.inv(repo)
        assert "\x1b" not in done.out
        assert f"{EXTERNAL}/common/ [31mred  new, untracked" in done.out
