"""inv report as it is typed: the list, one run, two compared; on whatever lies in the folder of runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from invoke.program import Program

from tests.unit.result_samples import ARTIFACT, ELF, HOSTILE, RESULT, STAGE, case, hostile
from tests.workplace import PROJECT, cells
from xbtasks.checks import Verdict
from xbtasks.reporting.html import render
from xbtasks.result import Result
from xbtasks.tasks import ns

if TYPE_CHECKING:
    from pathlib import Path

BEFORE = "20260101-000000-aaaaaa"
AFTER = "20260102-000000-bbbbbb"
ONE = Result(BEFORE, "verify", "local", "/old", cases=(case(Verdict.PASS),), artifacts=(ARTIFACT,))
TWO = replace(
    ONE,
    run=AFTER,
    cases=(case(Verdict.FAIL, reason="nvidia.case1.mode"),),
    artifacts=(
        replace(ARTIFACT, sha256="f" * 64, pin="7" * 40, elf=replace(ELF, exported=("cuInit", "dlsym"))),
    ),
)


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep two runs, and one that was stopped."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    folder = tmp_path / "xbtasks/runs"
    for result in (ONE, TWO):
        keep(folder, result.run, result)
    (folder / "20260103-000000-cccccc").mkdir()
    return folder


def keep(folder: Path, name: str, result: Result) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "result.json").write_text(json.dumps(result.to_json()))


def typed(*words: str) -> int:
    """Return the exit code of a command line."""
    try:
        Program(namespace=ns, name="xb", binary="xb", version="1").run(["xb", *words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_the_list_has_a_line_for_each_run_the_newest_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("report") == 0
    rows = cells(capsys.readouterr().out)[1:]
    assert [row[:6] for row in rows] == [
        ["", "20260103-000000-cccccc", "2026-01-03 00:00", "", "", ""],
        ["FAIL", AFTER, "2026-01-02 00:00", "verify", "local", STAGE],
        ["PASS", BEFORE, "2026-01-01 00:00", "verify", "local", STAGE],
    ]
    assert rows[0][6].startswith("note: not a run")
    assert rows[1][6] == "nvidia.case1.mode"


def test_the_list_is_a_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("report", "--json", "--limit", "2") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["more"] == 1
    assert [(run["run"], run["verdict"], run["exit_code"]) for run in document["runs"]] == [
        ("20260103-000000-cccccc", None, None),
        (AFTER, "FAIL", 1),
    ]


def test_older_runs_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("report", "--limit", "1") == 0
    assert "2 older ones: --limit 0 lists all" in capsys.readouterr().out
    assert typed("report", "--limit", "0") == 0
    assert "older" not in capsys.readouterr().out


def test_no_runs_are_said(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(runs / "none"))
    assert typed("report") == 0
    assert capsys.readouterr().out.startswith("no runs in ")


@pytest.mark.parametrize(("name", "code"), [("last", 1), (BEFORE, 0), ("20260101", 0), ("last~1", 0)])
def test_a_run_is_shown_as_it_ended_and_so_does_the_command(
    name: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("report", name) == code
    out = capsys.readouterr().out
    assert ("FAIL" if code else "PASS") in out.splitlines()[-3]
    assert f"exit code {code}" in out


def test_an_older_run_is_not_taken_for_the_newest_unsaid(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["report", "last"], ["report.diff"]):
        typed(*words)
        said = capsys.readouterr().err
        assert said.startswith("note: 20260103-000000-cccccc is newer: not a run")
        assert said.count("note: ") == 1
    typed("report", AFTER)
    assert capsys.readouterr().err == ""


def test_a_run_is_written_in_every_form(runs: Path, tmp_path: Path) -> None:
    names = {form: tmp_path / f"x.{form}" for form in ("junit", "markdown", "html", "json")}
    assert typed("report", "last", *(f"--{form}={name}" for form, name in names.items())) == 1
    where = str(runs / AFTER)
    assert names["html"].read_text() == render(replace(TWO, evidence=where))
    assert ET.fromstring(names["junit"].read_bytes()).attrib["failures"] == "1"
    assert "FAIL" in names["markdown"].read_text()
    assert json.loads(names["json"].read_text()) == json.loads(
        json.dumps(replace(TWO, evidence=where).to_json())
    )


def test_the_files_are_written_although_nobody_reads_the_table(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    target = tmp_path / "page.html"
    words = (sys.executable, "-m", "xbtasks", "report", "last", f"--html={target}")
    with os.fdopen(writer, "w") as stream:
        done = subprocess.run(words, cwd=PROJECT, stdout=stream, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "FAIL: xbtasks verify" in target.read_text()
    assert done.stderr.startswith("note: ")


def test_a_past_run_is_not_in_the_job_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    assert typed("report", "last") == 1
    assert not (tmp_path / "summary").exists()


def test_a_comparison_tells_what_the_bump_did(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], [BEFORE, AFTER], ["last~1", "last"], ["--before", BEFORE, "--after", "last"]):
        assert typed("report.diff", *words) == 0
        rows = [row for row in cells(capsys.readouterr().out) if len(row) == 4]
        told = {row[2]: row for row in rows}
        assert told["nvidia.case1.mode"][0] == "WORSE"
        assert told["source pin"][3] == f"{'5' * 12} → {'7' * 12}"
        assert told["exported functions"][:2] == ["CHANGED", "/out/libvgpu.so"]
        assert told["exported functions"][3] == "3 → 2; lost cuMemAlloc_v2"
        assert told["sha256"][3] == f"{'0' * 12} → {'f' * 12}"


def test_a_comparison_is_a_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("report.diff", "--json", "--exit-code") == 1
    document = json.loads(capsys.readouterr().out)
    (hooks,) = [each for each in document["changes"] if each["what"] == "exported functions"]
    assert (hooks["lost"], hooks["gained"], hooks["before"]) == (["cuMemAlloc_v2"], [], "3")
    assert document["compared"] == {"cases": 1, "artifacts": 1}
    assert (document["before"]["run"], document["after"]["verdict"]) == (BEFORE, "FAIL")


def test_a_comparison_is_markdown_for_a_pull_request(tmp_path: Path) -> None:
    target = tmp_path / "bump.md"
    assert typed("report.diff", "--markdown", str(target)) == 0
    text = target.read_text()
    assert text.startswith("## PASS → FAIL: 3 worse, 3 changed\n")
    assert "lost <code>cuMemAlloc_v2</code>" in text
    assert f"<code>{'5' * 40}</code></td><td><code>{'7' * 40}</code>" in text


def test_a_run_does_not_differ_from_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("report.diff", "last", "last", "--exit-code") == 0
    assert "no difference; compared: 1 case and 1 artifact of both" in capsys.readouterr().out


def test_what_has_nothing_in_common_is_not_called_the_same(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(runs, "20260104-000000-dddddd", Result("d", "verify", "local", ""))
    keep(runs, "20260105-000000-eeeeee", Result("e", "verify", "local", ""))
    assert typed("report.diff") == 0
    assert "nothing was compared" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "nope"], "no run 'nope'"),
        (["report", "2026"], "the beginning of 3 runs"),
        (["report", "20260103"], "not a run"),
        (["report", "--limit", "x"], "--limit 'x'"),
        (["report", "--html", "{tmp}/x.html"], "--html is of one run, and none is named"),
        (["report", "last", "--html", "{tmp}/none/x.html"], "there is no folder"),
        (["report.diff", "nope"], "no run 'nope'"),
        (["report.diff", "last~1", "last~9"], "there are not 10 runs"),
        (
            ["report.diff", "last"],
            "there is one run to compare, 20260102-000000-bbbbbb, and no other is named",
        ),
        (["report.diff", "--after", "last~1"], "there is one run to compare, 20260101-000000-aaaaaa"),
    ],
)
def test_what_can_not_be_done_is_a_line_and_2(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed(*(word.format(tmp=tmp_path) for word in words)) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("error: ") == 1
    assert "Traceback" not in captured.err


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_can_not_write_on_the_terminal(
    text: str, runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(runs, "20260105-000000-eeeeee", hostile(text))
    keep(runs, "20260106-000000-ffffff", RESULT)
    for words in (["report"], ["report", "last~1"], ["report.diff"]):
        assert typed(*words) in (0, 1)
        out = capsys.readouterr().out
        assert all(char.isprintable() or char == "\n" for char in out)


def test_help_and_the_list_of_tasks_know_the_short_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("--list") == 0
    assert "report.show (report)" in capsys.readouterr().out
    assert typed("report", "--help") == 0
    assert "--html" in capsys.readouterr().out


def test_a_task_behind_the_report_is_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("report", "last~1", "report.diff", "last", "last") == 0
    assert "no difference" in capsys.readouterr().out
