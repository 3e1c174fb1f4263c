"""Build stages → what one stage needs on one platform: bases, other stages, paths of the context, ARG values.

Contract: BuildKit's ``frontend/dockerfile/dockerfile2llb``. A name after FROM is a stage only if that stage
stands before it, otherwise an image; ``COPY --from`` and mounts look at all stages, the last of a name wins.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from xbtasks.checkout.dockerfile.buildstages import copied_stage, mount_fields, mounted_stage
from xbtasks.checkout.dockerfile.expansion import ExpansionError, expand
from xbtasks.checkout.dockerfile.parser import heredoc_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xbtasks.backends.base import Platform
    from xbtasks.checkout.dockerfile.buildstages import BuildStage, Sections
    from xbtasks.checkout.dockerfile.expansion import Expansion
    from xbtasks.checkout.dockerfile.parser import Instruction

__all__ = ["Base", "Closure", "Graph", "How", "Source"]

_REMOTE = re.compile(r"(?:https?|git|ssh)://|[a-zA-Z0-9-_]+@[a-zA-Z0-9-.]+:")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class How(StrEnum):
    """What names a path of the build context."""

    MOUNT = "mount"
    COPY = "copy"
    ADD = "add"


@dataclass(frozen=True, slots=True)
class Source:
    """A path of the build context that an instruction names.

    ``path`` is clean and relative to the context root, which is ``.``; ``line`` counts from 1. ``pattern``
    says that wildcards mean something in it, ``parents`` that it is a pattern of ``COPY --parents``.
    """

    how: How
    path: str
    line: int
    pattern: bool = field(default=False)
    parents: bool = field(default=False)


@dataclass(frozen=True, slots=True)
class Base:
    """What a FROM resolves to: a stage's position (None: an image), its name, ``--platform`` or empty."""

    stage: int | None
    name: str
    platform: str
    used: frozenset[str]


@dataclass(frozen=True, slots=True)
class Closure:
    """What a stage needs on one platform.

    ``members`` are the positions of all stages it needs; ``root`` is what the last of its FROM lines names;
    ``arguments`` are the values of the ARGs it uses, global ones first; ``text`` is its instructions and
    nothing else; ``declarations`` are the global ARG lines among them.
    """

    members: tuple[int, ...]
    root: Base
    arguments: tuple[tuple[str, str], ...]
    sources: tuple[Source, ...]
    text: str
    declarations: tuple[str, ...]


@dataclass(slots=True)
class _Run:
    """A stage as its instructions are gone through: variables, ARG values, paths of the context."""

    variables: dict[str, str]
    arguments: list[tuple[str, str]]
    global_names: set[str]
    sources: list[Source]


class Graph:
    """The stages of a Dockerfile resolved for a target platform, a build platform and a target stage."""

    def __init__(self, found: Sections, target: Platform, build: Platform, target_name: str) -> None:
        """Resolve the global ARGs and every FROM.

        Raises:
            UsageError: an expansion fails, or a FROM comes out blank; BuildKit then refuses all targets.
        """
        self._found = found
        self._globals = {
            "BUILDPLATFORM": build.value,
            "BUILDOS": "linux",
            "BUILDOSVERSION": "",
            "BUILDARCH": build.arch,
            "BUILDVARIANT": "",
            "TARGETPLATFORM": target.value,
            "TARGETOS": "linux",
            "TARGETOSVERSION": "",
            "TARGETARCH": target.arch,
            "TARGETVARIANT": "",
            "TARGETSTAGE": target_name,
        }
        self._declared: list[tuple[str, str, frozenset[str]]] = []
        for instruction in found.arguments:
            for word in instruction.args:
                self._declare(instruction, word)
        self._bases = [self._base(stage) for stage in found.stages]

    def base(self, index: int) -> Base:
        """Return what the FROM of the stage at ``index`` resolves to."""
        return self._bases[index]

    def chain(self, index: int) -> tuple[int, ...]:
        """Return the stages from the one at ``index`` down its FROM lines, itself first."""
        chain = [index]
        while (base := self._bases[chain[-1]].stage) is not None:
            chain.append(base)
        return tuple(chain)

    def works(self, index: int) -> bool:
        """Tell whether the stage at ``index`` adds files itself: RUN, COPY or ADD."""
        return any(each.keyword in ("RUN", "COPY", "ADD") for each in self._instructions(index))

    def run_platforms(self, index: int) -> frozenset[str]:
        """Return the ``--platform`` of each base that a RUN for the stage at ``index`` is executed on.

        An empty one is the target's.
        """
        running = (
            member
            for member in self._members(index)
            if any(each.keyword == "RUN" for each in self._instructions(member))
        )
        return frozenset(self._bases[self.chain(member)[-1]].platform for member in running)

    def closure(self, index: int) -> Closure:
        """Return what the stage at ``index`` needs.

        Raises:
            UsageError: an expansion in one of its stages fails.
        """
        members = self._members(index)
        runs: dict[int, _Run] = {}
        for member in members:
            runs[member] = self._run(member, runs)
        used = {name for member in members for name in self._bases[member].used | runs[member].global_names}
        lines = [f"# {key}={value}" for key, value in self._found.dockerfile.directives if key != "check"]
        declarations = self._argument_lines(used)
        lines += declarations
        for member in members:
            stage = self._found.stages[member]
            lines += [each.text for each in (stage.header, *stage.body)]
        known = dict.fromkeys(name for name, _, _ in self._declared if name in self._globals)
        return Closure(
            tuple(members),
            self._bases[self.chain(index)[-1]],
            tuple((name, self._globals[name]) for name in known if name in used)
            + tuple(pair for member in members for pair in runs[member].arguments),
            tuple(source for member in members for source in runs[member].sources),
            "\n".join(lines),
            tuple(declarations),
        )

    def _declare(self, instruction: Instruction, word: str) -> None:
        name, equals, raw = word.partition("=")
        needs: frozenset[str] = frozenset()
        if equals:
            expansion = self._expand(instruction, raw, self._globals)
            self._globals[name] = expansion.value
            needs = expansion.found
        self._declared.append((name, word, needs))

    def _argument_lines(self, used: set[str]) -> list[str]:
        """Return the global ARGs behind ``used``, which grows by those that they use in turn."""
        lines: list[str] = []
        for name, word, needs in reversed(self._declared):
            if name in used:
                used |= needs
                lines.append(f"ARG {word}")
        return lines[::-1]

    def _base(self, stage: BuildStage) -> Base:
        header = stage.header
        name = self._expand(header, header.args[0], self._globals)
        if not name.value:
            raise self._found.refused(header, f"the base {header.args[0]} comes out blank")
        earlier = [each.index for each in self._found.stages[: stage.index] if each.name == name.value]
        if not earlier and not _is_image(name.value):
            problem = f"{name.value[:80]!a} is neither a stage before this line (in lower case) nor an image"
            raise self._found.refused(header, problem)
        used = name.found
        platform = ""
        for raw in header.flag_values("platform")[:1]:
            expansion = self._expand(header, raw, self._globals)
            used |= expansion.found
            platform = expansion.value
            if not platform:
                raise self._found.refused(header, f"the platform {raw} comes out blank")
        return Base(earlier[-1] if earlier else None, name.value, platform, used)

    def _expand(self, instruction: Instruction, word: str, variables: Mapping[str, str]) -> Expansion:
        try:
            return expand(word, variables, self._found.dockerfile.escape)
        except ExpansionError as error:
            raise self._found.refused(instruction, f"{error}, in {word[:60]}") from error

    def _instructions(self, index: int) -> Iterator[Instruction]:
        """Yield what a stage runs: what its base's ONBUILD left for it, then its own."""
        base = self._bases[index].stage
        for each in self._found.stages[base].body if base is not None else ():
            if each.trigger:
                yield each.trigger
        yield from self._found.stages[index].body

    def _members(self, index: int) -> list[int]:
        members: set[int] = set()
        todo = [index]
        while todo:
            member = todo.pop()
            if member in members:
                continue
            members.add(member)
            needs = [self._bases[member].stage]
            for each in self._instructions(member):
                if each.keyword == "COPY":
                    needs.append(copied_stage(self._found, each))
                if each.keyword == "RUN":
                    needs += [mounted_stage(self._found, mount) for mount in each.flag_values("mount")]
            todo += [need for need in needs if need is not None]
        return sorted(members)

    def _run(self, index: int, runs: Mapping[int, _Run]) -> _Run:
        base = self._bases[index].stage
        run = _Run({"PATH": _PATH} if base is None else dict(runs[base].variables), [], set(), [])
        for each in self._instructions(index):
            if each.keyword == "ARG":
                self._run_arg(each, run)
            elif each.keyword == "ENV":
                words = [self._expand(each, word, run.variables).value for word in each.args]
                run.variables.update(zip(words[::2], words[1::2], strict=True))
            elif each.keyword == "RUN":
                run.sources += self._mounted(each, run.variables)
            elif each.keyword == "ADD" or (each.keyword == "COPY" and not each.flag_values("from")):
                run.sources += self._copied(each, run.variables)
        return run

    def _run_arg(self, instruction: Instruction, run: _Run) -> None:
        for word in instruction.args:
            name, equals, raw = word.partition("=")
            if equals:
                run.variables[name] = self._expand(instruction, raw, run.variables).value
            elif name in self._globals:
                run.variables[name] = self._globals[name]
                run.global_names.add(name)
            run.arguments.append((name, run.variables.get(name, "")))

    def _mounted(self, instruction: Instruction, variables: Mapping[str, str]) -> Iterator[Source]:
        for mount in instruction.flag_values("mount"):
            fields = {"type": "bind", "from": "", "source": ""}
            for key, raw in mount_fields(mount):
                value = self._expand(instruction, raw, variables).value
                fields["source" if key == "src" else key] = value
            if fields["type"].lower() == "bind" and not fields["from"]:
                yield Source(How.MOUNT, _clean(fields["source"]), instruction.line)

    def _copied(self, instruction: Instruction, variables: Mapping[str, str]) -> Iterator[Source]:
        how = How(instruction.keyword.lower())
        parents = any(flag.lower() in ("--parents", "--parents=true") for flag in instruction.flags)
        for raw in instruction.args[:-1]:
            if _is_heredoc(raw):
                continue
            path = self._expand(instruction, raw, variables).value
            if not _REMOTE.match(path):
                yield Source(how, _clean(path), instruction.line, pattern=True, parents=parents)


def _is_image(name: str) -> bool:
    from xbtasks.knobs.references import parse_image_reference
    from xbtasks.knobs.values import BadValue

    try:
        parse_image_reference(name)
    except BadValue:
        return False
    return True


def _is_heredoc(word: str) -> bool:
    try:
        return heredoc_of(word) is not None
    except ExpansionError:  # BuildKit then takes the word for a path
        return False


def _clean(path: str) -> str:
    """Return ``path`` relative to the context root, which nothing leaves: ``/a`` and ``../a`` are ``a``."""
    return posixpath.normpath("/" + path.lstrip("/"))[1:] or "."
