"""The guides, followed to the letter: what they say to type is typed, and what they say is shown is shown."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest

from tests.guides import commands, copy_project, write_files
from tests.markdown import Page, read_page
from tests.workplace import PROJECT

if TYPE_CHECKING:
    from tests.sshd import Rig
    from tests.workplace import Workplace

pytestmark = pytest.mark.engine

GUIDES: Final = PROJECT / "docs/guides"
ON_THE_SIMULATED_HOST: Final = ("first-run", "ci", "fleet", "evidence-and-bugs", "writing-a-case")


def shown_lines(page: Page, name: str) -> list[str]:
    return [
        line for block in page.blocks if block.mark == f"shows: {name}" for line in block.text.splitlines()
    ]


def follow(place: Workplace, page: Page, name: str, **changes: str | None) -> str:
    """Type the commands of a page in one shell; returns what they print."""
    desk = place.folder / "desk"
    desk.mkdir()
    (desk / "xb").write_text(f'#!/bin/sh\nexec "{PROJECT}/xb" "$@"\n')
    (desk / "xb").chmod(0o755)
    for block in page.blocks:
        if block.mark.startswith("write: "):
            (desk / block.mark.removeprefix("write: ")).write_text(block.text + "\n")
    blocks = [block.text for block in page.blocks if block.mark == f"run: {name}"]
    typed = [line.removeprefix("$ ") for text in blocks for line in text.splitlines()]
    assert typed
    done = subprocess.run(
        ["sh", "-c", "\n".join(["set -eu", *typed])],
        cwd=desk,
        env=place.environment(XB_IMAGE=None, **changes),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, f"{typed}\n{done.stdout}"
    for line in shown_lines(page, name):
        assert line in done.stdout, done.stdout
    return done.stdout


@pytest.mark.parametrize("name", ON_THE_SIMULATED_HOST)
def test_a_guide_on_the_simulated_host(place: Workplace, name: str) -> None:
    follow(place, read_page(GUIDES / f"{name}.md"), "sim")


def test_the_guide_to_a_remote_host(place: Workplace, rig: Rig) -> None:
    server = rig.server(environment=dict(place.engine.environment))
    rig.alias("far", server.port)
    gone: dict[str, str | None] = dict.fromkeys(("DOCKER_HOST", "DOCKER_CONFIG", "SSH_AUTH_SOCK"))
    text = follow(
        place, read_page(GUIDES / "remote-host.md"), "ssh", XB_SSH_CONFIG=str(rig.ssh_config), **gone
    )
    assert "host far" in text


def test_a_backend_that_the_guide_adds_passes_its_cases_and_a_broken_one_fails(place: Workplace) -> None:
    page = read_page(GUIDES / "adding-a-backend.md")
    project, checkout = copy_project(place.folder / "project"), place.folder / "checkout"
    write_files(page, project, checkout)

    def toy(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "xbtasks", *words],
            cwd=project,
            env=place.environment(XB_REPO=str(checkout), XB_IMAGE=None),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )

    text = ""
    for words in commands(page, "toy"):
        assert words[0] == "inv"
        done = toy(*words[1:])
        assert done.returncode == 0, done.stdout + done.stderr
        text += done.stdout
    for line in shown_lines(page, "toy"):
        assert line in text, text
    source = checkout / "pack/gpustack-operator/external/toy/libtoy.c"
    whole = source.read_text()
    source.write_text(whole.replace("cpu < atoi(limit)", "cpu < 2 * atoi(limit)"))
    assert source.read_text() != whole
    assert failing(toy("verify", "xbuild-toy-1", "--json")) == {"toy.case2.limit"}


def failing(done: subprocess.CompletedProcess[str]) -> set[str]:
    assert done.returncode == 1, done.stdout + done.stderr
    cases = json.loads(done.stdout)["cases"]
    return {row["id"] for case in cases for row in case["checks"] if row["status"] == "FAIL"}
