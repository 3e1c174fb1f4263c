"""A git repository of a test, which no configuration of this machine reaches."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["ISOLATED", "Repository"]

ISOLATED: Final = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


@dataclass(frozen=True)
class Repository:
    """A work tree at ``folder``."""

    folder: Path

    def git(self, *words: str, code: int = 0, **variables: str) -> str:
        """Run git, insist on its exit status, and return what it wrote, stripped."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.folder,
            env={**os.environ, **ISOLATED, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        assert done.returncode == code, done.stderr.decode(errors="replace")
        return (done.stdout + done.stderr).decode(errors="replace").strip()

    def start(self) -> Repository:
        """Make the repository, on main."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        return self

    def write(self, path: str, content: str | bytes = "") -> None:
        """Write a file."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace text in a file, which must hold it."""
        text = (self.folder / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def commit(self, message: str = "x") -> str:
        """Commit all there is and return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")
