"""The logs of CI engines: what folds, what is announced, and that text of others commands nothing."""

from __future__ import annotations

import io
import json
import re
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.actions import obeyed
from tests.emulator import Terminal
from xbtasks.checks import CaseReport, Verdict
from xbtasks.errors import ExitCode
from xbtasks.plan import RunPlan, StagePlan
from xbtasks.reporting.folding import GitHubLog, GitLabLog, ci_log, for_stderr
from xbtasks.reporting.watching import followed, watch
from xbtasks.result import BuildRecord, Result
from xbtasks.tasks.command import Call

if TYPE_CHECKING:
    from xbtasks.reporting.console import Console

STAGES = ("xbuild-nvidia-cuda-12", "xbuild-nvidia-cuda-13")
HOSTILE = (
    "::set-output name=x::1",
    "  ::set-env name=PATH::/evil",
    "\t::add-path::/evil",
    "\u2003::error::fake",
    "text ##[add-mask]e and more",
    "#\u034f#[add-mask]e",
    "\u034f::warning::fake",
    "::stop-commands::mine",
    "::mine::",
    "::endgroup::",
    "a\r::error::fake",
    "a\u2028::error::fake",
    "a\n::error::fake",
    "\x1b[0Ksection_start:1:x\r\x1b[0Kfake",
)


def plan() -> RunPlan:
    stages = tuple(StagePlan(name, "nvidia", name[-2:], f"v:{name[-2:]}", "/opt", ()) for name in STAGES)
    return RunPlan("verify", stages, (1,), build=True)


def report(stage: str, verdict: Verdict, reason: str = "", number: int = 1, host: str = "") -> CaseReport:
    return CaseReport(
        f"nvidia.case{number}", "Title", stage, verdict, reason, 1.0, ExitCode.PASSED, host=host
    )


def run(console: Console, *said: str) -> None:
    """Follow a run of two stages that says ``said`` everywhere."""
    with followed(console, plan()) as reporter:
        reporter.doing("", 0, "looking at the host")
        for line in said:
            reporter.say(line)
        for stage in STAGES:
            for what in ("looking", "building"):
                reporter.doing(stage, 0, what)
            for line in said:
                reporter.say(line)
                reporter.live(f"#5 [x 1/2] RUN {line}\n{line}\nERROR: {line}\n".encode(errors="replace"))
            reporter.judged(report(stage, Verdict.FAIL, " ".join(said)))
            reporter.doing(stage, 0, "")
    for line in said:
        console.say(line)


def test_each_stage_is_a_group_and_its_verdict_stands_below() -> None:
    out = io.StringIO()
    console = GitHubLog(out)
    run(console, "said")
    console.close()
    assert obeyed(out.getvalue()) == [
        ("group", "", STAGES[0]),
        ("endgroup", "", ""),
        ("group", "", STAGES[1]),
        ("endgroup", "", ""),
    ]
    lines = [line for line in out.getvalue().splitlines() if not line.startswith("::")]
    step = "    #5 [x 1/2] RUN said"
    assert lines == [
        "said",
        *("said", step, f"{STAGES[0]} nvidia.case1: FAIL, said"),
        *("said", step, f"{STAGES[1]} nvidia.case1: FAIL, said"),
        "said",
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_others_is_a_command(text: str) -> None:
    assert (
        text.startswith("\x1b") or obeyed(text) or text == "::mine::" or "stop-" in text or "\u2028" in text
    )
    out = io.StringIO()
    console = GitHubLog(out)
    run(console, text)
    console.close()
    assert [name for name, _, _ in obeyed(out.getvalue())] == ["group", "endgroup"] * 2
    assert obeyed(f"{out.getvalue()}::notice::ours\n")[-1] == ("notice", "", "ours")  # they are on again


@given(st.lists(st.one_of(st.text(), st.sampled_from(HOSTILE)), max_size=4))
def test_nothing_at_all_is_a_command(said: list[str]) -> None:
    out = io.StringIO()
    console = GitHubLog(out)
    run(console, *said)
    console.announce(Result("r", "verify", "local", "", cases=(report("s", Verdict.FAIL, "".join(said)),)))
    console.close()
    names = [name for name, _, _ in obeyed(out.getvalue())]
    assert names == [*["group", "endgroup"] * 2, "error"]


def test_a_word_that_was_shown_is_never_used_again() -> None:
    out = io.StringIO()
    console = GitHubLog(out)
    for _ in range(5):
        run(console, "said")
    console.close()
    words = re.findall(r"^::stop-commands::(.*)$", out.getvalue(), re.MULTILINE)
    assert len(words) > 10
    assert len(set(words)) == len(words)
    assert all(re.fullmatch(r"[0-9a-f]{32}", word) for word in words)


def test_failures_are_announced_first_failed_then_not_judged() -> None:
    out = io.StringIO()
    cases = (
        report("a", Verdict.PASS),
        report("b", Verdict.ERROR, "timeout: 5 s, 100 %", host="gpu-1"),
        report("c", Verdict.SKIP, "no card"),
        report("d", Verdict.FAIL, "2 checks failed\n::error::x", number=2),
    )
    builds = (BuildRecord("e", "failed", "exit code 3", 1.0), BuildRecord("a", "built", "stale", 1.0))
    errors = ((ExitCode.CANNOT_JUDGE, "the engine is gone"),)
    console = GitHubLog(out)
    console.say("table")
    console.announce(Result("r", "verify", "local", "", cases=cases, builds=builds, errors=errors))
    console.close()
    assert obeyed(out.getvalue()) == [
        ("error", "title=build: e", "exit code 3"),
        ("error", "title=nvidia.case2 FAIL: d", "2 checks failed ::error::x"),
        ("error", "title=xbtasks", "the engine is gone"),
        ("error", "title=nvidia.case1 ERROR: b on gpu-1", "timeout: 5 s, 100 %"),
    ]
    many = tuple(report(f"s{number}", Verdict.FAIL) for number in range(30))
    out = io.StringIO()
    GitHubLog(out).announce(Result("r", "matrix", "local", "", cases=many))
    assert len(obeyed(out.getvalue())) == 10


@pytest.mark.parametrize("make", [GitHubLog, GitLabLog])
def test_runs_at_once_are_a_section_each(make: type[GitHubLog] | type[GitLabLog]) -> None:
    out = io.StringIO()
    console = make(out)
    watching, ended = watch(console), threading.Event()
    with watching:
        with watching.unit("", STAGES[0], "one", ended) as one, watching.unit("", "", "two", ended) as two:
            for line in ("first", "second"):
                one.say(line)
                two.say(f"{line} too")
            two.judged(report(STAGES[1], Verdict.PASS))
        console.say("end")
    console.close()
    lines = [
        line for line in out.getvalue().split("\n") if line and not re.match(r"::|\x1b\[0Ksection_end", line)
    ]
    titles = ("\x1b[0Ktwo", "\x1b[0Kone") if make is GitLabLog else ()
    assert [line.rpartition("\r")[2] for line in lines] == [
        *("[one] begins", "[two] begins"),
        *(*titles[:1], "first too", "second too", "[two] nvidia.case1: PASS"),
        *(*titles[1:], "first", "second"),
        "end",
    ]


def test_what_never_ends_is_shown_all_the_same() -> None:
    out = io.StringIO()
    console = GitHubLog(out)
    watching = watch(console)
    with watching:
        unit = watching.unit("", "", "one", threading.Event())
        unit.__enter__().say("hangs")
    assert "hangs\n" in out.getvalue()
    unit.__exit__(None, None, None)
    assert out.getvalue().count("hangs") == 1


# How GitLab's runner finds a section, and how its page does.
SECTION = re.compile(r"\x1b\[0Ksection_(start|end):(\d+):([\w.-]+)(?:\[collapsed=true\])?\r\x1b\[0K")


@pytest.mark.parametrize("text", ["said", *HOSTILE, "section_end:1:x\r\x1b[0K"])
def test_a_section_of_gitlab_is_ours_alone(text: str) -> None:
    out = io.StringIO()
    run(GitLabLog(out), text)
    marks = [(mark[1], mark[3]) for mark in SECTION.finditer(out.getvalue())]
    assert [kind for kind, _ in marks] == ["start", "end"] * 2
    assert len({name for _, name in marks}) == 2
    assert [name for _, name in marks[::2]] == [name for _, name in marks[1::2]]
    assert "\x1b" not in SECTION.sub("", out.getvalue())


def test_the_engine_is_told_by_its_variable_and_never_on_a_terminal() -> None:
    def kind(out: io.TextIOBase, **environ: str) -> type[Console] | None:
        log = ci_log(environ, out, None)  # type: ignore[arg-type]
        return type(log) if log else None

    assert kind(io.StringIO(), GITHUB_ACTIONS="true") is GitHubLog
    assert kind(io.StringIO(), GITLAB_CI="true") is GitLabLog
    assert kind(io.StringIO(), GITHUB_ACTIONS="false") is None
    assert kind(io.StringIO()) is None
    assert kind(Terminal(), GITHUB_ACTIONS="true") is None


@pytest.mark.parametrize("text", HOSTILE)
def test_what_goes_to_stderr_is_no_command_either(text: str) -> None:
    assert obeyed(f"  {for_stderr(text, {'GITHUB_ACTIONS': 'true'})}") == []


def test_stderr_keeps_its_text_elsewhere() -> None:
    assert for_stderr("h\u00f4te ::x::", {}) == "h\u00f4te ::x::"


def test_a_document_on_stdout_commands_nothing_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"lines": [*HOSTILE, "#\x7f#[add-mask]e", "##[##[error]x"]}
    Call("verify", {"json": True}).document(document)
    out = capsys.readouterr().out
    assert json.loads(out) == document
    assert obeyed(out) == []
