"""Which files of a checkout a stage's build reads: its inputs, its minimal context and its digest.

Contract: BuildKit's context filter (``tonistiigi/fsutil``): wildcards as Go's ``filepath.Match``, links
resolved inside the context and sent along with what they lead to, ``.dockerignore`` applied to all of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from xbtasks.checkout.dockerfile.patterns import (
    BadPatternError,
    IgnorePatterns,
    deep_match,
    has_wildcard,
    match,
)
from xbtasks.checkout.tree import Checkout, Kind
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from xbtasks.backends.base import Platform
    from xbtasks.checkout.dockerfile.graph import How, Source
    from xbtasks.checkout.stages import Stage

__all__ = [
    "Input",
    "InputKind",
    "Naming",
    "Part",
    "What",
    "context_files",
    "digest_of",
    "digest_parts",
    "find_inputs",
    "input_digest",
]


class InputKind(StrEnum):
    """What an input is. EMPTY is a wildcard that matches nothing, which BuildKit lets pass."""

    FILE = "file"
    DIRECTORY = "dir"
    MISSING = "missing"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Naming:
    """The instruction that names an input: how, and its line in the Dockerfile, from 1."""

    how: How
    line: int

    def __str__(self) -> str:
        return f"{self.how} in line {self.line}"


@dataclass(frozen=True, slots=True)
class Input:
    """A file or directory of the checkout that a stage's build reads.

    ``path`` is relative to the checkout, links on the way as written; ``note`` says why it is missing.
    """

    path: str
    kind: InputKind
    named_by: tuple[Naming, ...]
    note: str = field(default="")


class What(StrEnum):
    """What a part of an input digest is."""

    TEXT = "text"
    ARGUMENT = "argument"
    IGNORE_FILE = "ignore file"
    INPUT = "input"


@dataclass(frozen=True, slots=True)
class Part:
    """One of the things that an input digest covers: its name, and the values that count.

    Those of an input are its kind, and its SHA-256 or link target.
    """

    what: What
    name: str
    values: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    """A path that a source stands for and what of the checkout it takes along."""

    path: str
    kind: InputKind
    note: str = field(default="")
    takes: tuple[str, ...] = field(default=())


def find_inputs(checkout: Checkout, sources: Iterable[Source]) -> tuple[Input, ...]:
    """Return the inputs behind ``sources``, sorted by path, each once.

    Raises:
        UsageError: something in the checkout can't be read.
    """
    ignored = checkout.ignored()
    found: dict[str, _Found] = {}
    named_by: dict[str, list[Naming]] = {}
    for source in sources:
        for each in _find(checkout, ignored, source):
            found[each.path] = each
            naming = Naming(source.how, source.line)
            if naming not in named_by.setdefault(each.path, []):
                named_by[each.path].append(naming)
    return tuple(
        Input(path, found[path].kind, tuple(named_by[path]), found[path].note) for path in sorted(found)
    )


def context_files(stage: Stage, repo: Path) -> tuple[tuple[str, Path], ...]:
    """Return what a minimal context of ``stage`` holds, sorted: path in the context, absolute path.

    The Dockerfile, the ignore files and what the stage's mounts, COPY and ADD name, for all its platforms.
    Links are links; a directory is listed only where it is empty.

    Raises:
        UsageError: an input is missing or something can't be read.
    """
    checkout = Checkout(repo, stage.dockerfile)
    ignored = checkout.ignored()
    recipes = [each for each in stage.recipes if each.platform in stage.platforms] or stage.recipes
    paths = {*checkout.dockerfile_place.links, checkout.dockerfile_place.end, *checkout.ignore_files}
    for source in dict.fromkeys(source for recipe in recipes for source in recipe.sources):
        for each in _find(checkout, ignored, source):
            if each.kind is InputKind.MISSING:
                where = f"{stage.dockerfile}:{source.line}"
                raise UsageError(f"{where}: {source.how} needs {each.path}, which {each.note}")
            paths.update(_leaves(checkout, ignored, each.takes))
    return tuple((path, checkout.path(path)) for path in sorted(paths))


def input_digest(stage: Stage, platform: Platform, repo: Path) -> str:
    """Return the SHA-256 (hex) of all that the build of ``stage`` for ``platform`` reads from ``repo``.

    The instructions that it needs, the values of their ARGs, the ignore files, and of each input path, type,
    exec bit, content or link target; what is missing is not there. Time stamps, owners and the order of
    directories don't count.

    Raises:
        UsageError: nothing can be built for ``platform``, or something can't be read.
    """
    return digest_of(stage, platform, digest_parts(stage, platform, Checkout(repo, stage.dockerfile)))


def digest_parts(stage: Stage, platform: Platform, checkout: Checkout) -> tuple[Part, ...]:
    """Return what the input digest of ``stage`` for ``platform`` covers, in its order.

    Raises:
        UsageError: nothing can be built for ``platform``, or something can't be read.
    """
    recipe = next((each for each in stage.recipes if each.platform is platform), None)
    if recipe is None:
        raise UsageError(f"{stage.name} can't be built for {platform}")
    ignored = checkout.ignored()
    parts = [Part(What.TEXT, "", (_raw(recipe.text),))]
    parts += [Part(What.ARGUMENT, name, (_raw(value),)) for name, value in recipe.arguments]
    parts += [Part(What.IGNORE_FILE, name, (checkout.read(name),)) for name in checkout.ignore_files]
    paths: set[str] = set()
    for source in dict.fromkeys(recipe.sources):
        for each in _find(checkout, ignored, source):
            paths.update(_leaves(checkout, ignored, each.takes))
    parts += [Part(What.INPUT, path, _content(checkout, path)) for path in sorted(paths)]
    return tuple(parts)


def digest_of(stage: Stage, platform: Platform, parts: Iterable[Part]) -> str:
    """Return the input digest (hex) that :func:`digest_parts` are the parts of."""
    from hashlib import sha256

    total = sha256()

    def add(*values: bytes) -> None:
        for value in values:
            total.update(b"%d:" % len(value))
            total.update(value)

    add(b"xbtasks input digest 1", platform.encode(), _raw(stage.name))
    for part in parts:
        if part.what is not What.TEXT:
            add(part.what.encode(), _raw(part.name))
        add(*part.values)
    return total.hexdigest()


def _content(checkout: Checkout, path: str) -> tuple[bytes, bytes]:
    kind = checkout.kind(path)
    if kind is Kind.LINK:
        return kind.encode(), _raw(checkout.target(path))
    if kind in (Kind.FILE, Kind.EXECUTABLE):
        return kind.encode(), checkout.sha256(path)
    return (kind or InputKind.MISSING).encode(), b""


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _leaves(checkout: Checkout, ignored: IgnorePatterns, takes: Iterable[str]) -> Iterator[str]:
    for path in takes:
        yield from checkout.leaves(path, ignored)


def _find(checkout: Checkout, ignored: IgnorePatterns, source: Source) -> list[_Found]:
    """Return what ``source`` stands for: one path, or the matches of a pattern."""
    if not source.pattern or not has_wildcard(source.path):
        return [_literal(checkout, ignored, source.path)]
    try:
        matches = _deep_matches(checkout, source.path) if source.parents else _matches(checkout, source.path)
    except BadPatternError as error:
        return [_Found(source.path, InputKind.MISSING, f"is a malformed pattern: {error}")]
    if matches is None:
        return [_Found(source.path, InputKind.MISSING, "is missing")]
    found = [_literal(checkout, ignored, path) for path in matches if not ignored.ignores(path)]
    return found or [_Found(source.path, InputKind.EMPTY, "matches nothing")]


def _literal(checkout: Checkout, ignored: IgnorePatterns, path: str) -> _Found:
    place = checkout.follow(path)
    if place.problem:
        return _Found(path, InputKind.MISSING, place.problem)
    takes = (*place.links, place.end)
    lost = next((link for link in place.links if ignored.ignores(link)), "")
    kept = not checkout.ignore_files or place.end == "." or any(checkout.leaves(place.end, ignored))
    if lost or not kept:
        return _Found(path, InputKind.MISSING, f"is left out by {checkout.ignore_files[0]}")
    kind = InputKind.DIRECTORY if checkout.kind(place.end) is Kind.DIRECTORY else InputKind.FILE
    return _Found(path, kind, "", takes)


def _split(pattern: str) -> tuple[str, list[str]]:
    parts = pattern.split("/")
    first = next(at for at, part in enumerate(parts) if has_wildcard(part))
    return "/".join(parts[:first]) or ".", parts[first:]


def _matches(checkout: Checkout, pattern: str) -> list[str] | None:
    """Return what matches a COPY or ADD pattern, or None if the directory before its wildcards is missing."""
    start, parts = _split(pattern)
    place = checkout.follow(start)
    if place.problem:
        return None
    # (path as named, path as resolved): links are followed before the first wildcard, and not after it
    level = [(start, place.end)]
    for part in parts:
        match(part, "")
        level = [
            (_join(named, name), _join(real, name))
            for named, real in level
            if checkout.kind(real) is Kind.DIRECTORY
            for name in checkout.names(real)
            if match(part, name)
        ]
    return [named for named, _ in level]


def _deep_matches(checkout: Checkout, pattern: str) -> list[str] | None:
    start, _ = _split(pattern)
    place = checkout.follow(start)
    if place.problem:
        return None
    leaves = checkout.leaves(place.end, IgnorePatterns())
    named = (_join(start, leaf.removeprefix("" if place.end == "." else f"{place.end}/")) for leaf in leaves)
    return sorted(path for path in named if deep_match(pattern, path))


def _join(directory: str, name: str) -> str:
    return name if directory == "." else f"{directory}/{name}"
