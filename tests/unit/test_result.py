from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.workplace import PROJECT
from xbtasks.checks import CaseReport, Check, Status, Verdict
from xbtasks.errors import BuildFailed, CannotJudge, ExitCode, Interrupted, Refused, UsageError, XbError
from xbtasks.result import ArtifactRecord, BuildRecord, Result, error_result, merge, worst_exit
from xbtasks.resultfile import from_json

SCHEMA = json.loads((PROJECT / "xbtasks/schema/result-1.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
STAGE = "xbuild-nvidia-cuda-13"
EMPTY = Result("20260101-000000-abcdef", "verify", "local", "/evidence")


def case(verdict: Verdict, code: ExitCode, reason: str = "") -> CaseReport:
    row = Check("nvidia.case1.mode", Status.FAIL, "libvgpu.so: why", "0644", "0600")
    return CaseReport("nvidia.case1", "Build artifacts + linking", STAGE, verdict, reason, 1.5, code, (row,))


PASSED = case(Verdict.PASS, ExitCode.PASSED)
FAILED = case(Verdict.FAIL, ExitCode.FAILED, "nvidia.case1.mode")
SKIPPED = case(Verdict.SKIP, ExitCode.SKIPPED, "no card")
LOST = case(Verdict.ERROR, ExitCode.CANNOT_JUDGE, "the engine went away")
REFUSED = case(Verdict.ERROR, ExitCode.USAGE, "not built")


@pytest.mark.parametrize(
    ("cases", "code"),
    [
        ((PASSED,), 0),
        ((PASSED, PASSED), 0),
        ((FAILED, PASSED), 1),
        ((FAILED, LOST, REFUSED, SKIPPED), 1),
        ((LOST, REFUSED, PASSED), 4),
        ((REFUSED, SKIPPED, PASSED), 2),
        ((SKIPPED, PASSED), 0),
        ((SKIPPED, SKIPPED), 3),
        ((), 3),
    ],
)
def test_the_worst_case_decides_and_skips_count_only_alone(cases: tuple[CaseReport, ...], code: int) -> None:
    for order in itertools.permutations(cases):
        assert replace(EMPTY, cases=tuple(order)).exit_code == code


def test_a_run_that_did_nothing_is_not_a_pass() -> None:
    assert EMPTY.verdict is Verdict.SKIP


def test_a_failed_build_fails_whatever_the_cases_say() -> None:
    result = replace(EMPTY, cases=(SKIPPED,), builds=(BuildRecord(STAGE, "failed", "exit code 3", 1.0),))
    assert (result.exit_code, result.verdict) == (1, Verdict.FAIL)


def test_an_error_beside_a_passing_case_is_not_a_pass() -> None:
    result = replace(EMPTY, cases=(PASSED,), errors=((ExitCode.CANNOT_JUDGE, "the host is gone"),))
    assert (result.exit_code, result.verdict) == (4, Verdict.ERROR)


def test_an_interrupt_wins_over_everything() -> None:
    errors = ((ExitCode.INTERRUPTED, "interrupted"), (ExitCode.FAILED, "x"))
    assert replace(EMPTY, cases=(FAILED,), errors=errors).exit_code == 130


@pytest.mark.parametrize(("status", "code"), [(Status.FAIL, 1), (Status.WARN, 0), (Status.PASS, 0)])
def test_preflight_ends_by_its_rows(status: Status, code: int) -> None:
    rows = (Check("preflight.host", Status.PASS), Check("preflight.engine", status))
    assert replace(EMPTY, command="preflight", preflight=rows).exit_code == code


def test_a_failed_preflight_row_does_not_judge_a_stage() -> None:
    rows = (Check("preflight.buildx", Status.FAIL),)
    assert replace(EMPTY, cases=(PASSED,), preflight=rows).exit_code == 0


def test_a_build_that_ended_well_passes() -> None:
    result = replace(EMPTY, command="build", builds=(BuildRecord(STAGE, "built", "", 1.0),))
    assert result.exit_code == 0


def test_the_reason_tells_each_thing_once() -> None:
    result = replace(EMPTY, cases=(LOST, LOST, FAILED), errors=((ExitCode.CANNOT_JUDGE, LOST.reason),))
    assert result.reason == "the engine went away; nvidia.case1.mode"


def test_the_reason_names_what_was_skipped_for_one_cause_together() -> None:
    why = "nvidia.case1 failed: it is not taken to a card"
    skipped = [replace(SKIPPED, id=f"nvidia.case{number}", reason=why) for number in (2, 3)]
    result = replace(EMPTY, cases=(FAILED, *skipped))
    assert result.reason == f"nvidia.case1.mode; nvidia.case2 and nvidia.case3 skipped: {why}"
    elsewhere = replace(skipped[0], host="b")
    lacking = replace(skipped[0], reason="needs 1 GPU, the host has 0")
    apart = replace(EMPTY, cases=(skipped[0], elsewhere, lacking))
    assert apart.reason == (
        f"nvidia.case2 skipped: {why}; b: nvidia.case2 skipped: {why}; "
        "nvidia.case2 skipped: needs 1 GPU, the host has 0"
    )


@given(st.lists(st.sampled_from(ExitCode)))
def test_worst_exit_is_zero_only_where_something_passed_and_nothing_went_wrong(codes: list[ExitCode]) -> None:
    worst = worst_exit(codes)
    bad = set(codes) - {ExitCode.PASSED, ExitCode.SKIPPED}
    assert (worst is ExitCode.PASSED) == (ExitCode.PASSED in codes and not bad)
    assert (worst is ExitCode.SKIPPED) == (set(codes) <= {ExitCode.SKIPPED})
    assert worst in {*codes, ExitCode.SKIPPED}


# the document


def test_the_document_has_the_shape_that_is_shipped() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    result = replace(
        EMPTY,
        engine="docker 26.1.5",
        simulated=True,
        preflight=(Check("preflight.host", Status.PASS, "x86_64"),),
        builds=(BuildRecord(STAGE, "built", "there is no image yet", 1.5),),
        cases=(PASSED, FAILED, SKIPPED, LOST),
        artifacts=(ArtifactRecord(STAGE, "/out/libvgpu.so", "0" * 64, 5, "sha256:" + "1" * 64),),
    )
    for each in (result, EMPTY, replace(EMPTY, cases=(PASSED,))):
        document = json.loads(json.dumps(each.to_json()))
        VALIDATOR.validate(document)
        assert document["schema"] == 1


def test_rows_of_preflight_say_whose_they_are_when_runs_are_put_together() -> None:
    row, other = Check("preflight.buildx", Status.FAIL, "too old"), Check("preflight.host", Status.PASS)
    parts = [replace(EMPTY, host=host, preflight=(row, *more)) for host, more in (("a", ()), ("b", (other,)))]
    found = merge((*parts, parts[0]), run="m", command="matrix", evidence="")
    assert found.preflights == {
        "a": (replace(row, host="a"),),
        "b": (replace(row, host="b"), replace(other, host="b")),
    }
    document = json.loads(json.dumps(found.to_json()))
    VALIDATOR.validate(document)
    assert [each["host"] for each in document["preflight"]] == ["a", "b", "b"]
    assert from_json(document).preflights == found.preflights
    (alone,) = parts[0].to_json()["preflight"]  # type: ignore[misc]
    assert alone["host"] == "a"
    assert from_json(json.loads(json.dumps(parts[0].to_json()))).preflight == (row,)
    assert "host" not in replace(EMPTY, cases=(PASSED,)).to_json()["cases"][0]["checks"][0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("error", "code", "verdict"),
    [
        (UsageError("no stage", hint="name one"), 2, "ERROR"),
        (Refused("not confirmed"), 2, "ERROR"),
        (CannotJudge("no engine"), 4, "ERROR"),
        (Interrupted("interrupted"), 130, "ERROR"),
        (BuildFailed("exit code 3"), 1, "FAIL"),
    ],
)
def test_an_error_is_a_document_of_the_same_shape(error: XbError, code: int, verdict: str) -> None:
    document = json.loads(json.dumps(error_result("verify", error).to_json()))
    VALIDATOR.validate(document)
    assert (document["exit_code"], document["verdict"], document["reason"]) == (code, verdict, str(error))


@pytest.mark.parametrize(
    "path",
    [
        *(["schema"], ["run"], ["command"], ["simulated"], ["host"], ["engine"], ["verdict"], ["exit_code"]),
        *(["cases"], ["preflight"], ["artifacts"], ["evidence"], ["reason"], ["builds"]),
        *(["cases", 0, key] for key in ("id", "title", "stage", "verdict", "reason", "seconds", "checks")),
        *(["cases", 0, "checks", 0, key] for key in ("id", "status", "expected", "observed", "detail")),
        *(["artifacts", 0, key] for key in ("path", "sha256")),
    ],
)
def test_no_key_of_the_envelope_may_go(path: list[str | int]) -> None:
    artifact = ArtifactRecord(STAGE, "/out/libvgpu.so", "0" * 64, 5, "sha256:" + "1" * 64)
    document = json.loads(json.dumps(replace(EMPTY, cases=(FAILED,), artifacts=(artifact,)).to_json()))
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    del holder[path[-1]]
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    ("key", "value"),
    [("verdict", "PASSED"), ("exit_code", 5), ("exit_code", "0"), ("schema", 2), ("simulated", "no")],
)
def test_no_other_value_is_allowed(key: str, value: object) -> None:
    assert not VALIDATOR.is_valid({**replace(EMPTY, cases=(PASSED,)).to_json(), key: value})


def test_more_keys_may_come() -> None:
    VALIDATOR.validate({**EMPTY.to_json(), "duration": 3})


def test_what_several_hosts_found_keeps_its_host() -> None:
    build, artifact = BuildRecord(STAGE, "built", "", 1.0), ArtifactRecord(STAGE, "/out/x", "0" * 64, 1, "i")
    one = replace(
        EMPTY, host="a", engine="docker 26", cases=(PASSED,), builds=(build,), artifacts=(artifact,)
    )
    two = replace(EMPTY, host="b", simulated=True, errors=((ExitCode.CANNOT_JUDGE, "unreachable"),))
    merged = merge([one, two], run="m", command="matrix", evidence="/evidence")
    document = merged.to_json()
    assert (merged.exit_code, merged.simulated, merged.reason) == (4, True, "b: unreachable")
    assert document["host"] == "a, b"
    assert [document[name][0]["host"] for name in ("cases", "builds", "artifacts")] == ["a"] * 3  # type: ignore[index]
    assert replace(one, host="c").to_json()["cases"][0]["host"] == "c"  # type: ignore[index]


def test_the_worst_of_several_results_wins() -> None:
    results = [replace(EMPTY, cases=(case,)) for case in (PASSED, FAILED, LOST, SKIPPED)]
    for order in itertools.permutations(results):
        assert merge(order, run="m", command="matrix", evidence="").exit_code == 1
    assert merge([], run="m", command="matrix", evidence="").verdict is Verdict.SKIP
