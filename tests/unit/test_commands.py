"""The command line: what a user types becomes calls and one exit code, whatever happens in between."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from invoke.collection import Collection
from invoke.program import Program

from tests.workplace import SAMPLE
from xbtasks import tasks
from xbtasks.errors import BuildFailed, CannotJudge, ExitCode, Refused, UsageError
from xbtasks.knobs.table import KNOBS, Group
from xbtasks.sessions import FIELD_STAGES
from xbtasks.tasks.command import STAGE, Call, Option, command

if TYPE_CHECKING:
    from collections.abc import Iterator

assert tasks.ns is not None  # importing the package installs the parser and the executor

CALLS: list[str] = []
OUTCOMES: dict[str, ExitCode | BaseException | signal.Signals] = {}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def outcome(call: Call) -> ExitCode:
    given = [call.text("stage"), call.text("directory"), "rebuild" if call.switch("rebuild") else ""]
    CALLS.append(" ".join(filter(None, [call.name, *given])))
    end = OUTCOMES.get(call.name, ExitCode.PASSED)
    if isinstance(end, BaseException):
        raise end
    if isinstance(end, signal.Signals):
        os.kill(os.getpid(), end)
        return ExitCode.PASSED
    call.document({"command": call.name})
    return end


@command(STAGE, Option("rebuild", "x", switch=True), groups=(Group.HOST, Group.BUILD))
def first(call: Call) -> ExitCode:
    """Do something."""
    return outcome(call)


@command(Option("directory", "x", positional=True))
def second(call: Call) -> ExitCode:
    """Do something else."""
    return outcome(call)


@command(json=False)
def third(call: Call) -> ExitCode:
    """Do a third thing."""
    return outcome(call)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Begin each test without calls, outcomes and knobs of this machine, and end it with its signals."""
    CALLS.clear()
    OUTCOMES.clear()
    for name in [name for name in os.environ if name.startswith("XB_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def typed(*words: str) -> int:
    """Return the exit code of a command line."""
    collection = Collection()
    for task in (first, second, third):
        collection.add_task(task)
    try:
        Program(namespace=collection, name="xb", binary="xb", version="1").run(["xb", *words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


# arguments


@pytest.mark.parametrize(
    ("words", "calls"),
    [
        (["first"], ["test_commands.first"]),
        (["first", "a"], ["test_commands.first a"]),
        (["first", "--stage", "a"], ["test_commands.first a"]),
        (["first", "--stage=a"], ["test_commands.first a"]),
        (["first", "a", "--rebuild"], ["test_commands.first a rebuild"]),
        (["first", "--rebuild", "a"], ["test_commands.first a rebuild"]),
        (["first", "--rebuild"], ["test_commands.first rebuild"]),
        (["first", "second"], ["test_commands.first", "test_commands.second"]),
        (["first", "a", "second", "b"], ["test_commands.first a", "test_commands.second b"]),
        (["first", "--rebuild", "second"], ["test_commands.first rebuild", "test_commands.second"]),
        (["first", "a", "first", "b"], ["test_commands.first a", "test_commands.first b"]),
        (["first", "a b's $(id)\n"], ["test_commands.first a b's $(id)\n"]),
        (["first", "--stage=-x"], ["test_commands.first -x"]),
        (["first", "--json", "third"], ["test_commands.first", "test_commands.third"]),
        (["first", "a", "--json"], ["test_commands.first a"]),
        (["second", "--json"], ["test_commands.second"]),
        (["first", "--stage=third", "third"], ["test_commands.first third", "test_commands.third"]),
        (["second", "--directory=--json"], ["test_commands.second --json"]),
    ],
)
def test_positionals_are_optional_and_never_swallow_a_task(words: list[str], calls: list[str]) -> None:
    assert typed(*words) == 0
    assert calls == CALLS


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fisrt"], "did you mean first?"),
        (["first", "--rebiuld"], "did you mean --rebuild?"),
        (["first", "--nothing-like-it"], "--help"),
        (["first", "a", "b"], "'b' is not a task"),
        (["first", "a", "xbuild-b"], "'xbuild-b' is not a task\n  a task takes one STAGE; matrix --stages"),
        (["third", "--rebuild"], "'--rebuild' is not a flag of third\n  it is a flag of first"),
        (["third", "--nothing-like-it"], "--help behind a task"),
        (["--help=fisrt"], "error: 'fisrt' is not a task\n  did you mean first?"),
        (["--help", "nothing-like-it"], "--list shows what there is"),
        (["--list=nope"], "error: Sub-collection 'nope' not found!"),
        (["--list-format=bad", "--list"], "error: --list-format 'bad': flat, nested, json are accepted"),
        (["--list-format=bad"], "flat, nested, json are accepted"),
        (["--list-depth=x", "--list"], "error: 'x'"),
        (["first", "--stage"], "--stage needs a value"),
        (["first", "--stage-dir"], "--stage-dir needs a value"),
        (["first", "--stage", "a", "--stage", "b"], "given twice"),
        (["first", "a", "--stage", "b"], "given twice"),
        (["first", "--platform", "x", "--platform", "y"], "given twice"),
        (["third", "--json"], "'--json' is not a flag of third"),
        (["first", "--rebuild=yes"], "--rebuild takes no value"),
        (["first", "--rebuild="], "--rebuild takes no value"),
        (["--rebuild=1", "first"], "--rebuild"),
    ],
)
def test_wrong_arguments_end_with_2_in_a_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = typed(*words)
    captured = capsys.readouterr()
    assert code == 2
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert CALLS == []


@pytest.mark.parametrize(
    "words", [["--help"], ["--help", "first"], ["--list"], ["--list", "--list-format=nested"]]
)
def test_help_and_lists_end_with_0(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(*words) == 0
    assert "first" in capsys.readouterr().out


def test_a_group_of_tasks_is_not_a_task_and_names_its_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        Program(namespace=tasks.ns, name="xb", binary="xb", version="1").run(["xb", "hooks"])
    assert end.value.code == 2
    assert "did you mean hooks.install or hooks.uninstall?" in capsys.readouterr().err


def test_json_before_a_positional_is_not_taken_for_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert typed("first", "--json", "xbuild-nvidia-cuda-13") == 2
    assert "--json=FILE" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# exit codes


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ((0, 0, 0), 0),
        ((0, 1, 0), 1),
        ((4, 1, 2), 1),
        ((4, 2, 0), 4),
        ((2, 3, 0), 2),
        ((3, 3, 3), 3),
        ((0, 0, 1), 1),
        ((1, 0, 0), 1),
    ],
)
def test_all_tasks_run_and_the_worst_code_wins(codes: tuple[int, int, int], worst: int) -> None:
    for name, code in zip(("first", "second", "third"), codes, strict=True):
        OUTCOMES[f"test_commands.{name}"] = ExitCode(code)
    assert typed("first", "second", "third") == worst
    assert len(CALLS) == 3


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no stage is named", hint="name one"), 2),
        (Refused("a foreign file"), 2),
        (CannotJudge("the engine is gone"), 4),
        (BuildFailed("exit code 3"), 1),
        (ValueError("a fault of ours"), 4),
        (RecursionError("deep"), 4),
        (MemoryError(), 4),
    ],
)
def test_an_error_is_a_line_and_a_code_and_the_next_task_runs(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    OUTCOMES["test_commands.first"] = error
    assert typed("first", "third") == code
    assert CALLS == ["test_commands.first", "test_commands.third"]
    err = capsys.readouterr().err
    assert "error: " in err
    assert ("Traceback" in err) == (not hasattr(error, "exit_code"))


def test_ctrl_c_ends_the_command_line_with_130() -> None:
    OUTCOMES["test_commands.first"] = KeyboardInterrupt()
    assert typed("first", "third") == 130
    assert CALLS == ["test_commands.first"]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_in_a_task_is_an_interrupt(number: signal.Signals) -> None:
    OUTCOMES["test_commands.first"] = number
    assert typed("first", "third") == 130
    assert CALLS == ["test_commands.first"]


@pytest.mark.parametrize("number", SIGNALS)
def test_one_that_is_ignored_stays_ignored(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    OUTCOMES["test_commands.first"] = number
    assert typed("first", "third") == 0
    assert CALLS == ["test_commands.first", "test_commands.third"]


def test_an_error_can_not_write_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    OUTCOMES["test_commands.first"] = CannotJudge("bad \x1b[2J\nPASS", hint="x\x1b]0;t\x07")
    typed("first")
    assert capsys.readouterr().err == "error: bad  [2J PASS\n  x ]0;t\n"


# --json


def test_the_document_is_all_of_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("first", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"command": "test_commands.first"}


def test_an_error_is_a_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    OUTCOMES["test_commands.first"] = UsageError("no stage is named")
    assert typed("first", "--json") == 2
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert (document["command"], document["exit_code"]) == ("test_commands.first", 2)
    assert "no stage is named" in captured.err


def test_a_wrong_knob_is_a_document_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XB_MODE", "SSH")
    OUTCOMES["test_commands.first"] = UsageError("unreached")

    def body(call: Call) -> ExitCode:
        assert call.settings is not None
        return ExitCode.PASSED

    collection = Collection()
    collection.add_task(command(groups=(Group.HOST,))(body), name="knobs")
    with pytest.raises(SystemExit) as end:
        Program(namespace=collection, name="xb", binary="xb", version="1").run(["xb", "knobs", "--json"])
    assert end.value.code == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["exit_code"] == 2
    assert "XB_MODE" in captured.err


def test_the_document_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "a b's.json"
    assert typed("first", f"--json={target}") == 0
    assert json.loads(target.read_text()) == {"command": "test_commands.first"}
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("name", ["", "{tmp}", "{tmp}/none/x.json"])
def test_a_file_that_can_not_be_written_is_said_before_anything_runs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("first", f"--json={name.format(tmp=tmp_path)}") == 2
    assert CALLS == []
    assert capsys.readouterr().err.count("error: ") == 1


@pytest.mark.parametrize("arguments", [("--list",), ("verify", "--help"), ("--version",)])
def test_who_reads_a_list_or_help_may_stop(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "xbtasks", *arguments], stdout=writer, stderr=subprocess.PIPE, timeout=60
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", [["knobs"], ["report"], ["explain"]])
def test_output_that_can_not_be_written_is_a_line_and_no_internal_error(words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "xbtasks", *words], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 4
    assert done.stderr == "error: the output can't be written: No space left on device\n"


# values that are missing, and flags that would do nothing


def options() -> list[tuple[str, str]]:
    """Return every flag with a value, of every task."""
    return [
        (name, flag)
        for name in tasks.ns.task_names
        for argument in tasks.ns[name].get_arguments()
        if argument.takes_value
        for flag in [f"--{argument.name.strip('_').replace('_', '-')}"]
    ]


@pytest.mark.parametrize(("name", "flag"), options())
def test_an_empty_value_is_never_a_default(name: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        Program(namespace=tasks.ns, name="xb", binary="xb", version="1").run(["xb", name, f"{flag}="])
    assert end.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert re.search(r"^error: .*(a value is missing|'' is not the name of a file)", lines[0])


def flags_of_backends() -> list[tuple[str, str]]:
    others = {(Group.ASCEND,): "nvidia", (Group.NVIDIA,): "ascend"}
    return [(each.flag, others[each.groups]) for each in KNOBS if each.groups in others]


@pytest.mark.parametrize("words", ["verify {}", "build {}", "matrix --stages {}"])
@pytest.mark.parametrize(("flag", "other"), flags_of_backends())
def test_a_flag_of_the_other_backend_is_refused(
    words: str, flag: str, other: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XB_REPO", str(SAMPLE))
    stage = next(stage for stage in FIELD_STAGES if f"-{other}-" in stage)
    argv = ["xb", *words.format(stage).split(), flag, "7"]
    with pytest.raises(SystemExit) as end:
        Program(namespace=tasks.ns, name="xb", binary="xb", version="1").run(argv)
    assert end.value.code == 2
    assert f"error: {flag} is for stages of " in capsys.readouterr().err
