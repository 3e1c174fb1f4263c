"""The builder stages of an operator checkout.

A *builder stage* is a stage whose name begins with ``xbuild-``. Those of a known backend are listed; the legs
of an alias (``FROM xbuild-x-${TARGETARCH} AS xbuild-x``) are part of the alias, and not stages of their own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from xbtasks.backends import BACKENDS, backend_of
from xbtasks.backends.base import Backend, Platform
from xbtasks.checkout import Checkout, find_repo
from xbtasks.dockerfile.buildstages import Sections, sections
from xbtasks.dockerfile.graph import Graph, Source
from xbtasks.dockerfile.parser import parse
from xbtasks.errors import UsageError
from xbtasks.inputs import Input, InputKind, context_files, find_inputs, input_digest

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "Discovery",
    "Recipe",
    "Stage",
    "context_files",
    "discover",
    "find_repo",
    "find_stage",
    "input_digest",
]

BUILDER_PREFIX: Final = "xbuild-"
_PIN = re.compile(r"LIB_\w+_COMMIT\Z")


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a stage's build needs on one platform, whatever platform the builder runs on.

    ``base_images`` are the images at the root of its FROM lines, ``arguments`` the values of the ARGs that it
    uses, ``sources`` the paths of the context that it names, ``text`` its instructions and nothing else.
    """

    platform: Platform
    base_images: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    text: str
    own_arguments: frozenset[str]


@dataclass(frozen=True, slots=True)
class Stage:
    """A builder stage of a known backend.

    ``line`` is that of its FROM, ``dockerfile`` is relative to the checkout, ``base_images`` are the external
    images at the root of its FROM lines as written once expanded, ``pins`` the ``LIB_*_COMMIT`` ARGs it uses,
    ``text`` the instructions it needs on any of its platforms.
    """

    name: str
    backend: Backend
    suffix: str
    dockerfile: str
    line: int
    base_images: tuple[str, ...]
    pins: tuple[tuple[str, str], ...]
    platforms: tuple[Platform, ...]
    inputs: tuple[Input, ...]
    text: str = field(repr=False)
    recipes: tuple[Recipe, ...] = field(repr=False)

    @property
    def base_image(self) -> str:
        """The base image; several, one per platform, are separated by commas."""
        return ", ".join(self.base_images)

    @property
    def pin(self) -> str | None:
        """The commit of its own runtime's source, or None where there is no such ARG or no telling which."""
        own = {name for recipe in self.recipes for name in recipe.own_arguments}
        values = {value for name, value in self.pins if name in own} or {value for _, value in self.pins}
        return values.pop() if len(values) == 1 else None

    @property
    def missing(self) -> tuple[Input, ...]:
        """The inputs that the checkout doesn't have."""
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
    checkout = Checkout(repo, dockerfile)
    raw = checkout.read(checkout.dockerfile_place.end)
    if b"\0" in raw:
        raise UsageError(f"{checkout.dockerfile} is not a text file")
    found = sections(parse(raw.decode("utf-8", "surrogateescape"), checkout.dockerfile))
    names = list(dict.fromkeys(each.name for each in found.stages if each.name.startswith(BUILDER_PREFIX)))
    views = {name: _View(found, name) for name in names}
    legs = {leg: name for name in names for leg in views[name].legs}
    listed = [name for name in names if name not in legs]
    known = [(name, backend) for name in listed if (backend := backend_of(name))]
    return Discovery(
        repo,
        checkout.dockerfile,
        tuple(_stage(views[name], backend, checkout) for name, backend in known),
        tuple(name for name in listed if backend_of(name) is None),
        tuple(legs.items()),
    )


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
    if name in discovery.others:
        problem = f"no backend here knows the stage {name}"
    elif alias:
        problem = f"{name} is only the leg of {alias} for one platform"
    elif any(name == backend.stage_prefix for backend in BACKENDS.values()):
        problem = f"{name} is a stage name without its suffix"
    else:
        problem = f"no stage {name!a} in {discovery.dockerfile}"
    nearest = [alias] if alias else _nearest(name, names)
    raise UsageError(
        problem, hint=f"did you mean {' or '.join(nearest)}?" if nearest else "it has none to build"
    )


def _nearest(name: str, names: list[str]) -> list[str]:
    from difflib import get_close_matches

    started = [each for each in names if name and each.startswith(name)]
    return (started or get_close_matches(name.lower(), names, n=3, cutoff=0.4) or names)[:8]


def _stage(view: _View, backend: Backend, checkout: Checkout) -> Stage:
    recipes = tuple(view.recipe(platform) for platform in view.graphs)
    used = [recipe for recipe in recipes if recipe.platform in view.platforms] or list(recipes)
    arguments = dict.fromkeys(pair for recipe in used for pair in recipe.arguments)
    sources = dict.fromkeys(source for recipe in used for source in recipe.sources)
    return Stage(
        name=view.stage.name,
        backend=backend,
        suffix=view.stage.name.removeprefix(backend.stage_prefix),
        dockerfile=checkout.dockerfile,
        line=view.stage.header.line,
        base_images=_unique(image for recipe in used for image in recipe.base_images),
        pins=tuple((name, value) for name, value in arguments if _PIN.match(name)),
        platforms=view.platforms,
        inputs=find_inputs(checkout, sources),
        text="\n".join(_unique(recipe.text for recipe in used)),
        recipes=recipes,
    )


def _unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


class _View:
    """One builder stage on every platform, seen from builders of every platform."""

    def __init__(self, found: Sections, name: str) -> None:
        self._found = found
        self.stage = next(each for each in reversed(found.stages) if each.name == name)
        self.graphs: dict[Platform, tuple[Graph, ...]] = {}
        refused: list[UsageError] = []
        for platform in Platform:
            try:
                self.graphs[platform] = tuple(Graph(found, platform, build, name) for build in Platform)
            except UsageError as error:  # BuildKit builds nothing for this platform, maybe for another one
                refused.append(error)
        if not self.graphs:
            raise refused[0]
        self.chains = {
            platform: graphs[0].chain(self.stage.index) for platform, graphs in self.graphs.items()
        }

    @property
    def legs(self) -> tuple[str, ...]:
        """The names of the stages that an alias is FROM on one platform or another."""
        bases = {graphs[0].base(self.stage.index).stage for graphs in self.graphs.values()}
        legs = sorted(base for base in bases if base is not None) if len(bases) > 1 else ()
        return tuple(self._found.stages[leg].name for leg in legs)

    @property
    def platforms(self) -> tuple[Platform, ...]:
        """The platforms for which the stage has something to build."""
        idle = self._idle()
        return tuple(
            platform
            for platform in self.graphs
            if platform not in idle and self._has_all_legs(platform) and self._is_allowed(platform)
        )

    def recipe(self, platform: Platform) -> Recipe:
        """Return what the stage needs on ``platform``, from a builder of any platform."""
        closures = [graph.closure(self.stage.index) for graph in self.graphs[platform]]
        return Recipe(
            platform,
            _unique(closure.root.name for closure in closures),
            tuple(dict.fromkeys(pair for closure in closures for pair in closure.arguments)),
            tuple(dict.fromkeys(source for closure in closures for source in closure.sources)),
            "\n".join(_unique(closure.text for closure in closures)),
            self._own_arguments(),
        )

    def _own_arguments(self) -> frozenset[str]:
        arguments = (each for each in self.stage.body if each.keyword == "ARG")
        return frozenset(word.partition("=")[0] for each in arguments for word in each.args)

    def _has_all_legs(self, platform: Platform) -> bool:
        """Tell whether no FROM that is a stage on another platform is taken for an image on this one."""
        for index in self.chains[platform]:
            base = self.graphs[platform][0].base(index)
            elsewhere = any(graphs[0].base(index).stage is not None for graphs in self.graphs.values())
            if base.stage is None and (elsewhere or base.name.startswith(BUILDER_PREFIX)):
                return False
        return True

    def _idle(self) -> frozenset[Platform]:
        """Return the platforms on which an alias has an empty leg.

        An alias does nothing itself; a leg is empty if what only it is FROM adds no file while another leg
        does, or if nothing down its FROM lines does.
        """
        chains = {platform: list(chain) for platform, chain in self.chains.items()}
        shared = set.intersection(*map(set, chains.values()))
        legs = {
            platform: [index for index in chain if index not in shared] for platform, chain in chains.items()
        }
        if not any(legs.values()):
            return frozenset()
        above = list(takewhile(shared.__contains__, next(iter(chains.values()))))
        if any(self._works(platform, above) for platform in chains):
            return frozenset()
        busy = {platform for platform, leg in legs.items() if self._works(platform, leg)} or {
            platform for platform, chain in chains.items() if self._works(platform, chain)
        }
        return frozenset(chains) - busy

    def _works(self, platform: Platform, indexes: Iterable[int]) -> bool:
        return any(self.graphs[platform][0].works(index) for index in indexes)

    def _is_allowed(self, platform: Platform) -> bool:
        """Tell whether the ``--platform`` of the first FROM leaves ``platform`` possible.

        One that follows the builder's platform is a cross build, which fits any target.
        """
        root = self.chains[platform][-1]
        wanted = {graph.base(root).platform for graph in self.graphs[platform]}
        return len(wanted) > 1 or wanted <= {""} or _platform_of(wanted.pop()) is platform


def _platform_of(text: str) -> Platform | None:
    return Platform.from_machine(text.lower().removeprefix("linux/").partition("/")[0])
