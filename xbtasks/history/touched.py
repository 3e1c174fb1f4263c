"""Which builder stages a branch touches, and why: what ``inv changed`` tells.

A stage is *touched* when its input digest is not what it was at the merge base. It is *offered* when its
build reads nothing that changed, but a change close by might be about it: a file under
``external/<backend>/`` that no stage reads, or the Dockerfile outside of its builder stages.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import TYPE_CHECKING

from xbtasks.backends import BACKENDS
from xbtasks.checkout.inputs import What, digest_of, digest_parts
from xbtasks.checkout.stages import Discovery, discover_in
from xbtasks.checkout.tree import Checkout
from xbtasks.errors import UsageError
from xbtasks.history.before import CheckoutBefore
from xbtasks.history.divergence import Divergence, diverge, since
from xbtasks.history.git import Git
from xbtasks.history.reasons import Because, Reason, View, compare
from xbtasks.history.surroundings import Surroundings, look_around

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from xbtasks.backends.base import Platform
    from xbtasks.checkout.stages import Stage

__all__ = ["FileChange", "State", "Touched", "TouchedStage", "find_touched"]


_OF_THE_DOCKERFILE = frozenset(Because) - {Because.IGNORE_FILE, Because.INPUT, Because.EXTERNAL}


class State(StrEnum):
    """How a stage stands against the merge base; both say that it should be verified."""

    TOUCHED = "touched"
    OFFERED = "offered"


@dataclass(frozen=True, slots=True)
class TouchedStage:
    """A stage to verify: how it stands, why, on which platforms, and its input digests then and now.

    A digest is empty where there was no such stage or platform. ``missing`` are inputs that the checkout
    lacks, so that its build will fail.
    """

    name: str
    backend: str
    state: State
    reasons: tuple[Reason, ...]
    platforms: tuple[Platform, ...]
    digests: tuple[tuple[Platform, str, str], ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileChange:
    """A path that changed, how, and the stages whose build reads it, then or now."""

    path: str
    how: str
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Touched:
    """What a branch touches. ``untouched`` and ``removed`` are names of stages; ``notes`` are for people."""

    repo: Path
    dockerfile: str
    divergence: Divergence
    stages: tuple[TouchedStage, ...]
    untouched: tuple[str, ...]
    removed: tuple[str, ...]
    files: tuple[FileChange, ...]
    notes: tuple[str, ...]

    def named(self, state: State) -> tuple[str, ...]:
        """Return the names of the stages in a state."""
        return tuple(stage.name for stage in self.stages if stage.state is state)

    @property
    def to_verify(self) -> tuple[str, ...]:
        """The stages to verify, in the order of the Dockerfile, what is touched first."""
        return tuple(name for state in State for name in self.named(state))


def find_touched(repo: Path, dockerfile: str, base: str, tip: str = "") -> Touched:
    """Return which stages of the checkout ``repo`` differ from the merge base with ``base`` ("": a default).

    With ``tip`` it is the checkout as that commit has it, whatever the working tree holds.

    Raises:
        UsageError: no such base or tip, no repository, or a Dockerfile that can't be read.
        CannotJudge: there is no merge base, or git can't tell.
    """
    git = Git(repo)
    if tip:
        divergence = diverge(git, base, tip)
        at = since(git, divergence, divergence.head)
        checkout: Checkout = CheckoutBefore(repo, dockerfile, git, at)
        return _Comparison(checkout, git, divergence, since(git, divergence, divergence.merge_base)).report()
    checkout = Checkout(repo, dockerfile)
    divergence = diverge(git, base)
    return _Comparison(checkout, git, divergence, divergence).report()


class _Side:
    """The stages of a checkout, then or now: their digests' parts, and what stands around them."""

    def __init__(self, checkout: Checkout) -> None:
        self.discovery: Discovery = discover_in(checkout)
        self.around: Surroundings = look_around(checkout)
        self.stages = {stage.name: stage for stage in self.discovery.stages}
        self.views = {
            (stage.name, recipe.platform): View(stage, recipe, digest_parts(stage, recipe.platform, checkout))
            for stage in self.discovery.stages
            for recipe in stage.recipes
            if recipe.platform in (stage.platforms or (recipe.platform,))
        }

    def readers(self) -> dict[str, list[str]]:
        """Return the stages that read each path."""
        readers: dict[str, list[str]] = {}
        for (name, _), view in self.views.items():
            for part in view.parts:
                if part.what is not What.TEXT and part.what is not What.ARGUMENT:
                    readers.setdefault(part.name, []).append(name)
        return readers


class _Comparison:
    """A checkout against the merge base; ``back`` leads there from the working tree."""

    def __init__(self, checkout: Checkout, git: Git, divergence: Divergence, back: Divergence) -> None:
        self._checkout = checkout
        self._divergence = divergence
        self._changes = {change.path: change for change in divergence.changes}
        self._now = _Side(checkout)
        self._before: _Side | None = None
        self._notes: list[str] = []
        try:
            self._before = _Side(CheckoutBefore(checkout.root, checkout.dockerfile, git, back))
        except UsageError as error:
            self._notes.append(f"as the merge base had it: {error.message}; so every stage counts as new")
        self._readers = self._now.readers()
        for path, names in (self._before.readers() if self._before else {}).items():
            self._readers.setdefault(path, []).extend(names)

    def report(self) -> Touched:
        reasons = {name: self._touches(stage) for name, stage in self._now.stages.items()}
        touched = {name for name, why in reasons.items() if why}
        for name, reason in (*self._unread_external(), *self._outside()):
            if name not in touched:
                reasons[name] = tuple(dict.fromkeys((*reasons[name], reason)))
        stages = tuple(
            self._stage(stage, State.TOUCHED if name in touched else State.OFFERED, reasons[name])
            for name, stage in self._now.stages.items()
            if reasons[name]
        )
        before = self._before.stages if self._before else {}
        everything = [reason for why in reasons.values() for reason in why]
        self._note_the_dockerfile(everything)
        self._note_the_rest(reason.subject for reason in everything if reason.because is Because.EXTERNAL)
        return Touched(
            self._checkout.root,
            self._checkout.dockerfile,
            self._divergence,
            stages,
            tuple(name for name, why in reasons.items() if not why),
            tuple(name for name in before if name not in self._now.stages),
            tuple(
                FileChange(path, str(change), tuple(dict.fromkeys(self._readers.get(path, ()))))
                for path, change in self._changes.items()
            ),
            tuple(dict.fromkeys(self._notes)),
        )

    def _touches(self, stage: Stage) -> tuple[Reason, ...]:
        """Return why the build of ``stage`` is not what it was; a platform is named where it is the one."""
        before = self._before.stages.get(stage.name) if self._before else None
        if before is None:
            return (Reason(Because.NEW, stage.name, "the merge base has no such stage"),)
        found: dict[Reason, list[Platform]] = {}
        for platform in dict.fromkeys((*before.platforms, *stage.platforms)):
            for reason in self._compare(stage, platform):
                found.setdefault(reason, []).append(platform)
        several = len(stage.platforms) > 1
        return tuple(
            Reason(reason.because, reason.subject, f"{reason.text}, on {where[0]} alone")
            if several and len(where) == 1 and reason.because is not Because.PLATFORM
            else reason
            for reason, where in found.items()
        )

    def _compare(self, stage: Stage, platform: Platform) -> tuple[Reason, ...]:
        new = self._now.views.get((stage.name, platform))
        old = self._before.views.get((stage.name, platform)) if self._before else None
        if old and new:
            return compare(old, new, self._changes)
        told = "can be built for" if new else "can no longer be built for"
        return (Reason(Because.PLATFORM, platform.value, f"{told} {platform}"),)

    def _stage(self, stage: Stage, state: State, reasons: tuple[Reason, ...]) -> TouchedStage:
        digests = []
        for platform in stage.platforms:
            pair = [
                digest_of(view.stage, platform, view.parts) if view else ""
                for side in (self._before, self._now)
                for view in (side.views.get((stage.name, platform)) if side else None,)
            ]
            digests.append((platform, pair[0], pair[1]))
        return TouchedStage(
            stage.name,
            stage.backend.name,
            state,
            reasons,
            tuple(platform for platform, old, new in digests if old != new),
            tuple(digests),
            tuple(each.path for each in stage.missing),
        )

    def _unread_external(self) -> Iterator[tuple[str, Reason]]:
        """Yield the stages of a backend under whose folder something changed that no stage reads."""
        here = posixpath.dirname(self._checkout.dockerfile)
        roots = tuple(dict.fromkeys(posixpath.join(place, "external/") for place in (here, "")))
        for path, change in self._changes.items():
            root = next((each for each in roots if path.startswith(each)), None)
            if root is None or path in self._readers:
                continue
            folder, inside, _ = path.removeprefix(root).partition("/")
            if inside and folder not in BACKENDS:
                self._notes.append(f"{path} {change}: no backend here knows {root}{folder}")
                continue
            text = f"{path} {change}: no stage reads it"
            for name, stage in self._now.stages.items():
                if not inside or stage.backend.name == folder:
                    yield name, Reason(Because.EXTERNAL, path, text)

    def _outside(self) -> Iterator[tuple[str, Reason]]:
        """Yield the stages that a change of the Dockerfile outside of its builder stages may be about.

        One that takes files from a builder stage is about that stage; any other one may be about all of them.
        """
        if self._before is None:
            return
        lines: dict[str, list[str]] = {}
        # What merely went in or out is told of the stage that it went into or out of.
        old = [each for each in self._before.around.outside if each.text not in self._now.around.inside]
        new = [each for each in self._now.around.outside if each.text not in self._before.around.inside]
        before, after = ([each.text for each in side] for side in (old, new))
        for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            where = [str(each.line) for each in new[k:m]] or [f"{each.line} of old" for each in old[i:j]]
            for each in (*old[i:j], *new[k:m]):
                for name in (each.takes_from,) if each.takes_from else self._now.stages:
                    lines.setdefault(name, []).extend(where)
        for name in self._now.stages.keys() & lines.keys():
            where = list(dict.fromkeys(lines[name]))
            text = f"{self._checkout.dockerfile} changed outside of its builder stages: line {_some(where)}"
            yield name, Reason(Because.DOCKERFILE, self._checkout.dockerfile, text)

    def _note_the_dockerfile(self, reasons: Iterable[Reason]) -> None:
        """Say so where the Dockerfile changed and no build reads that change."""
        if self._before is None:
            return
        others = dict(self._before.around.others)
        changed = [name for name, text in self._now.around.others if others.get(name) != text]
        self._notes += [f"{name} changed: no backend here knows it" for name in changed]
        gone = self._before.stages.keys() - self._now.stages.keys()
        told = bool(changed or gone) or any(reason.because in _OF_THE_DOCKERFILE for reason in reasons)
        place = self._checkout.dockerfile_place
        if not told and any(path in self._changes for path in (*place.links, place.end)):
            self._notes.append(
                f"{self._checkout.dockerfile} changed in what no build reads: comments, blanks, order"
            )

    def _note_the_rest(self, told: Iterable[str]) -> None:
        """Name what hides changes, and what changed that is neither read nor ``told``."""
        read = {path for path in self._divergence.hidden if path in self._readers}
        if read:
            self._notes.append(
                f"git was told to see no change in {_some(sorted(read))} (assume-unchanged or skip-worktree)"
            )
        place = self._checkout.dockerfile_place
        told = {*place.links, place.end, *self._readers, *told}
        rest = [path for path in self._changes if path not in told]
        if rest:
            self._notes.append(f"no stage reads {_some(rest)}")


def _some(paths: list[str]) -> str:
    more = len(paths) - 3
    return ", ".join(paths[:3]) + (f" and {more} more" if more > 0 else "")
