"""What a guide says to write and to run, taken from its page and done."""

from __future__ import annotations

import shlex
import shutil
from typing import TYPE_CHECKING, Final

from tests.workplace import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.markdown import Page

__all__ = ["FOLLOWED", "commands", "copy_project", "write_files"]

# The commands that are run, by the name in their mark. A name has one test, which runs them for these pages.
FOLLOWED: Final = {
    "demo": ("README.md", "docs/guides/first-run.md"),
    "first": ("docs/guides/first-run.md",),
    "sim": tuple(f"docs/guides/{name}.md" for name in ("ci", "fleet", "evidence-and-bugs", "writing-a-case")),
    "ssh": ("docs/guides/remote-host.md",),
    "toy": ("docs/guides/adding-a-backend.md",),
    "branch": ("docs/guides/ci.md",),
    "nodes": ("docs/guides/fleet.md",),
    "nox": ("docs/guides/fleet.md",),
    "tools": ("docs/guides/beside-the-operator.md",),
    "locks": ("CONTRIBUTING.md",),
}
_PARTS: Final = ("xbtasks", "config", "tasks.py")


def copy_project(target: Path) -> Path:
    """Copy what runs of the project to ``target``, as a checkout of one's own."""
    target.mkdir()
    for part in _PARTS:
        source = PROJECT / part
        if source.is_dir():
            shutil.copytree(source, target / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target / part)
    return target


def write_files(page: Page, project: Path, checkout: Path) -> None:
    """Write every file of the page, and make every edit."""
    for block in page.blocks:
        kind, _, name = block.mark.partition(": ")
        if kind == "file":
            _write(project / name, block.text)
        elif kind == "checkout":
            _write(checkout / name, block.text)
        elif kind == "edit":
            _edit(project / name, block.text)


def commands(page: Page, name: str) -> list[list[str]]:
    """Return the words of the commands of the blocks that are marked to be run under ``name``."""
    blocks = [block for block in page.blocks if block.mark == f"run: {name}"]
    lines = [line for block in blocks for line in block.text.splitlines()]
    return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines if line.startswith("$ ")]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def _edit(path: Path, diff: str) -> None:
    """Replace the lines with a minus by those with a plus, hunk by hunk; each must stand there once."""
    for hunk in diff.split("\n\n"):
        lines = hunk.splitlines()
        old = "".join(f"{line[1:]}\n" for line in lines if line.startswith("-"))
        new = "".join(f"{line[1:]}\n" for line in lines if line.startswith("+"))
        text = path.read_text()
        assert text.count(old) == 1, f"{path}: {old!r} doesn't stand there once"
        path.write_text(text.replace(old, new))
