"""Evidence that can be shown to others: names replaced, and proven to say the same as before.

What is known of names when a run ends is noted beside its evidence: the hops that were taken to the host.
The host's own name and its user are in what it answered.
"""

from __future__ import annotations

import io
import json
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from xbtasks.errors import UsageError, XbError, disk_error, reason_of
from xbtasks.host.recording import RecordedHost
from xbtasks.host.redaction import NAMES, pseudonyms, redact
from xbtasks.matrix.folder import replay_folder
from xbtasks.pipeline import look_at
from xbtasks.plan import RunPlan
from xbtasks.reporting.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.hostfacts import HostFacts
    from xbtasks.result import Result

__all__ = ["bundle", "redact_in_place"]

_DIFFERS = "its names are also words of what was asked or answered"


def redact_in_place(directory: Path) -> Result:
    """Replace the evidence of a run by its redacted form and return what that says.

    Raises:
        UsageError: it can't be redacted, or would say something else; it is as it was then.
    """
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as folder:
        fresh = Path(folder) / directory.name
        result = _redacted(directory, fresh)
        plain = directory.rename(Path(folder) / "plain")
        try:
            fresh.rename(directory)
        except BaseException:
            plain.rename(directory)  # whatever happens, one of the two is there
            raise
    return replace(result, evidence=str(directory))


def bundle(directory: Path, file: Path) -> tuple[str, ...]:
    """Pack the redacted evidence of a run into ``file`` (tar, gzip) and return the names that were replaced.

    Raises:
        UsageError: there is no such evidence, it can't be redacted, or the file is there or can't be written.
    """
    with tempfile.TemporaryDirectory(prefix="xbtasks-bundle.") as folder:
        fresh = Path(folder) / directory.name
        names = _names(directory)
        _redacted(directory, fresh)
        try:
            with file.open("xb") as stream, tarfile.open(fileobj=stream, mode="w:gz") as tar:
                tar.add(fresh, directory.name, filter=_anonymous)
        except FileExistsError:
            raise UsageError(f"{file} is there already", hint="--output names another file") from None
        except OSError as error:
            file.unlink(missing_ok=True)
            raise disk_error(f"{file} can't be written", error) from error
    return tuple(names)


def _redacted(source: Path, target: Path) -> Result:
    """Write the redacted evidence to ``target`` and return what it says, which is what ``source`` says."""
    quiet = Console(io.StringIO())
    before = replay_folder(source, quiet)
    redact(source, target, _names(source))
    try:
        after = replay_folder(target, quiet)
    except XbError as error:
        raise UsageError(f"{source} can't be redacted: {error}; {_DIFFERS}") from error
    if _said(after) != _said(before):
        raise UsageError(f"{source} can't be redacted, it would not say the same: {_DIFFERS}")
    return after


def _said(result: Result) -> list[tuple[object, ...]]:
    """Return what must not change."""
    cases = [(case.stage, case.id, case.verdict, case.exit_code) for case in result.cases]
    rows = [(case.id, case.verdict, row.id, row.status) for case in result.cases for row in case.checks]
    preflight = [(row.id, row.status) for row in result.preflight]
    done = [(build.stage, build.outcome) for build in result.builds]
    judged = [(each.stage, each.path, each.sha256) for each in result.artifacts]
    return [(result.verdict, result.exit_code), *preflight, *cases, *rows, *done, *judged]


def _names(directory: Path) -> dict[str, str]:
    """Return what stands for each name that the evidence of ``directory`` may hold."""
    hosts: list[str] = []
    users: list[str] = []
    for path in sorted(directory.rglob(NAMES)):
        try:
            noted = json.loads(path.read_bytes())
            hosts += map(str, noted["hosts"])
            users += map(str, noted["users"])
        except (KeyError, OSError, TypeError, ValueError) as error:
            raise UsageError(f"{path} can't be read: {reason_of(error)}") from error
    for facts in _facts(directory):
        endpoints = [facts.engine.endpoint, *(node.endpoint for node in facts.buildx.nodes)]
        hosts += [facts.node, facts.engine.node, *(_hostname(endpoint) for endpoint in endpoints)]
        users.append(facts.user)
    return pseudonyms(hosts, users)


def _facts(directory: Path) -> Iterator[HostFacts]:
    """Yield what the host of each run in ``directory`` told of itself, where it was reached."""
    for path in sorted(directory.rglob("run.json")):
        with suppress(XbError, KeyError, OSError, TypeError, ValueError):
            plan = RunPlan.from_json(json.loads(path.read_bytes())["plan"])
            yield look_at(plan, RecordedHost(path.parent, ""))


def _hostname(endpoint: str) -> str:
    with suppress(ValueError):
        return urlsplit(endpoint).hostname or ""
    return ""


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
