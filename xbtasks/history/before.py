"""A checkout as a commit has it, such as the merge base, without checking it out.

What git says has not changed is read from the working tree: it is the same by git's own account, whatever
line endings, filters or file modes lie between an object and its file. What has changed is read from git. A
file that git ignores is no part of a branch, and counts as unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.checkout.tree import Checkout, Kind
from xbtasks.errors import CannotJudge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xbtasks.history.divergence import Change, Divergence
    from xbtasks.history.git import Git

__all__ = ["CheckoutBefore"]


class CheckoutBefore(Checkout):
    """The checkout that ``divergence`` leads back to from the working tree."""

    def __init__(self, root: Path, dockerfile: str, git: Git, divergence: Divergence) -> None:
        """Find the Dockerfile as it was.

        Raises:
            UsageError: there was none.
            CannotJudge: git fails.
        """
        self._git = git
        self._divergence = divergence
        self._changes = {change.path: change for change in divergence.changes}
        self._children: dict[str, set[str]] = {}
        self._grown: set[str] = set()
        self._directories: frozenset[str] | None = None
        self._contents: dict[str, bytes] = {}
        for change in divergence.changes:
            for parent, name in _ancestors(change.path):
                if change.old_kind:
                    self._children.setdefault(parent, set()).add(name)
                else:
                    self._grown.add(parent)
        super().__init__(root, dockerfile)

    def kind(self, relative: str) -> Kind | None:
        """Return what lay at ``relative``."""
        change = self._changes.get(relative)
        if change is not None and change.old_kind:
            return change.old_kind
        if relative in self._children:
            return Kind.DIRECTORY
        if change is not None or self._is_under_a_change(relative):
            return None
        now = super().kind(relative)
        if now is Kind.DIRECTORY and relative in self._grown:
            return now if relative == "." or relative in self._known_directories() else None
        return now

    def read(self, relative: str) -> bytes:
        """Return what the file at ``relative`` held."""
        change = self._changes.get(relative)
        return super().read(relative) if change is None else self._content(change)

    def sha256(self, relative: str) -> bytes:
        """Return the digest of what the file at ``relative`` held."""
        from hashlib import sha256

        change = self._changes.get(relative)
        return super().sha256(relative) if change is None else sha256(self._content(change)).digest()

    def target(self, relative: str) -> str:
        """Return what the link at ``relative`` said."""
        change = self._changes.get(relative)
        if change is None:
            return super().target(relative)
        return self._content(change).decode("utf-8", "surrogateescape")

    def names(self, relative: str) -> list[str]:
        """Return the sorted names that were in the directory at ``relative``."""
        names = set(self._children.get(relative, ()))
        real = relative not in self._changes and not self._is_under_a_change(relative)
        if real and super().kind(relative) is Kind.DIRECTORY:
            names |= set(super().names(relative))
        prefix = "" if relative == "." else f"{relative}/"
        return sorted(name for name in names if self.kind(prefix + name) is not None)

    def _is_under_a_change(self, relative: str) -> bool:
        return any(parent in self._changes for parent, _ in _ancestors(relative))

    def _known_directories(self) -> frozenset[str]:
        if self._directories is None:
            words = ("ls-tree", "-r", "-d", "-z", "--name-only", self._divergence.merge_base)
            self._directories = frozenset(self._git.records(*words))
        return self._directories

    def _content(self, change: Change) -> bytes:
        """Return what git has of a changed path, as a checkout would write it.

        A submodule's is its commit; the files in it are not looked at.
        """
        if change.path not in self._contents:
            self._contents[change.path] = self._read_object(change)
        return self._contents[change.path]

    def _read_object(self, change: Change) -> bytes:
        if not change.blob:
            raise CannotJudge(f"{change.path} was not there")
        if change.submodule:
            return change.blob.encode()
        if change.old_kind is Kind.LINK:
            return self._git.tell("cat-file", "blob", change.blob)
        path = self._divergence.prefix + change.path
        return self._git.tell("cat-file", "--filters", f"--path={path}", change.blob)


def _ancestors(path: str) -> Iterator[tuple[str, str]]:
    """Yield the directories above ``path``, the root (``.``) last, each with the name it holds on the way."""
    while path not in ("", "."):
        parent, _, name = path.rpartition("/")
        yield parent or ".", name
        path = parent
