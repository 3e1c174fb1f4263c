"""The artifacts of an image: copied out of a container that never starts, so any architecture will do."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks import images
from xbtasks.elf.facts import BadElf, libc_version
from xbtasks.elf.summary import summarize
from xbtasks.errors import CannotJudge
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step
from xbtasks.result import ArtifactRecord

if TYPE_CHECKING:
    from xbtasks.backends.base import Backend
    from xbtasks.backends.linking import ImageFile
    from xbtasks.engine import Engine
    from xbtasks.host.step import Reply
    from xbtasks.images import Image
    from xbtasks.plan import StagePlan

__all__ = ["ArtifactSet", "read_step"]

_LIBC: Final = (
    "/lib/x86_64-linux-gnu/libc.so.6",
    "/lib/aarch64-linux-gnu/libc.so.6",
    "/lib64/libc.so.6",
)
"""Where images keep their libc: Debian and Ubuntu per architecture, Red Hat and openEuler in /lib64."""


def read_step(engine: Engine, backend: Backend, container: str, create: Section, deadline: int) -> Step:
    """Return the step that reads the artifacts and the libc; ``create`` makes ``container`` first."""
    copies = [
        Section(f"file-{number}", engine.copy_out(container, artifact.image_path), deadline)
        for number, artifact in enumerate(backend.artifacts)
    ]
    copies.append(Section("libc", program("copy_first", engine.binary, container, *_LIBC), deadline))
    remove = Section("remove", engine.remove_container(container), deadline)
    return Step("read", (create, *copies, remove), on_loss=(remove,))


@dataclass(frozen=True, slots=True)
class ArtifactSet:
    """What an image holds of its backend's artifacts, in their order, and the version of its glibc.

    ``glibc`` is None where the image has none that can be read.
    """

    image: Image
    files: tuple[ImageFile, ...]
    glibc: tuple[int, ...] | None

    @classmethod
    def from_reply(cls, image: Image, backend: Backend, reply: Reply) -> ArtifactSet:
        """Return what the reply to `read_step` holds.

        Raises:
            CannotJudge: the engine could not make the container or copy out of it.
            LostReply: a copy is damaged.
        """
        if not reply["create"].ok:
            raise CannotJudge(f"no container of {image.id[:19]}: {reply['create'].error_text.strip()[:300]}")
        files = tuple(
            images.read_file(artifact.image_path, reply[f"file-{number}"])
            for number, artifact in enumerate(backend.artifacts)
        )
        return cls(image, files, _glibc(images.read_file("libc.so.6", reply["libc"])))

    @property
    def missing(self) -> tuple[ImageFile, ...]:
        """The places where there is no regular file."""
        return tuple(file for file in self.files if file.kind != "file")

    def digests(self, backend: Backend) -> tuple[tuple[str, str], ...]:
        """Return the sha256 of each artifact by its staged path."""
        return tuple(
            (artifact.staged_path, hashlib.sha256(file.data).hexdigest())
            for artifact, file in zip(backend.artifacts, self.files, strict=True)
        )

    def records(self, stage: StagePlan) -> list[ArtifactRecord]:
        """Return what the result says of the artifacts."""
        return [
            ArtifactRecord(
                stage=stage.stage,
                path=file.path,
                sha256=hashlib.sha256(file.data).hexdigest(),
                size=len(file.data),
                image=self.image.id,
                pin=stage.pin,
                elf=summarize(file.data),
            )
            for file in self.files
            if file.kind == "file"
        ]


def _glibc(libc: ImageFile) -> tuple[int, ...] | None:
    try:
        return libc_version(libc.data) if libc.kind == "file" else None
    except BadElf:
        return None
