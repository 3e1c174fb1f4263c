"""The builder stages of an operator checkout.

A *builder stage* is a stage whose name begins with ``xbuild-``. Those of a known backend are listed; the legs
of an alias (``FROM xbuild-x-${TARGETARCH} AS xbuild-x``) are part of the alias, and not stages of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xbtasks.backends import BACKENDS, backend_of
from xbtasks.checkout.dockerfile.buildstages import sections
from xbtasks.checkout.dockerfile.parser import parse
from xbtasks.checkout.dockerfile.targets import BUILDER_PREFIX, Recipe, Target
from xbtasks.checkout.inputs import Input, InputKind, context_files, find_inputs, input_digest
from xbtasks.checkout.tree import Checkout, find_repo
from xbtasks.errors import UsageError
from xbtasks.nearest import nearest

if TYPE_CHECKING:
    from pathlib import Path

    from xbtasks.backends.base import Backend, Platform
    from xbtasks.checkout.dockerfile.buildstages import Sections

__all__ = [
    "Discovery",
    "Reading",
    "Stage",
    "context_files",
    "discover",
    "discover_in",
    "find_repo",
    "find_stage",
    "input_digest",
    "read_dockerfile",
]

_PIN = re.compile(r"LIB_\w+_COMMIT\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Stage:
    """A builder stage of a known backend.

    ``dockerfile`` is relative to the checkout; ``line`` is that of the stage's FROM, from 1. ``base_images``
    are the external images at the root of its FROM lines, as written once expanded. ``pins`` are the
    ``LIB_*_COMMIT`` ARGs that its build uses; ``pin`` is the value of its own runtime's: the only one that it
    declares itself, else the only one at all, else None. ``platforms`` are those with something to build.
    ``cross_compiles`` tells that all its RUNs go to the builder's own platform. ``text`` is every instruction
    needed on any of them; ``recipes`` are for all platforms.
    """

    name: str
    backend: Backend
    suffix: str
    dockerfile: str
    line: int
    base_images: tuple[str, ...]
    pins: tuple[tuple[str, str], ...]
    pin: str | None
    platforms: tuple[Platform, ...]
    cross_compiles: bool
    inputs: tuple[Input, ...]
    text: str = field(repr=False)
    recipes: tuple[Recipe, ...] = field(repr=False)

    @property
    def base_image(self) -> str:
        """The base image; where it depends on the platform, all of them with commas between."""
        return ", ".join(self.base_images)

    @property
    def missing(self) -> tuple[Input, ...]:
        """The inputs that the checkout doesn't have, or that its ignore file leaves out."""
        return tuple(each for each in self.inputs if each.kind is InputKind.MISSING)


@dataclass(frozen=True, slots=True)
class Discovery:
    """The builder stages of a checkout, in the order of the Dockerfile.

    ``dockerfile`` is relative to ``repo``; ``others`` are the names of builder stages that no backend here
    knows; ``legs`` are pairs of an alias leg and its alias.
    """

    repo: Path
    dockerfile: str
    stages: tuple[Stage, ...]
    others: tuple[str, ...]
    legs: tuple[tuple[str, str], ...]


def discover(repo: Path, dockerfile: str) -> Discovery:
    """Return the builder stages in the Dockerfile of a checkout, with their inputs looked up.

    Raises:
        UsageError: the Dockerfile is missing, unreadable, no text, or what BuildKit refuses.
    """
    return discover_in(Checkout(repo, dockerfile))


def discover_in(checkout: Checkout) -> Discovery:
    """Return the builder stages of ``checkout``, which may be one as it was.

    Raises:
        UsageError: the Dockerfile is unreadable, no text, or what BuildKit refuses.
    """
    read = read_dockerfile(checkout)
    listed = [(name, backend_of(name)) for name in read.listed]
    return Discovery(
        checkout.root,
        checkout.dockerfile,
        tuple(_stage(read.targets[name], backend, checkout) for name, backend in listed if backend),
        tuple(name for name, backend in listed if not backend),
        tuple(read.legs.items()),
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """A Dockerfile as it was read: its sections, its builder stages as targets, and the legs of aliases."""

    sections: Sections
    targets: dict[str, Target]
    legs: dict[str, str]

    @property
    def listed(self) -> tuple[str, ...]:
        """The names of the builder stages, legs left out."""
        return tuple(name for name in self.targets if name not in self.legs)


def read_dockerfile(checkout: Checkout) -> Reading:
    """Return the Dockerfile of ``checkout`` with its builder stages resolved.

    Raises:
        UsageError: it is unreadable, no text, or what BuildKit refuses.
    """
    raw = checkout.read(checkout.dockerfile_place.end)
    if b"\0" in raw:
        raise UsageError(f"{checkout.dockerfile} is not a text file")
    found = sections(parse(raw.decode("utf-8", "surrogateescape"), checkout.dockerfile))
    names = dict.fromkeys(each.name for each in found.stages if each.name.startswith(BUILDER_PREFIX))
    targets = {name: Target(found, name) for name in names}
    return Reading(found, targets, {leg: name for name, target in targets.items() for leg in target.legs})


def find_stage(discovery: Discovery, name: str) -> Stage:
    """Return the stage called ``name``.

    Raises:
        UsageError: there is none; the nearest names are given.
    """
    for stage in discovery.stages:
        if stage.name == name:
            return stage
    names = [stage.name for stage in discovery.stages]
    alias = dict(discovery.legs).get(name)
    if alias:
        raise UsageError(f"{name} is what {alias} is on one platform", hint=f"name {alias}")
    if name in discovery.others:
        known = " and ".join(f"{backend.stage_prefix}*" for backend in BACKENDS.values())
        raise UsageError(f"no backend here knows the stage {name}", hint=f"there are backends for {known}")
    if any(name == backend.stage_prefix for backend in BACKENDS.values()):
        problem = f"the stage name {name} lacks its suffix"
    else:
        problem = f"no stage {name!a} in {discovery.dockerfile}"
    near = " or ".join(nearest(name, names, most=8))
    hint = f"it has {', '.join(names)}" if names else "it has no stage to build"
    raise UsageError(problem, hint=f"did you mean {near}?" if near else hint)


def _stage(target: Target, backend: Backend, checkout: Checkout) -> Stage:
    recipes, platforms = target.recipes, target.platforms
    used = [recipe for recipe in recipes if recipe.platform in platforms] or recipes
    arguments = dict.fromkeys(pair for recipe in used for pair in recipe.arguments)
    pins = tuple((name, value) for name, value in arguments if _PIN.match(name))
    return Stage(
        name=target.stage.name,
        backend=backend,
        suffix=target.stage.name.removeprefix(backend.stage_prefix),
        dockerfile=checkout.dockerfile,
        line=target.stage.header.line,
        base_images=tuple(dict.fromkeys(image for recipe in used for image in recipe.base_images)),
        pins=pins,
        pin=_own_pin(target, pins),
        platforms=platforms,
        cross_compiles=target.cross_compiles,
        inputs=find_inputs(checkout, dict.fromkeys(source for recipe in used for source in recipe.sources)),
        text="\n".join(dict.fromkeys(recipe.text for recipe in used)),
        recipes=recipes,
    )


def _own_pin(target: Target, pins: tuple[tuple[str, str], ...]) -> str | None:
    words = [word for each in target.stage.body if each.keyword == "ARG" for word in each.args]
    declared = {word.partition("=")[0] for word in words}
    own = {value for name, value in pins if name in declared}
    values = own or {value for _, value in pins}
    return values.pop() if len(values) == 1 else None
