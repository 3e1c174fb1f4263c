"""A stage as a build target: the platforms it can be built for, and what its build needs on each.

A leg of an alias (``FROM x-${TARGETARCH} AS x``) is the stage that the alias is FROM on one platform.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from xbtasks.backends.base import Platform
from xbtasks.checkout.dockerfile.graph import Graph
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xbtasks.checkout.dockerfile.buildstages import Sections
    from xbtasks.checkout.dockerfile.graph import Source

__all__ = ["BUILDER_PREFIX", "Recipe", "Target"]

BUILDER_PREFIX = "xbuild-"
"""What the name of every builder stage begins with."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a stage's build needs on one platform, whatever platform the builder runs on.

    ``base_images`` are the images at the root of its FROM lines, ``arguments`` the values of the ARGs that it
    uses, ``sources`` the paths of the context that it names, ``text`` its instructions and nothing else.
    ``members`` are the positions of the stages that it needs, ``declarations`` the global ARG lines.
    """

    platform: Platform
    base_images: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    text: str
    members: frozenset[int]
    declarations: frozenset[str]


class Target:
    """A stage as a target of builds for every platform, on builders of every platform."""

    def __init__(self, found: Sections, name: str) -> None:
        """Resolve the stages of a Dockerfile for the last one called ``name``.

        Raises:
            UsageError: BuildKit refuses the Dockerfile for every platform.
        """
        self._found = found
        self.stage = next(each for each in reversed(found.stages) if each.name == name)
        graphs: dict[Platform, tuple[Graph, ...]] = {}
        refused: list[UsageError] = []
        for platform in Platform:
            try:
                graphs[platform] = tuple(Graph(found, platform, build, name) for build in Platform)
            except UsageError as error:  # nothing can be built for this platform, but maybe for another one
                refused.append(error)
        if not graphs:
            raise refused[0]
        self._graphs = graphs
        self._chains = {platform: each[0].chain(self.stage.index) for platform, each in graphs.items()}

    @property
    def legs(self) -> tuple[str, ...]:
        """The names of the stages that it is FROM, if that depends on the platform."""
        bases = {graphs[0].base(self.stage.index).stage for graphs in self._graphs.values()}
        legs = sorted(base for base in bases if base is not None) if len(bases) > 1 else ()
        return tuple(self._found.stages[leg].name for leg in legs)

    @property
    def platforms(self) -> tuple[Platform, ...]:
        """The platforms for which there is something to build."""
        idle = self._idle()
        return tuple(
            platform
            for platform in self._graphs
            if platform not in idle and self._has_all_legs(platform) and self._is_allowed(platform)
        )

    @property
    def cross_compiles(self) -> bool:
        """Whether every RUN of its build is executed on the builder's own platform, whatever the target."""
        return all(
            {_platform_of(text) for text in graph.run_platforms(self.stage.index)} <= {build}
            for graphs in self._graphs.values()
            for build, graph in zip(Platform, graphs, strict=True)
        )

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """What the stage needs on each platform, also on those for which there is nothing to build.

        Raises:
            UsageError: an expansion in a stage that it needs fails.
        """
        return tuple(self._recipe(platform, graphs) for platform, graphs in self._graphs.items())

    def _recipe(self, platform: Platform, graphs: Iterable[Graph]) -> Recipe:
        closures = [graph.closure(self.stage.index) for graph in graphs]
        return Recipe(
            platform,
            tuple(dict.fromkeys(closure.root.name for closure in closures)),
            tuple(dict.fromkeys(pair for closure in closures for pair in closure.arguments)),
            tuple(dict.fromkeys(source for closure in closures for source in closure.sources)),
            "\n".join(dict.fromkeys(closure.text for closure in closures)),
            frozenset(member for closure in closures for member in closure.members),
            frozenset(line for closure in closures for line in closure.declarations),
        )

    def _has_all_legs(self, platform: Platform) -> bool:
        """Tell whether no FROM that is a stage on another platform is taken for an image on this one."""
        for index in self._chains[platform]:
            base = self._graphs[platform][0].base(index)
            elsewhere = any(graphs[0].base(index).stage is not None for graphs in self._graphs.values())
            if base.stage is None and (elsewhere or base.name.startswith(BUILDER_PREFIX)):
                return False
        return True

    def _idle(self) -> frozenset[Platform]:
        """Return the platforms on which an alias has an empty leg.

        An alias does nothing itself. A leg is empty if it adds no file while another one does, or if nothing
        down its FROM lines does.
        """
        chains = self._chains
        shared = set.intersection(*map(set, chains.values()))
        legs = {platform: set(chain) - shared for platform, chain in chains.items()}
        alias = list(takewhile(shared.__contains__, next(iter(chains.values()))))
        if not any(legs.values()) or any(self._works(platform, alias) for platform in chains):
            return frozenset()
        busy = {platform for platform, leg in legs.items() if self._works(platform, leg)} or {
            platform for platform, chain in chains.items() if self._works(platform, chain)
        }
        return frozenset(chains) - busy

    def _works(self, platform: Platform, indexes: Iterable[int]) -> bool:
        return any(self._graphs[platform][0].works(index) for index in indexes)

    def _is_allowed(self, platform: Platform) -> bool:
        """Tell whether the ``--platform`` of the last FROM line leaves ``platform`` possible.

        One that follows the builder's platform is a cross build, which fits any target.
        """
        root = self._chains[platform][-1]
        wanted = {graph.base(root).platform for graph in self._graphs[platform]}
        return len(wanted) > 1 or wanted == {""} or _platform_of(wanted.pop()) is platform


def _platform_of(text: str) -> Platform | None:
    return Platform.from_machine(text.lower().removeprefix("linux/").partition("/")[0])
