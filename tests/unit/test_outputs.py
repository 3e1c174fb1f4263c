from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from invoke.collection import Collection
from invoke.program import Program

from tests.unit.result_samples import HOSTILE, RESULT, case, hostile
from tests.workplace import PROJECT
from xbtasks import tasks
from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode, UsageError
from xbtasks.reporting import junit, markdown, outputs
from xbtasks.result import Result
from xbtasks.tasks.command import OUTPUTS, Call, command

if TYPE_CHECKING:
    from pathlib import Path

assert tasks.ns is not None  # importing the package installs the parser and the executor

PASSED = Result("20260102-030405-abcdef", "look", "local", "", cases=(case(Verdict.PASS),))
FORMS = [option.name for option in OUTPUTS]


@pytest.fixture(autouse=True)
def no_summary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def typed(*words: str, result: Result | Exception = PASSED) -> int:
    """Return the exit code of a command line whose task ends with ``result``."""

    def look(call: Call) -> ExitCode:
        """Look."""
        if isinstance(result, Exception):
            raise result
        return call.publish(result)

    collection = Collection()
    collection.add_task(command(*OUTPUTS)(look), name="look")
    try:
        Program(namespace=collection, name="xb", binary="xb", version="1").run(["xb", "look", *words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_all_forms_are_written_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for form in FORMS for word in (f"--{form}", str(tmp_path / f"a b.{form}"))]
    assert typed("--json", *words, result=RESULT) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["run"] == RESULT.run
    for form in FORMS:
        assert RESULT.run in (tmp_path / f"a b.{form}").read_text()
    assert len(list(tmp_path.iterdir())) == len(FORMS)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["", "{tmp}", "{tmp}/none/x", "a\0b"])
def test_a_file_that_can_not_be_written_is_said_before_anything_runs(
    form: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = next(each for each in FORMS if each != form)
    words = [f"--{other}={tmp_path / 'other'}", f"--{form}={name.format(tmp=tmp_path)}"]
    assert typed(*words, result=AssertionError("it ran")) == 2
    assert capsys.readouterr().err.count("error: ") == 1
    assert list(tmp_path.iterdir()) == []


def test_two_forms_in_one_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "folder").mkdir()
    names = (tmp_path / "x", tmp_path / "folder/../x")
    assert typed(f"--junit={names[0]}", f"--markdown={names[1]}", result=AssertionError("it ran")) == 2
    assert "--junit and --markdown name one file" in capsys.readouterr().err
    assert typed(f"--json={names[0]}", f"--markdown={names[1]}", result=AssertionError("it ran")) == 2
    assert typed("--junit=/dev/null", "--markdown=/dev/null") == 0


@pytest.mark.parametrize(("result", "code"), [(PASSED, 2), (RESULT, 1)])
def test_what_can_not_be_written_in_the_end_is_an_error_and_the_others_are_written(
    result: Result,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = outputs.write_atomically

    def full(name: str, text: str) -> None:
        if name.endswith(".junit"):
            raise UsageError(f"{name} can't be written: No space left on device")
        whole(name, text)

    monkeypatch.setattr(outputs, "write_atomically", full)
    words = [f"--{form}={tmp_path / f'x.{form}'}" for form in (*FORMS, "json")]
    assert typed(*words, result=result) == code
    assert {path.suffix for path in tmp_path.iterdir()} == {f".{form}" for form in (*FORMS, "json")} - {
        ".junit"
    }
    assert capsys.readouterr().err.count("No space left on device") == 1


def test_a_form_that_can_not_be_made_does_not_take_the_others_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_result: Result) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(junit, "render", broken)
    words = [f"--{form}={tmp_path / form}" for form in (*FORMS, "json")]
    assert typed(*words) == 4
    assert {path.name for path in tmp_path.iterdir()} == {*FORMS, "json"} - {"junit"}
    assert "internal error" in capsys.readouterr().err


def test_a_command_that_failed_before_it_had_a_result_is_a_failure_in_every_form(tmp_path: Path) -> None:
    words = [f"--{form}={tmp_path / form}" for form in FORMS]
    assert typed(*words, result=UsageError("no stage is named", hint="name one")) == 2
    root = ET.fromstring((tmp_path / "junit").read_bytes())
    assert root.attrib["errors"] == "1"
    for form in FORMS:
        assert "no stage is named; name one" in (tmp_path / form).read_text()


def test_what_is_written_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    script = (
        "import sys; from tests.unit.result_samples import HOSTILE, hostile;"
        "from xbtasks.reporting.outputs import write_outputs;"
        "assert not write_outputs(hostile(HOSTILE[10] + '\\ud800'), {'markdown': sys.argv[1]})"
    )
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "x")], cwd=PROJECT, env=environment, check=True
    )
    assert "漢字" in (tmp_path / "x").read_text("utf-8")


# the job summary of GitHub Actions


def test_the_job_summary_is_appended_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "summary"
    target.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    assert typed(result=RESULT) == 1
    assert typed(result=PASSED) == 0
    assert target.read_text() == f"before\n{markdown.render(RESULT)}{markdown.render(PASSED)}"


@pytest.mark.parametrize("name", ["{tmp}", "{tmp}/none/x", "a\0b"])
def test_a_job_summary_that_can_not_be_written_is_a_warning(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trouble = outputs.append_step_summary(PASSED, {"GITHUB_STEP_SUMMARY": name.format(tmp=tmp_path)})
    assert trouble.startswith("GITHUB_STEP_SUMMARY: ")
    assert "\n" not in trouble


def test_a_job_summary_stays_below_what_github_takes(tmp_path: Path) -> None:
    target = tmp_path / "summary"
    big = Result(
        "r", "verify", "local", "", cases=tuple(case(Verdict.FAIL, reason="x" * 900) for _ in range(900))
    )
    trouble = [outputs.append_step_summary(big, {"GITHUB_STEP_SUMMARY": str(target)}) for _ in range(40)]
    assert trouble[0] == ""
    assert "did not fit" in target.read_text()
    assert trouble[-1] == "GITHUB_STEP_SUMMARY: the summary is full, this run is not in it"
    assert target.stat().st_size <= 1024 * 1024


def test_a_form_is_imported_only_where_it_is_wanted(tmp_path: Path) -> None:
    script = (
        "import sys, xbtasks.tasks; from xbtasks.reporting.outputs import write_outputs;"
        "from tests.unit.result_samples import RESULT;"
        f"write_outputs(RESULT, {{'junit': {str(tmp_path / 'x')!r}}});"
        "print(*sorted(name for name in sys.modules if name.startswith('xbtasks.reporting.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [f"xbtasks.reporting.{name}" for name in ("junit", "outputs")]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_form_takes_every_text(text: str) -> None:
    for module in (junit, markdown):
        module.render(hostile(text)).encode("utf-8", "replace")
