"""The base image of the sample stages: a C compiler, made of Debian packages, without any registry.

The packages of a minimal system with gcc are downloaded as if for an empty machine, unpacked (none of their
scripts runs) and imported. A cross compiler for the other architecture is part of it: an imported image
belongs to one platform, so stages for the other one compile across from here.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge
from xbtasks.sim import apt

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xbtasks.sim.engine_api import EngineApi
    from xbtasks.sim.machine import Machine

__all__ = ["BASE_IMAGE", "archive_path", "ensure_archive", "ensure_image", "is_current"]

BASE_IMAGE: Final = "xbtasks-sim/base:1"
"""The tag that the sample Dockerfile's stages start from."""

_DIGEST_LABEL: Final = "xbtasks.base"
_PACKAGES: Final = (
    *("base-files", "bash", "coreutils", "dash", "findutils", "gcc", "grep", "libc6-dev"),
    *("python3-minimal", "sed"),
)
_CROSS_COMPILER: Final = {
    "amd64": ("gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
    "arm64": ("gcc-x86-64-linux-gnu", "libc6-dev-amd64-cross"),
}
_MERGED: Final = ("bin", "lib", "lib64", "sbin")
"""Folders that are links into /usr: packages of some releases still name them, so they come first."""

# What no stage needs of it: half of the size, and so of the time to import it and to remove it again.
_LEFT_OUT: Final = (
    "usr/bin/*-lto-dump-*",
    "usr/bin/*gcov*",
    "usr/lib/*/*gprofng*",
    "usr/lib/*/gconv",
    "usr/libexec/gcc*/*/*/lto1",
    "usr/share/doc",
    "usr/share/info",
    "usr/share/lintian",
    "usr/share/locale",
    "usr/share/man",
    "usr/**/lib*san.*",
)
_CHANGES: Final = (
    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    'CMD ["/bin/bash"]',
)


def archive_path(cache: Path, machine: Machine) -> Path:
    """Return where the image's tar archive lies, or will: its name holds a digest of what it is made of."""
    return cache / f"base-{_digest(machine)}-{machine.architecture}.tar"


def ensure_archive(cache: Path, machine: Machine, source: apt.PrivateApt, say: Callable[[str], None]) -> Path:
    """Return the image's tar archive, making it first where the cache doesn't have it."""
    archive = archive_path(cache, machine)
    if not archive.is_file():
        say("downloading the base image: Debian packages with a C compiler, about 110 MB")
        archives, tree, packed = (source.folder / name for name in ("base-debs", "base-tree", "base.tar"))
        source.download_closure((*_PACKAGES, *_CROSS_COMPILER[machine.architecture]), archives)
        (tree / "usr").mkdir(parents=True)
        for name in _MERGED:
            (tree / "usr" / name).mkdir()
            (tree / name).symlink_to(f"usr/{name}")
        apt.unpack(sorted(archives.glob("*.deb")), tree)
        _trim(tree)
        _pack(tree, packed)
        shutil.rmtree(tree)
        shutil.rmtree(archives)
        packed.rename(archive)
    return archive


def ensure_image(engine: EngineApi, archive: Path, machine: Machine, say: Callable[[str], None]) -> None:
    """Import the archive under BASE_IMAGE, unless the engine has exactly that image."""
    if not is_current(engine, machine):
        say(f"importing the base image as {BASE_IMAGE}")
        engine.import_image(archive, BASE_IMAGE, (*_CHANGES, f"LABEL {_DIGEST_LABEL}={_digest(machine)}"))


def is_current(engine: EngineApi, machine: Machine) -> bool:
    """Tell whether the engine has the base image that this version of xbtasks makes."""
    labels = engine.image_labels(BASE_IMAGE)
    return labels is not None and labels.get(_DIGEST_LABEL) == _digest(machine)


def _digest(machine: Machine) -> str:
    parts = (machine.base_release, *_PACKAGES, *_CROSS_COMPILER[machine.architecture], *_LEFT_OUT, *_CHANGES)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _trim(tree: Path) -> None:
    for pattern in _LEFT_OUT:
        for path in tree.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def _pack(tree: Path, archive: Path) -> None:
    done = subprocess.run(
        (
            "tar",
            "--create",
            "--numeric-owner",
            "--sort=name",
            "--file",
            str(archive),
            "--directory",
            str(tree),
            ".",
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise CannotJudge(f"tar could not pack the base image: {done.stderr.strip()}")
