"""The pre-push hook in real repositories, at real pushes."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.gitkit import ISOLATED, Repository
from tests.workplace import PROJECT, Done, program
from xbtasks.history.hooks import hook_text

if TYPE_CHECKING:
    from pathlib import Path

DOCKERFILE = "pack/gpustack-operator/Dockerfile"
STAGE = "FROM a AS xbuild-nvidia-cuda-12\nRUN b\n"


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Return a clone of a bare repository, on a branch of its own, with nothing changed."""
    bare = Repository(tmp_path / "bare.git")
    bare.folder.mkdir()
    bare.git("init", "--quiet", "--bare", "--initial-branch=main")
    made = Repository(tmp_path / "an operator's").start()
    made.write(DOCKERFILE, STAGE)
    made.commit()
    made.git("remote", "add", "origin", str(bare.folder))
    made.git("push", "--quiet", "origin", "main")
    made.git("switch", "--quiet", "--create", "branch")
    return made


def inv(repo: Repository, *words: str, folder: Path | None = None, **variables: str) -> Done:
    done = subprocess.run(
        [program("inv"), *words],
        cwd=PROJECT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(repo.folder.parent),
            "XB_REPO": str(folder or repo.folder),
            **ISOLATED,
            **variables,
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def touch(repo: Repository) -> None:
    repo.edit(DOCKERFILE, "RUN b", "RUN c")
    repo.commit()


def push(repo: Repository, *words: str, code: int = 0, **variables: str) -> str:
    return repo.git("push", "--quiet", *(words or ("origin", "HEAD")), code=code, **variables)


def test_a_push_that_touches_a_stage_is_told_and_goes_through(repo: Repository) -> None:
    done = inv(repo, "hooks.install")
    assert done.code == 0, done.err
    assert done.out.startswith(f"{repo.folder}/.git/hooks/pre-push installed\n")
    assert push(repo) == ""  # nothing touched, nothing said
    touch(repo)
    said = push(repo)
    assert said == (
        "xbtasks: this branch touches builder stages; to verify them:\n"
        f"  {PROJECT}/xb verify xbuild-nvidia-cuda-12 --repo={shlex.quote(str(repo.folder))}"
    )
    assert repo.git("rev-parse", "origin/branch") == repo.git("rev-parse", "HEAD")


def test_a_hook_that_blocks_holds_the_push_back(repo: Repository) -> None:
    assert inv(repo, "hooks.install", "--block").code == 0
    push(repo)
    touch(repo)
    said = push(repo, code=1)
    assert re.search(
        r"/xb verify xbuild-nvidia-cuda-12 .*\nxbtasks: the push is refused; git push --no-", said
    )
    assert repo.git("rev-parse", "origin/branch") != repo.git("rev-parse", "HEAD")
    push(repo, "--no-verify", "origin", "HEAD")
    assert repo.git("rev-parse", "origin/branch") == repo.git("rev-parse", "HEAD")


def test_a_tag_and_a_deletion_are_not_asked_about(repo: Repository) -> None:
    inv(repo, "hooks.install", "--block")
    push(repo)
    touch(repo)
    repo.git("tag", "v1")
    assert push(repo, "origin", "v1") == ""
    assert push(repo, "origin", "--delete", "branch") == ""
    assert "touches builder stages" in push(repo, "origin", "v1:refs/heads/from-a-tag", code=1)


def test_it_is_what_is_pushed_that_is_judged_and_not_what_lies_in_the_working_tree(repo: Repository) -> None:
    inv(repo, "hooks.install", "--block")
    repo.edit(DOCKERFILE, "RUN b", "RUN c")  # not committed
    repo.write("pack/gpustack-operator/external/nvidia/new.c", "untracked")
    assert push(repo) == ""
    repo.git("add", DOCKERFILE)
    assert push(repo) == ""
    repo.git("commit", "--quiet", "--message", "x")
    repo.edit(DOCKERFILE, "RUN c", "RUN b")  # as it was, but not in what is pushed
    said = push(repo, code=1)
    assert "this branch touches builder stages" in said
    assert "verify xbuild-nvidia-cuda-12" in said
    assert repo.git("rev-parse", "origin/branch") != repo.git("rev-parse", "HEAD")


def test_every_branch_that_is_pushed_is_looked_at_checked_out_or_not(repo: Repository) -> None:
    inv(repo, "hooks.install")
    for name in ("one", "two"):
        repo.git("switch", "--quiet", "--create", name, "main")
        repo.write(DOCKERFILE, f"{STAGE}FROM a AS xbuild-nvidia-cuda-{name}\nRUN b\n")
        repo.commit(name)
    repo.git("branch", "again", "two")  # the same commit is told of once
    repo.git("switch", "--quiet", "branch")
    said = push(repo, "origin", "--all")
    assert [line for line in said.splitlines() if line.startswith("xbtasks: ")] == [
        "xbtasks: refs/heads/again touches builder stages; to verify them, once it is checked out:",
        "xbtasks: refs/heads/one touches builder stages; to verify them, once it is checked out:",
    ]
    assert said.count("verify xbuild-nvidia-cuda-one") == said.count("verify xbuild-nvidia-cuda-two") == 1
    assert inv(repo, "hooks.install", "--block").code == 0
    repo.git("switch", "--quiet", "one")
    repo.commit("more")
    said = push(repo, "origin", "main:refs/heads/plain", "one", code=1)  # what is asked about last decides
    assert "this branch touches" in said
    repo.git("push", "--quiet", "--no-verify", "origin", "one")


def test_installing_again_changes_nothing_and_another_way_brings_up_to_date(repo: Repository) -> None:
    inv(repo, "hooks.install")
    hook = repo.folder / ".git/hooks/pre-push"
    before = hook.stat().st_ino
    assert " is as it should be\n" in inv(repo, "hooks.install").out
    assert hook.stat().st_ino == before
    assert " brought up to date\n" in inv(repo, "hooks.install", "--block", "--base=main").out
    assert "--base=main" in hook.read_text()
    assert inv(repo, "hooks.uninstall").out == f"removed {hook}\n"
    assert not hook.exists()
    assert inv(repo, "hooks.uninstall").out == f"nothing to remove: no {hook}\n"


@pytest.mark.parametrize("foreign", ["text", "link", "edited"])
def test_a_hook_of_somebody_else_stays(repo: Repository, foreign: str) -> None:
    hook = repo.folder / ".git/hooks/pre-push"
    if foreign == "text":
        repo.write(".git/hooks/pre-push", "#!/bin/sh\nexit 0\n")
    elif foreign == "link":
        hook.symlink_to("/nonexistent")
    else:
        inv(repo, "hooks.install")
        hook.write_text(hook.read_text() + "echo mine\n")
    before = hook.readlink() if hook.is_symlink() else hook.read_text()
    done = inv(repo, "hooks.install")
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(
        rf"error: {re.escape(str(hook))} is somebody's own hook, or was changed\n"
        rf"  to have both, add to the one there: {PROJECT}/xb changed --commands --exit-code"
        r" --commit=HEAD >&2\n",
        done.err,
    )
    assert inv(repo, "hooks.uninstall").code == 2
    assert (hook.readlink() if hook.is_symlink() else hook.read_text()) == before


def test_the_line_for_another_hook_works_in_it(repo: Repository) -> None:
    repo.write(".git/hooks/pre-push", "#!/bin/sh\n")
    line = inv(repo, "hooks.install").err.rpartition("there: ")[2]
    repo.write(".git/hooks/pre-push", f"#!/bin/sh\n{line}")
    (repo.folder / ".git/hooks/pre-push").chmod(0o755)
    touch(repo)
    assert f"{PROJECT}/xb verify xbuild-nvidia-cuda-12" in push(repo, code=1)


def test_a_linked_work_tree_has_the_hooks_of_its_repository(repo: Repository, tmp_path: Path) -> None:
    repo.git("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "tree"))
    tree = Repository(tmp_path / "tree")
    assert inv(repo, "hooks.install", folder=tree.folder).out.startswith(f"{repo.folder}/.git/hooks/pre-push")
    touch(tree)
    assert f"  {PROJECT}/xb verify xbuild-nvidia-cuda-12 --repo={tree.folder}" in push(tree)
    assert push(repo) == ""


def test_a_checkout_below_the_top_is_found_from_the_hook(tmp_path: Path) -> None:
    bare = Repository(tmp_path / "bare.git")
    bare.folder.mkdir()
    bare.git("init", "--quiet", "--bare", "--initial-branch=main")
    outer = Repository(tmp_path / "outer").start()
    outer.write(f"in $(id)/{DOCKERFILE}", STAGE)
    outer.commit()
    outer.git("remote", "add", "origin", str(bare.folder))
    outer.git("push", "--quiet", "origin", "main")
    assert inv(outer, "hooks.install", folder=outer.folder / "in $(id)").code == 0
    outer.edit(f"in $(id)/{DOCKERFILE}", "RUN b", "RUN c")
    outer.commit()
    said = push(outer)
    _, _, line = said.partition("to verify them:\n")
    assert line == f"  {PROJECT}/xb verify xbuild-nvidia-cuda-12 --repo='{outer.folder}/in $(id)'"
    typed = line.replace("verify xbuild-nvidia-cuda-12", "changed")
    done = subprocess.run(["sh", "-c", typed], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class TestHooksPath:
    def test_the_repositorys_own_is_used(self, repo: Repository) -> None:
        repo.git("config", "core.hooksPath", ".hooks")
        assert inv(repo, "hooks.install").out.startswith(f"{repo.folder}/.hooks/pre-push installed")
        touch(repo)
        assert "xb verify" in push(repo)

    def test_one_for_all_repositories_is_refused(self, repo: Repository, tmp_path: Path) -> None:
        (tmp_path / "gitconfig").write_text(f"[core]\n\thooksPath = {tmp_path}/shared\n")
        done = inv(repo, "hooks.install", GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig"))
        assert done.code == 2
        assert f"{tmp_path}/shared holds the hooks of other repositories too" in done.err
        assert not (tmp_path / "shared").exists()

    def test_a_relative_one_is_each_repositorys_own(self, repo: Repository, tmp_path: Path) -> None:
        (tmp_path / "gitconfig").write_text("[core]\n\thooksPath = .hooks\n")
        done = inv(repo, "hooks.install", GIT_CONFIG_GLOBAL=str(tmp_path / "gitconfig"))
        assert done.out.startswith(f"{repo.folder}/.hooks/pre-push installed")

    def test_hooks_that_are_switched_off(self, repo: Repository) -> None:
        repo.git("config", "core.hooksPath", "/dev/null")
        done = inv(repo, "hooks.install")
        assert (done.code, "are switched off" in done.err) == (2, True)


def test_a_hook_whose_program_is_gone_lets_a_push_through_or_not(repo: Repository) -> None:
    for block, code in ((False, 0), (True, 1)):
        repo.write(".git/hooks/pre-push", hook_text(["/nonexistent/xb", "changed"], "", block=block))
        (repo.folder / ".git/hooks/pre-push").chmod(0o755)
        repo.commit(str(block))
        said = push(repo, code=code)
        assert "could not tell which builder stages this push touches: /nonexistent/xb is gone" in said


def test_what_stops_the_look_is_told(repo: Repository) -> None:
    inv(repo, "hooks.install")
    repo.write(DOCKERFILE, "NONSENSE\n")
    repo.commit()
    assert "could not tell which builder stages this push touches: error: " in push(repo)


def test_an_unknown_base_is_found_at_once(repo: Repository) -> None:
    done = inv(repo, "hooks.install", "--base=mian")
    assert (done.code, "did you mean main?" in done.err) == (2, True)
    assert not (repo.folder / ".git/hooks/pre-push").exists()


def test_the_hook_is_sound_shell() -> None:
    text = hook_text(["/it's $(id)/xb", "changed"], "a b\n$(id)/", block=True)
    done = subprocess.run(
        [program("shellcheck"), "--shell=sh", "--exclude=SC2016", "-"],
        input=text,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")
