"""The board as a terminal shows it."""

from __future__ import annotations

import io
import os
import threading
from dataclasses import dataclass, field

import pytest

from tests.emulator import Terminal
from xbtasks.checks import CaseReport, Verdict
from xbtasks.errors import ExitCode
from xbtasks.plan import RunPlan, StagePlan
from xbtasks.reporting.console import Console
from xbtasks.reporting.watching import Watch, followed, watch

STAGE = "xbuild-nvidia-cuda-13"
STEP = b"#5 [xbuild-nvidia-cuda-13 1/2] RUN make\n"


@pytest.fixture(autouse=True)
def terminal_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "7")  # as a shell may export it; the terminal knows better
    monkeypatch.setenv("TERM", "xterm")


@dataclass
class Scene:
    """A console on a terminal of its own size."""

    monkeypatch: pytest.MonkeyPatch
    columns: int = 80
    lines: int = 12
    terminal: Terminal = field(init=False)
    console: Console = field(init=False)

    def __post_init__(self) -> None:
        self.terminal = Terminal(self.columns, self.lines)
        self.monkeypatch.setattr(
            "os.get_terminal_size", lambda *_: os.terminal_size((self.terminal.columns, self.lines))
        )
        self.console = Console(self.terminal)

    def drawn(self) -> list[str]:
        """Return what is seen now, its columns apart by one space; a line that is said draws it anew."""
        self.console.say("now")
        at = len(self.terminal.screen) - 1 - self.terminal.screen[::-1].index("now")
        return [" ".join(line.split()) for line in self.terminal.screen[at + 1 :]]


def plan(*cases: int) -> RunPlan:
    stage = StagePlan(STAGE, "nvidia", "13", "vgpu-build:13", "/opt/vgpu", (("linux/amd64", "a" * 64),))
    return RunPlan("verify", (stage,), cases, build=True)


def report(number: int, verdict: Verdict, reason: str = "", stage: str = STAGE) -> CaseReport:
    return CaseReport(f"nvidia.case{number}", "title", stage, verdict, reason, 1.0, ExitCode.PASSED)


def test_what_is_said_stays_and_the_board_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    scene.console.say("before")
    with followed(scene.console, plan(1, 2)) as reporter:
        reporter.doing("", 0, "looking at the host")
        reporter.say(STAGE)
        reporter.doing(STAGE, 0, "building")
        reporter.live(STEP)
        assert scene.drawn() == [
            f"run 0:00 0% case 1 {STAGE} building 1/2 RUN make",
            f"wait case 2 {STAGE} waits for case 1",
        ]
        reporter.live(b"#5 DONE 1.0s\n")
        reporter.judged(report(1, Verdict.FAIL, "2 checks failed"))
        assert scene.drawn()[0] == f"FAIL 0:00 case 1 {STAGE} 2 checks failed"
    scene.console.say("after")
    assert scene.terminal.everything == [
        *("before", STAGE, "    #5 [xbuild-nvidia-cuda-13 1/2] RUN make", "now", "    #5 DONE 1.0s", "now"),
        "after",
    ]
    assert scene.terminal.cursor_shown
    assert b"\x1b[?25l" not in scene.terminal.written  # so that nothing that kills us can leave it hidden


@pytest.mark.parametrize("columns", [1, 2, 5, 12, 20, 40, 59, 60, 61, 80, 200])
@pytest.mark.parametrize("lines", [1, 4, 24])
def test_it_fits_any_terminal(columns: int, lines: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, columns, lines)
    watching = watch(scene.console)
    for number in range(20):
        watching.expect("", f"xbuild-nvidia-cuda-{number}", (1, 2))
    with watching:
        reporter = watching.alone()
        for number in range(5):
            reporter.doing(f"xbuild-nvidia-cuda-{number}", 1, "a step of the case that has a long name")
            scene.console.say(str(number))
    assert [line for line in scene.terminal.everything if line] == ["0", "1", "2", "3", "4"]


def test_a_narrow_terminal_shows_what_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, columns=36)
    with followed(scene.console, plan(1)) as reporter:
        reporter.doing(STAGE, 0, "building")
        reporter.live(STEP)
        assert scene.drawn() == ["run 0:00 0% case 1 xbuild-nvidi…"]


def test_a_terminal_that_gets_narrower_keeps_what_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, columns=100, lines=24)
    with followed(scene.console, plan(1, 2, 3)) as reporter:
        reporter.say("first")
        reporter.doing(STAGE, 1, "judging with words that fill most of the line")
        scene.drawn()
        scene.terminal.resize(50)
        reporter.say("second")
        reporter.say("third")
    said = [line for line in scene.terminal.everything if line in ("first", "now", "second", "third")]
    assert said == ["first", "now", "second", "third"]
    assert scene.terminal.screen[-1] == "third"


def test_without_colour_nothing_is_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, coloured in ((None, True), ("1", False)):
        if variable:
            monkeypatch.setenv("NO_COLOR", variable)
        scene = Scene(monkeypatch)
        with followed(scene.console, plan(1)) as reporter:
            reporter.doing(STAGE, 1, "judging")
            reporter.judged(report(1, Verdict.FAIL))
            scene.console.say(scene.console.status("FAIL"))
            assert any(line.startswith("FAIL 0:00") for line in scene.terminal.screen)
        assert (b"\x1b[31m" in scene.terminal.written) == coloured


@pytest.mark.parametrize("kind", ["dumb", "unknown", ""])
def test_a_terminal_that_can_not_draw_gets_plain_lines(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", kind)
    scene = Scene(monkeypatch)
    with followed(scene.console, plan(1)) as reporter:
        assert reporter is scene.console
        reporter.doing(STAGE, 0, "building")
        reporter.live(STEP)
    assert scene.terminal.written == b"    #5 [xbuild-nvidia-cuda-13 1/2] RUN make\r\n"


def test_a_pipe_gets_plain_lines() -> None:
    out = io.StringIO()
    console = Console(out)
    assert type(watch(console)) is Watch
    with followed(console, plan(1)) as reporter:
        reporter.doing(STAGE, 0, "building")
        reporter.live(STEP)
        reporter.judged(report(1, Verdict.PASS))
    assert out.getvalue() == "    #5 [xbuild-nvidia-cuda-13 1/2] RUN make\n"


HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b8m\r\x08[red]x[/red] :boom:"


def test_text_of_others_stays_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    scene = Scene(monkeypatch, columns=120)
    with followed(scene.console, plan(1, 2)) as reporter:
        reporter.doing(STAGE, 0, "building")
        reporter.live(f"#5 [x 1/2] RUN {HOSTILE}\n".encode())
        reporter.say(HOSTILE)
        seen = "\n".join(scene.drawn())
        assert "[red]x[/red] :boom:" in seen
        reporter.judged(report(1, Verdict.FAIL, HOSTILE))
        assert "[red]x[/red] :boom:" in scene.drawn()[0]
    assert b"owned\x07" not in scene.terminal.written
    assert b"\x1b[2J\x1b]" not in scene.terminal.written
    assert b"\x1b]" not in scene.terminal.written
    assert b"\x9b" not in scene.terminal.written


def test_a_hidden_line_is_hidden_on_the_board_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import re

    scene = Scene(monkeypatch)
    scene.console.hide = re.compile("secret")
    with followed(scene.console, plan(1)) as reporter:
        reporter.doing(STAGE, 0, "building")
        reporter.live(b"#5 [x 1/2] RUN secret\n")
        assert scene.drawn() == [f"run 0:00 0% case 1 {STAGE} building"]


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_a_key_that_is_echoed_leaves_nothing_behind(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, columns)
    with followed(scene.console, plan(1, 2)) as reporter:
        reporter.say("said")
        reporter.doing(STAGE, 1, "judging with words that fill the line, however long it is, to its end")
        reporter.say("more")
        scene.terminal.feed(b"^C^C")
    scene.console.say("summary")
    assert scene.terminal.everything == ["said", "more", "summary"]


class Typist(io.StringIO):
    """A person's keyboard, who looks at the terminal when asked."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__("y\n")
        self.terminal = terminal
        self.seen: list[str] = []

    def isatty(self) -> bool:
        return True

    def readline(self, *_: object) -> str:  # type: ignore[override]
        self.terminal.feed(b"")
        self.seen = self.terminal.screen
        self.terminal.feed(b"y\r\n")  # what is typed is echoed
        return super().readline()


def test_a_question_stands_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch)
    typist = Typist(scene.terminal)
    monkeypatch.setattr("sys.stdin", typist)
    with followed(scene.console, plan(1)) as reporter:
        reporter.doing(STAGE, 1, "judging")
        reporter.say("To build needs your word.")
        assert reporter.can_ask
        assert reporter.ask("Go on? [y/N]") == "y"
        assert typist.seen == ["To build needs your word.", "Go on? [y/N]"]
        assert scene.drawn() == [f"run 0:00 case 1 {STAGE} judging"]
    assert scene.terminal.everything == ["To build needs your word.", "Go on? [y/N] y", "now"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, SystemExit])
def test_whatever_ends_it_takes_the_board_away(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(monkeypatch)

    def end() -> None:
        with followed(scene.console, plan(1)) as reporter:
            reporter.doing(STAGE, 1, "judging")
            reporter.say("said")
            raise kind

    with pytest.raises(kind):
        end()
    scene.console.say("summary")
    assert scene.terminal.everything == ["said", "summary"]


def test_several_runs_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, columns=100)
    watching, ended = watch(scene.console), threading.Event()
    hosts = ["gpu-1", "gpu-2"]
    for host in hosts:
        watching.expect(host, "", (0,))
    with watching:
        for host in hosts:
            with watching.look(host):
                assert f"run 0:00 {host} looking at the host" in scene.drawn()
    for host in hosts:
        watching.expect(host, STAGE, (1,))
    with watching, watching.unit("gpu-2", STAGE, f"gpu-2 {STAGE}", ended) as reporter:
        reporter.doing(STAGE, 0, "building")
        reporter.live(STEP)
        reporter.say("built it")
        assert scene.drawn() == [
            f"wait case 1 gpu-1 {STAGE} waits",
            f"run 0:00 0% case 1 gpu-2 {STAGE} building 1/2 RUN make",
        ]
        assert not reporter.can_ask
        ended.set()
        reporter.say("too late")
    said = [line for line in scene.terminal.everything if line != "now"]
    assert said == [f"[gpu-2 {STAGE}] built it"]


def test_many_threads_say_and_draw_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, lines=24)
    watching, ended = watch(scene.console), threading.Event()
    watching.expect("", STAGE, (1,))

    def talk(name: int) -> None:
        with watching.unit("", STAGE, str(name), ended) as reporter:
            for number in range(20):
                reporter.doing(STAGE, 1, f"step {number}")
                reporter.say(f"{number}")

    with watching:
        threads = [threading.Thread(target=talk, args=(name,)) for name in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(scene.terminal.everything) == sorted(f"[{n}] {m}" for n in range(5) for m in range(20))
