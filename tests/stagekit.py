"""What a stage left behind, good unless changed, and how case 1 judges it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from tests.elfkit import (
    DCMI,
    monitor,
    vgpu,
    vruntime,
)
from xbtasks.backends import BACKENDS
from xbtasks.backends.base import Platform
from xbtasks.backends.linking import ImageFile, StagedFile, judge_linking
from xbtasks.backends.profiles import profile_for
from xbtasks.checks import Check, Status, Verdict, judge

EVERY = frozenset(("present", "mode", "elf", "arch", "type", "needed", "needed-forbidden", "undefined"))
EVERY |= frozenset(("rpath", "textrel", "glibc-private", "staged"))
NVIDIA = EVERY | {"hooks", "soname"}
ASCEND = EVERY | {"hooks", "dcmi-weak"}
READ = frozenset(("type", "needed", "needed-forbidden", "undefined", "rpath", "textrel", "glibc-private"))
"""What is read from the dynamic table, or hangs on its having been read."""
NVIDIA_READ = READ | {"hooks", "soname"}
ASCEND_READ = READ | {"hooks", "dcmi-weak"}
ABSENCE = frozenset(("needed-forbidden", "undefined", "rpath", "textrel", "glibc-private"))
"""Rows that PASS because something isn't there."""

PRIVATE = "int f0(void); int use(void) { return f0(); }"
USE_BOTH = "int f0(void); int f1(void); int use(void) { return f0() + f1(); }"
RELATIVE = "static int x; int *p[] = {&x, &x, &x};"
"""Sources that use glibc symbols of our own libc.so.6, and that need relative relocations."""


@dataclass(frozen=True)
class Stage:
    """What one stage left behind, by artifact name, and how it is judged; a good one unless changed."""

    backend: str
    files: dict[str, bytes]
    profile: str = ""
    pin: str = ""
    platform: Platform = Platform.AMD64
    images: dict[str, dict[str, object]] = field(default_factory=dict)
    staged: dict[str, dict[str, object]] = field(default_factory=dict)
    max_glibc: tuple[int, ...] | None = None
    image_glibc: tuple[int, ...] | None = None
    foreign: bool = False

    def judge(self) -> tuple[Verdict, tuple[Check, ...]]:
        backend = BACKENDS[self.backend]
        images, staged = [], []
        for artifact in backend.artifacts:
            data = self.files[artifact.name]
            digest = hashlib.sha256(data).hexdigest()
            image = ImageFile(artifact.image_path, "file", artifact.mode, data)
            there = StagedFile(artifact.staged_path, "file", artifact.mode, digest)
            images.append(replace(image, **self.images.get(artifact.name, {})))  # type: ignore[arg-type]
            staged.append(replace(there, **self.staged.get(artifact.name, {})))  # type: ignore[arg-type]
        required, rows = judge_linking(
            backend,
            [image for image in images if image.kind != "unobserved"],
            [there for there in staged if there.kind != "unobserved"],
            platform=self.platform,
            profile=profile_for(self.backend, self.pin, self.profile),
            pin=self.pin,
            max_glibc=self.max_glibc,
            image_glibc=self.image_glibc,
            foreign=self.foreign,
        )
        return judge(required, rows)


def names(rows: tuple[Check, ...], status: Status) -> frozenset[str]:
    return frozenset(row.id.rpartition(".")[2] for row in rows if row.status is status)


def nvidia(data: bytes | None = None, **changes: object) -> Stage:
    return replace(Stage("nvidia", {"libvgpu.so": vgpu() if data is None else data}), **changes)  # type: ignore[arg-type]


def ascend(library: bytes | None = None, tool: bytes | None = None, **changes: object) -> Stage:
    files = {
        "libvruntime.so": vruntime() if library is None else library,
        "enpu-monitor": monitor() if tool is None else tool,
    }
    return replace(Stage("ascend", files, "acl-dlopened"), **changes)  # type: ignore[arg-type]


def linked(**changes: object) -> Stage:
    """A stage of the acl-linked profile."""
    libraries = ("c_sec", "ascendcl")
    return ascend(
        vruntime(acl=True, libraries=libraries),
        monitor(acl=True, libraries=libraries),
        profile="acl-linked",
        **changes,
    )


def strong(**changes: object) -> Stage:
    """A stage of the pre-weak profile."""
    kit = {"weak": (), "strong": DCMI[:4], "libraries": ("c_sec", "dcmi")}
    return ascend(vruntime(**kit), monitor(**kit), profile="pre-weak", **changes)  # type: ignore[arg-type]


def image(**fields: object) -> dict[str, dict[str, object]]:
    return {"libvgpu.so": fields}


def tool(**fields: object) -> dict[str, dict[str, object]]:
    return {"enpu-monitor": fields}
