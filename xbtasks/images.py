"""Images on the host: what ``image inspect`` says, and files copied out of a container as a tar."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.backends.base import Platform
from xbtasks.backends.linking import ImageFile
from xbtasks.engine import LABEL_COMMIT, LABEL_INPUTS, LABEL_STAGE
from xbtasks.errors import CannotJudge, LostReply

if TYPE_CHECKING:
    from xbtasks.host.step import SectionReply

__all__ = ["Image", "read_file", "read_image"]


@dataclass(frozen=True, slots=True)
class Image:
    """An image as a tag names it now. Labels that xbtasks didn't write are empty."""

    id: str
    platform: str
    stage: str
    inputs: str
    commit: str

    @property
    def ours(self) -> bool:
        """Whether xbtasks built it."""
        return bool(self.stage and self.inputs)


def read_image(answer: SectionReply) -> Image | None:
    """Return the image that was inspected, or None when the engine knows none of that name.

    Raises:
        CannotJudge: the engine didn't answer the question.
        LostReply: the answer is not what ``image inspect`` prints.
    """
    if not answer.ok:
        # The engine was shown to answer (preflight); what it can't find it says so.
        if "no such image" in answer.error_text.lower():
            return None
        raise CannotJudge(f"the engine can't inspect an image: {answer.error_text.strip()[:300]}")
    try:
        document = json.loads(answer.stdout)[0]
        labels = (document.get("Config") or {}).get("Labels") or {}
        architecture = Platform.from_machine(str(document["Architecture"]))
        return Image(
            id=str(document["Id"]),
            platform=architecture or f"{document['Os']}/{document['Architecture']}",
            stage=str(labels.get(LABEL_STAGE, "")),
            inputs=str(labels.get(LABEL_INPUTS, "")),
            commit=str(labels.get(LABEL_COMMIT, "")),
        )
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise LostReply(f"image inspect answered something else: {error!r}") from error


# The engine's words where a container has no such path: nothing of that name, or a file in place of a folder.
_ABSENT = re.compile(
    r"Error( response from daemon)?: (Could not find the file .+ in container \S+|lstat /.+: not a directory)"
)


def _is_absent(said: str) -> bool:
    """Return whether the engine said, of each path that it was asked for, that it is not there."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return bool(lines) and all(_ABSENT.fullmatch(line) for line in lines)


def read_file(path: str, answer: SectionReply) -> ImageFile:
    """Return the file ``path`` as it lies in the image, from the tar that ``cp`` printed.

    Raises:
        CannotJudge: the engine didn't answer the question.
        LostReply: the tar is damaged.
    """
    import io
    import tarfile

    if not answer.ok:
        if _is_absent(answer.error_text):
            return ImageFile(path, "missing", 0, b"", "")
        raise CannotJudge(f"{path} can't be copied out of the image: {answer.error_text.strip()[:300]}")
    try:
        with tarfile.open(fileobj=io.BytesIO(answer.stdout), mode="r:") as tar:
            member = tar.next()
            if member is None:
                raise LostReply(f"the engine's copy of {path} is empty")
            if not member.isreg():
                kind = "symlink" if member.issym() else "directory" if member.isdir() else "other"
                return ImageFile(path, kind, member.mode, b"", member.linkname)
            stream = tar.extractfile(member)
            data = stream.read() if stream is not None else b""
            return ImageFile(path, "file", member.mode, data, "")
    except tarfile.TarError as error:
        raise LostReply(f"the engine's copy of {path} is not a tar: {error}") from error
