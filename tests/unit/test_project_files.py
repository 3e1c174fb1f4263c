"""What a contributor meets first: the changelog, the hooks before a commit, the forms of issues."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import Any, Final

import pytest
import yaml

from tests.guides import commands
from tests.markdown import read_page
from tests.wheelkit import tracked_files
from tests.workplace import PROJECT
from xbtasks import __version__

FORMS: Final = sorted((PROJECT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
ISSUES: Final = [path for path in FORMS if path.name != "config.yml"]


def test_the_readmes_second_command_is_the_gates() -> None:
    (_, second) = commands(read_page(PROJECT / "README.md"), "demo")
    assert (PROJECT / ".ci/run").read_text().splitlines()[-1].split() == ["exec", *second]


def hooks() -> list[dict[str, Any]]:
    (repository,) = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    return list(repository["hooks"])


def test_the_version_is_told_once_and_is_the_changelogs_first() -> None:
    assert "version" in tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["dynamic"]
    heads = re.findall(r"^## (.*)$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    for head in heads:
        assert re.fullmatch(r"\[\d+\.\d+\.\d+\] - (unreleased|\d{4}-\d\d-\d\d)", head)
    assert heads[0].startswith(f"[{__version__}] - ")


def test_the_changelog_has_the_usual_sections() -> None:
    sections = re.findall(r"^### (.*)$", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections
    assert set(sections) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_hooks_before_a_commit_download_nothing() -> None:
    assert {hook["id"] for hook in hooks()} == {"ruff", "ruff-format", "mypy", "shellcheck"}
    assert all(hook["language"] == "system" and hook["entry"].startswith(".venv/bin/") for hook in hooks())


@pytest.mark.parametrize("name", ["ruff", "ruff-format", "shellcheck"])
def test_a_hook_passes_what_is_right_and_stops_what_is_not(name: str, tmp_path: Any) -> None:
    (hook,) = (hook for hook in hooks() if hook["id"] == name)
    right, wrong = {
        "ruff": ('"""M."""\n', "import os\n"),
        "ruff-format": ('"""M."""\n', "x=1\n"),
        "shellcheck": ("#!/bin/sh\nexit 0\n", "#!/bin/sh\ncd $1\n"),
    }[name]
    for text, code in ((right, 0), (wrong, 1)):
        path = tmp_path / "a.py"
        path.write_text(text)
        done = subprocess.run([*hook["entry"].split(), path], cwd=PROJECT, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["ruff", "ruff-format", "shellcheck"])
def test_a_hook_passes_the_files_that_it_is_given_here(name: str) -> None:
    (hook,) = (hook for hook in hooks() if hook["id"] == name)
    files = [str(path) for path in tracked_files() if re.search(hook["files"], str(path))]
    assert files
    done = subprocess.run([*hook["entry"].split(), *files], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_shell_program_is_looked_at_before_a_commit_and_by_the_session() -> None:
    (hook,) = (hook for hook in hooks() if hook["id"] == "shellcheck")
    programs = [
        str(path) for path in tracked_files() if path.suffix == ".sh" and path.parent.name == "programs"
    ]
    assert len({path.rpartition("/")[0] for path in programs}) > 1
    assert [path for path in programs if re.search(hook["files"], path)] == programs
    (pattern,) = re.findall(r'Path\("xbtasks"\)\.glob\("(.*\.sh)"\)', (PROJECT / "noxfile.py").read_text())
    found = {str(path.relative_to(PROJECT)) for path in (PROJECT / "xbtasks").glob(pattern)}
    assert found == set(programs)


def test_the_hook_of_types_is_the_sessions_command() -> None:
    (hook,) = (hook for hook in hooks() if hook["id"] == "mypy")
    assert hook["entry"] == ".venv/bin/python -m mypy"
    assert hook["pass_filenames"] is False
    assert 'session.run(PYTHON, "-m", "mypy")' in (PROJECT / "noxfile.py").read_text()


@pytest.mark.parametrize("path", ISSUES, ids=lambda path: path.stem)
def test_a_form_asks_for_the_bundle(path: Any) -> None:
    form = yaml.safe_load(path.read_text())
    assert form["name"]
    assert form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in fields]
    assert len(set(ids)) == len(ids)
    assert all(field["type"] in ("textarea", "input", "dropdown") for field in fields)
    assert all(field["attributes"]["label"] for field in fields)
    (bundle,) = (field for field in fields if field["id"] == "bundle")
    assert "`inv bundle DIR`" in bundle["attributes"]["description"]


def test_there_are_forms_and_a_wrong_verdict_needs_its_bundle() -> None:
    assert {path.stem for path in ISSUES} == {"bug", "wrong-verdict"}
    form = yaml.safe_load((PROJECT / ".github/ISSUE_TEMPLATE/wrong-verdict.yml").read_text())
    (bundle,) = (field for field in form["body"] if field.get("id") == "bundle")
    assert bundle["validations"]["required"] is True


def test_what_contributors_are_told_to_run_is_there() -> None:
    text = (PROJECT / "CONTRIBUTING.md").read_text()
    defined = set(re.findall(r"^def (\w+)\(session", (PROJECT / "noxfile.py").read_text(), re.MULTILINE))
    named = {name for words in re.findall(r"nox -s ([a-z ]+)`", text) for name in words.split()}
    assert named
    assert named <= defined
    for folder in re.findall(r"pytest (tests/\w+)", text):
        assert (PROJECT / folder).is_dir()
