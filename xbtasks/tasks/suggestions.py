"""Values that a shell can offer for an argument, found in a moment and without a host."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from xbtasks.knobs.settings import Settings

    _Source = Callable[[str, Mapping[str, str]], Iterable[str]]

__all__ = ["suggest"]

_NEWEST = 20  # runs


def suggest(task: str, argument: str, given: Mapping[str, str]) -> Iterable[str]:
    """Return values for an argument of ``task``; ``given`` are other arguments of the command line.

    May raise anything: whoever completes says nothing then.
    """
    source = _SOURCES.get(argument.rstrip("_"))
    return source(task, given) if source else ()


def _settings(given: Mapping[str, str]) -> Settings:
    from xbtasks.knobs.resolve import default_user_file, resolve

    flags = {name: given[name] for name in ("repo", "dockerfile", "ssh_config") if name in given}
    user_file = default_user_file(os.environ)
    return resolve(flags, os.environ, user_file=user_file, explicit_user_file=False, project_file=None)


def _repo(settings: Settings) -> Path:
    from xbtasks.checkout.tree import find_repo

    repo = str(settings.repo) if settings.repo else None
    return find_repo(repo, str(settings.dockerfile), Path.cwd())


def _stages(task: str, given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.backends import backend_of
    from xbtasks.checkout.stages import read_dockerfile
    from xbtasks.checkout.tree import Checkout

    settings = _settings(given)
    listed = read_dockerfile(Checkout(_repo(settings), str(settings.dockerfile))).listed
    own = task.partition(".")[0] if ".case" in task else ""
    return [name for name in listed if (backend := backend_of(name)) and own in ("", backend.name)]


def _backends(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.backends import BACKENDS

    return BACKENDS


def _profiles(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.backends import BACKENDS
    from xbtasks.backends.profiles import profile_names

    return [name for backend in BACKENDS for name in profile_names(backend)]


def _modes(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.knobs.values import Mode

    return [each.value for each in Mode]


def _host_keys(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.knobs.values import HostKeys

    return [each.value for each in HostKeys]


def _engines(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.knobs.values import Engine

    return [each.value for each in Engine]


def _platforms(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.backends.base import Platform

    return [each.value for each in Platform]


def _cases(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.backends import BACKENDS

    return sorted({str(case.number) for backend in BACKENDS.values() for case in backend.cases})


def _emitted(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.reporting.ci import FORMS

    return FORMS


def _auto(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    return ("auto",)


def _aliases(_task: str, given: Mapping[str, str]) -> Iterable[str]:
    """Return the names that the ssh configuration itself has; a file that it includes is not read."""
    text = _settings(given).ssh_config.read_text(errors="replace")
    lines = re.findall(r"^[ \t]*host[ \t=]+(.+)$", text, re.MULTILINE | re.IGNORECASE)
    return [word for line in lines for word in line.split() if not re.search(r"[*?!\"]", word)]


def _hosts(_task: str, given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.matrix.hostsfile import read_hosts

    return [entry.name for entry in read_hosts(Path(given["hosts_file"]).expanduser())]


def _refs(_task: str, given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.history.git import Git

    words = ("for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/remotes", "refs/tags")
    return os.fsdecode(Git(_repo(_settings(given))).tell(*words)).splitlines()


def _runs(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    """Return the ids of the newest runs, the newest first."""
    from xbtasks.evidence import runs_directory

    runs = sorted(runs_directory().iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    return [path.name for path in runs[:_NEWEST]]


def _reported(task: str, given: Mapping[str, str]) -> Iterable[str]:
    return ("last", *_runs(task, given))


def _topics(_task: str, _given: Mapping[str, str]) -> Iterable[str]:
    from xbtasks.explanations import topics

    return [topic.id for topic in topics()]


_SOURCES: Final[Mapping[str, _Source]] = {
    "stage": _stages,
    "stages": _stages,
    "backend": _backends,
    "cases": _cases,
    "mode": _modes,
    "host": _aliases,
    "host_keys": _host_keys,
    "hosts": _hosts,
    "engine": _engines,
    "platform": _platforms,
    "profile": _profiles,
    "gpu": _auto,
    "gpus": _auto,
    "base": _refs,
    "emit": _emitted,
    "continue": _reported,
    "run": _reported,
    "before": _reported,
    "after": _reported,
    "directory": _reported,
    "name": _topics,
}
