"""Result documents read back: strict about what they hold, tolerant of keys that are not known here.

A document that contradicts itself is refused: nothing is shown as passed that does not follow from its rows.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from xbtasks.checks import CaseReport, Check, Status, Verdict
from xbtasks.elf.summary import ElfSummary
from xbtasks.errors import ExitCode, UsageError
from xbtasks.result import SCHEMA, ArtifactRecord, BuildRecord, Result

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["from_json", "read_file", "read_result"]

_LARGEST = 256 * 1024 * 1024
_OUTCOMES = ("built", "up to date", "failed")
_E = TypeVar("_E", Status, Verdict, ExitCode)


def read_result(path: Path) -> Result:
    """Return the result in the file ``path``.

    Raises:
        UsageError: it can't be read, or is no result document of this version.
    """
    try:
        document = json.loads(read_file(path))
    except (RecursionError, ValueError) as error:
        raise UsageError(f"{path} is not JSON: {error}") from error
    try:
        return from_json(document)
    except UsageError as error:
        raise UsageError(f"{path} is no result document: {error.message}") from error


def read_file(path: Path) -> bytes:
    """Return what the file ``path`` holds, where it is a plain file of a size that a document can have.

    Raises:
        UsageError: it can't be read.
    """
    try:
        if not path.is_file():
            raise UsageError(f"{path} can't be read: {'not a file' if path.exists() else 'it is not there'}")
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path} can't be read: it is larger than any document")
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error


def from_json(document: object) -> Result:
    """Return the result that ``document`` (schema/result-1.json) holds.

    Raises:
        UsageError: something of it is missing, of another type, or contradicts the rest.
    """
    top = _Object(document, "the document")
    if top.integer("schema") != SCHEMA:
        raise UsageError(f"it is of form {top.integer('schema')}, this version reads {SCHEMA}")
    host = top.text("host")
    code = top.choice("exit_code", ExitCode)
    result = Result(
        run=top.text("run"),
        command=top.text("command"),
        host=host,
        evidence=top.text("evidence"),
        engine=top.text("engine"),
        simulated=top.flag("simulated"),
        preflight=tuple(replace(_check(each), host=_host(each, host)) for each in top.objects("preflight")),
        builds=tuple(_build(each, host) for each in top.objects("builds")),
        cases=tuple(_case(each, host) for each in top.objects("cases")),
        artifacts=tuple(_artifact(each, host) for each in top.objects("artifacts")),
        errors=tuple(_error(each) for each in (top.objects("errors") if top.has("errors") else ())),
    )
    if not top.has("errors") and code not in (result.exit_code, ExitCode.PASSED):
        # a document from before there was this key: what it ended with beside the cases is in its reason
        result = replace(result, errors=((code, top.text("reason")),))
    if result.exit_code is not code:
        raise UsageError(f"it says exit code {int(code)}, and what it holds means {int(result.exit_code)}")
    if result.verdict is not top.choice("verdict", Verdict):
        raise UsageError(f"it says {top.text('verdict')}, and what it holds means {result.verdict}")
    return result


@dataclass(frozen=True, slots=True)
class _Object:
    """A JSON object, and where it stands; each getter raises UsageError for a value of another type."""

    value: object
    where: str

    def get(self, key: str) -> object:
        if not isinstance(self.value, dict):
            raise UsageError(f"{self.where} is not an object")
        if key not in self.value:
            raise UsageError(f"{self.where} has no {key}")
        return self.value[key]

    def has(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def text(self, key: str) -> str:
        value = self.get(key)
        if not isinstance(value, str):
            raise self._wrong(key, value, "a text")
        return value

    def maybe_text(self, key: str) -> str | None:
        return None if self.get(key) is None else self.text(key)

    def flag(self, key: str) -> bool:
        value = self.get(key)
        if not isinstance(value, bool):
            raise self._wrong(key, value, "true or false")
        return value

    def integer(self, key: str) -> int:
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._wrong(key, value, "a whole number")
        return value

    def seconds(self, key: str) -> float:
        value = self.get(key)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self._wrong(key, value, "a number of seconds")
        if not math.isfinite(value) or value < 0:
            raise self._wrong(key, value, "a number of seconds")
        return float(value)

    def choice(self, key: str, kind: type[_E]) -> _E:
        value = self.get(key)
        for each in kind:
            if type(value) in (int, str) and each.value == value:
                return each
        raise self._wrong(key, value, f"one of {', '.join(str(each.value) for each in kind)}")

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.get(key)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._wrong(key, value, "a list of texts")
        return tuple(value)

    def objects(self, key: str) -> tuple[_Object, ...]:
        value = self.get(key)
        if not isinstance(value, list):
            raise self._wrong(key, value, "a list")
        return tuple(_Object(each, f"{key}[{number}] of {self.where}") for number, each in enumerate(value))

    def child(self, key: str) -> _Object:
        return _Object(self.get(key), f"{key} of {self.where}")

    def _wrong(self, key: str, value: object, accepted: str) -> UsageError:
        return UsageError(f"{key} of {self.where} is {str(value)[:60]!r}, not {accepted}")


def _check(row: _Object) -> Check:
    return Check(
        id=row.text("id"),
        status=row.choice("status", Status),
        detail=row.text("detail"),
        expected=row.text("expected"),
        observed=row.text("observed"),
    )


def _error(error: _Object) -> tuple[ExitCode, str]:
    code = error.choice("exit_code", ExitCode)
    if code is ExitCode.PASSED:
        raise UsageError(f"{error.where} is no error: exit code 0")
    return code, error.text("message")


_EXITS = {
    Verdict.PASS: (ExitCode.PASSED,),
    Verdict.FAIL: (ExitCode.FAILED,),
    Verdict.SKIP: (ExitCode.SKIPPED,),
    Verdict.ERROR: tuple(code for code in ExitCode if code not in (ExitCode.PASSED, ExitCode.SKIPPED)),
}


def _case(case: _Object, host: str) -> CaseReport:
    report = CaseReport(
        id=case.text("id"),
        title=case.text("title"),
        stage=case.text("stage"),
        verdict=case.choice("verdict", Verdict),
        reason=case.text("reason"),
        seconds=case.seconds("seconds"),
        exit_code=case.choice("exit_code", ExitCode),
        checks=tuple(_check(each) for each in case.objects("checks")),
        host=_host(case, host),
    )
    if report.exit_code not in _EXITS[report.verdict]:
        raise UsageError(f"{case.where} says {report.verdict} and exit code {int(report.exit_code)}")
    failed = any(row.status is Status.FAIL for row in report.checks)
    passed = any(row.status is Status.PASS for row in report.checks)
    if report.verdict is Verdict.PASS and (failed or not passed):
        held = "a row that FAILs" if failed else "no row that PASSes"
        raise UsageError(f"{case.where} says PASS and has {held}")
    return report


def _build(build: _Object, host: str) -> BuildRecord:
    outcome = build.text("outcome")
    if outcome not in _OUTCOMES:
        raise UsageError(f"outcome of {build.where} is {outcome[:60]!r}, not one of {', '.join(_OUTCOMES)}")
    return BuildRecord(
        build.text("stage"), outcome, build.text("reason"), build.seconds("seconds"), _host(build, host)
    )


def _artifact(artifact: _Object, host: str) -> ArtifactRecord:
    known = artifact.has("elf") and artifact.get("elf") is not None
    return ArtifactRecord(
        stage=artifact.text("stage"),
        path=artifact.text("path"),
        sha256=artifact.text("sha256"),
        size=artifact.integer("size"),
        image=artifact.text("image"),
        host=_host(artifact, host),
        pin=artifact.text("pin") if artifact.has("pin") else "",
        elf=_elf(artifact.child("elf")) if known else None,
    )


def _elf(elf: _Object) -> ElfSummary:
    return ElfSummary(
        arch=elf.text("arch"),
        type=elf.text("type"),
        soname=elf.maybe_text("soname"),
        needed=elf.texts("needed"),
        rpath=elf.maybe_text("rpath"),
        runpath=elf.maybe_text("runpath"),
        interp=elf.maybe_text("interp"),
        glibc=elf.text("glibc"),
        glibc_tags=elf.texts("glibc_tags"),
        textrel=elf.flag("textrel"),
        bind_now=elf.flag("bind_now"),
        exported=elf.texts("exported"),
        imports=elf.texts("imports"),
        weak_imports=elf.texts("weak_imports"),
    )


def _host(found: _Object, host: str) -> str:
    """Return the host of what was found, empty where it is the whole run's."""
    own = found.text("host") if found.has("host") else host
    return "" if own == host else own
