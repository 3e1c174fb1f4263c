"""The examples for the operator's repository: what they run exists, with these flags."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Final

import pytest
from dockerfile import parse_string

from tests.guides import commands
from tests.markdown import read_page
from tests.workplace import PROJECT, SAMPLE
from xbtasks.sessions import FIELD_STAGES
from xbtasks.tasks import ns

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES: Final = PROJECT / "docs/examples"
MAKEFILE: Final = EXAMPLES / "Makefile"
TARGETS: Final = re.findall(r"^([a-z-]+):$", MAKEFILE.read_text(), re.MULTILINE)


def make(folder: Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run make in ``folder`` with a Makefile that includes the example."""
    (folder / "Makefile").write_text(f"include {MAKEFILE}\n")
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("XB_", "MAKE", "MFLAGS"))
    }
    done = subprocess.run(
        ["make", *words],
        cwd=folder,
        env={**kept, "TMPDIR": str(folder), "XB_REPO": str(SAMPLE)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stderr
    return done


def flags_are_there(words: list[str]) -> bool:
    """Return whether the task in ``words``, behind the program, has every flag in them."""
    known = {f"--{name}" for argument in ns[words[1]].get_arguments() for name in argument.names}
    return {word.partition("=")[0] for word in words if word.startswith("--")} <= {
        name.replace("_", "-") for name in known
    }


def test_every_target_is_phony_and_named_above() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE.read_text(), re.MULTILINE)
    assert phony
    assert sorted(phony[1].split()) == sorted(TARGETS)
    assert len(TARGETS) >= 6


@pytest.mark.parametrize("target", TARGETS)
def test_a_target_runs_a_task_with_flags_that_it_has(target: str, tmp_path: Path) -> None:
    words = ("STAGE=xbuild-nvidia-cuda-13", "CASES=1", "HOSTS=/h.yaml", "CHECK=nvidia.case1", "FLAGS=--yes")
    lines = make(tmp_path, "-n", target, *words).stdout.splitlines()
    commands = [shlex.split(line) for line in lines if not line.startswith("mkdir")]
    assert [command[0] for command in commands] == ["xb"]
    assert flags_are_there([word for word in commands[0] if word != "--yes"])


def test_a_flag_that_is_not_there_is_found() -> None:
    assert not flags_are_there(["xb", "stages", "--hosts-file", "x"])


def test_targets_do_what_they_say(tmp_path: Path) -> None:
    xb = f"XB={shlex.quote(str(PROJECT / 'xb'))}"
    listed = make(tmp_path, "list-stages", xb).stdout
    assert all(stage in listed for stage in FIELD_STAGES)
    assert "nvidia.case2.sm-limit" in make(tmp_path, "explain", "CHECK=nvidia.case2.sm-limit", xb).stdout
    assert "make verify-stage STAGE=" in make(tmp_path, "verify-stage", xb, code=2).stderr
    assert not (tmp_path / "verify-stages").exists()


def test_the_devcontainer_has_what_xb_needs() -> None:
    """By hand, before a release: the devcontainer CLI starts it, and ``xb verify`` passes in it."""
    folder = EXAMPLES / "devcontainer"
    found = json.loads((folder / "devcontainer.json").read_text())
    *others, last = parse_string((folder / found["build"]["dockerfile"]).read_text())
    text = " ".join(line.value[0] for line in others)
    user, home = found["remoteUser"], f"/home/{found['remoteUser']}"
    assert text.endswith(f"--groups docker {user}")
    (packages,) = re.findall(r"--no-install-recommends ([^&]*) &&", " ".join(text.split()))
    assert {"docker.io", "docker-cli", "docker-buildx", "git", "openssh-client", "pipx"} <= set(
        packages.split()
    )
    # the engine inside is the main program
    assert (last.cmd.lower(), last.value) == ("cmd", ("dockerd",))
    assert (found["privileged"], found["overrideCommand"]) == (True, False)
    assert found["remoteEnv"]["PATH"].endswith(f"{home}/.local/bin")
    # as the guide does, from a place that the user names, to where this user may write
    guide = read_page(PROJECT / "docs/guides/beside-the-operator.md")
    (pipx,) = (words for words in commands(guide, "tools") if words[0] == "pipx")
    install, check = found["postCreateCommand"].split(" && ")
    assert shlex.split(install) == [*pipx[:-1], "$XBTASKS"]
    assert check == "xb --version"
    assert set(found["containerEnv"]) == {"XBTASKS", "XB_STAGE"}
    assert found["containerEnv"]["XB_STAGE"].startswith(f"{home}/")


def test_every_example_is_named_by_a_guide() -> None:
    pages = [read_page(path) for path in (PROJECT / "docs/guides").glob("*.md")]
    linked = {(page.path.parent / link).resolve() for page in pages for link in page.links}
    assert {path for path in EXAMPLES.rglob("*") if path.is_file()} <= linked
