"""git as a program asks it: no pager, no hooks, no tools of the user's, no variables that a hook is given."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge, DeadlineExceeded, UsageError

if TYPE_CHECKING:
    from collections.abc import Container, Mapping
    from pathlib import Path

__all__ = ["Git", "clean_environment"]

_DEADLINE: Final = 300  # seconds
_QUIET: Final = (
    "--no-pager",
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "diff.autoRefreshIndex=false"),  # it would lock the index, even without optional locks
)
_KEPT: Final = ("GIT_CONFIG_", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM")


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git: what a hook or a user's shell says of another repository is left out.

    Configuration that was given by variables stays, as it does for git on the command line.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT)
    }
    return {**kept, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


class Git:
    """git in one directory. What it writes are bytes: a path may be anything but NUL."""

    def __init__(self, directory: Path, *, as_configured: bool = False) -> None:
        """Ask in ``directory``; ``as_configured`` is for questions about the configuration itself."""
        self.directory = directory
        self._options = ("--no-pager",) if as_configured else _QUIET

    def ask(self, *words: str, fine: Container[int] = (0,)) -> bytes | None:
        """Return what git writes, or None where it ends with a status that is ``fine`` and not 0.

        Raises:
            CannotJudge: git is missing, takes too long or fails.
            UsageError: the directory is in no repository, or in one that git refuses to read.
        """
        try:
            done = subprocess.run(
                ["git", *self._options, *words],
                check=False,
                cwd=self.directory,
                env=clean_environment(os.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_DEADLINE,
            )
        except FileNotFoundError as error:
            raise CannotJudge("git is not installed", hint="it tells what a branch changed") from error
        except subprocess.TimeoutExpired as error:
            raise DeadlineExceeded(f"git {words[0]} took longer than {_DEADLINE} s") from error
        except OSError as error:
            raise CannotJudge(f"git can't be run in {self.directory}: {error.strerror}") from error
        if not done.returncode:
            return done.stdout
        if done.returncode in fine:
            return None
        raise self._failed(words[0], done)

    def tell(self, *words: str) -> bytes:
        """Return what git writes when it must succeed; raises as :meth:`ask` does."""
        return self.ask(*words) or b""

    def line(self, *words: str, fine: Container[int] = (0,)) -> str:
        """Return the line that git writes, empty where it ends with a status that is ``fine``."""
        return os.fsdecode(self.ask(*words, fine=fine) or b"").removesuffix("\n")

    def records(self, *words: str) -> list[str]:
        """Return what git writes with NUL behind each record."""
        return [os.fsdecode(record) for record in self.tell(*words).split(b"\0")[:-1]]

    def _failed(self, verb: str, done: subprocess.CompletedProcess[bytes]) -> CannotJudge | UsageError:
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        told = next((line for line in lines if line.startswith(("fatal:", "error:"))), "".join(lines[-1:]))
        if "dubious ownership" in told:
            return UsageError(
                f"git refuses the checkout {self.directory}: it belongs to another user",
                hint=f"if you trust it: git config --global --add safe.directory {self.directory}",
            )
        if "not a git repository" in told or "must be run in a work tree" in told:
            return UsageError(
                f"{self.directory} is not the work tree of a git repository",
                hint="a clone of the operator's repository is needed to tell what changed",
            )
        return CannotJudge(f"git {verb} failed: {told or f'exit {done.returncode}'}")
