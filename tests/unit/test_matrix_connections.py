"""Connections of a matrix to one host: used again, stopped from outside, and gone when they are gone."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from xbtasks.errors import HostUnreachable, Interrupted, LostReply, XbError
from xbtasks.host.framed import Transport
from xbtasks.host.wire import Answer, Request, Wire
from xbtasks.matrix.connections import Connections

MARKER = "xb-1.1"
WHOLE = f"\n{MARKER} begin 0\n\n{MARKER} end 0 x\n".encode()


@dataclass
class ScriptedWire(Wire):
    """Answers with what it is given, then is silent; ``ends`` instead of silence."""

    replies: list[bytes]
    stop: threading.Event | None = None
    ended: list[str] = field(default_factory=list)
    ends: bool = False

    def send(self, data: bytes) -> None:
        """Take what is sent."""

    def receive(self, seconds: float) -> tuple[bytes, bytes] | None:
        if self.replies:
            return self.replies.pop(0), f"{MARKER} over\n".encode()
        if self.stop is not None:
            self.stop.set()
        return None if self.ends else (b"", b"")

    def why_ended(self, answer: Answer, *, proven: bool) -> XbError:
        return LostReply("ended")

    def close(self) -> None:
        self.ended.append("closed")

    def abandon(self) -> None:
        self.ended.append("abandoned")


class Scripted(Transport):
    """Opens what it is given: wires, or errors."""

    def __init__(self, opens: list[ScriptedWire | HostUnreachable]) -> None:
        super().__init__("far")
        self.opens = opens
        self.hurried: list[bool] = []

    def open(self, *, hurried: bool) -> Wire:
        self.hurried.append(hurried)
        one = self.opens.pop(0)
        if isinstance(one, HostUnreachable):
            raise one
        return one


def request() -> Request:
    return Request(b"true\n", MARKER, 5)


def connections(*opens: ScriptedWire | HostUnreachable) -> tuple[Connections, list[Scripted]]:
    made: list[Scripted] = []

    def make() -> Transport:
        made.append(Scripted(list(opens)))
        return made[-1]

    return Connections(make, threading.Event()), made


def test_a_connection_that_was_given_back_is_used_again() -> None:
    wire = ScriptedWire([WHOLE, WHOLE])
    pool, made = connections(wire)
    for _ in range(2):
        transport = pool.take()
        transport.exchange(request(), Answer(MARKER))
        transport.close()
    assert len(made) == 1
    assert made[0].hurried == [False]
    other = pool.take()
    assert pool.take() is not other
    other.close()
    pool.close()
    assert wire.ended == ["closed"]


def test_whoever_waits_is_interrupted_and_clean_up_is_not() -> None:
    cut, clean = ScriptedWire([]), ScriptedWire([WHOLE])
    pool, _ = connections(cut, clean)
    cut.stop = pool.stop
    transport = pool.take()
    with pytest.raises(KeyboardInterrupt):
        transport.exchange(request(), Answer(MARKER))
    assert cut.ended == ["abandoned"]
    answer = Answer(MARKER)
    transport.exchange(request(), answer, hurried=True)
    assert answer.whole
    # what comes after the clean-up is stopped as well
    with pytest.raises(KeyboardInterrupt):
        transport.exchange(request(), Answer(MARKER))


def test_nothing_is_begun_once_everything_stops() -> None:
    pool, made = connections(ScriptedWire([WHOLE]))
    pool.stop.set()
    with pytest.raises(Interrupted, match="while connecting to far"):
        pool.take().exchange(request(), Answer(MARKER))
    assert made[0].hurried == []


def test_a_host_is_gone_when_no_connection_is_left_and_none_can_be_made() -> None:
    pool, _ = connections(HostUnreachable("no route"), ScriptedWire([WHOLE]))
    transport = pool.take()
    with pytest.raises(HostUnreachable):
        transport.exchange(request(), Answer(MARKER))
    assert pool.gone == "no route"
    transport.exchange(request(), Answer(MARKER))
    assert pool.gone == ""


def test_a_host_that_takes_no_more_connections_is_not_gone() -> None:
    wire = ScriptedWire([WHOLE], ends=True)
    made = [Scripted([wire, HostUnreachable("later")]), Scripted([HostUnreachable("too many")])]
    pool = Connections(lambda: made.pop(0), threading.Event())
    first, second = pool.take(), pool.take()
    first.exchange(request(), Answer(MARKER))
    with pytest.raises(HostUnreachable):
        second.exchange(request(), Answer(MARKER))
    assert pool.gone == ""
    with pytest.raises(LostReply):
        first.exchange(request(), Answer(MARKER))
    assert pool.gone == ""
    with pytest.raises(HostUnreachable):
        first.exchange(request(), Answer(MARKER), hurried=True)
    assert pool.gone == "later"
