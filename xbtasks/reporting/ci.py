"""Jobs in the words of CI engines: a GitHub matrix, a GitLab child pipeline, JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xbtasks.matrix.jobs import Job

__all__ = ["FORMS", "form", "github", "gitlab", "jobs_json"]

_GITHUBS_MOST: Final = 256
"""Jobs of one matrix: https://docs.github.com/actions/reference/limits."""


def _entry(job: Job) -> dict[str, str | int]:
    """Return a job as flat values, as a matrix and variables want them."""
    return {
        "name": job.name,
        "stage": job.stage,
        "backend": job.backend,
        "cases": ",".join(map(str, job.cases)),
        "platform": job.platform,
        "arch": job.arch,
        "cards": job.cards,
        "command": job.command,
    }


def github(jobs: Sequence[Job]) -> str:
    """Return the value of ``strategy.matrix`` on one line, as ``$GITHUB_OUTPUT`` wants it.

    GitHub refuses an empty matrix: the job that uses it asks for ``include[0]`` first.

    Raises:
        UsageError: there are more jobs than GitHub takes.
    """
    if len(jobs) > _GITHUBS_MOST:
        raise UsageError(
            f"{len(jobs)} jobs, and GitHub takes {_GITHUBS_MOST} of a matrix",
            hint="choose with --stages and --cases, and call it once for each choice",
        )
    return json.dumps({"include": [_entry(job) for job in jobs]})


def gitlab(jobs: Sequence[Job]) -> str:
    """Return a child pipeline: a job for each, which extends ``.xbtasks`` or, with cards, ``.xbtasks-cards``.

    GitLab refuses a pipeline without a job: where there is nothing to do, one says so.
    """
    import yaml

    pipeline: dict[str, object] = {"stages": ["verify"]}
    if not jobs:
        pipeline["nothing to verify"] = {"stage": "verify", "script": ["echo 'no stage has a job'"]}
    for job in jobs:
        names = ("stage", "backend", "cases", "platform", "arch", "command")
        entry = _entry(job)
        pipeline[job.name] = {
            "stage": "verify",
            "extends": ".xbtasks-cards" if job.cards else ".xbtasks",
            "variables": {f"XBTASKS_{name.upper()}": str(entry[name]) for name in names},
        }
    return yaml.safe_dump(pipeline, sort_keys=False, width=1000).removesuffix("\n")


def jobs_json(jobs: Sequence[Job]) -> str:
    """Return the jobs as a JSON document."""
    return json.dumps({"schema": 1, "jobs": [_entry(job) for job in jobs]}, indent=1)


FORMS: Final[Mapping[str, Callable[[Sequence[Job]], str]]] = {
    "github": github,
    "gitlab": gitlab,
    "json": jobs_json,
}
"""What ``--emit`` can write, by the name of the CI engine."""


def form(name: str) -> Callable[[Sequence[Job]], str]:
    """Return what writes jobs for the CI engine called ``name``.

    Raises:
        UsageError: there is none.
    """
    if name not in FORMS:
        raise UsageError(f"--emit {name!a}: {', '.join(FORMS)} are accepted")
    return FORMS[name]
