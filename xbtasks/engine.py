"""The container engine's command lines, as typed argv. What is not built here is never asked of it.

The build options are an allow-list: ``--push``, registry outputs and ``--cache-to`` don't exist in it.
No command pulls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xbtasks.backends.base import Platform

__all__ = ["LABEL_COMMIT", "LABEL_INPUTS", "LABEL_RUN", "LABEL_STAGE", "BuildRequest", "Engine"]

LABEL_STAGE = "xbtasks.stage"
LABEL_INPUTS = "xbtasks.checkout.inputs"
LABEL_COMMIT = "xbtasks.commit"
LABEL_RUN = "xbtasks.run"


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """One stage to build: where its context lies on the host, and what the image is to say of itself."""

    context: str
    dockerfile: str
    stage: str
    platform: Platform
    image: str
    input_digest: str
    commit: str = ""
    builder: str = ""


@dataclass(frozen=True, slots=True)
class Engine:
    """Command lines of a docker-compatible engine."""

    binary: str = "docker"

    def inspect_image(self, reference: str) -> tuple[str, ...]:
        """Print a JSON array of the one image; exit status 1 when there is none of that name."""
        return (self.binary, "image", "inspect", "--", reference)

    def create(self, name: str, image: str, platform: Platform, run_id: str) -> tuple[str, ...]:
        """Make a container that is never started, to copy files out of; the command is a placeholder.

        An image from scratch has no command of its own, and ``create`` insists on one.
        """
        return (
            *(self.binary, "create", "--pull", "never", "--network", "none", "--platform", platform),
            *("--name", name, "--label", f"{LABEL_RUN}={run_id}", image, "/xbtasks-never-runs"),
        )

    def copy_out(self, container: str, path: str) -> tuple[str, ...]:
        """Print a tar of ``path``, links not followed."""
        return (self.binary, "cp", f"{container}:{path}", "-")

    def remove_container(self, name: str) -> tuple[str, ...]:
        """Remove a container, running or not, with its anonymous volumes; no error when it is gone."""
        return (self.binary, "rm", "--force", "--volumes", name)

    def list_containers(self) -> tuple[str, ...]:
        """Print the names of all containers that xbtasks made, with the run that made each."""
        form = f'{{{{.Names}}}}\t{{{{.Label "{LABEL_RUN}"}}}}'
        return (self.binary, "ps", "--all", "--filter", f"label={LABEL_RUN}", "--format", form)

    def list_images(self) -> tuple[str, ...]:
        """Print id and tag of all images that xbtasks built."""
        form = "{{.ID}}\t{{.Repository}}:{{.Tag}}"
        return (
            *(self.binary, "image", "ls", "--all", "--no-trunc"),
            *("--filter", f"label={LABEL_STAGE}", "--format", form),
        )

    def build(self, request: BuildRequest) -> tuple[str, ...]:
        """Build one stage and load it. Provenance is off: an attestation changes ids and confuses loads."""
        labels = [(LABEL_STAGE, request.stage), (LABEL_INPUTS, request.input_digest)]
        if request.commit:
            labels.append((LABEL_COMMIT, request.commit))
        return (
            *(self.binary, "buildx", "build"),
            *(("--builder", request.builder) if request.builder else ()),
            *("--file", f"{request.context}/{request.dockerfile}"),
            *("--target", request.stage, "--platform", request.platform, "--load", "--tag", request.image),
            *(word for name, value in labels for word in ("--label", f"{name}={value}")),
            *("--provenance=false", "--progress=plain"),
            request.context,
        )
