"""Stage → image: is it out of date, the build itself, and what its failure means."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from xbtasks.errors import BuildFailed, CannotJudge, LostReply, Refused
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step
from xbtasks.images import read_image
from xbtasks.provenance import familiar, recorded_section

if TYPE_CHECKING:
    from collections.abc import Container

    from xbtasks.backends.base import Platform
    from xbtasks.engine import BuildRequest, Engine
    from xbtasks.host.step import Reply, SectionReply
    from xbtasks.images import Image
    from xbtasks.plan import StagePlan

__all__ = ["build_step", "built_image", "excerpt", "is_built", "refuse_foreign", "why_build"]


def why_build(
    stage: StagePlan, platform: Platform, image: Image | None, recorded: Container[str], *, rebuild: bool
) -> str:
    """Return why the stage has to be built, or nothing when its image is up to date (as make would).

    ``recorded`` holds the ids of the images that xbtasks built on the host.
    """
    if image is None:
        return "there is no image yet"
    if image.stage != stage.stage:
        return f"the image is of {image.stage or 'nothing that xbtasks built'}"
    if image.platform != platform:
        return f"the image is for {image.platform}"
    if image.inputs != stage.digest(platform):
        return "its inputs changed"
    if image.id not in recorded:
        return "the image has its labels, but is not one that xbtasks built here"
    return "--rebuild was given" if rebuild else ""


def is_built(stage: StagePlan, image: Image | None) -> str:
    """Return ``yes``, ``stale`` or ``no``: whether the image of the stage is there and has its inputs."""
    if image is None or image.stage != stage.stage:
        return "no"
    return "yes" if (image.platform, image.inputs) in stage.digests else "stale"


def refuse_foreign(stage: StagePlan, image: Image | None, *, adopt: bool) -> None:
    """Return when the stage's tag is free to be moved.

    Raises:
        Refused: an image that xbtasks did not build bears it, and ``adopt`` was not given.
    """
    if image is not None and not image.ours and not adopt:
        raise Refused(
            f"image {stage.image} was not built by xbtasks, so its tag is not taken",
            hint="--adopt takes the tag (the image keeps its id), --image names another one",
        )


def build_step(engine: Engine, request: BuildRequest, record: str, deadline: int, step_deadline: int) -> Step:
    """Return the step that builds one stage, and asks what its tag names and what is recorded afterwards.

    ``record`` is the context directory, beside whose contexts the images that were built are recorded.
    """
    argv = program(
        "build", record, engine.binary, familiar(request.image), request.input_digest, *engine.build(request)
    )
    build = Section("build", argv, deadline, live=True)
    image = Section("image", engine.inspect_image(request.image), step_deadline)
    return Step("build", (build, image, recorded_section(record, step_deadline)))


def built_image(stage: StagePlan, reply: Reply) -> Image:
    """Return the image that was built.

    Raises:
        BuildFailed: a build step of the stage ended non-zero, or the Dockerfile is wrong.
        CannotJudge: the build could not be done (registry, network, disk, daemon), or the tag names
            another image than was built.
    """
    answer = reply["build"]
    image = read_image(reply["image"])  # an engine that is gone by now says nothing about the stage
    if not answer.ok:
        raise _failure(stage, answer)
    if image is None:
        raise CannotJudge(f"the build of {stage.stage} ended well, but {stage.image} was not loaded")
    built = _built_ids(answer.stdout)
    if image.id not in built:
        raise CannotJudge(
            f"{stage.image} names {image.id[:19]}, but the build made {' or '.join(i[:19] for i in built)}",
            hint="another build moved the tag, or the builder loads into another engine; build again",
        )
    return image


def _built_ids(metadata: bytes) -> tuple[str, ...]:
    """Return the ids that the image may have: its config's, or with containerd's store its manifest's."""
    try:
        document = json.loads(metadata)
        found = [document.get(f"containerimage.{key}") for key in ("config.digest", "digest")]
    except (AttributeError, RecursionError, ValueError) as error:
        raise LostReply(f"the build reported no image: {error}") from error
    ids = tuple(str(digest) for digest in found if digest)
    if not ids:
        raise LostReply("the build reported no image")
    return ids


def excerpt(log: str, most: int = 30) -> tuple[str, ...]:
    """Return what BuildKit shows of a failure: the step, its last lines, its place in the Dockerfile.

    Its own last word is left out: the step's line has said it, and the error says what it means.
    """
    lines = log.split("\n")
    begin = next((number for number, line in enumerate(lines) if line == "------"), len(lines))
    return tuple(line for line in lines[begin:] if line and not line.startswith("ERROR: "))[:most]


# What buildx puts in front of BuildKit's own words; the first since buildx 0.23.
_PREFIXES = ("failed to build: ", "failed to solve: ")
_STEP_ENDED = re.compile(r'process ".*" did not complete successfully: exit code: (\d+)', re.ASCII)
_KILLED = 137
# BuildKit's words for a Dockerfile that nobody can build. All others end "could not judge": network, disk and
# daemon trouble begins with the same words ("failed to compute cache key: failed to copy").
_DOCKERFILE_WRONG = re.compile(
    r"dockerfile parse error|the Dockerfile cannot be empty|unterminated heredoc|unsupported mount type "
    r"|failed to parse (stage name|platform) |failed to process \"|target stage |circular dependency"
    r"|base name \(.*\) should not be blank$"
    r"|process \".*\" did not complete successfully: unable to find (user|group) "
    r'|(failed to compute cache key: )?failed to calculate checksum of ref [^"]*"[^"]*": not found$'
    r"|lstat \S*/buildkit-mount\d+/.*: no such file or directory$"
)


def _failure(stage: StagePlan, answer: SectionReply) -> BuildFailed | CannotJudge:
    """Return what a failed build means. Only the engine's own last word counts, never a step's output.

    A step's output never begins a line of BuildKit's plain progress, but it may hold carriage returns.
    """
    lines = answer.error_text.split("\n")
    last = next((line for line in reversed(lines) if line.startswith(("ERROR: ", "error: "))), "")
    message = last.partition(": ")[2].strip()
    for prefix in _PREFIXES:
        message = message.removeprefix(prefix)
    if ended := _STEP_ENDED.fullmatch(message):
        if int(ended[1]) == _KILLED:
            return CannotJudge(
                f"{stage.stage}: a build step was killed (137): memory ran out, or the engine was stopped",
                hint="the stage was not judged",
            )
        return BuildFailed(f"{stage.stage}: a build step ended with exit code {ended[1]}")
    if _DOCKERFILE_WRONG.match(message):
        return BuildFailed(f"{stage.stage}: {message[:300]}")
    said = [line for line in lines if line.strip()]
    reason = message or (said[-1] if said else f"exit status {answer.exit_status}")
    return CannotJudge(f"{stage.stage} could not be built: {reason[:300]}", hint="the stage was not judged")
