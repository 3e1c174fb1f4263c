"""What of a Dockerfile no listed builder stage's build reads: other stages, ARGs that none of them uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.backends import backend_of
from xbtasks.checkout.dockerfile.buildstages import copied_stage, mounted_stage
from xbtasks.checkout.stages import read_dockerfile
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.checkout.dockerfile.buildstages import Sections
    from xbtasks.checkout.dockerfile.parser import Instruction
    from xbtasks.checkout.dockerfile.targets import Recipe
    from xbtasks.checkout.stages import Reading
    from xbtasks.checkout.tree import Checkout

__all__ = ["Outside", "Surroundings", "look_around"]


@dataclass(frozen=True, slots=True)
class Outside:
    """An instruction outside of the builder stages, its line, and the builder stage it takes files from."""

    text: str
    line: int
    takes_from: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What stands around the listed stages; ``others`` are builder stages without a backend, with texts.

    ``inside`` are the instructions of all builder stages.
    """

    outside: tuple[Outside, ...]
    inside: frozenset[str]
    others: tuple[tuple[str, str], ...]


def look_around(checkout: Checkout) -> Surroundings:
    """Return what of the Dockerfile no listed stage's build reads.

    Raises:
        UsageError: it is unreadable, no text, or what BuildKit refuses.
    """
    read = read_dockerfile(checkout)
    known = [recipe for name in read.listed if backend_of(name) for recipe in read.targets[name].recipes]
    others = {name: _recipes(read, name) for name in read.listed if not backend_of(name)}
    all_recipes = [*known, *(recipe for recipes in others.values() for recipe in recipes)]
    members = {member for recipe in all_recipes for member in recipe.members}
    declared = {line for recipe in all_recipes for line in recipe.declarations}
    found = read.sections
    lines = [
        Outside(f"ARG {word}", each.line, "")
        for each in found.arguments
        for word in each.args
        if f"ARG {word}" not in declared
    ]
    inside = set(declared)
    for stage in found.stages:
        instructions = (stage.header, *stage.body)
        if stage.index in members:
            inside.update(each.text for each in instructions)
        else:
            lines += [Outside(each.text, each.line, _builder(found, each)) for each in instructions]
    return Surroundings(
        tuple(lines),
        frozenset(inside),
        tuple((name, "\n".join(recipe.text for recipe in recipes)) for name, recipes in others.items()),
    )


def _recipes(read: Reading, name: str) -> tuple[Recipe, ...]:
    try:
        return read.targets[name].recipes
    except UsageError:  # a stage that is nobody's business here may be broken
        return ()


def _builder(found: Sections, instruction: Instruction) -> str:
    """Return the listed builder stage that an instruction takes files from, or nothing."""
    return next((name for name in _origins(found, instruction) if backend_of(name)), "")


def _origins(found: Sections, instruction: Instruction) -> Iterator[str]:
    each = instruction.trigger or instruction
    indexes: list[int | None] = []
    if each.keyword == "COPY":
        indexes.append(copied_stage(found, each))
    if each.keyword == "RUN":
        indexes += [mounted_stage(found, mount) for mount in each.flag_values("mount")]
    yield from (found.stages[index].name for index in indexes if index is not None)
