"""The pages, followed to the letter: what they say to type is typed, and what they say is shown is shown."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.buildnodes import build_node
from tests.gitkit import ISOLATED, Repository
from tests.guides import FOLLOWED, commands, copy_project, write_files
from tests.markdown import Page, read_page
from tests.wheelkit import copy_files, tracked_files
from tests.workplace import PROJECT, SAMPLE
from xbtasks.sessions import FIELD_STAGES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.sshd import Rig
    from tests.workplace import PrivateEngine, Workplace

pytestmark = pytest.mark.engine

PROGRAMS: Final = Path(sys.executable).parent


def shown_lines(page: Page, name: str) -> list[str]:
    return [
        line for block in page.blocks if block.mark == f"shows: {name}" for line in block.text.splitlines()
    ]


def typed(page: Page, name: str) -> list[str]:
    """Return the lines that the page says to type under ``name``."""
    blocks = [block.text for block in page.blocks if block.mark == f"run: {name}"]
    return [line.removeprefix("$ ") for text in blocks for line in text.splitlines()]


def desk(folder: Path, page: Page) -> Path:
    """Make a folder where ``./xb`` is the project's, with the files that the page says to write."""
    folder.mkdir()
    (folder / "xb").write_text(f'#!/bin/sh\nexec "{PROJECT}/xb" "$@"\n')
    (folder / "xb").chmod(0o755)
    for block in page.blocks:
        if block.mark.startswith("write: "):
            (folder / block.mark.removeprefix("write: ")).write_text(block.text + "\n")
    return folder


def type_in(folder: Path, lines: list[str], environment: Mapping[str, str]) -> str:
    """Type ``lines`` in one shell; each must succeed; returns what they print."""
    assert lines
    done = subprocess.run(
        ["sh", "-c", "\n".join(["set -eu", *lines])],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{lines}\n{done.stdout}"
    return done.stdout


def follow(place: Workplace, page: Page, name: str, **changes: str | None) -> str:
    """Type what a page says on the engine of the tests; returns what is printed."""
    environment = place.environment(XB_IMAGE=None, **changes)
    text = type_in(desk(place.folder / "desk", page), typed(page, name), environment)
    for line in shown_lines(page, name):
        assert line in text, text
    return text


def pages(name: str) -> list[Page]:
    return [read_page(PROJECT / page) for page in FOLLOWED[name]]


def branch(place: Workplace) -> Repository:
    """Return a clone of the sample that stands on a branch, which touches what the NVIDIA stages read."""
    origin = place.folder / "origin"
    shutil.copytree(SAMPLE, origin)
    Repository(origin).start().commit()
    Repository(place.folder).git("clone", "--quiet", str(origin), "clone")
    clone = Repository(place.folder / "clone")
    clone.git("switch", "--quiet", "--create", "branch")
    clone.edit("pack/gpustack-operator/external/nvidia/build-vgpu.sh", "set -", "# touched\nset -")
    clone.commit()
    return clone


@pytest.mark.parametrize("page", FOLLOWED["sim"])
def test_a_guide_on_the_simulated_host(place: Workplace, page: str) -> None:
    follow(place, read_page(PROJECT / page), "sim")


def test_the_first_run_from_a_simulated_host_that_is_not_up(tmp_path: Path) -> None:
    (page,) = pages("first")
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "NO_COLOR": "1", "COLUMNS": "160"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XB_", "DOCKER_"))}
    folder = desk(tmp_path / "desk", page)
    try:
        text = type_in(folder, typed(page, "first"), {**kept, **state})
    finally:
        type_in(folder, ["./xb sim.down"], {**kept, **state})
    assert "SIMULATED" in text
    for line in shown_lines(page, "first"):
        assert line in text.replace(f"{PROJECT}/xb", "./xb"), text


def test_the_guide_to_a_remote_host(place: Workplace, rig: Rig) -> None:
    server = rig.server(environment=dict(place.engine.environment))
    rig.alias("far", server.port)
    gone: dict[str, str | None] = dict.fromkeys(("DOCKER_HOST", "DOCKER_CONFIG", "SSH_AUTH_SOCK"))
    (page,) = pages("ssh")
    text = follow(place, page, "ssh", XB_SSH_CONFIG=str(rig.ssh_config), **gone)
    assert "host far" in text


def test_a_branch_of_a_clone(place: Workplace) -> None:
    (page,) = pages("branch")
    text = follow(place, page, "branch", XB_REPO=str(branch(place).folder), **ISOLATED)
    assert all((f" verify {stage}" in text) == ("nvidia" in stage) for stage in FIELD_STAGES), text


def test_a_builder_of_two_nodes(place: Workplace, engine: PrivateEngine, tmp_path: Path) -> None:
    (page,) = pages("nodes")
    with build_node(tmp_path / "a", engine) as first, build_node(tmp_path / "b", engine) as second:
        there = {"tcp://build-1.lab:1234": first.endpoint, "tcp://build-2.lab:1234": second.endpoint}
        lines = [re.sub(r"tcp://\S+", lambda found: there[found[0]], line) for line in typed(page, "nodes")]
        try:
            type_in(desk(place.folder / "desk", page), lines, place.environment(XB_IMAGE=None))
        finally:
            engine.docker("buildx", "rm", "lab")
        assert "build-vgpu.sh" not in first.built()
        assert "build-vgpu.sh" in second.built()


def test_the_sessions_of_nox(place: Workplace) -> None:
    (page,) = pages("nox")
    path = f"{PROGRAMS}{os.pathsep}{place.variables['PATH']}"
    lines = [
        f"{line} -- --cases 1" for line in typed(page, "nox")
    ]  # the cards of the tests are busy elsewhere
    text = type_in(PROJECT, lines, place.environment(XB_IMAGE=None, PATH=path))
    summary = text.rpartition(" VERDICT ")[2]
    assert all(f"| {stage} " in summary for stage in FIELD_STAGES), text


def test_the_table_of_commands(place: Workplace) -> None:
    """From top to bottom, in a clone with a branch, as whoever reads it would type them one after another."""
    clone = branch(place)
    home = place.folder / "home"
    home.mkdir()
    (home / "hosts.yaml").write_text("hosts:\n- name: here\n  ssh: local\n")
    page = read_page(PROJECT / "docs/commands.md")
    (table,) = (block for block in page.blocks if block.header == ("you want", "you type"))
    lines = [code for cell in table.codes(1) for code in cell if code.startswith("./xb ")]
    assert len(lines) >= len(table.rows) - 1
    folder = desk(clone.folder / "desk", page)
    variables = place.environment(
        XB_IMAGE=None,
        XB_REPO=None,
        XB_YES="1",
        HOME=str(home),
        PATH=place.without_cards(),
        GIT_CONFIG_GLOBAL="/dev/null",
    )
    for line in lines:
        if "sim.up" in line:
            continue  # the first run's guide
        words = line
        if "BEFORE AFTER" in line:
            before, after = place.evidence()[:2]
            words = line.replace("BEFORE", str(before)).replace("AFTER", str(after))
        assert type_in(folder, [words], variables).strip(), line


def test_an_installed_xb_works_in_the_operators_checkout(tmp_path: Path) -> None:
    """Both installers get the dependencies as a user's do, from the package index."""
    (page,) = pages("tools")
    copy_files(tracked_files(), tmp_path / "xbtasks")
    shutil.copytree(SAMPLE, tmp_path / "operator")
    Repository(tmp_path / "operator").start().commit()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("XB_", "PIPX_", "UV_TOOL_", "XDG_"))
    }
    for tool in ("pipx", "uv"):
        home = tmp_path / tool
        home.mkdir()
        programs = home / ".local/bin"
        environment = {
            **kept,
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        }
        (install,) = (line for line in typed(page, "tools") if line.startswith(f"{tool} "))
        type_in(tmp_path, [f"{PROGRAMS}/{install}"], environment)
        assert {path.name for path in programs.iterdir()} >= {"xb", "inv", "nox"}
        (use,) = (line for line in typed(page, "tools") if line.startswith("xb "))
        text = type_in(tmp_path / "operator/pack", [use], environment)
        assert all(stage in text for stage in FIELD_STAGES), text
        assert not Repository(tmp_path / "operator").git("status", "--porcelain", "--ignored")


def test_the_locks_are_what_their_commands_make(tmp_path: Path) -> None:
    (page,) = pages("locks")
    shutil.copytree(PROJECT / "requirements", tmp_path / "requirements")

    def pins() -> dict[str, list[str]]:
        texts = {path.name: path.read_text() for path in (tmp_path / "requirements").glob("*.lock")}
        return {name: re.findall(r"^[a-z][^ ]*==[^ ]+", text, re.MULTILINE) for name, text in texts.items()}

    before = pins()
    for lock in (tmp_path / "requirements").glob("*.lock"):
        with lock.open("a") as file:  # what nothing requires goes
            file.write("nothing-needs-this==1\n")
    type_in(tmp_path, [f"{PROGRAMS}/{line}" for line in typed(page, "locks")], os.environ)
    assert pins() == before
    for lock in (tmp_path / "requirements").glob("*.lock"):
        assert "://" not in lock.read_text()


def new_backend(place: Workplace) -> tuple[Path, Path, Callable[..., subprocess.CompletedProcess[str]]]:
    """Write what the guide writes; return the project, the checkout, and how a task is typed there."""
    (page,) = pages("toy")
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

    return project, checkout, toy


def test_a_backend_that_the_guide_adds_passes_its_cases_and_a_broken_one_fails(place: Workplace) -> None:
    (page,) = pages("toy")
    _, checkout, toy = new_backend(place)
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
    source.write_text(whole + "__attribute__((constructor)) static void dies(void) { abort(); }\n")
    assert toy("build", "xbuild-toy-1").returncode == 0
    source.write_text(whole)
    stale = toy("toy.case2", "xbuild-toy-1", "--json")
    assert stale.returncode == 4, stale.stdout + stale.stderr
    (case,) = json.loads(stale.stdout)["cases"]
    assert ("toy.case2.image", "WARN") in {(row["id"], row["status"]) for row in case["checks"]}


WRONG: Final = (
    ("profiles.json", '"shared"', '"library"', "kind is 'library', not one of shared, pie"),
    ("profiles.json", '"hooks"', '"hoks"', "'hoks' is not a key here"),
    ("profiles.json", '"needed": ["libc.so.6"],', "", "artifacts: libtoy.so: needed is missing"),
    ("profiles.json", '"default": "any"', '"default": "eny"', "default is 'eny', which is no profile of it"),
    ("profiles.json", '"libtoy.so": {', '"libty.so": {', "'libty.so' is no artifact of toy"),
    ("profiles.json", '"default": "any",', '"default": "any"', "can't be parsed: "),
    ("__init__.py", "toy.case2", "toy.case3", "names no module that is there: its case 2 is"),
    ("__init__.py", "toy.hardware", "toy.hard", "names no module that is there: its host is"),
    (
        "__init__.py",
        '"libtoy.so", 0o644),',
        '"libtoy.so", 0o644), Artifact("/out/b", "b", 0o644),',
        "artifact b",
    ),
)
"""What may be wrong in a backend's folder: the file, what stands there, what does then, and what is said."""


def test_what_is_wrong_in_a_new_backend_is_one_line_before_anything_is_built(place: Workplace) -> None:
    project, checkout, toy = new_backend(place)
    folder = project / "xbtasks/backends/toy"
    for name, old, new, said in WRONG:
        whole = (folder / name).read_text()
        assert old in whole
        (folder / name).write_text(whole.replace(old, new))
        done = toy("verify", "xbuild-toy-1")
        assert done.returncode == 2, done.stdout + done.stderr
        first, _, more = done.stderr.partition("\n")
        assert (first[:7], "Traceback" in more) == ("error: ", False), done.stderr
        assert "toy" in first
        assert said in first
        assert "built" not in done.stdout
        (folder / name).write_text(whole)
    explained = folder / "checks.toml"
    explained.write_text(explained.read_text().replace('next = "look', "next = look"))
    asked = toy("explain", "toy.case2.limit")
    assert asked.returncode == 2
    assert asked.stderr.startswith("error: xbtasks/backends/toy/checks.toml can't be parsed: ")
    source = checkout / "pack/gpustack-operator/external/toy/libtoy.c"
    source.write_text(source.read_text().replace("cpu < atoi(limit)", "cpu < 2 * atoi(limit)"))
    judged = toy("verify", "xbuild-toy-1")  # the verdict doesn't depend on what explains it
    assert judged.returncode == 1, judged.stdout + judged.stderr
    assert "FAIL: toy.case2.limit" in judged.stdout


def failing(done: subprocess.CompletedProcess[str]) -> set[str]:
    assert done.returncode == 1, done.stdout + done.stderr
    cases = json.loads(done.stdout)["cases"]
    return {row["id"] for case in cases for row in case["checks"] if row["status"] == "FAIL"}
