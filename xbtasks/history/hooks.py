"""The pre-push hook: put into a checkout's repository, recognised there, taken away again.

The hook says before a push which stages to verify, by the commits that are pushed. It is a file of our own:
its second line tells so and holds a digest of the rest. A hook that somebody else wrote, or changed, is never
touched.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import Refused, UsageError, disk_error
from xbtasks.source import SOURCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.history.git import Git

__all__ = ["Hook", "find_hook", "hook_text", "own_command"]

_MARK: Final = "# xbtasks pre-push hook 1, sha256 "
_PROGRAM: Final = Path(__file__).with_name("programs") / "pre-push.sh"


def own_command() -> tuple[str, ...]:
    """Return how this program is started from anywhere: by its launcher, else by the Python that runs it."""
    return (str(SOURCE / "xb"),) if SOURCE else (sys.executable, "-P", "-m", "xbtasks")


def hook_text(command: Sequence[str], prefix: str, *, block: bool) -> str:
    """Return a hook that runs ``command`` on the checkout at ``prefix`` of the work tree.

    ``block`` makes it hold back a push that touches a stage; otherwise it only tells.
    """
    words = " ".join(map(shlex.quote, command))
    rest = (
        "# It says which builder stages a push touches; the task hooks.uninstall removes it.\n"
        f"mode={'block' if block else 'warn'}\n"
        f'set -- {words} --repo="$PWD"{shlex.quote(f"/{prefix}".rstrip("/"))}\n'
        f"{_PROGRAM.read_text()}"
    )
    return f"#!/bin/sh\n{_MARK}{_digest(rest)}\n{rest}"


@dataclass(frozen=True, slots=True)
class Hook:
    """The place of the pre-push hook of a repository; ``shared`` tells of other repositories that run it."""

    path: Path
    prefix: str
    shared: str

    def install(self, text: str, chain: str) -> str:
        """Put the hook there and return what was done; ``chain`` is the line that another hook can run.

        Raises:
            Refused: a hook of somebody else is there, or the place belongs to other repositories too.
            UsageError: the file can't be written.
        """
        hint = f"to have both, add to the one there: {chain}"
        if self.shared:
            raise Refused(
                f"{self.path.parent} holds the hooks of other repositories too ({self.shared})", hint=hint
            )
        there = self._there()
        if there == text:
            return "is as it should be"
        if there is not None and not _is_ours(there):
            raise Refused(f"{self.path} is somebody's own hook, or was changed", hint=hint)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, fresh = tempfile.mkstemp(dir=self.path.parent, prefix=".pre-push.")
            with os.fdopen(handle, "w", errors="surrogateescape") as stream:
                stream.write(text)
            Path(fresh).chmod(0o755)
            Path(fresh).replace(self.path)
        except OSError as error:
            raise disk_error(f"{self.path} can't be written", error) from error
        return "installed" if there is None else "brought up to date"

    def uninstall(self) -> bool:
        """Remove the hook; False where there is none.

        Raises:
            Refused: it is somebody else's, or was changed.
            UsageError: it can't be removed.
        """
        there = self._there()
        if there is None:
            return False
        if not _is_ours(there):
            raise Refused(f"{self.path} is somebody's own hook, or was changed", hint="it was left as it is")
        try:
            self.path.unlink()
        except OSError as error:
            raise UsageError(f"{self.path} can't be removed: {error.strerror}") from error
        return True

    def _there(self) -> str | None:
        """Return the text of the hook that is there, empty for what is no file; None for nothing."""
        if not os.path.lexists(self.path):
            return None
        if self.path.is_symlink() or not self.path.is_file():
            return ""
        try:
            return self.path.read_bytes().decode("utf-8", "surrogateescape")
        except OSError as error:
            raise UsageError(f"{self.path} can't be read: {error.strerror}") from error


def find_hook(git: Git) -> Hook:
    """Return the place of the pre-push hook, as ``core.hooksPath`` and linked work trees have it.

    Raises:
        UsageError: no repository, or its hooks are switched off.
        CannotJudge: git fails.
    """
    prefix = os.fsdecode(git.tell("rev-parse", "--show-prefix")).removesuffix("\n")
    folder = git.directory / git.line("rev-parse", "--git-path", "hooks")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"core.hooksPath is {folder}: the hooks of this repository are switched off")
    place = Path(os.path.normpath(folder))
    return Hook(place / "pre-push", prefix, _shared(git, place))


def _shared(git: Git, place: Path) -> str:
    """Return which setting makes other repositories use the same folder of hooks, or nothing."""
    found = git.ask("config", "--show-scope", "--show-origin", "-z", "--get", "core.hooksPath", fine=(1,))
    if not found:
        return ""
    scope, origin, *_ = os.fsdecode(found).split("\0")
    roots = [
        Path(git.line("rev-parse", "--show-toplevel")),
        Path(os.path.normpath(git.directory / git.line("rev-parse", "--git-common-dir"))),
    ]
    if scope in ("local", "worktree") or any(place.is_relative_to(root) for root in roots):
        return ""
    return f"core.hooksPath in {origin.removeprefix('file:')}"


def _is_ours(text: str) -> bool:
    first, _, tail = text.partition("\n")
    mark, _, rest = tail.partition("\n")
    return first == "#!/bin/sh" and mark == f"{_MARK}{_digest(rest)}"


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
