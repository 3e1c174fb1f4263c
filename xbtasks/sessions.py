"""What the nox sessions are made of: the stages of the checkout, else those of the field."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["FIELD_STAGES", "meaning", "stage_names"]

FIELD_STAGES: Final = (
    "xbuild-ascend-cann-8-910b",
    "xbuild-ascend-cann-8-910c",
    "xbuild-ascend-cann-9-910b",
    "xbuild-ascend-cann-9-910c",
    "xbuild-ascend-cann-9-950",
    "xbuild-nvidia-cuda-12",
    "xbuild-nvidia-cuda-13",
)
"""The seven stages of the operator's public Dockerfile, listed where there is no checkout."""


_MEANINGS = {
    ExitCode.FAILED: "a check failed",
    ExitCode.USAGE: "refused, or wrong usage",
    ExitCode.SKIPPED: "nothing was measured",
    ExitCode.CANNOT_JUDGE: "could not judge",
    ExitCode.INTERRUPTED: "interrupted",
}


def meaning(code: int | None) -> str:
    """Return what an exit code of ours that isn't 0 means, for nox, which knows only good and bad."""
    known = next((text for each, text in _MEANINGS.items() if each == code), "did not run to its end")
    return f"{known} (exit code {code})"


def stage_names(environ: Mapping[str, str], cwd: Path) -> tuple[str, ...]:
    """Return the builder stages of the checkout that ``XB_REPO`` or the current directory names.

    Raises:
        UsageError: there is none, or a knob is wrong.
    """
    from xbtasks.checkout.stages import discover
    from xbtasks.checkout.tree import find_repo
    from xbtasks.knobs.resolve import default_user_file, resolve

    settings = resolve(
        {}, environ, user_file=default_user_file(environ), explicit_user_file=False, project_file=None
    )
    dockerfile = str(settings.dockerfile)
    explicit = str(settings.repo) if settings.repo else None
    return tuple(stage.name for stage in discover(find_repo(explicit, dockerfile, cwd), dockerfile).stages)
