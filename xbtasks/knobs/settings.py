"""Settings of a run: every knob as a typed value, with its origin, and the values that hold in effect."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING

from xbtasks.errors import UsageError
from xbtasks.knobs.table import KNOBS

if TYPE_CHECKING:
    import re
    from pathlib import Path

    from xbtasks.backends.base import Backend, Platform
    from xbtasks.knobs.cards import Auto, GpuId
    from xbtasks.knobs.references import HostSpec, ImageReference
    from xbtasks.knobs.values import Engine, HostKeys, Mib, Mode, Percent, Seconds

__all__ = [
    "KnobRow",
    "Origin",
    "Settings",
    "Source",
    "build_platform",
    "describe",
    "image_tag",
    "memory_mib",
    "sm_percent",
    "staging_directory",
    "workload_image",
]

_MEMORY_MIB = {"ascend": 1024, "nvidia": 4096}
_SM_PERCENT = {2: 50, 3: 30}


class Source(IntEnum):
    """Where a value can come from, the strongest first."""

    FLAG = 0
    HOSTS_FILE = 1
    VARIABLE = 2
    USER_FILE = 3
    PROJECT_FILE = 4
    DEFAULT = 5


@dataclass(frozen=True)
class Origin:
    """Where the value of the knob ``name`` came from; ``label`` says it to a person."""

    name: str
    source: Source
    label: str


@dataclass(frozen=True)
class Settings:
    """Every knob as a typed value.

    None means "unset": the value then depends on the backend, the stage or the host, and the
    functions of this module give the effective one. ``host`` is None whenever ``mode`` is local; if
    ``mode`` is ssh and it is None, ``needs_host`` is true and the caller asks for one on a terminal
    (:meth:`with_host`) or refuses. ``warnings`` are lines for the user.
    """

    mode: Mode
    host: HostSpec | None
    repo: Path | None
    dockerfile: Path
    platform: Platform | None
    image: ImageReference | None
    workload_image: ImageReference | None
    stage_dir: str | None
    remote_ctx: str
    engine: Engine
    builder: str | None
    ssh_config: Path
    host_keys: HostKeys
    connect_timeout: Seconds
    timeout: Seconds
    build_timeout: Seconds
    banner_re: re.Pattern[str]
    yes: bool
    npu: int
    chip: int
    vnpu: int
    aicore: Percent
    mem: Mib | None
    gpu: GpuId | Auto
    gpus: tuple[GpuId, ...] | Auto
    sm: Percent | None
    profile: str | None
    max_glibc: tuple[int, ...] | None
    origins: tuple[Origin, ...]
    warnings: tuple[str, ...] = ()

    @property
    def needs_host(self) -> bool:
        """Whether ssh was asked for and no host is known."""
        return self.mode == "ssh" and self.host is None

    def origin(self, name: str) -> str:
        """Return where the value of ``name`` came from: a flag, a variable, a file's line or ``default``.

        Raises:
            KeyError: no knob has that name.
        """
        return self.origin_of(name).label

    def origin_of(self, name: str) -> Origin:
        """Return the origin of ``name`` as a value.

        Raises:
            KeyError: no knob has that name.
        """
        for origin in self.origins:
            if origin.name == name:
                return origin
        raise KeyError(name)

    def with_host(self, text: str) -> Settings:
        """Return these settings with the host that a user was asked for.

        Raises:
            UsageError: ``text`` is not a host.
        """
        from xbtasks.knobs.references import parse_host
        from xbtasks.knobs.values import Mode

        origins = tuple(
            Origin("host", Source.FLAG, "your answer") if origin.name == "host" else origin
            for origin in self.origins
        )
        return replace(self, mode=Mode.SSH, host=parse_host(text), origins=origins)


def memory_mib(settings: Settings, backend_name: str) -> Mib:
    """Return the memory quota (ascend) or limit (nvidia) in MiB."""
    from xbtasks.knobs.values import Mib

    return Mib(_MEMORY_MIB[backend_name]) if settings.mem is None else settings.mem


def sm_percent(settings: Settings, case: int) -> Percent:
    """Return the SM limit of an NVIDIA case (2 or 3), in percent."""
    from xbtasks.knobs.values import Percent

    return Percent(_SM_PERCENT[case]) if settings.sm is None else settings.sm


def staging_directory(settings: Settings, backend: Backend) -> str:
    """Return the absolute staging directory on the host."""
    return settings.stage_dir or backend.staging_directory


def image_tag(settings: Settings, backend: Backend, suffix: str) -> str:
    """Return the tag that the image of the stage with ``suffix`` gets."""
    return f"{backend.image_repository}:{suffix}" if settings.image is None else str(settings.image)


def workload_image(settings: Settings, built: str) -> str:
    """Return the image that hardware cases run: the knob's, else the image that was ``built``."""
    return built if settings.workload_image is None else str(settings.workload_image)


def build_platform(settings: Settings, machine: str) -> Platform:
    """Return the platform to build for on a host of ``machine`` (``uname -m`` or docker's spelling).

    Raises:
        UsageError: the knob is unset and no stage can be built for such a machine.
    """
    from xbtasks.backends.base import Platform
    from xbtasks.knobs.values import shown

    platform = settings.platform or Platform.from_machine(machine)
    if platform is None:
        raise UsageError(
            f"no platform is known for the host's architecture {shown(machine)}", hint="give --platform"
        )
    return platform


@dataclass(frozen=True)
class KnobRow:
    """A knob as `inv knobs` shows it; all texts, ``value`` is the default's description where unset."""

    name: str
    env: str
    flag: str
    value: str
    origin: str
    accepts: str

    def document(self) -> dict[str, str]:
        """Return the row for a JSON document."""
        return dict(vars(self))


def describe(settings: Settings) -> tuple[KnobRow, ...]:
    """Return a row for every knob, in table order."""
    return tuple(
        KnobRow(
            entry.name,
            entry.env,
            entry.flag,
            _value_text(getattr(settings, entry.name)) or entry.default_text,
            settings.origin(entry.name),
            entry.accepts,
        )
        for entry in KNOBS
    )


def _value_text(value: object) -> str:
    import re

    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case re.Pattern():
            return str(value.pattern)
        case tuple():
            joint = "." if value and isinstance(value[0], int) else ","
            return joint.join(str(item) for item in value)
        case _:
            return str(value)
