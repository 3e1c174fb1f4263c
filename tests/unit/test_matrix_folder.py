"""One result of many: attempts, cells that weren't run, and what has a verdict already."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.workplace import SAMPLE
from xbtasks.checks import CaseReport, Check, Status, Verdict
from xbtasks.errors import ExitCode, UsageError
from xbtasks.knobs.resolve import resolve
from xbtasks.matrix.folder import gather, keep, read_note, replay_matrix, standing, write_note
from xbtasks.matrix.model import Cell, MatrixNote, NotRun, Unit
from xbtasks.matrix.resuming import require_same
from xbtasks.matrix.running import MatrixHost, MatrixRun, Silent
from xbtasks.plan import RunPlan, StagePlan
from xbtasks.planning import discover_stages, make_plan
from xbtasks.result import ArtifactRecord, BuildRecord, Result

if TYPE_CHECKING:
    from pathlib import Path

A, B = "xbuild-nvidia-cuda-12", "xbuild-nvidia-cuda-13"
CODES = {
    Verdict.PASS: ExitCode.PASSED,
    Verdict.FAIL: ExitCode.FAILED,
    Verdict.SKIP: ExitCode.SKIPPED,
    Verdict.ERROR: ExitCode.CANNOT_JUDGE,
}


def report(stage: str, number: int, verdict: Verdict, reason: str = "") -> CaseReport:
    return CaseReport(f"nvidia.case{number}", "t", stage, verdict, reason, 1.0, CODES[verdict])


def result(host: str, *cases: CaseReport, build: str = "built", errors: tuple[str, ...] = ()) -> Result:
    builds = tuple(
        BuildRecord(stage, build, "", 1.0) for stage in dict.fromkeys(case.stage for case in cases)
    )
    problems = tuple((ExitCode.CANNOT_JUDGE, text) for text in errors)
    return Result("r", "matrix", host, "", engine="docker 1", builds=builds, cases=cases, errors=problems)


def note(*units: Unit, not_run: tuple[NotRun, ...] = (), hosts: tuple[str, ...] = ("h", "k")) -> MatrixNote:
    return MatrixNote("m", "matrix", (A, B), (1, 2), hosts, units=units, not_run=not_run)


def unit(host: str, stage: str, *cases: int, attempt: str = "") -> Unit:
    return Unit(host, stage, cases, f"{host}.{stage}{attempt}")


def idle(host: str, stage: str, case: int, reason: str = "gone") -> NotRun:
    return NotRun(Cell(host, stage, case), Verdict.ERROR, reason, ExitCode.CANNOT_JUDGE)


def lines(found: Result) -> list[tuple[str, str, str, str]]:
    return [
        (case.stage[-2:], case.host, case.id[-1], f"{case.verdict} {case.reason}".strip())
        for case in found.cases
    ]


def test_one_result_by_stage_then_host_then_case() -> None:
    units = (unit("k", A, 1), unit("h", B, 1, 2), unit("h", A, 1))
    results = {
        units[0].folder: result("k", report(A, 1, Verdict.FAIL, "nvidia.case1.mode")),
        units[1].folder: result("h", report(B, 1, Verdict.PASS), report(B, 2, Verdict.SKIP, "no card")),
        units[2].folder: result("h", report(A, 1, Verdict.PASS)),
    }
    none = NotRun(Cell("", A, 2), Verdict.SKIP, "no host can take it", ExitCode.SKIPPED)
    found = gather(note(*units, not_run=(none, idle("k", B, 1), idle("k", A, 2))), results, "/m")
    assert lines(found) == [
        ("12", "h", "1", "PASS"),
        ("12", "k", "1", "FAIL nvidia.case1.mode"),
        ("12", "k", "2", "ERROR gone"),
        ("12", "", "2", "SKIP no host can take it"),
        ("13", "h", "1", "PASS"),
        ("13", "h", "2", "SKIP no card"),
        ("13", "k", "1", "ERROR gone"),
    ]
    assert (found.host, found.exit_code, found.evidence) == ("h, k", ExitCode.FAILED, "/m")
    assert [(build.host, build.stage[-2:]) for build in found.builds] == [
        ("h", "12"),
        ("k", "12"),
        ("h", "13"),
    ]


def test_every_cell_of_a_unit_has_a_report() -> None:
    lost, never = unit("h", A, 1, 2), unit("k", A, 1)
    found = gather(note(lost, never), {lost.folder: result("h", errors=("link lost",))}, "")
    assert lines(found) == [
        ("12", "h", "1", "ERROR link lost"),
        ("12", "h", "2", "ERROR link lost"),
        ("12", "k", "1", "ERROR it was not run: the matrix ended before"),
    ]
    assert found.errors == ()
    assert found.exit_code is ExitCode.CANNOT_JUDGE


def test_a_later_attempt_takes_the_place_of_an_earlier_one() -> None:
    first, second = unit("h", A, 1, 2), unit("h", A, 2, attempt=".2")
    results = {
        first.folder: result(
            "h", report(A, 1, Verdict.PASS), report(A, 2, Verdict.ERROR, "lost"), errors=("lost",)
        ),
        second.folder: result("h", report(A, 2, Verdict.PASS), build="up to date"),
    }
    found = gather(note(first, second, hosts=("h",)), results, "")
    assert lines(found) == [("12", "h", "1", "PASS"), ("12", "h", "2", "PASS")]
    assert [build.outcome for build in found.builds] == ["up to date"]
    assert found.exit_code is ExitCode.PASSED


def test_a_build_that_failed_counts_until_it_is_built() -> None:
    first, second = unit("h", A, 1), unit("h", A, 1, attempt=".2")
    failed = result("h", report(A, 1, Verdict.SKIP, "the build failed: x"), build="failed")
    assert gather(note(first), {first.folder: failed}, "").exit_code is ExitCode.FAILED
    mended = {first.folder: failed, second.folder: result("h", report(A, 1, Verdict.PASS))}
    assert gather(note(first, second), mended, "").exit_code is ExitCode.PASSED


def test_a_cell_that_could_not_be_run_again_says_why_not() -> None:
    first = unit("h", A, 1, 2)
    results = {first.folder: result("h", report(A, 1, Verdict.PASS), report(A, 2, Verdict.ERROR, "lost"))}
    found = gather(note(first, not_run=(idle("h", A, 2, "no route"),)), results, "")
    assert lines(found) == [("12", "h", "1", "PASS"), ("12", "h", "2", "ERROR no route")]


@pytest.mark.parametrize(
    ("verdicts", "stands"),
    [
        ((Verdict.PASS, Verdict.PASS), {1, 2}),
        ((Verdict.PASS, Verdict.ERROR), {1}),
        ((Verdict.PASS, Verdict.SKIP), {1}),
        ((Verdict.SKIP, Verdict.SKIP), set()),
        # what fails case 1 is not taken to a card, the next time neither
        ((Verdict.FAIL, Verdict.SKIP), {1, 2}),
        ((Verdict.FAIL, Verdict.ERROR), {1}),
    ],
)
def test_what_has_a_verdict_already(verdicts: tuple[Verdict, ...], stands: set[int]) -> None:
    only = unit("h", A, 1, 2)
    cases = [report(A, number, verdict) for number, verdict in enumerate(verdicts, 1)]
    done = standing(note(only, unit("k", B, 1)), {only.folder: result("h", *cases)})
    assert done == {Cell("h", A, number) for number in stands}


def test_a_verdict_of_an_earlier_attempt_does_not_outlive_a_later_one() -> None:
    first, second = unit("h", A, 1), unit("h", A, 1, attempt=".2")
    results = {
        first.folder: result("h", report(A, 1, Verdict.PASS)),
        second.folder: result("h", report(A, 1, Verdict.ERROR)),
    }
    assert standing(note(first, second), results) == frozenset()


def made(found: Result, content: str) -> Result:
    artifact = ArtifactRecord(A, "/out/libvgpu.so", content * 64, 1, "image")
    return replace(found, artifacts=(artifact,) if content else ())


@pytest.mark.parametrize(
    ("contents", "stands", "code"),
    [
        (("a", "a"), {1, 2}, ExitCode.PASSED),
        (("a", ""), {1, 2}, ExitCode.PASSED),
        (("", "b"), {1, 2}, ExitCode.PASSED),
        (("a", "b"), {2}, ExitCode.CANNOT_JUDGE),
    ],
)
def test_a_pass_does_not_stand_for_another_build(
    contents: tuple[str, str], stands: set[int], code: ExitCode
) -> None:
    first, second = unit("h", A, 1), unit("h", A, 2, attempt=".2")
    results = {
        first.folder: made(result("h", report(A, 1, Verdict.PASS)), contents[0]),
        second.folder: made(result("h", report(A, 2, Verdict.PASS)), contents[1]),
    }
    whole = note(first, second, hosts=("h",))
    found = gather(whole, results, "")
    assert standing(whole, results) == {Cell("h", A, number) for number in stands}
    assert found.exit_code is code
    assert lines(found)[0][3] == (
        "PASS" if 1 in stands else "ERROR it was judged on another build, the stage was built anew since"
    )
    # two hosts build each for itself
    other = replace(second, host="k")
    assert gather(note(first, other), results, "").exit_code is ExitCode.PASSED
    assert len(standing(note(first, other), results)) == 2
    # what is run again on the new build has its verdict
    third = unit("h", A, 1, attempt=".3")
    results[third.folder] = made(result("h", report(A, 1, Verdict.PASS)), contents[1])
    again = note(first, second, third, hosts=("h",))
    assert gather(again, results, "").exit_code is ExitCode.PASSED
    assert len(standing(again, results)) == 2


def test_several_attempts_are_judged_from_their_evidence(tmp_path: Path) -> None:
    first, missing = unit("h", A, 1), unit("k", A, 1)
    look = ("h", "h.look")
    write_note(tmp_path, replace(note(first, missing), looks=(look,)))
    for name in (first.folder, "h.look"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text("{}")
    row = Check("preflight.docker", Status.PASS, "26")
    judged = {
        first.folder: result("h", report(A, 1, Verdict.PASS)),
        "h.look": Result("l", "preflight", "h", "", preflight=(row,)),
    }
    found = replay_matrix(tmp_path, lambda path: judged[path.name])
    assert lines(found) == [
        ("12", "h", "1", "PASS"),
        ("12", "k", "1", "ERROR it was not run: the matrix ended before"),
    ]
    assert found.preflight == (replace(row, host="h"),)


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.FAIL])
def test_what_was_found_is_not_lost_where_it_can_not_be_kept(tmp_path: Path, verdict: Verdict) -> None:
    whole = note(unit("h", A, 1))
    found = result("h", report(A, 1, verdict))
    assert keep(found, lambda: write_note(tmp_path, whole)) == found
    assert read_note(tmp_path) == whole
    lost = keep(found, lambda: write_note(tmp_path / "gone", whole))
    assert lost.cases == found.cases
    assert lost.exit_code is (ExitCode.FAILED if verdict is Verdict.FAIL else ExitCode.CANNOT_JUDGE)
    assert lost.reason.startswith("the evidence can't be kept: ")


def test_a_unit_whose_evidence_can_not_be_kept_takes_no_others_verdict(tmp_path: Path) -> None:
    knobs = resolve({}, {"XB_REPO": str(SAMPLE)}, user_file=None, explicit_user_file=False, project_file=None)
    discovery = discover_stages(knobs)
    plan = make_plan(knobs, "matrix", discovery, discovery.stages, cases=(1,), build=True)
    (tmp_path / "m").write_text("no folder")
    host = MatrixHost("local", knobs, plan)
    matrix = MatrixRun("m", [host], (B,), (1,), discovery, Silent(), tmp_path / "m")
    found = matrix._perform(unit("local", B, 1), (), yes=False)
    assert found.exit_code is ExitCode.USAGE
    assert found.reason.startswith("the evidence can't be kept in ")


def test_a_note_travels_as_json(tmp_path: Path) -> None:
    full = replace(
        note(unit("h", A, 1, 2), not_run=(idle("", B, 1),)),
        looks=(("h", "h.look"),),
        hosts_file="/etc/h.yaml",
        places=(("h", "me@10.0.0.7:22"),),
    )
    write_note(tmp_path, full)
    assert read_note(tmp_path) == full


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"units": [{"host": "h", "stage": A, "cases": [1], "folder": "../other"}]},
        {"units": [{"host": "h", "stage": A, "cases": [1], "folder": "/etc"}]},
        {"units": [{"host": "h", "stage": A, "cases": ["1"], "folder": "x"}]},
        {"units": [{"host": "h", "stage": A, "cases": [True], "folder": "x"}]},
        {"looks": [["h", ".."]]},
        {"looks": [["h"]]},
        {"looks": 3},
        {"places": [["h"]]},
        {"places": [["h", 3]]},
        {"not_run": [{}]},
        {"stages": None},
        {"run": 5},
    ],
)
def test_another_document_is_no_note(tmp_path: Path, change: dict[str, object]) -> None:
    (tmp_path / "matrix.json").write_text(json.dumps({**note(unit("h", A, 1)).to_json(), **change}))
    with pytest.raises(UsageError):
        read_note(tmp_path)


def test_a_note_from_before_there_were_places_is_read(tmp_path: Path) -> None:
    document = note(unit("h", A, 1)).to_json()
    del document["places"]
    (tmp_path / "matrix.json").write_text(json.dumps(document))
    assert read_note(tmp_path).places == ()


@pytest.mark.parametrize(
    ("then", "run", "refused"),
    [
        ((("h", "me@10.0.0.7"),), True, False),
        ((("h", "me@10.0.0.8"),), True, True),
        # what was never run there may be put right
        ((("h", "me@10.0.0.8"),), False, False),
        # a note from before there were places
        ((), True, False),
    ],
)
def test_a_verdict_stands_for_the_machine_that_gave_it(
    tmp_path: Path, then: tuple[tuple[str, str], ...], *, run: bool, refused: bool
) -> None:
    stage = StagePlan(A, "nvidia", "12", "vgpu-build:12", "/opt/vgpu", (("linux/amd64", "d"),))
    plan = RunPlan("matrix", (stage,), (1,), build=True)
    whole = replace(note(unit("h", A, 1)), places=then)
    if run:
        (tmp_path / f"h.{A}").mkdir()
        (tmp_path / f"h.{A}/run.json").write_text(json.dumps({"plan": plan.to_json()}))
    expected = pytest.raises(UsageError, match=r"h is me@10\.0\.0\.7 now, and was me@10\.0\.0\.8")
    with expected if refused else nullcontext():
        require_same(tmp_path, whole, {"h": plan}, {"h": "me@10.0.0.7"})
    if run:
        changed = replace(plan, stages=(replace(stage, digests=(("linux/amd64", "e"),)),))
        with pytest.raises(UsageError):
            require_same(tmp_path, whole, {"h": changed}, {"h": "me@10.0.0.7"})


@given(st.recursive(st.none() | st.integers() | st.text(max_size=5), lambda each: st.lists(each, max_size=3)))
def test_any_json_is_a_note_or_an_error(document: object) -> None:
    for value in (document, {**note().to_json(), "units": document}, {**note().to_json(), "looks": document}):
        try:
            MatrixNote.from_json(value)
        except UsageError:
            continue
