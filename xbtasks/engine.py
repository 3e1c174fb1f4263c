"""The container engine's command lines, as typed argv. What is not built here is never asked of it.

The build options are an allow-list: ``--push``, registry outputs and ``--cache-to`` don't exist in it.
No command pulls.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xbtasks.backends.base import Platform

__all__ = [
    "LABEL_COMMIT",
    "LABEL_INPUTS",
    "LABEL_RUN",
    "LABEL_STAGE",
    "BuildRequest",
    "ContainerRequest",
    "Engine",
    "Mount",
]

LABEL_STAGE = "xbtasks.stage"
"""On an image: its builder stage."""
LABEL_INPUTS = "xbtasks.inputs"
"""On an image: the input digest of its stage."""
LABEL_COMMIT = "xbtasks.commit"
"""On an image: the commit of the checkout."""
LABEL_RUN = "xbtasks.run"
"""On a container: the run it belongs to."""


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
class Mount:
    """A bind mount of something that is there: what is missing is an error, never made."""

    source: str
    target: str
    read_only: bool = True

    @property
    def option(self) -> str:
        """The value of ``--mount``, whose fields the engine reads as CSV."""
        fields = ["type=bind", f"source={self.source}", f"target={self.target}"]
        return ",".join(map(_csv_field, fields + ["readonly"] * self.read_only))


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """A container that runs ``command`` of an image that is already there, and is gone when that has ended.

    ``runtime`` is the OCI runtime's name, empty for the engine's default; ``devices`` are CDI names.
    """

    name: str
    run_id: str
    image: str
    command: tuple[str, ...]
    runtime: str = ""
    devices: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()


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

    def run(self, request: ContainerRequest) -> tuple[str, ...]:
        """Run a container to its end: its exit status is the command's, or 125 where it couldn't be started.

        It never pulls, and has no network. The command replaces the image's entrypoint.
        """
        program, *arguments = request.command
        return (
            *(self.binary, "run", "--rm", "--pull", "never", "--network", "none"),
            *("--name", request.name, "--label", f"{LABEL_RUN}={request.run_id}"),
            *(("--runtime", request.runtime) if request.runtime else ()),
            *(word for device in request.devices for word in ("--device", device)),
            *(word for name, value in request.environment for word in ("--env", f"{name}={value}")),
            *(word for mount in request.mounts for word in ("--mount", mount.option)),
            *("--entrypoint", program, request.image),
            *arguments,
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


def _csv_field(field: str) -> str:
    quoted = field.replace('"', '""')
    return f'"{quoted}"' if any(char in field for char in ',"\n\r') else field
