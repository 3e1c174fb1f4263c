"""The talk over a wire: what is sent, when an answer is whole, and what the end of the wire means."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.errors import CannotJudge, DeadlineExceeded, LostReply
from xbtasks.host.wire import Answer, Request, Wire, WireEnded, converse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.errors import XbError

MARKER = "xb-0123456789abcdef01234567.1"
FRAME = f"\n{MARKER} begin 0\n{MARKER} end 0 e3b0c442\n".encode()
OVER = f"\n{MARKER} over\n".encode()


class Script(Wire):
    """A wire on which pieces arrive as written down; None is its end, an error is raised."""

    def __init__(self, *pieces: tuple[bytes, bytes] | OSError | None) -> None:
        self.pieces = list(pieces)
        self.sent = bytearray()
        self.closed = threading.Event()
        self.stuck = False

    def send(self, data: bytes) -> None:
        if self.stuck:
            self.closed.wait(20)
            raise BrokenPipeError
        self.sent += data

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        piece = self.pieces.pop(0) if self.pieces else (b"", b"")
        if isinstance(piece, OSError):
            raise piece
        return piece

    def why_ended(self, answer: Answer, *, proven: bool) -> XbError:
        raise AssertionError

    def close(self) -> None:
        self.closed.set()

    def abandon(self) -> None:
        self.closed.set()


def request(payload: list[bytes] | Iterator[bytes] | None = None, deadline: float = 20) -> Request:
    return Request(b"script", MARKER, deadline, payload)


@given(st.lists(st.binary(max_size=600_000), max_size=3))
def test_the_script_and_each_piece_of_the_payload_are_led_by_their_length(payload: list[bytes]) -> None:
    sent = b"".join(request(payload).messages())
    assert sent.startswith(b"6\nscript")
    rest, taken = sent[len(b"6\nscript") :], b""
    while True:
        length, _, rest = rest.partition(b"\n")
        if length == b"0":
            break
        assert 0 < int(length) <= 256 * 1024
        taken, rest = taken + rest[: int(length)], rest[int(length) :]
    assert (taken, rest) == (b"".join(payload), b"")
    assert b"".join(request().messages()) == b"6\nscript"


@given(st.lists(st.integers(0, 120), max_size=8).map(sorted), st.binary(max_size=40))
def test_an_answer_is_whole_with_its_last_byte_however_it_is_cut(cuts: list[int], noise: bytes) -> None:
    data = noise.replace(MARKER.encode(), b"") + FRAME
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    answer = Answer(MARKER)
    for piece in pieces:
        assert not answer.whole or answer.stdout == data
        answer.take(piece, b"")
    assert answer.whole
    assert answer.begun
    assert answer.stdout == data


@given(st.lists(st.integers(0, 60), max_size=6).map(sorted))
def test_whole_lines_of_stderr_are_shown_and_the_script_s_own_last_is_not(cuts: list[int]) -> None:
    data = b"one\ntwo \xff\n\nthree" + OVER
    shown: list[bytes] = []
    answer = Answer(MARKER, shown.append)
    for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True):
        answer.take(b"", data[a:b])
    assert b"".join(shown) == b"one\ntwo \xff\n\nthree\n"
    assert answer.stderr_whole
    assert answer.stderr == data


def test_a_frame_of_another_step_does_not_end_the_answer() -> None:
    for other in (MARKER[:-1] + "2", MARKER + "0", "x" + MARKER):
        answer = Answer(MARKER)
        answer.take(FRAME.replace(MARKER.encode(), other.encode()), b"")
        assert not answer.begun
        assert not answer.whole


def test_a_host_that_gives_up_has_answered() -> None:
    answer = Answer(MARKER)
    answer.take(f"\n{MARKER} abort tool base64\n".encode(), b"")
    assert answer.whole


def test_late_stderr_is_waited_for_and_its_end_is_no_loss() -> None:
    for last in ((b"", OVER), None):
        answer = Answer(MARKER)
        converse(Script((FRAME, b""), (b"", b"late\n"), last), request(), answer)
        assert answer.stderr.startswith(b"late\n")


def test_the_end_of_the_wire_amid_an_answer() -> None:
    answer = Answer(MARKER)
    with pytest.raises(WireEnded):
        converse(Script((FRAME[:40], b""), None), request(), answer)
    assert answer.stdout == FRAME[:40]


def test_a_wire_that_fails_is_a_lost_reply() -> None:
    with pytest.raises(LostReply, match=r"the link was lost: .*reset"):
        converse(Script(ConnectionResetError("reset by peer")), request(), Answer(MARKER))


def test_no_answer_within_the_deadline_even_if_the_far_side_takes_nothing() -> None:
    wire = Script()
    wire.stuck = True
    with pytest.raises(DeadlineExceeded):
        converse(wire, request([b"x"], deadline=0.05), Answer(MARKER))
    wire.abandon()


def test_what_the_payload_raises_is_raised_when_the_step_has_ended() -> None:
    def payload() -> Iterator[bytes]:
        yield b"one"
        raise CannotJudge("it changed")

    wire = Script((b"", b""), (FRAME, OVER))
    with pytest.raises(CannotJudge, match="it changed"):
        converse(wire, request(payload()), Answer(MARKER))
    assert bytes(wire.sent) == b"6\nscript3\none0\n"
