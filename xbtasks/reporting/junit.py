"""A result as JUnit XML, the form that Jenkins, GitLab and others read (Jenkins' xunit schema, junit-10).

A suite for each host and stage, a testcase for its build and for each case. What stands beside the cases,
an unreachable host for one, is a testcase too, so that no reader counts zero failures where the run failed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from xbtasks.checks import Status, Verdict
from xbtasks.places import places
from xbtasks.result import started, verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xbtasks.checks import CaseReport, Check
    from xbtasks.errors import ExitCode
    from xbtasks.places import Place
    from xbtasks.result import BuildRecord, Result

__all__ = ["render"]

_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 forbids, even as a character reference (section 2.2)."""

_TAGS: Final = {Verdict.FAIL: "failure", Verdict.ERROR: "error", Verdict.SKIP: "skipped"}


@dataclass(frozen=True, slots=True)
class _Test:
    """One testcase; a verdict of PASS has no reason that matters to a reader of JUnit."""

    classname: str
    name: str
    verdict: Verdict
    reason: str = ""
    kind: str = ""
    seconds: float = 0.0
    rows: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class _Suite:
    name: str
    host: str
    tests: tuple[_Test, ...] = field(default=())

    def count(self, verdict: Verdict) -> int:
        return sum(test.verdict is verdict for test in self.tests)

    @property
    def seconds(self) -> float:
        return sum(test.seconds for test in self.tests)


def render(result: Result) -> str:
    """Return ``result`` as an XML document."""
    suites = [suite for suite in _suites(result) if suite.tests]
    if not suites:
        suites = [
            _Suite(
                "run", result.host, (_Test("run", result.command, result.verdict, "nothing was measured"),)
            )
        ]
    root = ET.Element(
        "testsuites",
        name=_clean(f"xbtasks {result.command}{' (SIMULATED)' if result.simulated else ''}"),
        tests=str(sum(len(suite.tests) for suite in suites)),
        failures=str(sum(suite.count(Verdict.FAIL) for suite in suites)),
        errors=str(sum(suite.count(Verdict.ERROR) for suite in suites)),
        time=f"{sum(suite.seconds for suite in suites):.3f}",
    )
    for number, suite in enumerate(suites):
        root.append(_suite_element(suite, number, result))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suites(result: Result) -> Iterator[_Suite]:
    if result.command == "preflight":
        rows = tuple(_preflight_test(row) for row in result.preflight)
        yield _Suite("preflight", result.host, rows)
    several = len({place.host for place in places(result)}) > 1
    for place in places(result):
        name = f"{place.host}: {place.stage}" if several else place.stage
        yield _Suite(name, place.host, tuple(_tests(place)))
    errors = enumerate(result.errors, 1)
    tests = tuple(_error_test(f"{result.command} {number}", *error) for number, error in errors)
    yield _Suite("run", result.host, tests)


def _tests(place: Place) -> Iterator[_Test]:
    for build in place.builds:
        yield _build_test(build)
    for case in place.cases:
        yield _case_test(case)


def _preflight_test(row: Check) -> _Test:
    verdict = Verdict.FAIL if row.status is Status.FAIL else Verdict.PASS
    return _Test("preflight", row.id, verdict, row.detail, "FAIL", rows=(row,))


def _build_test(build: BuildRecord) -> _Test:
    verdict = Verdict.FAIL if build.outcome == "failed" else Verdict.PASS
    return _Test(build.stage, "build", verdict, build.reason, "build failed", build.seconds)


def _case_test(case: CaseReport) -> _Test:
    name = f"{case.id} {case.title}"
    kind = case.exit_code.name
    return _Test(case.stage, name, case.verdict, case.reason, kind, case.seconds, case.checks)


def _error_test(name: str, code: ExitCode, text: str) -> _Test:
    """Return what could not be done; its name is the same from run to run, so that readers can follow it."""
    return _Test("run", name, verdict_of(code), text, code.name)


def _suite_element(suite: _Suite, number: int, result: Result) -> ET.Element:
    attributes = {
        "name": _clean(suite.name),
        "id": str(number),
        "tests": str(len(suite.tests)),
        "failures": str(suite.count(Verdict.FAIL)),
        "errors": str(suite.count(Verdict.ERROR)),
        "skipped": str(suite.count(Verdict.SKIP)),
        "time": f"{suite.seconds:.3f}",
        "hostname": _clean(suite.host),
    }
    begun = started(result.run)
    if begun is not None:
        attributes["timestamp"] = begun.strftime("%Y-%m-%dT%H:%M:%S")
    element = ET.Element("testsuite", attributes)
    properties = ET.SubElement(element, "properties")
    for name, value in _properties(result):
        ET.SubElement(properties, "property", name=name, value=_clean(value))
    for test in suite.tests:
        element.append(_test_element(test))
    return element


def _properties(result: Result) -> Iterable[tuple[str, str]]:
    return (
        ("run", result.run),
        ("command", result.command),
        ("engine", result.engine),
        ("simulated", "true" if result.simulated else "false"),
        ("verdict", result.verdict),
        ("evidence", result.evidence),
    )


def _test_element(test: _Test) -> ET.Element:
    element = ET.Element(
        "testcase", classname=_clean(test.classname), name=_clean(test.name), time=f"{test.seconds:.3f}"
    )
    failed = [row for row in test.rows if row.status is Status.FAIL]
    tag = _TAGS.get(test.verdict)
    if tag == "skipped":
        ET.SubElement(element, tag, message=_clean(test.reason))
    elif tag is not None:
        outcome = ET.SubElement(element, tag, message=_clean(test.reason), type=test.kind or test.verdict)
        outcome.text = _clean("\n".join(map(_row_text, failed)) or test.reason)
    if test.rows:
        ET.SubElement(element, "system-out").text = _clean("\n".join(map(_row_text, test.rows)))
    elif test.reason and tag is None:
        ET.SubElement(element, "system-out").text = _clean(test.reason)
    return element


def _row_text(row: Check) -> str:
    lines = [f"{row.status} {row.id}: {row.detail}"]
    lines += [f"  expected: {row.expected}"] if row.expected else []
    lines += [f"  observed: {row.observed}"] if row.observed else []
    return "\n".join(lines)


def _clean(text: str) -> str:
    """Return ``text`` with each character that XML can't hold made visible as U+FFFD."""
    return _NO_XML.sub("\ufffd", text)
