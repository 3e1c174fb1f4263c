"""Instructions → build stages, with what BuildKit refuses in any of them.

Contract: BuildKit's ``frontend/dockerfile/instructions`` and its check for circular dependencies.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.checkout.dockerfile.expansion import ExpansionError, expand
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.checkout.dockerfile.parser import Dockerfile, Instruction

__all__ = ["BuildStage", "Sections", "copied_stage", "mount_fields", "mounted_stage", "sections"]

_STAGE_NAME = re.compile(r"[a-z][a-z0-9-_.]*\Z")


@dataclass(frozen=True, slots=True)
class BuildStage:
    """A FROM and the instructions under it; ``name`` is lower case or empty, ``index`` counts from 0."""

    index: int
    name: str
    header: Instruction
    body: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Sections:
    """A Dockerfile in its parts: global ARG instructions, then stages."""

    dockerfile: Dockerfile
    arguments: tuple[Instruction, ...]
    stages: tuple[BuildStage, ...]

    def refused(self, instruction: Instruction, problem: str) -> UsageError:
        """Return the error that ``instruction`` can't be built because of ``problem``."""
        return _refused(self.dockerfile, instruction, problem)

    def named(self, name: str) -> int | None:
        """Return the position of the last stage called ``name`` in any case, or None."""
        wanted = name.lower()
        return next((each.index for each in reversed(self.stages) if wanted and each.name == wanted), None)


def sections(dockerfile: Dockerfile) -> Sections:
    """Return the parts of a Dockerfile.

    Raises:
        UsageError: there is no FROM, something else than ARG stands before it, an instruction is malformed,
            or stages copy from each other in a circle.
    """
    headers = [at for at, each in enumerate(dockerfile.instructions) if each.keyword == "FROM"]
    arguments = dockerfile.instructions[: headers[0] if headers else None]
    for each in arguments:
        if each.keyword != "ARG":
            raise _refused(dockerfile, each, f"{each.keyword} stands before the first FROM")
    if not headers:
        raise _refused(dockerfile, dockerfile.instructions[-1], "no FROM, so there is nothing to build")
    for each in dockerfile.instructions:
        _check(dockerfile, each)
    stages: list[BuildStage] = []
    for index, (start, end) in enumerate(zip(headers, [*headers[1:], None], strict=True)):
        header = dockerfile.instructions[start]
        body = dockerfile.instructions[start + 1 : end]
        stages.append(BuildStage(index, _stage_name(dockerfile, header), header, body))
    found = Sections(dockerfile, arguments, tuple(stages))
    _refuse_circles(found)
    return found


def copied_stage(found: Sections, instruction: Instruction) -> int | None:
    """Return the stage that ``COPY --from`` names, by name or position; None for an image or none at all.

    Raises:
        UsageError: the position is that of no stage.
    """
    origin = next(iter(instruction.flag_values("from")), "")
    if not re.fullmatch(r"[+-]?[0-9]+", origin):
        return found.named(origin)
    if not 0 <= int(origin[:9]) < len(found.stages):
        raise found.refused(instruction, f"no stage has the position {origin[:20]}")
    return int(origin)


def mounted_stage(found: Sections, mount: str) -> int | None:
    """Return the stage that a ``--mount`` takes its files from; None for an image or the context."""
    return found.named(dict(mount_fields(mount)).get("from", ""))


def mount_fields(mount: str) -> tuple[tuple[str, str], ...]:
    """Return the fields of a ``--mount``, which is one record of CSV; a field without ``=`` has no value.

    Raises:
        ValueError: the quotes of a field are malformed.
    """
    import csv

    try:
        rows = list(csv.reader([mount], strict=True))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    fields = (each.partition("=") for each in (rows[0] if rows else ()))
    return tuple((key.lower(), value) for key, _, value in fields)


def _refused(dockerfile: Dockerfile, instruction: Instruction, problem: str) -> UsageError:
    return UsageError(f"{dockerfile.name}:{instruction.line}: {problem}")


def _stage_name(dockerfile: Dockerfile, header: Instruction) -> str:
    args = header.args
    if len(args) == 3 and args[1].lower() == "as":
        name = args[2].lower()
        if not _STAGE_NAME.match(name):
            raise _refused(dockerfile, header, f"{args[2][:60]!a} is no name for a build stage")
        return name
    if len(args) != 1:
        raise _refused(dockerfile, header, "FROM takes an image, or an image, AS and a name")
    return ""


def _check(dockerfile: Dockerfile, instruction: Instruction) -> None:
    each = instruction.trigger or instruction
    if each.keyword in ("COPY", "ADD") and len(each.args) < 2:
        raise _refused(dockerfile, instruction, f"{each.keyword} takes at least a source and a destination")
    if each.keyword == "ARG" and not all(word.partition("=")[0] for word in each.args or ("",)):
        raise _refused(dockerfile, instruction, "ARG takes name or name=value")
    if each.keyword == "COPY":
        _check_origin(dockerfile, instruction, each.flag_values("from"))
    if each.keyword == "RUN":
        for mount in each.flag_values("mount"):
            try:
                fields = mount_fields(mount)
            except ValueError as error:
                problem = f"--mount={mount[:60]} is malformed: {error}"
                raise _refused(dockerfile, instruction, problem) from error
            _check_origin(dockerfile, instruction, [value for key, value in fields if key == "from"])


def _check_origin(dockerfile: Dockerfile, instruction: Instruction, origins: Sequence[str]) -> None:
    for origin in origins:
        try:
            literal = expand(origin, {}, dockerfile.escape).value == origin
        except ExpansionError:
            literal = False
        if not literal:
            problem = f"no variable is expanded in from={origin[:60]}: name a stage that is FROM it"
            raise _refused(dockerfile, instruction, problem)


def _refuse_circles(found: Sections) -> None:
    left = {stage.index: _needs(found, stage) for stage in found.stages}
    while free := [index for index, needs in left.items() if not needs & left.keys()]:
        for index in free:
            del left[index]
    if left:
        index, seen = next(iter(left)), set[int]()
        while index not in seen:
            seen.add(index)
            index = min(left[index] & left.keys())
        name = found.stages[index].name or f"number {index}"
        raise found.refused(found.stages[index].header, f"stage {name} needs itself, in a circle")


def _needs(found: Sections, stage: BuildStage) -> set[int]:
    indexes: set[int | None] = set()
    for each in stage.body:
        if each.keyword == "COPY":
            indexes.add(copied_stage(found, each))
        if each.keyword == "RUN":
            indexes |= {mounted_stage(found, mount) for mount in each.flag_values("mount")}
    return {index for index in indexes if index is not None}
