"""What an artifact's ELF file must look like, as data: a base for every pin, and named profiles on top of it.

A profile is chosen by name (the user's) or by the source pin; a pin that no profile knows gives none, and
then what depends on the pin isn't judged. The data stands in ``<backend>/profiles.json``.

Contracts: HAMi-core 8f3a89c, 52f33fc7; ubs-virt 5c2eac5 to bac3d46, each built and read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, TypedDict

from xbtasks import datafile
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "DcmiLinkage",
    "Expectation",
    "FileType",
    "Profile",
    "base_profile",
    "profile_for",
    "profile_names",
]

_FILE = "profiles.json"
_PIN = re.compile(r"[0-9a-fA-F]{7,40}", re.ASCII)


class FileType(StrEnum):
    """What kind of ELF file an artifact is."""

    SHARED = "shared"
    PIE = "pie"


class DcmiLinkage(StrEnum):
    """How an artifact refers to dcmi: not at all, weakly (preloaded), by NEEDED, or as only its pin knows."""

    NONE = "none"
    WEAK = "weak"
    STRONG = "strong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What one artifact must look like; names are exact.

    ``needed`` and ``forbidden`` are NEEDED entries; ``allowed`` may stand there unremarked, others WARN;
    ``waived`` may be absent although the source links them, and the verdict says so. ``weak`` are weak
    undefined symbols, ``hooks`` functions that it must export, ``counts`` prefixes of exported names that
    are counted. ``providers`` are libraries without symbol versions and patterns of the names that they
    define (``*`` at one end). ``hints`` are likely causes by the name that is wrong.
    """

    artifact: str
    type: FileType
    soname: str | None
    needed: tuple[str, ...]
    forbidden: tuple[str, ...]
    waived: tuple[str, ...]
    allowed: tuple[str, ...]
    weak: tuple[str, ...]
    dcmi_linkage: DcmiLinkage
    hooks: tuple[str, ...]
    counts: tuple[str, ...]
    providers: tuple[tuple[str, str], ...]
    hints: tuple[tuple[str, str], ...]

    def hint(self, *names: str) -> str:
        """Return the likely cause that is known for the first of ``names`` that has one, or an empty text."""
        known = dict(self.hints)
        return next((known[name] for name in names if name in known), "")


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of expectations; the base, which holds for every pin, has no name."""

    backend: str
    name: str
    summary: str
    pins: tuple[str, ...]
    artifacts: tuple[Expectation, ...]

    def expectation(self, artifact: str) -> Expectation:
        """Return what is expected of the artifact of that file name.

        Raises:
            KeyError: the profile knows no such artifact.
        """
        for expectation in self.artifacts:
            if expectation.artifact == artifact:
                return expectation
        raise KeyError(artifact)


class _Artifact(TypedDict):
    kind: FileType
    needed: list[str]


class _ArtifactData(_Artifact, total=False):
    soname: str
    hooks: list[str]
    counts: list[str]


class _ProfileData(TypedDict, total=False):
    summary: str
    needed: list[str]
    forbidden: list[str]
    waived: list[str]
    weak: list[str]
    dcmi: DcmiLinkage
    pins: list[str]


class _Required(TypedDict):
    default: str | None
    allowed: list[str]
    artifacts: dict[str, _ArtifactData]
    profiles: dict[str, _ProfileData]


class _Data(_Required, total=False):
    dcmi: DcmiLinkage
    providers: dict[str, list[str]]
    hints: dict[str, str]


def profile_names(backend: str) -> tuple[str, ...]:
    """Return the names of the profiles of ``backend`` (``ascend``, ``nvidia``)."""
    return tuple(_load(backend)["profiles"])


def base_profile(backend: str) -> Profile:
    """Return what is expected of ``backend``'s artifacts whatever their source pin."""
    return _profile(backend, "", {})


def profile_for(backend: str, pin: str, name: str = "") -> Profile | None:
    """Return the profile called ``name``, else the one that ``pin`` selects, else the backend's default.

    None means that the backend has no default and no profile knows the pin: what depends on it isn't judged.
    ``pin`` is a commit, short (at least seven hexadecimal digits) or full; a tag, a branch or an empty
    text selects nothing, and neither does a short one that fits two profiles.

    Raises:
        UsageError: ``name`` isn't a profile of this backend.
    """
    data = _load(backend)
    if name:
        if name not in data["profiles"]:
            known = ", ".join(data["profiles"])
            raise UsageError(f"{backend} has no profile {name!r}", hint=f"its profiles: {known}")
        return _profile(backend, name, data["profiles"][name])
    found = [known for known, profile in data["profiles"].items() if _selects(profile.get("pins", ()), pin)]
    chosen = found[0] if len(found) == 1 else data["default"] if not found else None
    return _profile(backend, chosen, data["profiles"][chosen]) if chosen else None


def _selects(pins: Iterable[str], pin: str) -> bool:
    if not _PIN.fullmatch(pin):
        return False
    short = pin.lower()
    return any(known.startswith(short) or short.startswith(known) for known in pins)


@cache
def _load(backend: str) -> _Data:
    """Return the backend's data.

    Raises:
        UsageError: the file isn't there, has another form, or doesn't fit the backend's artifacts.
    """
    from xbtasks.backends import BACKENDS

    data = datafile.read(f"xbtasks.backends.{backend}", _FILE, _Data)
    where = f"xbtasks/backends/{backend}/{_FILE}"
    chosen, names = data["default"], {artifact.name for artifact in BACKENDS[backend].artifacts}
    if chosen is not None and chosen not in data["profiles"]:
        known = ", ".join(data["profiles"])
        raise UsageError(
            f"{where}: default is {chosen!r}, which is no profile of it", hint=f"its profiles: {known}"
        )
    for name in sorted(set(data["artifacts"]) - names):
        known = ", ".join(sorted(names))
        raise UsageError(f"{where}: {name!r} is no artifact of {backend}", hint=f"its artifacts: {known}")
    for name in sorted(names - set(data["artifacts"])):
        raise UsageError(f"{where} doesn't tell what is expected of the artifact {name}")
    return data


def _profile(backend: str, name: str, extra: _ProfileData) -> Profile:
    data = _load(backend)
    return Profile(
        backend,
        name,
        extra.get("summary", "what holds for every source pin"),
        tuple(extra.get("pins", ())),
        tuple(
            Expectation(
                artifact=artifact,
                type=base["kind"],
                soname=base.get("soname"),
                needed=(*base["needed"], *extra.get("needed", ())),
                forbidden=tuple(extra.get("forbidden", ())),
                waived=tuple(extra.get("waived", ())),
                allowed=tuple(data["allowed"]),
                weak=tuple(extra.get("weak", ())),
                dcmi_linkage=extra.get("dcmi", data.get("dcmi", DcmiLinkage.NONE)),
                hooks=tuple(base.get("hooks", ())),
                counts=tuple(base.get("counts", ())),
                providers=tuple(
                    (lib, prefix) for lib, names in data.get("providers", {}).items() for prefix in names
                ),
                hints=tuple(data.get("hints", {}).items()),
            )
            for artifact, base in data["artifacts"].items()
        ),
    )
