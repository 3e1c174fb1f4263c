"""What differs between the merge base of a branch and its working tree, or a commit, as git tells it.

Contract: ``git diff --raw -z``, ``git ls-files -z`` and ``git ls-tree -z``. Of a working tree also what is
not committed counts, staged, unstaged or untracked; ignored files don't.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from xbtasks.checkout.tree import Kind
from xbtasks.errors import CannotJudge, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xbtasks.history.git import Git

__all__ = ["Base", "Change", "Divergence", "How", "choose_base", "diverge", "parse_raw", "since"]

_AT_ONCE = 200  # paths on a command line
_FILE, _EXECUTABLE, _LINK, _SUBMODULE = "100644", "100755", "120000", "160000"
_KINDS = {_FILE: Kind.FILE, _EXECUTABLE: Kind.EXECUTABLE, _LINK: Kind.LINK, _SUBMODULE: Kind.FILE}


class How(StrEnum):
    """How a path differs from what it was."""

    ADDED = "added"
    UNTRACKED = "new, untracked"
    DELETED = "deleted"
    MODIFIED = "modified"
    MODE = "mode changed"
    TYPE = "type changed"
    MOVED_HERE = "renamed"
    MOVED_AWAY = "renamed away"
    UNMERGED = "in a merge conflict"
    SUBMODULE = "another submodule commit"


@dataclass(frozen=True, slots=True)
class Change:
    """A path (relative to the checkout) that is not what it was.

    ``old_kind`` is None where nothing was there; ``blob`` is the object of what was. ``other`` is the path at
    the other end of a rename. ``by_stat`` says that git saw the time stamp alone, and not yet the content;
    ``submodule`` that what was is a commit of another repository.
    """

    path: str
    how: How
    old_kind: Kind | None
    blob: str
    other: str = ""
    by_stat: bool = False
    submodule: bool = False

    def __str__(self) -> str:
        if self.how is How.MOVED_HERE:
            return f"renamed from {self.other}"
        if self.how is How.MOVED_AWAY:
            return f"renamed to {self.other}"
        return self.how.value


@dataclass(frozen=True, slots=True)
class Base:
    """What a branch is compared with: a ref as people write it, its commit, whether it is the default."""

    ref: str
    commit: str
    default: bool


@dataclass(frozen=True, slots=True)
class Divergence:
    """What differs since ``merge_base``; ``hidden`` are files in which git was told to see no change.

    ``tip`` is the commit that was looked at, empty where it was the working tree.
    """

    base: Base
    merge_base: str
    head: str
    prefix: str
    changes: tuple[Change, ...]
    hidden: frozenset[str]
    tip: str = ""


def diverge(git: Git, wanted: str, tip: str = "") -> Divergence:
    """Return what differs between the working tree and the merge base with ``wanted``, or with the default.

    With ``tip`` it is that commit instead of the working tree.

    Raises:
        UsageError: there is no such base or tip, no commit yet, or no repository.
        CannotJudge: the clone has no merge base, or git fails.
    """
    prefix, shallow = git.tell("rev-parse", "--show-prefix", "--is-shallow-repository").splitlines()
    base = choose_base(git, wanted)
    head = choose_base(git, tip).commit if tip else _commit(git, "HEAD")
    if not head:
        raise UsageError("this branch has no commit yet", hint="commit first: changes are told from there")
    merge_base = git.line("merge-base", base.commit, head, fine=(1,)).partition("\n")[0]
    if not merge_base:
        raise _no_merge_base(base, shallow=shallow == b"true")
    changes = _diff(git, merge_base, head) if tip else _to_the_working_tree(git, merge_base)
    hidden = frozenset[str]() if tip else _hidden(git)
    place = prefix.decode(errors="surrogateescape")
    return Divergence(base, merge_base, head, place, _sorted(changes), hidden, head if tip else "")


def since(git: Git, divergence: Divergence, commit: str) -> Divergence:
    """Return what differs between the working tree and a ``commit``, also where git was told to see nothing.

    Raises:
        CannotJudge: git fails.
    """
    changes = _to_the_working_tree(git, commit)
    hidden = _hidden(git) - changes.keys()
    if hidden:
        for record in git.records("ls-tree", "-r", "-z", commit):
            head, _, path = record.partition("\t")
            mode, _, blob = head.split(" ")
            if path in hidden and mode in _KINDS:
                changes[path] = Change(path, How.MODIFIED, _KINDS[mode], blob, submodule=mode == _SUBMODULE)
    return replace(divergence, merge_base=commit, changes=_sorted(changes), hidden=frozenset())


def _diff(git: Git, *commits: str) -> dict[str, Change]:
    """Return what differs between two commits, or one and the working tree, by path."""
    raw = git.records(
        "diff", "--raw", "-z", "--no-abbrev", "--find-renames", "--no-ext-diff", "--no-textconv",
        "--no-color", "--ignore-submodules=none", "--relative", *commits, "--",
    )  # fmt: skip
    return {change.path: change for change in _with_other_content(git, tuple(parse_raw(raw)))}


def _to_the_working_tree(git: Git, commit: str) -> dict[str, Change]:
    changes = _diff(git, commit)
    for path in git.records("ls-files", "--others", "--exclude-standard", "-z"):
        changes.setdefault(path.rstrip("/"), Change(path.rstrip("/"), How.UNTRACKED, None, ""))
    return changes


def _hidden(git: Git) -> frozenset[str]:
    flagged = git.records("ls-files", "-v", "-z")
    return frozenset(each[2:] for each in flagged if each[0].islower() or each[0] == "S")


def _sorted(changes: Mapping[str, Change]) -> tuple[Change, ...]:
    return tuple(changes[path] for path in sorted(changes))


def parse_raw(records: Sequence[str]) -> Iterator[Change]:
    """Yield the changes of ``git diff --raw -z``; a rename is two.

    Raises:
        CannotJudge: git wrote something else.
    """
    at = iter(records)
    try:
        for head in at:
            old, new, blob, new_blob, status = head.removeprefix(":").split(" ")
            path = next(at)
            if status[0] in "RC":
                there = next(at)
                if status[0] == "R":
                    submodule = old == _SUBMODULE
                    yield Change(path, How.MOVED_AWAY, _KINDS[old], blob, there, submodule=submodule)
                yield Change(there, How.MOVED_HERE, None, "", path)
            else:
                kind = None if status == "A" or old == "000000" else _KINDS[old]
                how = _how(status, old, new)
                by_stat = how is How.MODIFIED and old in (_FILE, _EXECUTABLE) and not new_blob.strip("0")
                yield Change(
                    path, how, kind, blob if kind else "", by_stat=by_stat, submodule=old == _SUBMODULE
                )
    except (ValueError, LookupError, StopIteration) as error:
        raise CannotJudge("git diff wrote what is not its raw format") from error


def _with_other_content(git: Git, changes: Sequence[Change]) -> Iterator[Change]:
    """Yield the changes, without files of which only the time stamp is another one."""
    unsure = [change for change in changes if change.by_stat]
    blobs: dict[str, str] = {}
    for at in range(0, len(unsure), _AT_ONCE):
        paths = [change.path for change in unsure[at : at + _AT_ONCE]]
        blobs.update(zip(paths, _lines(git.tell("hash-object", "--", *paths)), strict=True))
    for change in changes:
        if blobs.get(change.path) != change.blob:
            yield change


def choose_base(git: Git, wanted: str) -> Base:
    """Return the base: ``wanted``, else ``origin/main``, a remote's HEAD, ``main`` or ``master``.

    Raises:
        UsageError: there is none.
    """
    if wanted:
        commit = "" if wanted.startswith("-") else _commit(git, wanted)
        if not commit:
            raise _no_such_base(git, wanted)
        return Base(wanted, commit, default=False)
    for ref in _defaults(git):
        commit = _commit(git, ref)
        if commit:
            return Base(_short(ref), commit, default=True)
    raise UsageError(
        "there is neither origin/main nor another branch to compare with",
        hint="git fetch origin main, or name one with --base",
    )


def _defaults(git: Git) -> Iterator[str]:
    """Yield what may be the base, the best first; a remote's HEAD leads to the branch it stands for."""
    yield "refs/remotes/origin/main"
    lines = _lines(git.tell("for-each-ref", "--format=%(refname) %(symref)", "refs/remotes"))
    heads = dict(line.split(" ", 1) for line in lines if line.split(" ", 1)[0].endswith("/HEAD"))
    for ref in sorted(heads, key=lambda ref: (ref != "refs/remotes/origin/HEAD", ref)):
        yield heads[ref] or ref
    yield from ("refs/remotes/origin/master", "refs/heads/main", "refs/heads/master")


def _commit(git: Git, ref: str) -> str:
    return git.line("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}", fine=(1, 128))


def _no_such_base(git: Git, wanted: str) -> UsageError:
    from difflib import get_close_matches

    refs = [_short(ref) for ref in _lines(git.tell("for-each-ref", "--format=%(refname)"))]
    tails = {ref.rpartition("/")[2]: ref for ref in refs}
    near = get_close_matches(wanted, refs, n=3, cutoff=0.6)
    near += [tails[tail] for tail in get_close_matches(wanted.rpartition("/")[2], tails, n=2, cutoff=0.8)]
    remote, _, branch = wanted.partition("/")
    remotes = _lines(git.tell("remote"))
    if near:
        hint = f"did you mean {' or '.join(dict.fromkeys(near))}?"
    elif remote in remotes and branch:
        hint = f"git fetch {remote} {branch} brings it, if it is there"
    else:
        hint = "git branch --all lists what there is"
    return UsageError(f"no commit, branch or tag {wanted!a} here to compare with", hint=hint)


def _no_merge_base(base: Base, *, shallow: bool) -> CannotJudge:
    if shallow:
        return CannotJudge(
            f"this shallow clone doesn't reach back to where the branch left {base.ref}",
            hint="git fetch --unshallow, or --deepen=100 until it does (actions/checkout: fetch-depth: 0)",
        )
    return CannotJudge(f"this branch and {base.ref} have no commit in common", hint="name another --base")


def _lines(data: bytes) -> list[str]:
    """Return the lines of what git wrote about refs, which hold no newline."""
    return data.decode(errors="surrogateescape").splitlines()


def _short(ref: str) -> str:
    for start in ("refs/heads/", "refs/remotes/", "refs/tags/"):
        if ref.startswith(start):
            return ref.removeprefix(start)
    return ref


def _how(status: str, old: str, new: str) -> How:
    if _SUBMODULE in (old, new):
        return How.SUBMODULE
    if status[0] == "M" and old != new:
        return How.MODE
    return {"A": How.ADDED, "D": How.DELETED, "T": How.TYPE, "U": How.UNMERGED}.get(status[0], How.MODIFIED)
