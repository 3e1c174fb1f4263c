from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.workplace import DOCKERFILE, SAMPLE, make_checkout
from xbtasks.checks import CaseReport, Check, Status, Verdict, exit_code_of
from xbtasks.errors import ExitCode, UsageError
from xbtasks.matrix.folder import read_note, replay_matrix
from xbtasks.matrix.model import Unit
from xbtasks.places import places
from xbtasks.result import Result, error_result, merge
from xbtasks.sessions import (
    FIELD_STAGES,
    case_cells,
    close_group,
    group_folder,
    meaning,
    put_together,
    stage_names,
    why_unproven,
)


def test_the_fields_stages_are_those_of_the_sample() -> None:
    assert stage_names({"XB_REPO": str(SAMPLE)}, Path("/")) == FIELD_STAGES


def test_the_sessions_are_the_stages_of_the_checkout_around(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, "FROM scratch AS xbuild-nvidia-cuda-99\n")
    assert stage_names({"XB_REPO": str(checkout)}, Path("/")) == ("xbuild-nvidia-cuda-99",)


@pytest.mark.parametrize("variables", [{}, {"XB_REPO": "/nowhere"}, {"XB_REPO": "{tmp}"}, {"XB_MODE": "SSH"}])
def test_without_a_checkout_or_with_a_wrong_knob_there_is_an_error(
    variables: dict[str, str], tmp_path: Path
) -> None:
    given = {name: value.format(tmp=tmp_path) for name, value in variables.items()}
    with pytest.raises(UsageError):
        stage_names({"XDG_CONFIG_HOME": str(tmp_path), **given}, tmp_path)


def test_a_dockerfile_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, "FROM scratch AS xbuild-nvidia-cuda-99\n")
    (checkout / DOCKERFILE).write_bytes(b"\0")
    with pytest.raises(UsageError):
        stage_names({"XB_REPO": str(checkout)}, tmp_path)


def test_every_exit_code_has_a_meaning() -> None:
    texts = {meaning(code) for code in ExitCode if code}
    assert len(texts) == len(ExitCode) - 1
    assert "nothing was measured" in meaning(3)
    assert all(f"exit code {int(code)}" in meaning(code) for code in ExitCode if code)
    assert "did not run to its end" in meaning(None)
    assert "did not run to its end" in meaning(-9)


def test_cells_are_the_cases_that_a_stage_has() -> None:
    cells = case_cells(FIELD_STAGES)
    assert len(cells) == 21
    assert cells[0] == ("xbuild-ascend-cann-8-910b", 1)
    assert {number for _, number in cells} == {1, 2, 3}


# what the sessions of one nox leave


def test_the_sessions_of_one_nox_share_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    variables: dict[str, str] = {}
    folder, typed = group_folder(variables)
    assert typed
    assert folder.parent == tmp_path / "xbtasks/runs"
    assert not folder.exists()
    # a child of this process finds it, and a nox that something else started does not take it for its own
    monkeypatch.setattr("os.getppid", os.getpid)
    assert group_folder(variables) == (folder, False)
    monkeypatch.setattr("os.getppid", lambda: 1)
    other, typed = group_folder(variables)
    assert typed
    assert other != folder


STAGE = "xbuild-nvidia-cuda-13"
FOUND = [("gpu-1", Verdict.PASS), ("gpu-2", Verdict.FAIL)]
ROW = (Check("nvidia.case1.mode", Status.PASS, "0644"),)


def session(folder: Path, name: str, result: Result, *, run: bool = True) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "result.json").write_text(json.dumps(result.to_json()))
    if run:
        (folder / name / "run.json").write_text("{}")


def result(number: int, verdict: Verdict, reason: str = "", code: ExitCode = ExitCode.PASSED) -> Result:
    rows = ROW if verdict is Verdict.PASS else ()
    case = CaseReport(f"nvidia.case{number}", "t", STAGE, verdict, reason, 1.5, code, rows)
    return Result("r", "verify", "local", "/e", cases=(case,))


def test_what_sessions_found_is_put_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session(tmp_path, "a", result(1, Verdict.PASS))
    session(tmp_path, "b", result(2, Verdict.SKIP, "needs 1 GPU, the host has 0", ExitCode.SKIPPED))
    session(tmp_path, "c", error_result("verify", UsageError("bad --mem")), run=False)
    (tmp_path / "killed").mkdir()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/result.json").write_text("{")
    close_group(tmp_path)
    shown = capsys.readouterr().out
    assert "nvidia.case1" in shown
    assert "needs 1 GPU, the host has 0" in shown
    assert "c: bad --mem" in shown
    assert "counted as failed, nothing was measured: b" in shown
    assert "killed: it left no result" in shown
    assert "broken: it left no result" in shown
    note = read_note(tmp_path)
    assert note.units == (Unit("local", STAGE, (1,), "a"), Unit("local", STAGE, (2,), "b"))
    assert json.loads((tmp_path / "result.json").read_text())["exit_code"] == ExitCode.CANNOT_JUDGE


def test_a_matrix_of_several_hosts_keeps_them_apart(tmp_path: Path) -> None:
    parts = [replace(result(1, verdict, "", exit_code_of(verdict)), host=host) for host, verdict in FOUND]
    session(tmp_path, "matrix", merge(parts, run="m", command="matrix", evidence=""), run=False)
    session(tmp_path, "a", result(1, Verdict.PASS))
    found = put_together(tmp_path)
    assert found is not None
    assert [(case.host, case.verdict) for case in found.cases] == [("local", Verdict.PASS), *FOUND]
    assert len(places(found)) == 3


def test_what_is_judged_again_is_no_better_than_it_was(tmp_path: Path) -> None:
    passed = result(1, Verdict.PASS)
    others = {
        "failed": merge(
            [replace(result(1, v, "", exit_code_of(v)), host=h) for h, v in FOUND],
            run="",
            command="",
            evidence="",
        ),
        "passed": merge([replace(passed, host=h) for h in "ab"], run="", command="", evidence=""),
        "refused": error_result("verify", UsageError("bad --mem")),
        "killed": None,
    }
    for name, other in others.items():
        folder = tmp_path / name
        session(folder, "a", passed)
        if other is None:
            (folder / name).mkdir()
        else:
            session(folder, name, other, run=False)
        before = put_together(folder)
        again = replay_matrix(folder, lambda _: passed)
        assert before is not None
        assert again.exit_code is before.exit_code, name
        assert [case.verdict for case in again.cases if case.stage == STAGE] == [Verdict.PASS]
        assert name in {case.stage for case in again.cases}


def test_a_session_that_was_killed_is_missed_among_those_that_passed(tmp_path: Path) -> None:
    session(tmp_path, "a", result(1, Verdict.PASS))
    alone = put_together(tmp_path)
    assert alone is not None
    assert alone.exit_code is ExitCode.PASSED
    (tmp_path / "killed").mkdir()
    found = put_together(tmp_path)
    assert found is not None
    assert (found.exit_code, found.reason) == (ExitCode.CANNOT_JUDGE, "killed: it left no result")
    (tmp_path / "a/result.json").unlink()
    nobody = put_together(tmp_path)
    assert nobody is not None
    assert nobody.reason == "a: it left no result; killed: it left no result"


def test_a_session_is_good_where_its_result_is_whatever_was_typed_behind_it(tmp_path: Path) -> None:
    session(tmp_path, "a", result(1, Verdict.PASS))
    assert why_unproven(tmp_path / "a") == why_unproven(tmp_path / "a", 1) == ""
    assert why_unproven(tmp_path / "a", 2) == "nothing was measured: case 2 was not run"
    assert why_unproven(tmp_path / "none") == "nothing was measured: it left no result"
    session(tmp_path, "b", result(2, Verdict.FAIL, "nvidia.case2.mode", ExitCode.FAILED))
    assert why_unproven(tmp_path / "b") == "its result is FAIL: nvidia.case2.mode"
    session(tmp_path, "c", Result("r", "build", "local", "/e"))
    assert why_unproven(tmp_path / "c") == "nothing was measured: no case was run"


def test_where_no_session_left_anything_nothing_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    close_group(tmp_path / "none")
    assert put_together(tmp_path) is None
    assert capsys.readouterr().out == ""


def test_a_session_that_failed_tells_its_reason(tmp_path: Path) -> None:
    session(tmp_path, "b", result(2, Verdict.SKIP, "needs 1 GPU", ExitCode.SKIPPED))
    assert (
        meaning(3, tmp_path / "b") == "nothing was measured: nvidia.case2 skipped: needs 1 GPU (exit code 3)"
    )
    assert meaning(3, tmp_path / "none") == meaning(3)
