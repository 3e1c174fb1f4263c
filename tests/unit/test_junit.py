from __future__ import annotations

import io
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from junitparser import JUnitXml, TestSuite

from tests.unit.result_samples import EMPTY, HOSTILE, RESULT, RESULTS, STAGE, hostile
from xbtasks.errors import ExitCode
from xbtasks.reporting.junit import render

if TYPE_CHECKING:
    from xbtasks.result import Result

SHAPE: Final[dict[str, tuple[set[str], set[str], set[str]]]] = {
    "testsuites": ({"testsuite"}, {"name", "time", "tests", "failures", "errors"}, set()),
    "testsuite": (
        {"properties", "testcase"},
        {"name", "tests", "failures", "errors", "time", "skipped", "timestamp", "hostname", "id"},
        {"name", "tests", "failures", "errors"},
    ),
    "properties": ({"property"}, set(), set()),
    "property": (set(), {"name", "value"}, {"name", "value"}),
    "testcase": ({"skipped", "error", "failure", "system-out"}, {"name", "time", "classname"}, {"name"}),
    "skipped": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "failure": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
"""Per element: the children it may have, its attributes, and those it must have (Jenkins' junit-10.xsd)."""


def parsed(result: Result) -> ET.Element:
    """Return the document, after a check of its shape and its counts."""
    text = render(result)
    root = ET.fromstring(text.encode("utf-8", "replace"))
    for element in root.iter():
        children, allowed, required = SHAPE[element.tag]
        assert {child.tag for child in element} <= children
        assert required <= set(element.attrib) <= allowed
    for holder in (root, *root.iter("testsuite")):
        assert int(holder.attrib["tests"]) == len(list(holder.iter("testcase")))
        for plural, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if plural in holder.attrib:
                assert int(holder.attrib[plural]) == len(list(holder.iter(tag)))
    return root


def test_a_suite_for_each_stage_and_a_testcase_for_its_build_and_each_case() -> None:
    root = parsed(RESULT)
    suite = root[0]
    assert (suite.attrib["name"], suite.attrib["hostname"]) == (STAGE, "local")
    assert suite.attrib["timestamp"] == "2026-01-02T03:04:05"
    assert suite.attrib["time"] == "16.250"
    names = [test.attrib["name"] for test in suite.iter("testcase")]
    assert names == ["build", *(f"nvidia.case{n} Build artifacts + linking" for n in (1, 2, 3))]
    outcomes = [[child.tag for child in test if child.tag != "system-out"] for test in suite.iter("testcase")]
    assert outcomes == [[], ["failure"], ["skipped"], []]
    assert [each.attrib["name"] for each in root] == [STAGE, "xbuild-ascend-cann-9-910c", "run"]
    assert "SIMULATED" in root.attrib["name"]


def test_a_failure_says_what_was_expected_and_observed() -> None:
    (failure,) = parsed(RESULT)[0].iter("failure")
    assert failure.attrib == {"message": "nvidia.case1.mode", "type": "FAILED"}
    assert failure.text == (
        "FAIL nvidia.case1.mode: libvgpu.so: the mode is the linker's\n  expected: 0644\n  observed: 0600"
    )
    (out,) = parsed(RESULT)[0].findall("testcase[2]/system-out")
    assert [line.split(":")[0] for line in (out.text or "").splitlines() if line[0] != " "] == [
        "PASS nvidia.case1.present",
        "FAIL nvidia.case1.mode",
        "WARN nvidia.case1.profile",
        "INFO nvidia.case1.glibc",
    ]


def test_each_suite_says_which_run_it_was() -> None:
    for suite in parsed(RESULT):
        properties = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}
        assert properties["run"] == RESULT.run
        assert properties["engine"] == "docker 26.1.5"
        assert properties["simulated"] == "true"
        assert properties["verdict"] == "FAIL"


@settings(deadline=None)
@given(RESULTS)
def test_there_is_a_failure_or_error_exactly_where_the_run_failed_or_could_not_judge(result: Result) -> None:
    root = parsed(result)
    bad = int(root.attrib["failures"]) + int(root.attrib["errors"])
    assert (bad > 0) == (result.exit_code not in (ExitCode.PASSED, ExitCode.SKIPPED))
    assert (int(root.attrib["failures"]) > 0) == (ExitCode.FAILED in _codes(result))
    if result.exit_code is ExitCode.SKIPPED:
        tests = root.findall("testsuite/testcase")
        judged = [
            test for test in tests if test.get("name") != "build" and test.get("classname") != "preflight"
        ]
        assert all(test.find("skipped") is not None for test in judged)


def test_a_branch_that_touches_nothing_is_skipped_not_an_error() -> None:
    (test,) = parsed(replace(EMPTY, errors=((ExitCode.SKIPPED, "touches none"),))).iter("testcase")
    assert [child.tag for child in test] == ["skipped"]


def _codes(result: Result) -> set[ExitCode]:
    """Return the exit code of each thing that was found."""
    codes = {code for code, _ in result.errors} | {case.exit_code for case in result.cases}
    failed = any(build.outcome == "failed" for build in result.builds)
    failed |= result.command == "preflight" and any(row.status == "FAIL" for row in result.preflight)
    return codes | ({ExitCode.FAILED} if failed else set())


def test_a_run_that_measured_nothing_is_no_empty_document() -> None:
    (test,) = parsed(EMPTY).iter("testcase")
    assert [child.tag for child in test] == ["skipped"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    root = parsed(hostile(text))
    wanted = "".join(c if c in "\t\n\r" or c >= " " else "\ufffd" for c in text)
    for char in "\ufffe\uffff\ud800\udcff":
        wanted = wanted.replace(char, "\ufffd")
    (failure,) = [each for each in root.iter("failure") if each.attrib["type"] == "FAILED"]
    assert failure.attrib["message"] == wanted
    assert failure.text is not None
    assert wanted.replace("\r\n", "\n") in failure.text.replace("\r\n", "\n")
    assert root.find("testsuite/properties/property[@name='run']").attrib["value"] == wanted  # type: ignore[union-attr]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_library_of_others_reads_it(text: str) -> None:
    for result in (RESULT, hostile(text)):
        found = JUnitXml.fromroot(ET.fromstring(render(result).encode()))
        found_again = JUnitXml.fromstring(render(result).encode())
        assert found.tests == found_again.tests == len(list(parsed(result).iter("testcase")))
        for suite in found_again:
            assert isinstance(suite, TestSuite)
    out = io.BytesIO()
    JUnitXml.fromstring(render(RESULT).encode()).write(out)
