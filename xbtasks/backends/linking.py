"""Case 1, both backends: the artifacts exist, have their mode, and linked as their source says.

Pure: what lies in the image and in the staging directory goes in as values, rows come out. The ELF
files are judged from their bytes, so any architecture is judged on any host, and nothing is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from xbtasks.backends.linkrows import Demands, Rows, elf_rows
from xbtasks.backends.profiles import DcmiLinkage, base_profile
from xbtasks.checks import Check, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xbtasks.backends.base import Artifact, Backend, Platform
    from xbtasks.backends.profiles import Expectation, Profile

__all__ = ["CASE_TITLE", "ImageFile", "StagedFile", "accepted_by_profile", "judge_linking"]

CASE_TITLE: Final = "Build artifacts + linking"
"""The locked title of case 1 of every backend."""
_WAIVED = "needed-waived"


@dataclass(frozen=True, slots=True)
class ImageFile:
    """What lies at an artifact's place in the image.

    ``kind`` is ``file``, ``symlink``, ``directory``, ``missing`` or ``other``; ``mode`` holds permission and
    special bits; ``data`` are a file's bytes; ``link_target`` is where a symbolic link points.
    """

    path: str
    kind: str
    mode: int
    data: bytes
    link_target: str = ""


@dataclass(frozen=True, slots=True)
class StagedFile:
    """What lies at an artifact's place in the staging directory.

    ``path`` is relative to it, ``kind`` as in `ImageFile`, ``sha256`` a file's digest in hexadecimal.
    """

    path: str
    kind: str
    mode: int
    sha256: str


def judge_linking(
    backend: Backend,
    images: Sequence[ImageFile],
    staged: Sequence[StagedFile],
    *,
    platform: Platform,
    profile: Profile | None,
    pin: str = "",
    max_glibc: tuple[int, ...] | None = None,
    image_glibc: tuple[int, ...] | None = None,
    foreign: bool = False,
) -> tuple[tuple[str, ...], tuple[Check, ...]]:
    """Return case 1's required check ids and its rows, one per artifact and check.

    ``platform`` is what the stage was built for. ``profile`` None means that no profile knows the source
    pin (``pin``, for the reader): rows that depend on it WARN and aren't required. ``max_glibc`` is the
    highest GLIBC version that may be needed and ``image_glibc`` the one that the workload image has, as
    numbers (``(2, 28)``); without them the need is only reported. ``foreign`` says that the host can't run
    what it judges.

    An artifact or staged file that was not observed counts as missing.
    """
    used = profile or base_profile(backend.name)
    demands = Demands(platform, profile is not None, max_glibc or None, image_glibc or None, foreign=foreign)
    case = f"{backend.name}.case1"
    rows = [_profile_row(case, profile, pin)]
    required: list[str] = []
    for artifact in backend.artifacts:
        row = Rows(case, artifact.name)
        expectation = used.expectation(artifact.name)
        found = list(_file_rows(row, artifact, expectation, demands, images, staged))
        names = _required_names(expectation, demands)
        seen = {check.id for check in found}
        blocking = (row.id("present"), row.id("elf"))
        cause = next((c.detail for c in found if c.id in blocking and c.status is Status.FAIL), "")
        found += [row.not_reached(name, cause) for name in names if row.id(name) not in seen]
        rows += found
        required += [row.id(name) for name in names]
    return tuple(dict.fromkeys(required)), tuple(rows)


def accepted_by_profile(checks: Iterable[Check]) -> str:
    """Return what the profile accepted although the source links it, for the verdict's reason, or nothing."""
    return "; ".join(check.detail for check in checks if check.id.endswith(f".case1.{_WAIVED}"))


def _required_names(expectation: Expectation, demands: Demands) -> list[str]:
    """Return the checks that must PASS for an artifact, in the order of the table."""
    wanted = {
        "present": True,
        "mode": True,
        "elf": True,
        "arch": True,
        "type": True,
        "needed": demands.known,
        "needed-forbidden": demands.known,
        "undefined": True,
        "dcmi-weak": expectation.dcmi_linkage in (DcmiLinkage.WEAK, DcmiLinkage.STRONG),
        "hooks": bool(expectation.hooks),
        "soname": expectation.soname is not None,
        "rpath": True,
        "textrel": True,
        "glibc-private": True,
        "glibc": demands.max_glibc is not None,
        "glibc-image": demands.image_glibc is not None,
        "staged": True,
    }
    return [name for name, required in wanted.items() if required]


def _profile_row(case: str, profile: Profile | None, pin: str) -> Check:
    check_id = f"{case}.profile"
    if profile is None:
        source = f"source pin {pin}" if pin else "source pin (none is known)"
        detail = f"no profile knows the {source}: what depends on it isn't judged; XB_PROFILE chooses one"
        return Check(check_id, Status.WARN, detail)
    source = f", source pin {pin}" if pin else ""
    return Check(check_id, Status.INFO, f"{profile.name}: {profile.summary}{source}")


def _file_rows(
    row: Rows,
    artifact: Artifact,
    expectation: Expectation,
    demands: Demands,
    images: Sequence[ImageFile],
    staged: Sequence[StagedFile],
) -> Iterator[Check]:
    image = next((file for file in images if file.path == artifact.image_path), None)
    if image is None or image.kind != "file":
        there = _kind(image.kind if image else "missing", image.link_target if image else "")
        why = (
            "the stage's build did not put it there"
            if image is None or image.kind == "missing"
            else "the stage must install the file itself"
        )
        yield row.failed("present", f"{artifact.image_path}: {why}", "a regular file", there)
        return
    yield row.passed("present", f"{artifact.image_path}, {len(image.data)} bytes")
    yield _mode_row(row, artifact, image)
    yield from elf_rows(row, image.data, expectation, demands)
    yield _staged_row(row, artifact, image, next((f for f in staged if f.path == artifact.staged_path), None))


def _mode_row(row: Rows, artifact: Artifact, image: ImageFile) -> Check:
    if image.mode == artifact.mode:
        return row.passed("mode", f"{image.mode:04o}")
    if image.mode & 0o7000:
        why = "it carries set-uid, set-gid or sticky bits"
    elif artifact.mode & 0o044 & ~image.mode:
        why = "users other than its owner can't read it: for them nothing is limited"
    else:
        why = "the mode is the linker's or the umask's: the stage must set it (install -m)"
    return row.failed("mode", why, f"{artifact.mode:04o}", f"{image.mode:04o}")


def _staged_row(row: Rows, artifact: Artifact, image: ImageFile, staged: StagedFile | None) -> Check:
    digest = sha256(image.data).hexdigest()
    expected = f"sha256 {digest}, {artifact.mode:04o}"
    if staged is None or staged.kind != "file":
        why = f"{artifact.staged_path} is not in the staging directory: stage it again"
        return row.failed("staged", why, expected, _kind(staged.kind if staged else "missing", ""))
    observed = f"sha256 {staged.sha256}, {staged.mode:04o}"
    if staged.sha256.lower() != digest:
        why = "the staged file is not the image's: another stage, or an older build; stage it again"
        return row.failed("staged", why, expected, observed)
    if staged.mode != artifact.mode:
        return row.failed("staged", "the staged file has another mode: stage it again", expected, observed)
    return row.passed("staged", f"the staged file is the image's, {staged.mode:04o}, sha256 {digest[:12]}…")


def _kind(kind: str, target: str) -> str:
    names = {"missing": "nothing", "directory": "a directory", "file": "a regular file"}
    if kind == "symlink":
        return f"a symbolic link to {target}" if target else "a symbolic link"
    return names.get(kind, "a special file")
