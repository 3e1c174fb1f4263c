"""From knobs and a checkout to the plan of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.errors import UsageError
from xbtasks.plan import CaseKnobs, RunPlan, StagePlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xbtasks.checkout.stages import Discovery, Stage
    from xbtasks.knobs.settings import Settings

__all__ = ["case_knobs", "discover_stages", "make_plan", "of_backend", "stage_plan"]


def discover_stages(settings: Settings) -> Discovery:
    """Return the builder stages of the checkout that the knobs name.

    Raises:
        UsageError: there is no checkout, or its Dockerfile can't be read.
    """
    from xbtasks.checkout.stages import discover, find_repo

    dockerfile = str(settings.dockerfile)
    explicit = str(settings.repo) if settings.repo else None
    return discover(find_repo(explicit, dockerfile, Path.cwd()), dockerfile)


def of_backend(discovery: Discovery, name: str) -> tuple[Stage, ...]:
    """Return the stages of the backend called ``name``; all of them for an empty name.

    Raises:
        UsageError: there is no such backend.
    """
    from xbtasks.backends import BACKENDS

    if name and name not in BACKENDS:
        raise UsageError(f"no backend {name!r}: {', '.join(BACKENDS)} are accepted")
    return tuple(stage for stage in discovery.stages if name in ("", stage.backend.name))


def make_plan(
    settings: Settings,
    command: str,
    discovery: Discovery | None,
    stages: Sequence[Stage],
    *,
    cases: Iterable[int] = (),
    build: bool = False,
    choose: bool = False,
    knobs: CaseKnobs | None = None,
    rebuild: bool = False,
    adopt: bool = False,
) -> RunPlan:
    """Return what a run of ``command`` will do with ``stages``.

    Raises:
        UsageError: a knob that is one stage's is set for several.
    """
    if settings.image and len(stages) > 1 and not choose:
        raise UsageError(
            f"image from {settings.origin('image')} names one image, but {len(stages)} stages are built",
            hint="name one stage, or leave the image unset",
        )
    return RunPlan(
        command=command,
        stages=tuple(stage_plan(settings, discovery, stage) for stage in stages) if discovery else (),
        cases=tuple(cases),
        build=build,
        directories=_directories(settings, stages),
        choose=choose,
        dockerfile=discovery.dockerfile if discovery else "",
        commit=_commit(discovery) if discovery else "",
        platform=settings.platform or "",
        engine=settings.engine,
        builder=settings.builder or "",
        context_directory=settings.remote_ctx,
        max_glibc=settings.max_glibc or (),
        knobs=knobs or CaseKnobs(),
        rebuild=rebuild,
        adopt=adopt,
        step_deadline=int(settings.timeout),
        build_deadline=int(settings.build_timeout),
    )


def _directories(settings: Settings, stages: Sequence[Stage]) -> tuple[tuple[str, str], ...]:
    """Return the staging directories of the stages' backends; of all backends where there is no stage."""
    from xbtasks.backends import BACKENDS
    from xbtasks.knobs.settings import staging_directory

    used = {stage.backend.name for stage in stages} or set(BACKENDS)
    return tuple(
        (name, staging_directory(settings, backend)) for name, backend in BACKENDS.items() if name in used
    )


def case_knobs(settings: Settings, *, throttle: bool = True, busy_ok: bool = False) -> CaseKnobs:
    """Return what the user set for the hardware cases."""
    from xbtasks.knobs.cards import Auto

    gpus = settings.gpus
    return CaseKnobs(
        gpu=str(settings.gpu),
        gpus=(str(gpus),) if isinstance(gpus, Auto) else tuple(str(gpu) for gpu in gpus),
        mem=int(settings.mem or 0),
        sm=int(settings.sm or 0),
        npu=settings.npu,
        chip=settings.chip,
        vnpu=settings.vnpu,
        aicore=int(settings.aicore),
        workload_image=str(settings.workload_image or ""),
        throttle=throttle,
        busy_ok=busy_ok,
    )


def stage_plan(settings: Settings, discovery: Discovery, stage: Stage) -> StagePlan:
    """Return what a run needs to know of ``stage``.

    Raises:
        UsageError: the image can't be called so, or what the backend says of itself isn't whole.
    """
    from xbtasks.backends import require_modules
    from xbtasks.backends.profiles import profile_for
    from xbtasks.checkout.stages import input_digest
    from xbtasks.knobs.references import parse_image_tag
    from xbtasks.knobs.settings import image_tag, staging_directory

    require_modules(stage.backend)
    profile_for(stage.backend.name, stage.pin or "", settings.profile or "")  # better now than after a build
    image = image_tag(settings, stage.backend, stage.suffix)
    try:
        parse_image_tag(image)
    except UsageError as error:
        raise UsageError(f"stage {stage.name}: {error}", hint="--image names another one") from error
    return StagePlan(
        stage=stage.name,
        backend_name=stage.backend.name,
        suffix=stage.suffix,
        image=image,
        staging_directory=staging_directory(settings, stage.backend),
        digests=tuple(
            (platform, input_digest(stage, platform, discovery.repo)) for platform in stage.platforms
        ),
        pin=stage.pin or "",
        profile=settings.profile or "",
        cross_compiles=stage.cross_compiles,
    )


def _commit(discovery: Discovery) -> str:
    """Return the checkout's commit, with ``-dirty`` where files differ from it; empty without git."""
    import os
    import subprocess

    from xbtasks.history.git import clean_environment

    git = ["git", "-C", str(discovery.repo)]
    environment = clean_environment(os.environ)
    try:
        head, status = (
            subprocess.run(
                [*git, *words],
                check=False,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=30,
                env=environment,
            )
            for words in (["rev-parse", "--verify", "HEAD"], ["status", "--porcelain", "--", "."])
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    if head.returncode or status.returncode:
        return ""
    return head.stdout.strip() + ("-dirty" if status.stdout.strip() else "")
