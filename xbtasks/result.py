"""The result document: what a run found, in one versioned envelope. More keys may come, none is renamed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from xbtasks.checks import CaseReport, Check, Status, Verdict
from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xbtasks.elf.summary import ElfSummary
    from xbtasks.errors import XbError

__all__ = [
    "SCHEMA",
    "ArtifactRecord",
    "BuildRecord",
    "Result",
    "error_result",
    "merge",
    "started",
    "verdict_of",
    "worst_exit",
]

SCHEMA = 1
"""The version of the result document: keys may be added to it, none renamed or removed."""
_ORDER = (ExitCode.INTERRUPTED, ExitCode.FAILED, ExitCode.CANNOT_JUDGE, ExitCode.USAGE, ExitCode.PASSED)


@dataclass(frozen=True, slots=True)
class ArtifactRecord:
    """An artifact that was judged: where it lies in its image, and its bytes' digest and size.

    ``pin`` is the source commit of its stage, or empty; ``elf`` is None where no loader takes the file.
    """

    stage: str
    path: str
    sha256: str
    size: int
    image: str
    host: str = ""
    pin: str = ""
    elf: ElfSummary | None = None


@dataclass(frozen=True, slots=True)
class BuildRecord:
    """What became of a stage's build: ``built``, ``up to date`` or ``failed``, and why."""

    stage: str
    outcome: str
    reason: str
    seconds: float
    host: str = ""


def _and(names: Iterable[str]) -> str:
    """Return names, each once, as a sentence lists them."""
    *rest, last = dict.fromkeys(names)
    return f"{', '.join(rest)} and {last}" if rest else last


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found. ``errors`` holds the exit codes of what could not be done, beside the cases."""

    run: str
    command: str
    host: str
    evidence: str
    engine: str = ""
    simulated: bool = False
    preflight: tuple[Check, ...] = ()
    builds: tuple[BuildRecord, ...] = ()
    cases: tuple[CaseReport, ...] = ()
    artifacts: tuple[ArtifactRecord, ...] = ()
    errors: tuple[tuple[ExitCode, str], ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """The worst of all: a failed check, then what could not be judged, then refusals."""
        codes = [code for code, _ in self.errors]
        codes += [case.exit_code for case in self.cases]
        if any(build.outcome == "failed" for build in self.builds):
            codes.append(ExitCode.FAILED)
        if self.command == "preflight" and any(row.status is Status.FAIL for row in self.preflight):
            codes.append(ExitCode.FAILED)
        if self.command in ("preflight", "build") and not codes:
            return ExitCode.PASSED
        return worst_exit(codes)

    @property
    def verdict(self) -> Verdict:
        """The verdict that the exit code stands for."""
        return verdict_of(self.exit_code)

    @property
    def reason(self) -> str:
        """Why the verdict is not PASS, or on what terms it is, in a line."""
        broken = {f"the build failed: {build.reason}" for build in self.builds if build.outcome == "failed"}
        skipped: dict[tuple[str, str], list[str]] = {}
        told: list[tuple[str, str] | str] = [text for _, text in self.errors]
        for case in self.cases:
            if case.reason:
                where = f"{case.host}: " if case.host not in ("", self.host) else ""
                if case.verdict is Verdict.SKIP:
                    skipped.setdefault((where, case.reason), []).append(case.id)
                    told.append((where, case.reason))
                else:
                    told.append(f"{where}{case.reason}")
        texts: list[str] = []
        for each in dict.fromkeys(told):
            if isinstance(each, str):
                texts.append(each)
            elif each[1] in broken:  # what is broken comes first, not what it kept from being measured
                texts.append(f"{each[0]}{each[1]} ({_and(skipped[each])} skipped)")
            else:
                texts.append(f"{each[0]}{_and(skipped[each])} skipped: {each[1]}")
        return "; ".join(texts)

    @property
    def preflights(self) -> dict[str, tuple[Check, ...]]:
        """The rows of preflight by host, as the hosts were looked at."""
        hosts = dict.fromkeys(row.host or self.host for row in self.preflight)
        return {
            host: tuple(row for row in self.preflight if (row.host or self.host) == host) for host in hosts
        }

    def to_json(self) -> dict[str, object]:
        """Return the result document (schema/result-1.json)."""
        return {
            "schema": SCHEMA,
            "run": self.run,
            "command": self.command,
            "simulated": self.simulated,
            "host": self.host,
            "engine": self.engine,
            "verdict": self.verdict,
            "exit_code": int(self.exit_code),
            "reason": self.reason,
            "cases": [self._placed(case) for case in self.cases],
            "builds": [self._placed(build) for build in self.builds],
            "preflight": [{**_row(row), "host": row.host or self.host} for row in self.preflight],
            "artifacts": [self._placed(artifact) for artifact in self.artifacts],
            "errors": [{"exit_code": int(code), "message": text} for code, text in self.errors],
            "evidence": self.evidence,
        }

    def _placed(self, found: CaseReport | BuildRecord | ArtifactRecord) -> dict[str, object]:
        """Return what was found as JSON values, with the host it was found on."""
        rows = {"checks": [_row(row) for row in found.checks]} if isinstance(found, CaseReport) else {}
        return {**asdict(found), **rows, "host": found.host or self.host}


def _row(row: Check) -> dict[str, object]:
    """Return what a row says, as JSON values."""
    return {key: value for key, value in asdict(row).items() if key != "host"}


_VERDICTS = {
    ExitCode.PASSED: Verdict.PASS,
    ExitCode.FAILED: Verdict.FAIL,
    ExitCode.USAGE: Verdict.ERROR,
    ExitCode.SKIPPED: Verdict.SKIP,
    ExitCode.CANNOT_JUDGE: Verdict.ERROR,
    ExitCode.INTERRUPTED: Verdict.ERROR,
}


def verdict_of(code: ExitCode) -> Verdict:
    """Return the verdict that an exit code stands for."""
    return _VERDICTS[code]


def worst_exit(codes: Iterable[ExitCode]) -> ExitCode:
    """Return the exit code of several: 130, 1, 4, 2, 0 in this order; 3 only when nothing was measured."""
    seen = frozenset(codes)
    return next((code for code in _ORDER if code in seen), ExitCode.SKIPPED)


def merge(results: Iterable[Result], *, run: str, command: str, evidence: str) -> Result:
    """Return one result of several, in their order; what was found keeps its host, an error names it."""
    parts = tuple(results)
    hosts = tuple(dict.fromkeys(part.host for part in parts))
    several = len(hosts) > 1
    return Result(
        run=run,
        command=command,
        host=", ".join(hosts),
        evidence=evidence,
        engine=", ".join(dict.fromkeys(part.engine for part in parts if part.engine)),
        simulated=any(part.simulated for part in parts),
        preflight=tuple(
            dict.fromkeys(
                replace(row, host=row.host or part.host) for part in parts for row in part.preflight
            )
        ),
        builds=tuple(replace(each, host=each.host or part.host) for part in parts for each in part.builds),
        cases=tuple(replace(each, host=each.host or part.host) for part in parts for each in part.cases),
        artifacts=tuple(
            replace(each, host=each.host or part.host) for part in parts for each in part.artifacts
        ),
        errors=tuple(
            (code, f"{part.host}: {text}" if several else text)
            for part in parts
            for code, text in part.errors
        ),
    )


def started(run: str) -> datetime | None:
    """Return when the run of this id began; None for an id without a time."""
    try:
        return datetime.strptime(run[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def error_result(command: str, error: XbError) -> Result:
    """Return the result of a command that found nothing, because of ``error``."""
    return Result(run="", command=command, host="", evidence="", errors=((error.exit_code, str(error)),))
