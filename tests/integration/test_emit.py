"""`inv matrix --emit` and `--changed`, and the examples' own scripts run as a CI engine runs them."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.gitkit import ISOLATED, Repository
from tests.workplace import PROJECT, Done, program

if TYPE_CHECKING:
    from pathlib import Path

DOCKERFILE = "pack/gpustack-operator/Dockerfile"
TEXT = "".join(f"FROM a AS xbuild-{name}\nRUN b {name}\n" for name in ("nvidia-cuda-12", "ascend-cann-9-950"))


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Return a clone on a branch that touches the NVIDIA stage."""
    origin = Repository(tmp_path / "origin").start()
    origin.write(DOCKERFILE, TEXT)
    origin.commit()
    clone = Repository(tmp_path / "operator")
    origin.git("clone", "--quiet", str(origin.folder), str(clone.folder))
    clone.git("switch", "--quiet", "--create", "branch")
    clone.edit(DOCKERFILE, "RUN b nvidia", "RUN c nvidia")
    clone.commit()
    return clone


def variables(repo: Repository, **more: str) -> dict[str, str]:
    home = {"HOME": str(repo.folder.parent), "XDG_STATE_HOME": str(repo.folder.parent / "state")}
    return {"PATH": os.environ["PATH"], **home, "XB_REPO": str(repo.folder), **ISOLATED, **more}


def inv(repo: Repository, *words: str) -> Done:
    done = subprocess.run(
        [program("inv"), "matrix", *words],
        cwd=PROJECT,
        env=variables(repo),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def stages(document: str) -> list[str]:
    return [each["stage"] for each in json.loads(document)["include"]]


def test_all_stages_or_those_that_are_touched(repo: Repository) -> None:
    everything = inv(repo, "--emit", "github", "--cases", "1", "--platform", "linux/amd64")
    assert stages(everything.out) == ["xbuild-nvidia-cuda-12", "xbuild-ascend-cann-9-950"]
    touched = inv(repo, "--emit", "github", "--cases", "1", "--platform", "linux/amd64", "--changed")
    assert stages(touched.out) == ["xbuild-nvidia-cuda-12"]
    assert "instructions changed: RUN c nvidia-cuda-12" in touched.err  # said, but not on stdout
    assert stages(inv(repo, "--emit", "github", "--changed", "--stages", "*ascend*").out) == []
    assert stages(inv(repo, "--emit", "github", "--changed", "--base", "HEAD").out) == []


@pytest.mark.parametrize("engine", ["github", "gitlab", "json"])
def test_a_stage_without_a_job_is_told(repo: Repository, engine: str) -> None:
    text = TEXT + "FROM --platform=linux/s390x a AS xbuild-nvidia-cuda-1\nRUN b\n"
    text += "FROM --platform=linux/amd64 a AS xbuild-nvidia-cuda-2\nRUN b\n"
    repo.write(DOCKERFILE, text)
    done = inv(repo, "--emit", engine, "--platform", "linux/arm64", "--cases", "1", "--stages", "*nvidia*")
    assert done.code == 0, done.err
    assert done.err == "".join(
        f"xbuild-nvidia-cuda-{n} gets no job: it builds nothing for linux/arm64\n" for n in (1, 2)
    )
    assert "xbuild-nvidia-cuda-1 " not in done.out
    none = inv(repo, "--emit", engine, "--stages", "*-cuda-1")
    assert none.err == "xbuild-nvidia-cuda-1 gets no job: it builds nothing for linux/amd64 or linux/arm64\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--emit", "githup"], "github, gitlab, json are accepted"),
        (["--emit", "json", "--hosts-file", "x"], "--hosts-file can't be given with it"),
        (["--emit", "json", "--json"], "--json can't be given with it"),
        (["--base", "main"], "give --changed too"),
        (["--changed", "--base", "mian"], "did you mean main"),
        (["--emit", "json", "--stages", "xbuild-nvidia-cuda-21"], "did you mean xbuild-nvidia-cuda-12"),
    ],
)
def test_wrong_words_are_a_line(repo: Repository, words: list[str], said: str) -> None:
    done = inv(repo, *words)
    assert done.code == 2
    assert said in done.err


def test_a_run_of_nothing_is_skipped_and_says_so(repo: Repository) -> None:
    done = inv(repo, "--changed", "--base", "HEAD", "--json")
    assert (done.code, done.document["verdict"], done.document["cases"]) == (3, "SKIP", [])
    assert done.document["reason"] == "this branch touches none of these stages"


def test_the_plan_of_a_run_holds_what_is_touched(repo: Repository) -> None:
    said = inv(repo, "--changed", "--dry-run", "--cases", "1").text
    assert "xbuild-nvidia-cuda-12" in said
    assert "ascend" not in said
    assert "to run:" not in said  # it is run


def test_the_example_for_github_finds_what_a_pull_request_touches(repo: Repository, tmp_path: Path) -> None:
    steps = yaml.safe_load((PROJECT / "docs/examples/github-verify.yml").read_text())["jobs"]["plan"]["steps"]
    (step,) = [each for each in steps if each.get("id") == "matrix"]
    output = tmp_path / "output"
    subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=PROJECT,
        env=variables(repo, BASE="origin/main", GITHUB_OUTPUT=str(output)),
        check=True,
        stdin=subprocess.DEVNULL,
    )
    name, _, value = output.read_text().removesuffix("\n").partition("=")
    assert name == "matrix"
    assert [(each["stage"], each["arch"]) for each in json.loads(value)["include"]] == [
        ("xbuild-nvidia-cuda-12", "amd64"),
        ("xbuild-nvidia-cuda-12", "arm64"),
    ]


def test_the_example_for_gitlab_writes_the_child_pipeline(repo: Repository) -> None:
    script = yaml.safe_load((PROJECT / "docs/examples/gitlab-ci.yml").read_text())["plan"]["script"]
    (repo.folder.parent / "xbtasks").symlink_to(PROJECT)
    lines = [line for line in script if "clone" not in line]
    assert len(lines) == len(script) - 1
    more = {"CI_PROJECT_DIR": str(repo.folder), "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main"}
    subprocess.run(
        ["bash", "-e", "-c", "\n".join(lines)],
        cwd=repo.folder,
        env=variables(repo, **more),
        check=True,
        stdin=subprocess.DEVNULL,
    )
    pipeline = yaml.safe_load((repo.folder / "pipeline.yml").read_text())
    assert list(pipeline) == ["stages", "xbuild-nvidia-cuda-12 amd64", "xbuild-nvidia-cuda-12 arm64"]
