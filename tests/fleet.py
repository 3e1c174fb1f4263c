"""Hosts for a matrix that cost next to nothing: an sshd and a stand-in for an engine each."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.shimengine import ShimEngine
from tests.workplace import PROJECT, Done, make_checkout, program

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sshd import Rig, Server

__all__ = ["OTHER", "STAGE", "Fleet"]

STAGE: Final = "xbuild-nvidia-cuda-13"
OTHER: Final = "xbuild-nvidia-cuda-12"
_DOCKERFILE: Final = "\n".join(
    f"FROM scratch AS {stage}\nCOPY pack/gpustack-operator/external/{stage} /out/libvgpu.so\n"
    for stage in (OTHER, STAGE)
)


@dataclass
class Fleet:
    """Hosts that are cheap: an sshd and a stand-in for an engine each, and one checkout to build."""

    rig: Rig
    folder: Path
    library: bytes
    hosts: dict[str, ShimEngine] = field(default_factory=dict)
    servers: dict[str, Server] = field(default_factory=dict)
    lines: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        files = {f"pack/gpustack-operator/external/{stage}": b"source" for stage in (OTHER, STAGE)}
        self.checkout = make_checkout(self.folder / "checkout", _DOCKERFILE, files)

    def add(self, name: str, *, seconds: float = 0, ssh: tuple[str, ...] = ()) -> ShimEngine:
        """Add a host whose builds take ``seconds``; ``ssh`` are lines of ssh_config about it."""
        (self.folder / name).mkdir()
        engine = ShimEngine.make(self.folder / name, {"/out/libvgpu.so": self.library}, seconds=seconds)
        server = self.rig.server(environment=engine.environment)
        self.rig.alias(name, server.port, *ssh)
        self.hosts[name], self.servers[name] = engine, server
        self.lines[name] = [f"stage-dir: {engine.staging}"]
        return engine

    @property
    def file(self) -> Path:
        """The hosts file."""
        text = "hosts:\n"
        for name, knobs in self.lines.items():
            text += f"- name: {name}\n  ssh: {name}\n  knobs:\n"
            text += "".join(f"    {line}\n" for line in knobs)
        file = self.folder / "hosts.yaml"
        file.write_text(text)
        return file

    @property
    def environment(self) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("XB_", "DOCKER_", "SSH_AUTH"))
        }
        return {
            **kept,
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "XB_REPO": str(self.checkout),
            "XB_SSH_CONFIG": str(self.rig.ssh_config),
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }

    def argv(self, *words: str, file: Path | None = None) -> list[str]:
        return [str(program("inv")), "matrix", "--hosts-file", str(file or self.file), "--cases", "1", *words]

    def matrix(self, *words: str, yes: bool = True, file: Path | None = None) -> Done:
        done = subprocess.run(
            self.argv(*(["--yes"] if yes else []), *words, file=file),
            cwd=PROJECT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *words: str, file: Path | None = None) -> subprocess.Popen[str]:
        takes = (
            "import os, signal, sys; signal.signal(2, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
        )
        return subprocess.Popen(
            [sys.executable, "-c", takes, *self.argv("--yes", *words, file=file)],
            cwd=PROJECT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def newest(self) -> Path:
        runs = (self.folder / "state/xbtasks/runs").glob("*")
        return max(runs, key=lambda path: path.stat().st_mtime_ns)
