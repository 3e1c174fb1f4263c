from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.reporting.board import Board, Line, clock


@dataclass
class Clock:
    seconds: float = 100.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Shown:
    """A board with a clock of its own."""

    clock: Clock = field(default_factory=Clock)
    board: Board = field(init=False)

    def __post_init__(self) -> None:
        self.board = Board(self.clock)

    def lines(self, room: int = 100) -> list[tuple[str, str, str]]:
        return [(line.state, line.name, line.what) for line in self.board.view(room).lines]


def test_a_stage_is_built_for_its_first_case_and_the_others_wait_for_that() -> None:
    shown = Shown()
    shown.board.expect("", "xbuild-a", (1, 2))
    assert [line.seconds for line in shown.board.view(9).lines] == [None, None]
    shown.board.doing("", "", 0, "looking at the host")
    shown.board.doing("", "xbuild-a", 0, "building")
    shown.board.building("", "xbuild-a", "2/7 RUN make", 28)
    shown.clock.seconds += 65
    assert shown.board.view(9).lines == (
        Line("run", 65.0, "case 1 xbuild-a", 28, "building 2/7 RUN make"),
        Line("wait", None, "case 2 xbuild-a", None, "waits for case 1"),
    )
    shown.board.doing("", "xbuild-a", 0, "reading the artifacts")
    assert shown.board.view(9).lines[0].percent is None
    shown.board.judged("", "xbuild-a", 1, "PASS", "")
    shown.board.doing("", "xbuild-a", 2, "compiling the probe")
    shown.clock.seconds += 5
    assert shown.board.view(9).lines == (
        Line("PASS", 65.0, "case 1 xbuild-a", None, ""),
        Line("run", 5.0, "case 2 xbuild-a", None, "compiling the probe"),
    )


def test_what_comes_late_of_a_build_is_not_shown_as_one() -> None:
    shown = Shown()
    shown.board.expect("", "a", (1,))
    shown.board.doing("", "a", 0, "reading the artifacts")
    shown.board.building("", "a", "7/7 RUN", 100)
    assert shown.lines() == [("run", "case 1 a", "reading the artifacts")]


def test_a_stage_that_is_only_built_ends_without_a_verdict() -> None:
    shown = Shown()
    shown.board.expect("", "a", (0,))
    shown.board.expect("", "b", (0,))
    shown.board.doing("", "a", 0, "building")
    shown.board.doing("", "a", 0, "")
    assert shown.lines() == [("end", "a", ""), ("wait", "b", "waits")]


def test_a_stage_that_the_host_chooses_gets_its_name_then() -> None:
    shown = Shown()
    shown.board.expect("", "", (2,))
    shown.board.doing("", "", 0, "looking at the host")
    shown.board.doing("", "xbuild-b", 0, "judging")
    shown.board.judged("", "xbuild-b", 2, "FAIL", "2 checks failed")
    assert shown.lines() == [("FAIL", "case 2 xbuild-b", "2 checks failed")]


def test_hosts_are_named_where_there_are_several_and_looks_make_room_for_stages() -> None:
    shown = Shown()
    for host in "gpu-1", "gpu-2":
        shown.board.expect(host, "", (0,))
        shown.board.doing(host, "", 0, "looking at the host")
    assert shown.lines() == [("run", "gpu-1", "looking at the host"), ("run", "gpu-2", "looking at the host")]
    for host in "gpu-1", "gpu-2":
        shown.board.expect(host, "a", (1,))
    shown.board.doing("gpu-2", "a", 0, "building")
    assert shown.lines() == [("wait", "case 1 gpu-1 a", "waits"), ("run", "case 1 gpu-2 a", "building")]


def test_what_is_urgent_is_shown_where_there_is_no_room_for_all() -> None:
    shown = Shown()
    for number in range(10):
        shown.board.expect("", f"s{number}", (1,))
    for number, verdict in enumerate(("PASS", "PASS", "FAIL", "SKIP", "ERROR")):
        shown.board.judged("", f"s{number}", 1, verdict, "")
    shown.board.doing("", "s7", 1, "judging")
    view = shown.board.view(5)
    assert [line.name for line in view.lines] == ["case 1 s2", "case 1 s4", "case 1 s5", "case 1 s7"]
    assert view.footer == "1 running, 1 FAIL, 1 ERROR, 4 waiting, 1 SKIP, 2 PASS, 0:00"
    assert shown.board.view(1).lines == ()
    assert len(shown.board.view(50).lines) == 10


def test_a_verdict_is_not_taken_back() -> None:
    shown = Shown()
    shown.board.expect("", "a", (1,))
    shown.board.judged("", "a", 1, "FAIL", "why")
    shown.board.doing("", "a", 1, "judging")
    shown.board.doing("", "a", 0, "")
    shown.board.judged("", "a", 1, "PASS", "")
    assert shown.lines() == [("FAIL", "case 1 a", "why")]


@given(st.text(), st.text(), st.text(min_size=1))
def test_no_text_of_others_controls_the_terminal(host: str, reason: str, what: str) -> None:
    board = Board()
    board.expect(host, "a", (1, 2))
    board.expect("other", "a", (1,))
    board.doing(host, "a", 1, what)
    board.building(host, "a", what, None)
    board.judged(host, "a", 2, "FAIL", reason)
    for line in board.view(9).lines:
        assert (line.name + line.what).isprintable()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00"), (59.9, "0:59"), (60, "1:00"), (3599, "59:59"), (3600, "1:00:00")]
)
def test_a_time_reads_as_one(seconds: float, text: str) -> None:
    assert clock(seconds) == text
