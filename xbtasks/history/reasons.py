"""Why a stage's build is not what it was: the parts of two input digests, compared."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from xbtasks.checkout.inputs import What
from xbtasks.checkout.tree import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xbtasks.checkout.dockerfile.targets import Recipe
    from xbtasks.checkout.inputs import Part
    from xbtasks.checkout.stages import Stage
    from xbtasks.history.divergence import Change

__all__ = ["Because", "Reason", "View", "compare"]

_COMMIT = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28}\b")
_SHOWN = 70  # characters of an instruction


class Because(StrEnum):
    """What kind of change touches a stage."""

    NEW = "new"
    PLATFORM = "platform"
    BASE_IMAGE = "base-image"
    ARGUMENT = "argument"
    INSTRUCTIONS = "instructions"
    IGNORE_FILE = "ignore-file"
    INPUT = "input"
    EXTERNAL = "external"
    DOCKERFILE = "dockerfile"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a stage is named: what kind of change, the path or name it is about, and a line that says it."""

    because: Because
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class View:
    """A stage on one platform: what it is made of, and the parts of its input digest."""

    stage: Stage
    recipe: Recipe
    parts: tuple[Part, ...]


def compare(old: View, new: View, changes: Mapping[str, Change]) -> tuple[Reason, ...]:
    """Return why the digest of ``new`` is not that of ``old``; nothing only where it is the same."""
    if old.parts == new.parts:
        return ()
    reasons = (
        *_base_images(old, new),
        *_arguments(old, new),
        *_instructions(old, new),
        *_ignore_files(old, new),
        *_inputs(old, new, changes),
    )
    return reasons or (Reason(Because.INSTRUCTIONS, new.stage.name, "instructions changed"),)


def _of(view: View, what: What) -> dict[str, tuple[bytes, ...]]:
    return {part.name: part.values for part in view.parts if part.what is what}


def _base_images(old: View, new: View) -> Iterator[Reason]:
    before, after = (", ".join(view.recipe.base_images) for view in (old, new))
    if before != after:
        yield Reason(Because.BASE_IMAGE, after, f"base image {before} became {after}")


def _arguments(old: View, new: View) -> Iterator[Reason]:
    before, after = (_values(view) for view in (old, new))
    roots = old.recipe.base_images, new.recipe.base_images
    images = {(a, b) for a in roots[0] for b in roots[1]} if roots[0] != roots[1] else set()
    for name in dict.fromkeys([*before, *after]):
        was, now = before.get(name), after.get(name)
        if was == now or now is None:
            continue  # one that is gone is gone from the instructions too
        if (was, now) in images:
            continue  # told as the base image
        text = f"ARG {name} is {_short(now)}" if was is None else f"{name} {_short(was)} became {_short(now)}"
        yield Reason(Because.ARGUMENT, name, text)


def _short(text: str) -> str:
    """Return values with commits cut to the 12 digits that tell them apart."""
    return _COMMIT.sub(r"\1", text)


def _values(view: View) -> dict[str, str]:
    values: dict[str, list[str]] = {}
    for name, value in view.recipe.arguments:
        values.setdefault(name, []).append(value or '""')
    return {name: ", ".join(dict.fromkeys(each)) for name, each in values.items()}


def _instructions(old: View, new: View) -> Iterator[Reason]:
    """Tell of instructions that differ, but not of an ARG or FROM whose value was already told."""
    if old.recipe.text == new.recipe.text:
        return
    before, after = (view.recipe.text.split("\n") for view in (old, new))
    told = {reason.subject for reason in _arguments(old, new)}
    other_base = any(_base_images(old, new))
    explained = tuple(f"ARG {name}" for name in told) + (("FROM ", "ARG ") if other_base else ())
    gone = list((Counter(before) - Counter(after)).elements())
    come = list((Counter(after) - Counter(before)).elements())
    left = [line for line in (*come, *gone) if not line.startswith(explained)]
    if left:
        what = next((line for line in come if not line.startswith(explained)), "")
        text = f"instructions changed: {_cut(what)}" if what else f"instructions removed: {_cut(left[0])}"
        yield Reason(Because.INSTRUCTIONS, new.stage.name, text)
    elif not gone and not come:
        yield Reason(Because.INSTRUCTIONS, new.stage.name, "instructions in another order")


def _cut(line: str) -> str:
    text = " ".join(line.split())
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _ignore_files(old: View, new: View) -> Iterator[Reason]:
    before, after = (_of(view, What.IGNORE_FILE) for view in (old, new))
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield Reason(Because.IGNORE_FILE, name, f"{name} changed: it says what a build may read")


def _inputs(old: View, new: View, changes: Mapping[str, Change]) -> Iterator[Reason]:
    before, after = (_of(view, What.INPUT) for view in (old, new))
    for path in sorted(before.keys() | after.keys()):
        was, now = before.get(path), after.get(path)
        if was == now:
            continue
        read_by = _read_by(new.stage if now else old.stage, path)
        yield Reason(Because.INPUT, path, f"{path} {_how(was, now, changes.get(path))}{read_by}")


def _how(was: Sequence[bytes] | None, now: Sequence[bytes] | None, change: Change | None) -> str:
    if was is None or now is None:
        return str(change) if change else ("is read now" if was is None else "is not read any more")
    kinds = was[0].decode(), now[0].decode()
    if kinds == (Kind.FILE, Kind.EXECUTABLE):
        told = "made executable"
    elif kinds == (Kind.EXECUTABLE, Kind.FILE):
        told = "no longer executable"
    elif kinds[0] != kinds[1]:
        told = f"was a {kinds[0]}, is a {kinds[1]}"
    else:
        return "leads elsewhere" if kinds[0] == Kind.LINK else "modified"
    return told if was[1] == now[1] or Kind.LINK in kinds else f"modified and {told}"


def _read_by(stage: Stage, path: str) -> str:
    """Return which instruction names a path, as the end of a line."""
    for each in stage.inputs:
        if each.path in (path, ".") or path.startswith(f"{each.path}/"):
            return f" ({each.named_by[0].how})"
    return ""  # behind a link
