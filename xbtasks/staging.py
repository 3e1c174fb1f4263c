"""The staging directory on the host: whose files lie there, what must change, and the change itself.

A manifest (one per backend) says what xbtasks put there. A set whose files don't match it is torn: it
is never used, and is staged again. A file at an artifact's place that no manifest speaks of belongs to
somebody else and is refused, or kept beside under ``--adopt``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.backends.linking import StagedFile
from xbtasks.errors import CannotJudge, LostReply, Refused
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xbtasks.backends.base import Backend
    from xbtasks.backends.linking import ImageFile
    from xbtasks.engine import Engine
    from xbtasks.host.step import SectionReply
    from xbtasks.plan import StagePlan

__all__ = [
    "Manifest",
    "StagedSet",
    "manifest_name",
    "read_state",
    "require_staged",
    "stage_step",
    "state_section",
]

_SCHEMA = 1
_REFUSALS = {
    75: "another run holds the staging directory",
    76: "a file changed while it was being staged",
    77: "the image changed while it was being staged",
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What xbtasks last staged for a backend; ``files`` maps a staged path to its sha256."""

    stage: str
    platform: str
    inputs: str
    image: str
    run: str
    files: tuple[tuple[str, str], ...]

    def to_bytes(self) -> bytes:
        """Return the manifest as it lies in the staging directory."""
        document = {
            "schema": _SCHEMA,
            "stage": self.stage,
            "platform": self.platform,
            "inputs": self.inputs,
            "image": self.image,
            "run": self.run,
            "files": dict(self.files),
        }
        return (json.dumps(document, indent=1) + "\n").encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest | None:
        """Return the manifest, or None where ``data`` is none: then nothing there is ours."""
        try:
            document = json.loads(data)
            if document["schema"] != _SCHEMA:
                return None
            files: Mapping[str, str] = document["files"]
            return cls(
                stage=str(document["stage"]),
                platform=str(document["platform"]),
                inputs=str(document["inputs"]),
                image=str(document["image"]),
                run=str(document["run"]),
                files=tuple(sorted((str(path), str(digest)) for path, digest in files.items())),
            )
        except (AttributeError, KeyError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class StagedSet:
    """What lies in the staging directory now: a state for each artifact's place, and the manifest."""

    files: tuple[StagedFile, ...]
    manifest: Manifest | None

    @property
    def whole(self) -> bool:
        """Whether every file is what the manifest says."""
        known = dict(self.manifest.files) if self.manifest else {}
        return bool(known) and all(file.sha256 == known.get(file.path) for file in self.files)

    @property
    def foreign(self) -> tuple[StagedFile, ...]:
        """What lies at an artifact's place without a word in the manifest."""
        known = dict(self.manifest.files) if self.manifest else {}
        return tuple(file for file in self.files if file.kind != "missing" and file.path not in known)

    def why_stage(self, stage: StagePlan, image_id: str) -> str:
        """Return why the image has to be staged, or nothing when it is what lies there already."""
        if self.manifest is None:
            return "nothing is staged yet"
        if not self.whole:
            return "the staged files don't match their manifest"
        if self.manifest.stage != stage.stage:
            return f"{self.manifest.stage} was staged"
        if self.manifest.image != image_id:
            return "an older image was staged"
        return ""


def manifest_name(backend: Backend) -> str:
    """Return the name of the backend's manifest in its staging directory."""
    return f".xbtasks-{backend.name}.json"


def state_section(backend: Backend, directory: str, deadline: int, name: str = "staged") -> Section:
    """Ask what lies in a staging directory of ``backend``."""
    paths = [artifact.staged_path for artifact in backend.artifacts]
    return Section(name, program("staged_state", directory, manifest_name(backend), *paths), deadline)


def read_state(backend: Backend, answer: SectionReply) -> StagedSet:
    """Return what lies in the staging directory.

    Raises:
        CannotJudge: it can't be read.
        LostReply: the answer is not one to this question.
    """
    if not answer.ok:
        raise CannotJudge(f"the staging directory can't be read: {answer.error_text.strip()[:300]}")
    head, mark, manifest = answer.stdout.partition(b"manifest\n")
    lines = [line.split(" ") for line in head.decode(errors="replace").splitlines()]
    if not mark or len(lines) != len(backend.artifacts) or any(len(words) != 3 for words in lines):
        raise LostReply("the state of the staging directory came back damaged")
    files = tuple(
        StagedFile(
            path=artifact.staged_path,
            kind=kind,
            mode=int(mode, 8) if kind == "file" else 0,
            sha256=digest if kind == "file" else "",
        )
        for artifact, (kind, mode, digest) in zip(backend.artifacts, lines, strict=True)
    )
    return StagedSet(files, Manifest.from_bytes(manifest))


def stage_step(
    engine: Engine,
    stage: StagePlan,
    manifest: Manifest,
    images: tuple[ImageFile, ...],
    staged: StagedSet,
    container: str,
    create: Section,
    *,
    adopt: bool,
    deadline: int,
) -> Step:
    """Return the step that puts the image's files in place; ``create`` makes ``container`` first.

    Raises:
        Refused: files that xbtasks did not put there are in the way, and ``adopt`` was not given.
    """
    if staged.foreign and not adopt:
        names = ", ".join(f"{stage.staging_directory}/{file.path}" for file in staged.foreign)
        raise Refused(
            f"{names}: not put there by xbtasks, so not replaced",
            hint="--adopt keeps it beside and goes on; --stage-dir takes another directory",
        )
    known = dict(staged.manifest.files) if staged.manifest else {}
    words: list[str] = []
    for artifact, image, there in zip(stage.backend.artifacts, images, staged.files, strict=True):
        seen = there.sha256 if there.kind == "file" else there.kind
        # What is neither gone nor what we put there is somebody's work: it is never thrown away.
        lost = there.kind != "missing" and there.sha256 != known.get(there.path)
        digest = dict(manifest.files)[artifact.staged_path]
        words += [image.path, there.path, f"{artifact.mode:04o}", digest, seen, "keep" if lost else "replace"]
    argv = program(
        "stage",
        *(stage.staging_directory, manifest_name(stage.backend), manifest.run, engine.binary, container),
        *words,
    )
    remove = Section("remove", engine.remove_container(container), deadline)
    return Step(
        "stage",
        (create, Section("stage", argv, deadline, payload=True), remove),
        payload=manifest.to_bytes(),
        on_loss=(remove,),
    )


def require_staged(answer: SectionReply) -> None:
    """Return when the set was staged.

    Raises:
        CannotJudge: it was not; the set that lay there before is whole, or torn and will be staged again.
    """
    if answer.ok:
        return
    reason = _REFUSALS.get(answer.exit_status, "staging failed")
    said = answer.error_text.strip().replace("\n", " ")[:300]
    raise CannotJudge(f"{reason}: {said}" if said else reason)
