"""What a test of a whole run has: an engine of the test session, and folders and names of its own."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import shutil
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "BASE",
    "DOCKERFILE",
    "PROJECT",
    "SAMPLE",
    "Done",
    "PrivateEngine",
    "Workplace",
    "cells",
    "make_checkout",
    "program",
    "statuses",
]

PROJECT: Final = Path(__file__).resolve().parents[1]
SAMPLE: Final = PROJECT / "xbtasks/sim/operator"
DOCKERFILE: Final = "pack/gpustack-operator/Dockerfile"
BASE: Final = "xbtasks-sim/base:1"
_OURS: Final = ("XB_", "XBTASKS_")


@dataclass(frozen=True)
class Done:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Both streams, for what is said on either."""
        return self.out + self.err

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document that stdout is."""
        return dict(json.loads(self.out))


@dataclass(frozen=True)
class PrivateEngine:
    """The engine of the test session; ``environment`` points docker and xbtasks at it."""

    environment: Mapping[str, str]

    def docker(self, *arguments: str, stdin: bytes = b"", code: int = 0) -> str:
        """Run docker, insist on its exit status, and return its stdout, stripped."""
        done = subprocess.run(
            ["docker", *arguments],
            env={**os.environ, **self.environment},
            input=stdin,
            capture_output=True,
        )
        assert done.returncode == code, done.stderr.decode(errors="replace")
        return done.stdout.decode(errors="replace").strip()


@dataclass
class Workplace:
    """A user's place: evidence, build contexts, staging directory and tags that no other test has."""

    folder: Path
    engine: PrivateEngine
    name: str
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("state", "config", "tmp"):
            (self.folder / name).mkdir()
        self.variables = {
            **self.engine.environment,
            "XDG_STATE_HOME": str(self.folder / "state"),
            "XDG_CONFIG_HOME": str(self.folder / "config"),
            "TMPDIR": str(self.temporary),
            "XB_REMOTE_CTX": str(self.contexts),
            "XB_STAGE": str(self.staging),
            "XB_REPO": str(SAMPLE),
            "XB_IMAGE": self.tag("image"),
            "NO_COLOR": "1",
            "COLUMNS": "160",
        }

    @property
    def contexts(self) -> Path:
        """Where build contexts go."""
        return self.folder / "ctx"

    def sent(self) -> set[Path]:
        """Return the build contexts that are on the host."""
        return {path for path in self.contexts.glob("*") if len(path.name) == 64}

    @property
    def staging(self) -> Path:
        """The staging directory."""
        return self.folder / "stage"

    @property
    def temporary(self) -> Path:
        """Where temporary files go."""
        return self.folder / "tmp"

    @staticmethod
    def program(name: str) -> Path:
        """Return a program of the environment that runs the tests."""
        return program(name)

    def tag(self, name: str) -> str:
        """Return an image reference that is this test's own."""
        return f"xbtest-{self.name}:{name}"

    def environment(self, **changes: str | None) -> dict[str, str]:
        """Return the environment of a command; a change to None takes a variable away."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        wanted: dict[str, str | None] = {**kept, **self.variables, **changes}
        return {name: value for name, value in wanted.items() if value is not None}

    def run(self, *argv: str | Path, cwd: Path = PROJECT, **changes: str | None) -> Done:
        """Run a command as a user types it, its stdin closed."""
        done = subprocess.run(
            [str(word) for word in argv],
            cwd=cwd,
            env=self.environment(**changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
        )
        out, err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
        return Done(done.returncode, out, err)

    def inv(self, *arguments: str, **changes: str | None) -> Done:
        """Run stock Invoke in the project."""
        return self.run(program("inv"), *arguments, **changes)

    def start(self, *arguments: str, **changes: str | None) -> subprocess.Popen[bytes]:
        """Start stock Invoke and return at once."""
        return subprocess.Popen(
            [program("inv"), *arguments],
            cwd=PROJECT,
            env=self.environment(**changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def at_terminal(self, *arguments: str, keys: str, **changes: str | None) -> Done:
        """Run stock Invoke with a terminal as its stdin alone, type ``keys``, and return how it ended."""
        ours, theirs = pty.openpty()
        try:
            child = subprocess.Popen(
                [program("inv"), *arguments],
                cwd=PROJECT,
                env=self.environment(**changes),
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            os.close(theirs)
            os.write(ours, keys.encode())
            out, err = (stream.decode(errors="replace") for stream in child.communicate(timeout=300))
            return Done(child.returncode, out, err)
        finally:
            os.close(ours)

    def on_screen(
        self, *arguments: str, question: str, keys: str, columns: int = 120, **changes: str | None
    ) -> Done:
        """Run stock Invoke on a terminal of its own, type ``keys`` once it shows ``question``."""
        child, ours = pty.fork()
        if not child:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.chdir(PROJECT)
            os.execve(program("inv"), ["inv", *arguments], self.environment(**changes))
        try:
            shown = _read_until(ours, question.encode())
            os.write(ours, keys.encode())
            shown += _read_until(ours, b"")
        finally:
            os.close(ours)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return Done(code, shown.decode(errors="replace").replace("\r\n", "\n"), "")

    def shim(self, name: str, body: str) -> str:
        """Put a program of our own before the real one, which is ``$REAL`` in it, and return the PATH."""
        folder = self.folder / "shim"
        folder.mkdir(exist_ok=True)
        real = shutil.which(name, path=self.variables["PATH"]) or ""
        (folder / name).write_text(f"#!/bin/sh\nREAL={real}\n{body}\n")
        (folder / name).chmod(0o755)
        return f"{folder}{os.pathsep}{self.variables['PATH']}"

    def without_cards(self) -> str:
        """Return a PATH on which the NVIDIA tool finds no card."""
        return self.shim("nvidia-smi", "echo 'No devices were found'; exit 6")

    def evidence(self) -> list[Path]:
        """Return the evidence directories of the runs so far, the oldest first."""
        runs = (self.folder / "state/xbtasks/runs").glob("*")
        return sorted(runs, key=lambda path: path.stat().st_mtime_ns)

    def left_over(self) -> list[str]:
        """Return what a run must not leave: unfinished files here, and containers of its own."""
        names = self.engine.docker("ps", "--all", "--filter", "label=xbtasks.run", "--format", "{{.Names}}")
        unfinished = [
            str(path)
            for root, patterns in (
                (self.contexts, (".incoming*",)),
                (self.staging, (".xbtasks-incoming*", ".xbtasks*.next")),
                (self.temporary, ("*",)),
            )
            for pattern in patterns
            for path in root.glob(pattern)
        ]
        return [*names.split(), *unfinished]


def _read_until(terminal: int, text: bytes) -> bytes:
    """Return what a terminal shows up to ``text``, or to its end, which reads as an error."""
    shown = b""
    with contextlib.suppress(OSError):
        while not text or text not in shown:
            if not select.select([terminal], [], [], 120)[0]:
                raise AssertionError(f"{text!r} never came: {shown!r}")
            shown += os.read(terminal, 65536)
    return shown


def program(name: str) -> Path:
    """Return a program of the environment that runs the tests."""
    return Path(sys.executable).with_name(name)


def make_checkout(folder: Path, dockerfile: str, files: Mapping[str, bytes | str] | None = None) -> Path:
    """Write an operator checkout: its Dockerfile and ``files`` by their paths in it."""
    for path, content in {DOCKERFILE: dockerfile, **(files or {})}.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def statuses(case: Mapping[str, Any], *names: str) -> dict[str, Sequence[str]]:
    """Return the statuses of a case's rows by the last part of their ids; all, or those of ``names``."""
    found: dict[str, list[str]] = {}
    for row in case["checks"]:
        found.setdefault(row["id"].rpartition(".")[2], []).append(row["status"])
    return {name: found[name] for name in (names or found)}


def cells(text: str) -> list[list[str]]:
    """Return the cells of the tables in ``text``, row by row."""
    return [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if " | " in line]
