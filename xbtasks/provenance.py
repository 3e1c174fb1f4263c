"""Which images of a host xbtasks built there: a record beside the build contexts, one file per image id.

Labels don't prove it: what is built FROM one of our images, or committed from its container, inherits them.
An image's id is a digest of all that it is, so an id that was recorded is the image that was built. The
program that builds writes the record, on the host: a link that is cut can't come between the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.errors import CannotJudge, LostReply
from xbtasks.host.programs import program
from xbtasks.host.step import Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xbtasks.host.step import SectionReply

__all__ = ["familiar", "read_record", "recorded_section", "removal_section"]


def recorded_section(directory: str, deadline: int) -> Section:
    """Ask what is recorded in the context directory ``directory``."""
    return Section("recorded", program("built_images", directory), deadline)


def read_record(answer: SectionReply) -> Mapping[str, frozenset[str]]:
    """Return the ids of the images that xbtasks built, each with the tags that it gave it.

    Raises:
        CannotJudge: the record can't be read.
        LostReply: the answer is not one to this question.
    """
    if not answer.ok:
        raise CannotJudge(f"the record of built images can't be read: {answer.error_text.strip()[:300]}")
    found: dict[str, frozenset[str]] = {}
    for line in answer.text.splitlines():
        identity, _, tag = line.partition(" ")
        if not identity.startswith("sha256:"):
            raise LostReply("the record of built images came back damaged")
        found[identity] = found.get(identity, frozenset()) | {tag}
    return found


def removal_section(
    name: str, directory: str, engine: str, identity: str, references: tuple[str, ...], deadline: int
) -> Section:
    """Remove ``references`` of the image ``identity``, and what is recorded of it."""
    return Section(name, program("remove_built", directory, engine, identity, *references), deadline)


def familiar(reference: str) -> str:
    """Return an image reference as docker lists it: Docker Hub's names left out, the tag there."""
    for prefix in ("index.docker.io/", "docker.io/", "library/"):
        reference = reference.removeprefix(prefix)
    return reference if ":" in reference.rpartition("/")[2] else f"{reference}:latest"
