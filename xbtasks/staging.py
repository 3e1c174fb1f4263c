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
    from xbtasks.host.step import Reply, SectionReply
    from xbtasks.plan import StagePlan

__all__ = [
    "Manifest",
    "StagedSet",
    "manifest_name",
    "read_state",
    "stage_step",
    "staged_set",
    "state_section",
]

_SCHEMA = 1
_CHANGED = 76
_REFUSALS = {
    75: "another run holds the staging directory",
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
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class StagedSet:
    """What lies in the staging directory now: a state for each artifact's place, and the manifest.

    ``next`` is the manifest of a set that was not put to its end. ``broken`` says that a manifest lies there
    which can't be read: the files are ours, or were, and nothing is known of them.
    """

    files: tuple[StagedFile, ...]
    manifest: Manifest | None
    next: Manifest | None = None
    broken: bool = False

    def put_by_us(self, file: StagedFile) -> bool:
        """Return whether ``file`` has the bytes that xbtasks put there."""
        put = [dict(manifest.files).get(file.path) for manifest in (self.manifest, self.next) if manifest]
        return file.kind == "file" and file.sha256 in put

    @property
    def foreign(self) -> tuple[StagedFile, ...]:
        """What lies at an artifact's place without a word in a manifest."""
        if self.broken:
            return ()
        known = {path for manifest in (self.manifest, self.next) if manifest for path, _ in manifest.files}
        return tuple(file for file in self.files if file.kind != "missing" and file.path not in known)

    @property
    def changed(self) -> tuple[StagedFile, ...]:
        """What lies where xbtasks put a file, and is not that file any more."""
        foreign = self.foreign
        there = (file for file in self.files if file.kind != "missing" and file not in foreign)
        return tuple(file for file in there if not self.put_by_us(file))

    def why_stage(self, stage: StagePlan, image_id: str) -> str:
        """Return why the image has to be staged, or nothing when it is what lies there already."""
        if self.broken:
            return "the manifest of what is staged can't be read"
        if self.next is not None:
            return "staging was interrupted"
        if self.manifest is None:
            return "nothing is staged yet"
        known = dict(self.manifest.files)
        modes = {artifact.staged_path: artifact.mode for artifact in stage.backend.artifacts}
        if any((file.sha256, file.mode) != (known.get(file.path), modes[file.path]) for file in self.files):
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
    try:
        *lines, manifest, following = (line.split(" ") for line in answer.text.splitlines())
        files = tuple(
            _staged_file(artifact.staged_path, *words)
            for artifact, words in zip(backend.artifacts, lines, strict=True)
        )
        whole, unfinished = _document("manifest", *manifest), _document("next", *following)
    except (TypeError, ValueError) as error:
        raise LostReply(f"the state of the staging directory came back damaged: {error}") from error
    current = Manifest.from_bytes(whole)
    return StagedSet(files, current, Manifest.from_bytes(unfinished), broken=bool(whole) and current is None)


def _staged_file(path: str, kind: str, mode: str, digest: str) -> StagedFile:
    if kind != "file":
        return StagedFile(path, kind, 0, "")
    return StagedFile(path, kind, int(mode, 8), digest)


def _document(expected: str, name: str, text: str = "") -> bytes:
    import base64

    if name != expected:
        raise ValueError(f"{name!r} stands where {expected!r} was asked for")
    return base64.b64decode(text, validate=True)


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
    words: list[str] = []
    for artifact, image, there in zip(stage.backend.artifacts, images, staged.files, strict=True):
        seen = there.sha256 if there.kind == "file" else there.kind
        # What is neither gone nor what we put there is somebody's work: it is never thrown away.
        lost = there.kind != "missing" and not staged.put_by_us(there)
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


def staged_set(backend: Backend, reply: Reply) -> StagedSet | None:
    """Return what is staged after :func:`stage_step`; None where another run got there first: look again.

    Raises:
        CannotJudge: staging failed; the set that lay there before is whole, or torn and will be staged again.
    """
    for section in ("create", "stage"):
        answer = reply[section]
        if answer.exit_status == _CHANGED and section == "stage":
            return None
        if not answer.ok:
            reason = _REFUSALS.get(answer.exit_status, "staging failed")
            said = answer.error_text.strip().replace("\n", " ")[:300]
            raise CannotJudge(f"{reason}: {said}" if said else reason)
    return read_state(backend, reply["stage"])
