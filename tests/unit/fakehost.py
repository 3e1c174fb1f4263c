"""A host in memory: an engine with images, a staging directory, answers as the real programs give them."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from tests.unit.preflight_replies import FakeHost
from xbtasks.engine import LABEL_COMMIT, LABEL_INPUTS, LABEL_STAGE
from xbtasks.host.step import Host, LiveSink, Reply, Section, SectionReply, Step

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FakeImage", "HostInMemory", "bad", "good", "labels"]

Answer = SectionReply | BaseException
"""What a test makes a section end with."""


@dataclass
class FakeImage:
    """An image: its labels, its architecture, and its artifacts by path (bytes and mode)."""

    files: dict[str, tuple[bytes, int]]
    labels: dict[str, str] = field(default_factory=dict)
    architecture: str = "amd64"

    @property
    def id(self) -> str:
        text = repr((sorted(self.files.items()), sorted(self.labels.items()), self.architecture))
        return f"sha256:{sha256(text.encode()).hexdigest()}"


def good(name: str, stdout: str | bytes = b"") -> SectionReply:
    return SectionReply(name, 0, stdout.encode() if isinstance(stdout, str) else stdout, b"", 0, False)


def bad(name: str, said: str, status: int = 1) -> SectionReply:
    return SectionReply(name, status, b"", said.encode(), 0, False)


@dataclass
class HostInMemory(Host):
    """Answers steps; ``instead`` maps a section's name to what it ends with instead (once, or always)."""

    builds: Callable[[dict[str, str]], FakeImage]
    preflight: FakeHost = field(default_factory=FakeHost)
    images: dict[str, FakeImage] = field(default_factory=dict)
    recorded: set[str] = field(default_factory=set)
    records: bool = True
    contexts: set[str] = field(default_factory=set)
    staged: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    manifest: bytes = b""
    instead: dict[str, Answer | list[Answer]] = field(default_factory=dict)
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    containers: dict[str, FakeImage] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return "local"

    def close(self) -> None:
        """Nothing is held."""

    def run(self, step: Step, live: LiveSink | None = None) -> Reply:
        self.steps.append(step.name)
        if step.name == "preflight":
            ended = self._instead("preflight")
            if isinstance(ended, BaseException):
                raise ended
            return self.preflight.reply()
        return Reply(step.name, tuple(self._answer(section, step) for section in step.sections), (), 0.5)

    def _instead(self, name: str) -> Answer | None:
        ended = self.instead.get(name)
        if isinstance(ended, list):
            return ended.pop(0) if ended else None
        return ended

    def _answer(self, section: Section, step: Step) -> SectionReply:
        if section.name in self.before:
            self.before[section.name]()
        ended = self._instead(section.name)
        if isinstance(ended, BaseException):
            raise ended
        if ended is not None:
            return ended
        kind = section.name.partition("-")[0] if section.name != "put-context" else "put_context"
        return getattr(self, f"_{kind}")(section, step)

    def _image(self, section: Section, step: Step) -> SectionReply:
        image = self.images.get(section.argv[-1])
        if image is None:
            return bad("image", f"Error response from daemon: No such image: {section.argv[-1]}")
        document: dict[str, Any] = {"Id": image.id, "Os": "linux", "Architecture": image.architecture}
        return good("image", json.dumps([{**document, "Config": {"Labels": image.labels}}]))

    def _recorded(self, section: Section, step: Step) -> SectionReply:
        return good("recorded", "".join(f"{identity} x:1\n" for identity in sorted(self.recorded)))

    def _staged(self, section: Section, step: Step) -> SectionReply:
        return good(section.name, self._state(section.argv[6:]))

    def _state(self, paths: tuple[str, ...]) -> str:
        lines = []
        for path in paths:
            if path in self.staged:
                data, mode = self.staged[path]
                lines.append(f"file {mode:o} {sha256(data).hexdigest()}")
            else:
                lines.append("missing - -")
        return "\n".join([*lines, f"manifest {base64.b64encode(self.manifest).decode()}", "next "]) + "\n"

    def _context(self, section: Section, step: Step) -> SectionReply:
        base, digest = section.argv[4:6]
        return good("context", f"{base}/{digest}\n{'present' if digest in self.contexts else 'absent'}\n")

    def _put_context(self, section: Section, step: Step) -> SectionReply:
        self.contexts.add(section.argv[4].rpartition("/")[2])
        return good("put-context")

    def _build(self, section: Section, step: Step) -> SectionReply:
        words = section.argv
        labels = dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--label")
        image = self.builds(labels)
        self.images[words[words.index("--tag") + 1]] = image
        self.recorded |= {image.id} if self.records else set()
        return good("build", json.dumps({"containerimage.config.digest": image.id}))

    def _create(self, section: Section, step: Step) -> SectionReply:
        words = section.argv
        image = next((each for each in self.images.values() if each.id == words[-2]), None)
        if image is None:
            return bad("create", f"Error response from daemon: No such image: {words[-2]}")
        self.containers[words[words.index("--name") + 1]] = image
        return good("create", "0" * 64)

    def _file(self, section: Section, step: Step) -> SectionReply:
        container, _, path = section.argv[2].partition(":")
        if container not in self.containers:
            return bad(section.name, f"Error response from daemon: No such container: {container}")
        found = self.containers[container].files.get(path)
        if found is None:
            said = f"Error response from daemon: Could not find the file {path} in container {container}"
            return bad(section.name, said)
        data, mode = found
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            member = tarfile.TarInfo(path.rpartition("/")[2])
            member.size, member.mode = len(data), mode
            archive.addfile(member, io.BytesIO(data))
        return good(section.name, buffer.getvalue())

    def _libc(self, section: Section, step: Step) -> SectionReply:
        return bad(
            "libc", "Error response from daemon: Could not find the file /lib64/libc.so.6 in container c"
        )

    def _remove(self, section: Section, step: Step) -> SectionReply:
        self.containers.pop(section.argv[-1], None)
        return good("remove")

    def _stage(self, section: Section, step: Step) -> SectionReply:
        words = section.argv[9:]
        image = self.containers[section.argv[8]]
        paths = words[1::6]
        for source, path, mode in zip(words[::6], paths, words[2::6], strict=True):
            self.staged[path] = (image.files[source][0], int(mode, 8))
        self.manifest = step.payload
        return good("stage", self._state(paths))


def labels(stage: str, inputs: str, commit: str = "") -> dict[str, str]:
    """Return the labels that a build gives an image."""
    found = {LABEL_STAGE: stage, LABEL_INPUTS: inputs}
    return {**found, LABEL_COMMIT: commit} if commit else found
