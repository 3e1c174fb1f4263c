"""Past runs on disk: whole, damaged, foreign, unfinished; listed all the same, and found by name."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.result_samples import OTHER, RESULT, STAGE
from xbtasks.checks import Verdict
from xbtasks.errors import UsageError
from xbtasks.matrix.folder import NOTE, write_note
from xbtasks.matrix.model import MatrixNote
from xbtasks.matrix.resuming import find_matrix
from xbtasks.runs import find_folder, find_run, past_runs

if TYPE_CHECKING:
    from pathlib import Path

PLAN = {"host": "gpu1", "plan": {"command": "verify", "stages": [{"stage": STAGE}]}}


def keep(folder: Path, name: str, result: Any = None, note: Any = PLAN) -> Path:
    """Make the folder of a run; ``result`` and ``note`` are documents, bytes, or None for no file."""
    directory = folder / name
    directory.mkdir(parents=True)
    for file, content in (("result.json", result), ("run.json", note)):
        if content is not None:
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            (directory / file).write_bytes(data)
    return directory


WHOLE = replace(RESULT, run="20260102-030405-aaaaaa").to_json()


def test_runs_are_listed_the_newest_first(tmp_path: Path) -> None:
    for name in ("20260102-030405-aaaaaa", "20260301-000000-bbbbbb", "20250101-000000-cccccc"):
        keep(tmp_path, name, WHOLE)
    runs, more = past_runs(tmp_path)
    assert [run.name[-6:] for run in runs] == ["bbbbbb", "aaaaaa", "cccccc"]
    assert more == 0
    newest = runs[0]
    assert newest.result == replace(RESULT, run="20260102-030405-aaaaaa")
    assert (newest.command, newest.host, newest.stages) == ("verify", "local", (STAGE, OTHER))
    assert newest.when.isoformat() == "2026-03-01T00:00:00+00:00"
    runs, more = past_runs(tmp_path, most=2)
    assert ([run.name[-6:] for run in runs], more) == (["bbbbbb", "aaaaaa"], 1)


@pytest.mark.parametrize(
    ("result", "note", "said"),
    [
        (None, PLAN, "no result: the run was stopped, or goes on"),
        (None, None, "not a run"),
        (None, b"{", "not a run"),
        (None, {"plan": 1, "host": "x"}, "not a run"),
        (None, {"plan": {"command": "x", "stages": [1]}, "host": "x"}, "not a run"),
        (b"", PLAN, "result.json is not JSON"),
        (b"", None, "result.json is not JSON"),
        ({"schema": 2}, PLAN, "is no result document: it is of form 2"),
        ({**WHOLE, "verdict": "PASS"}, PLAN, "says PASS"),
        ({**WHOLE, "cases": {}}, PLAN, "cases of the document"),
    ],
)
def test_a_damaged_or_foreign_folder_is_listed_with_a_note(
    tmp_path: Path, result: Any, note: Any, said: str
) -> None:
    keep(tmp_path, "20260102-030405-aaaaaa", WHOLE)
    keep(tmp_path, "20260102-030406-bbbbbb", result, note)
    (bad, good), _ = past_runs(tmp_path)
    assert bad.result is None
    assert said in bad.note
    assert "\n" not in bad.note
    assert good.result is not None
    if note is PLAN:
        assert (bad.command, bad.host, bad.stages) == ("verify", "gpu1", (STAGE,))
    with pytest.raises(UsageError, match="20260102-030406-bbbbbb"):
        find_run("20260102-030406", tmp_path)


def test_a_matrix_that_was_stopped_is_named(tmp_path: Path) -> None:
    directory = keep(tmp_path, "20260102-030406-bbbbbb", note=None)
    note = {"command": "matrix", "hosts": ["a", "b"], "stages": [STAGE, OTHER]}
    (directory / "matrix.json").write_text(json.dumps(note))
    ((run,), _) = past_runs(tmp_path)
    assert (run.command, run.host, run.stages) == ("matrix", "a, b", (STAGE, OTHER))
    assert run.note == "no result: the run was stopped, or goes on"
    (directory / "matrix.json").write_text("[]")
    ((run,), _) = past_runs(tmp_path)
    assert run.note.startswith("not a run")


def test_a_folder_of_several_runs_that_go_on_is_a_run(tmp_path: Path) -> None:
    keep(tmp_path / "20260102-030406-bbbbbb", "verify-one")
    ((run,), _) = past_runs(tmp_path)
    assert run.note == "no result: the run was stopped, or goes on"


def test_what_is_no_run_at_all_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("x")
    (tmp_path / ".20260102-030405-aaaaaa.tmp").mkdir()
    (tmp_path / "somebody's folder").mkdir()
    os.mkfifo(tmp_path / "somebody's folder/result.json")
    (tmp_path / "to nowhere").symlink_to("nowhere")
    (tmp_path / "20269999-000000-xxxxxx").mkdir()
    (tmp_path / "20269999-000000-xxxxxx/result.json").mkdir()
    runs, _ = past_runs(tmp_path)
    assert {run.name for run in runs} == {"somebody's folder", "20269999-000000-xxxxxx"}
    assert all(run.result is None for run in runs)


def test_no_directory_is_no_runs_and_one_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    assert past_runs(tmp_path / "none") == ((), 0)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="can't be read: Not a directory"):
        past_runs(tmp_path / "file")


@pytest.fixture
def four(tmp_path: Path) -> Path:
    """Four runs, the newest without a result."""
    folder = tmp_path / "runs"
    for name in ("20260101-000000-aaaaaa", "20260102-000000-bbbbbb", "20260102-000000-bbcccc"):
        keep(folder, name, {**WHOLE, "run": name})
    keep(folder, "20260103-000000-dddddd")
    return folder


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("last", "bbcccc"),
        ("last~0", "bbcccc"),
        ("last~1", "bbbbbb"),
        ("last~2", "aaaaaa"),
        ("20260101-000000-aaaaaa", "aaaaaa"),
        ("20260101", "aaaaaa"),
        ("20260102-000000-bbb", "bbbbbb"),
        ("{four}/20260101-000000-aaaaaa", "aaaaaa"),
        ("{four}/20260101-000000-aaaaaa/", "aaaaaa"),
    ],
)
def test_a_run_is_found_by_what_people_type(four: Path, name: str, found: str) -> None:
    run = find_run(name.format(four=four), four)
    assert run.name.endswith(found)
    assert run.result is not None
    assert run.result.verdict is Verdict.FAIL
    assert find_folder(name.format(four=four), four) == run.directory


def test_a_folder_is_found_without_a_result_too(four: Path) -> None:
    assert find_folder("20260103", four).name == "20260103-000000-dddddd"
    for name, said in (("nope", "no run 'nope'"), ("last~3", "there are not 4"), ("20260102", "of 2 runs")):
        with pytest.raises(UsageError, match=said):
            find_folder(name, four)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "'' is no run"),
        ("a\0b", "is no run"),
        ("nope", "no run 'nope' in "),
        ("2026010", "'2026010' is the beginning of 4 runs: 20260103-000000-dddddd, .* …"),
        ("20260102", "is the beginning of 2 runs: 20260102-000000-bbcccc, 20260102-000000-bbbbbb$"),
        ("20260103", "no result: the run was stopped, or goes on"),
        ("last~3", "there are not 4 runs with a result"),
        ("last~", "no run 'last~'"),
        ("../x", "there is no folder ../x"),
        ("/", "not a run: it holds neither"),
        ("*", "no run"),
    ],
)
def test_a_run_that_is_not_there_is_said_in_a_line(four: Path, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        find_run(name, four)
    assert "\n" not in refused.value.message


def test_a_folder_of_the_current_directory_is_found_too(four: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(four)
    assert find_run("20260101-000000-aaaaaa", four.parent / "none").name == "20260101-000000-aaaaaa"


def test_no_runs_at_all_are_no_last_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no run has a result"):
        find_run("last", tmp_path)


def test_a_matrix_is_found_by_what_people_type(tmp_path: Path) -> None:
    for name in ("20260101-000000-aaaaaa", "20260102-000000-bbbbbb"):
        (tmp_path / name).mkdir()
        (tmp_path / name / NOTE).write_text("{}")
    (tmp_path / "20260103-000000-cccccc").mkdir()  # a run that is no matrix
    found = tmp_path / "20260104-000000-dddddd"  # what one nox found
    found.mkdir()
    write_note(found, MatrixNote("dddddd", "nox", (), (), ()))
    for name in ("last", "20260102", "20260102-000000-bbbbbb", str(tmp_path / "20260102-000000-bbbbbb")):
        assert find_matrix(name, tmp_path).name == "20260102-000000-bbbbbb"
    for name in ("", "2026", "20260103", "20260103-000000-cccccc", found.name, str(found), "nope"):
        with pytest.raises(UsageError, match="is no matrix") as refused:
            find_matrix(name, tmp_path)
        assert "20260102-000000-bbbbbb" in refused.value.hint
    with pytest.raises(UsageError, match="is no matrix"):
        find_matrix("last", tmp_path / "none")
