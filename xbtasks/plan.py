"""What a run is going to do, as values: everything the pipeline needs and nothing it must look up.

A plan is made once from the knobs and the checkout, travels as JSON in the evidence, and is all that a
replay needs beside the host's answers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, cast

from xbtasks.backends import BACKENDS
from xbtasks.backends.base import Platform
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xbtasks.backends.base import Backend

__all__ = ["CaseKnobs", "RunPlan", "StagePlan"]


@dataclass(frozen=True, slots=True)
class StagePlan:
    """One stage of a run.

    ``digests`` holds the input digest for each platform the stage can be built for; ``pin`` is the
    source commit or empty; ``profile`` is a name given by the user or empty. ``cross_compiles`` tells that
    all its build steps run on the builder's own platform.
    """

    stage: str
    backend_name: str
    suffix: str
    image: str
    staging_directory: str
    digests: tuple[tuple[str, str], ...]
    pin: str = ""
    profile: str = ""
    cross_compiles: bool = False

    @property
    def backend(self) -> Backend:
        """The vendor."""
        return BACKENDS[self.backend_name]

    @property
    def platforms(self) -> tuple[Platform, ...]:
        """What the stage can be built for."""
        return tuple(Platform(name) for name, _ in self.digests)

    def digest(self, platform: Platform) -> str:
        """Return the input digest for ``platform``.

        Raises:
            UsageError: the stage has nothing to build for it.
        """
        for name, digest in self.digests:
            if name == platform:
                return digest
        known = ", ".join(self.platforms) or "none"
        raise UsageError(f"stage {self.stage} builds nothing for {platform}; its platforms: {known}")


@dataclass(frozen=True, slots=True)
class CaseKnobs:
    """The knobs of the hardware cases, as the user set them; empty or 0 means the case's own default.

    ``mem`` is in MiB, ``sm`` and ``aicore`` in percent. ``gpu`` and ``gpus`` are indexes, UUIDs or ``auto``.
    """

    gpu: str = "0"
    gpus: tuple[str, ...] = ("0", "1")
    mem: int = 0
    sm: int = 0
    npu: int = 0
    chip: int = 0
    vnpu: int = 0
    aicore: int = 20
    workload_image: str = ""
    throttle: bool = True
    busy_ok: bool = False


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A whole run. Deadlines are in seconds; ``platform`` empty means the host's own.

    With ``choose`` the stages are candidates, and the run takes the one that suits the host. ``directories``
    are the staging directories to look at, by backend. With ``shared`` other runs of the same process use
    them too, so that what is staged is read again when it is this run's turn.
    """

    command: str
    stages: tuple[StagePlan, ...]
    cases: tuple[int, ...]
    build: bool
    directories: tuple[tuple[str, str], ...] = ()
    choose: bool = False
    dockerfile: str = ""
    commit: str = ""
    platform: str = ""
    engine: str = "docker"
    builder: str = ""
    context_directory: str = "~/.cache/xbtasks/ctx"
    max_glibc: tuple[int, ...] = ()
    knobs: CaseKnobs = field(default_factory=CaseKnobs)
    rebuild: bool = False
    adopt: bool = False
    step_deadline: int = 300
    build_deadline: int = 7200
    shared: bool = False

    def to_json(self) -> dict[str, object]:
        """Return the plan as JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> RunPlan:
        """Return the plan that :meth:`to_json` wrote.

        Raises:
            UsageError: the document is not such a plan.
        """
        try:
            fields = dict(document)
            stages = cast("list[dict[str, object]]", fields.pop("stages"))
            knobs = cast("dict[str, object]", fields.pop("knobs"))
            return cls(
                knobs=CaseKnobs(**{name: _frozen(value) for name, value in knobs.items()}),  # type: ignore[arg-type]
                stages=tuple(
                    StagePlan(**{name: _frozen(value) for name, value in stage.items()})  # type: ignore[arg-type]
                    for stage in stages
                ),
                **{name: _frozen(value) for name, value in fields.items()},  # type: ignore[arg-type]
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise UsageError(f"the evidence holds no plan of this version: {error}") from error


def _frozen(value: object) -> object:
    """Return a JSON value with its lists as tuples."""
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
