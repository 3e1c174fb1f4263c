"""Where the operator checkout lies, and its files as BuildKit sees them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.errors import UsageError, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.checkout.dockerfile.patterns import IgnorePatterns

__all__ = ["Checkout", "Kind", "Place", "find_repo"]

_MAX_LINKS = 255  # BuildKit's limit
_HOW_TO_GIVE = "XB_REPO or --repo names the operator checkout; `inv demo` needs none"


def find_repo(explicit: str | None, dockerfile: str, cwd: Path) -> Path:
    """Return the root of the operator checkout: ``explicit``, else the git top level around ``cwd``.

    ``dockerfile`` is relative to that root; only a checkout that holds it counts.

    Raises:
        UsageError: ``explicit`` is no such checkout, there is none around ``cwd``, or it can't be read.
    """
    try:
        if explicit:
            return _given(cwd / Path(explicit).expanduser(), dockerfile)
        here = cwd.absolute()
        top = next((each for each in (here, *here.parents) if (each / ".git").exists()), None)
        if top and (top / dockerfile).exists():
            return top
    except (OSError, RuntimeError) as error:
        raise UsageError(f"the checkout can't be read: {reason_of(error)}", hint=_HOW_TO_GIVE) from error
    where = f"{top} has no {dockerfile}" if top else f"{here} is in no git checkout"
    raise UsageError(f"no operator checkout here: {where}", hint=_HOW_TO_GIVE)


def _given(root: Path, dockerfile: str) -> Path:
    if not root.is_dir():
        problem = "is not a directory" if root.exists() else "does not exist"
        raise UsageError(f"the checkout {root} {problem}", hint=_HOW_TO_GIVE)
    if not (root / dockerfile).exists():
        raise UsageError(f"the checkout {root} has no {dockerfile}", hint="XB_DOCKERFILE names another one")
    return root.absolute()


class Kind(StrEnum):
    """What lies at a path."""

    FILE = "file"
    EXECUTABLE = "executable"
    DIRECTORY = "dir"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a path leads: the links on the way, and its end, or what is wrong with it."""

    links: tuple[str, ...]
    end: str
    problem: str


class Checkout:
    """A checkout as a build context: paths are relative to its root, and no link leads out of it."""

    def __init__(self, root: Path, dockerfile: str) -> None:
        """Find the Dockerfile (relative to ``root``, or absolute inside it) and what the build ignores.

        Raises:
            UsageError: the Dockerfile is missing or outside of the checkout, or something can't be read.
        """
        self.root = root
        self.dockerfile = self._relative(dockerfile)
        place = self.follow(self.dockerfile)
        if place.problem or self.kind(place.end) not in (Kind.FILE, Kind.EXECUTABLE):
            problem = place.problem or "is not a file"
            raise UsageError(f"the Dockerfile {self.dockerfile} of {root} {problem}", hint=_HOW_TO_GIVE)
        self.dockerfile_place = place
        self.ignore_files = self._ignore_files()

    def _relative(self, dockerfile: str) -> str:
        relative = os.path.relpath(self.root / dockerfile, self.root)
        if relative.split("/")[0] == "..":
            raise UsageError(f"the Dockerfile {dockerfile} lies outside of the checkout {self.root}")
        return relative

    def _ignore_files(self) -> tuple[str, ...]:
        names = (f"{self.dockerfile}.dockerignore", ".dockerignore")
        return tuple(name for name in names if self.kind(name) in (Kind.FILE, Kind.EXECUTABLE))

    def ignored(self) -> IgnorePatterns:
        """Return what the build leaves out: the rules of the first of ``ignore_files``.

        Raises:
            UsageError: a rule is malformed.
        """
        from xbtasks.checkout.dockerfile.patterns import BadPatternError, IgnorePatterns

        if not self.ignore_files:
            return IgnorePatterns()
        try:
            return IgnorePatterns(self.read(self.ignore_files[0]).decode("utf-8", "surrogateescape"))
        except BadPatternError as error:
            raise UsageError(f"{self.ignore_files[0]}: {error}") from error

    def path(self, relative: str) -> Path:
        """Return the absolute path of ``relative``."""
        return self.root / relative

    def kind(self, relative: str) -> Kind | None:
        """Return what lies at ``relative``, itself a link or not, or None for nothing or a socket.

        Raises:
            UsageError: it can't be looked at, or is a device or a fifo.
        """
        try:
            mode = self.path(relative).lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise UsageError(f"{relative} can't be looked at: {reason_of(error)}") from error
        if stat.S_ISREG(mode):
            return Kind.EXECUTABLE if mode & stat.S_IXUSR else Kind.FILE
        if stat.S_ISDIR(mode):
            return Kind.DIRECTORY
        if stat.S_ISLNK(mode):
            return Kind.LINK
        if stat.S_ISSOCK(mode):  # nothing that a build could read
            return None
        raise UsageError(f"{relative} is neither a file nor a directory nor a link")

    def read(self, relative: str) -> bytes:
        """Return what the file at ``relative`` holds.

        Raises:
            UsageError: it can't be read.
        """
        try:
            return self.path(relative).read_bytes()
        except OSError as error:
            raise UsageError(f"{relative} can't be read: {reason_of(error)}") from error

    def sha256(self, relative: str) -> bytes:
        """Return the digest of what the file at ``relative`` holds, read in constant memory.

        Raises:
            UsageError: it can't be read.
        """
        from hashlib import file_digest

        try:
            with self.path(relative).open("rb") as file:
                return file_digest(file, "sha256").digest()
        except OSError as error:
            raise UsageError(f"{relative} can't be read: {reason_of(error)}") from error

    def target(self, relative: str) -> str:
        """Return what the link at ``relative`` says.

        Raises:
            UsageError: it can't be read.
        """
        try:
            return str(self.path(relative).readlink())
        except OSError as error:
            raise UsageError(f"the link {relative} can't be read: {reason_of(error)}") from error

    def names(self, relative: str) -> list[str]:
        """Return the sorted names in the directory at ``relative``.

        Raises:
            UsageError: it can't be read.
        """
        try:
            return sorted(each.name for each in self.path(relative).iterdir())
        except OSError as error:
            raise UsageError(f"{relative} can't be read: {reason_of(error)}") from error

    def follow(self, relative: str) -> Place:
        """Return where ``relative`` leads as BuildKit resolves it: the root of every link is the context's.

        Raises:
            UsageError: something on the way can't be read.
        """
        links: list[str] = []
        todo = relative.split("/")[::-1]
        at = ""
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":
                at = at.rpartition("/")[0]
                continue
            step = f"{at}/{part}" if at else part
            kind = self.kind(step)
            if kind is None or (todo and kind not in (Kind.DIRECTORY, Kind.LINK)):
                return Place(tuple(links), "", "is a link to nothing" if links else "is missing")
            if kind is not Kind.LINK:
                at = step
                continue
            if len(links) == _MAX_LINKS:
                return Place(tuple(links), "", "is behind too many links")
            links.append(step)
            target = self.target(step)
            at = "" if target.startswith("/") else at
            todo += target.split("/")[::-1]
        return Place(tuple(links), at or ".", "")

    def leaves(self, relative: str, ignored: IgnorePatterns) -> Iterator[str]:
        """Yield every file, link and empty directory at or under ``relative`` that the build doesn't ignore.

        Raises:
            UsageError: something can't be read.
        """
        leaves: list[str] = []
        directories: set[str] = set()
        todo = [relative]
        while todo:
            at = todo.pop()
            kind = self.kind(at)
            out = at != "." and ignored.ignores(at)
            if kind is Kind.DIRECTORY and not (out and not ignored.has_exceptions):
                todo += [name if at == "." else f"{at}/{name}" for name in self.names(at)]
                if not out:
                    directories.add(at)
            elif kind not in (None, Kind.DIRECTORY) and not out:
                leaves.append(at)
        full = {parent for leaf in (*leaves, *directories) for parent in _parents(leaf)}
        yield from leaves
        yield from directories - full - {"."}


def _parents(relative: str) -> Iterator[str]:
    while "/" in relative:
        relative = relative.rpartition("/")[0]
        yield relative
