"""Units side by side: how many at once, on which host, and how all of it ends."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode
from xbtasks.matrix.model import Unit
from xbtasks.matrix.scheduler import Crew, Unrun

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Host:
    gone: str = ""


def unit(host: str, stage: str) -> Unit:
    return Unit(host, stage, (1,), f"{host}.{stage}")


@dataclass
class Yard:
    """What a crew does here: each unit is a function, and it is noted what runs at once."""

    units: list[Unit]
    work: Callable[[Unit], str] = lambda each: each.stage
    hosts: dict[str, Host] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    now: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    order: list[Unit] = field(default_factory=list)
    connecting: set[Unit] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def perform(self, each: Unit) -> str:
        with self.lock:
            self.order.append(each)
            for name in (each.host, "all"):
                self.now[name] += 1
                self.most[name] = max(self.most[name], self.now[name])
        try:
            return self.work(each)
        finally:
            with self.lock:
                self.now[each.host] -= 1
                self.now["all"] -= 1

    def run(self, at_once: int = 4, per_host: int = 2, last: str = "") -> dict[Unit, str | Unrun]:
        for each in self.units:
            self.hosts.setdefault(each.host, Host())
        return Crew(
            self.units,
            self.hosts,
            self.perform,
            lambda each: each in self.connecting,
            self.stop,
            at_once=at_once,
            per_host=per_host,
            ends_all=lambda found: found == last,
        ).run()


def test_so_many_at_once_and_so_many_on_a_host() -> None:
    meeting = threading.Barrier(4, timeout=10)
    yard = Yard([unit(host, str(n)) for host in "abc" for n in range(4)], lambda each: str(meeting.wait()))
    ended = yard.run(at_once=4, per_host=2)
    assert list(ended) == yard.units
    assert yard.most["all"] == 4
    assert max(yard.most[host] for host in "abc") <= 2
    # the hosts are begun evenly, not one after the other
    assert {each.host for each in yard.order[:3]} == {"a", "b", "c"}


def test_one_at_a_time_is_the_order_of_the_units() -> None:
    yard = Yard([unit("a", str(n)) for n in range(5)])
    assert list(yard.run(at_once=1).values()) == ["0", "1", "2", "3", "4"]
    assert yard.order == yard.units


def test_a_host_that_is_gone_gets_nothing_more_and_the_others_go_on() -> None:
    yard = Yard([unit("dead", "1"), unit("well", "1"), unit("dead", "2"), unit("well", "2")])

    def work(each: Unit) -> str:
        if each.host == "dead":
            yard.hosts["dead"].gone = "no route to dead"
        return each.stage

    yard.work = work
    ended = yard.run(at_once=1)
    assert ended[yard.units[2]] == Unrun(Verdict.ERROR, "no route to dead", ExitCode.CANNOT_JUDGE)
    assert [end for each, end in ended.items() if each.host == "well"] == ["1", "2"]
    assert len(yard.order) == 3


def test_after_a_failure_nothing_more_is_begun_and_what_runs_goes_on() -> None:
    failed, both = threading.Event(), threading.Barrier(2, timeout=10)

    def work(each: Unit) -> str:
        both.wait()
        if each.stage == "bad":
            failed.set()
            return "failed"
        failed.wait(10)
        time.sleep(0.05)
        return "ok"

    yard = Yard([unit("a", "bad"), unit("b", "long"), unit("a", "next"), unit("b", "next")], work)
    ended = list(yard.run(at_once=2, per_host=1, last="failed").values())
    assert ended[:2] == ["failed", "ok"]
    reason = "not run: --fail-fast, and bad on a failed"
    assert ended[2:] == [Unrun(Verdict.SKIP, reason, ExitCode.SKIPPED)] * 2


def test_stopping_waits_for_what_runs_and_for_nobody_who_only_connects() -> None:
    begun, never = threading.Barrier(3, timeout=10), threading.Event()
    yard = Yard([unit("a", "runs"), unit("b", "connects"), unit("c", "waits")])

    def work(each: Unit) -> str:
        if each.stage == "connects":
            yard.connecting.add(each)
            begun.wait()
            never.wait()
        begun.wait()
        yard.stop.wait(10)
        time.sleep(0.3)
        return "ended tidily"

    yard.work = work
    threading.Thread(target=lambda: (begun.wait(), yard.stop.set()), daemon=True).start()
    runs, connects, waits = yard.run(at_once=2).values()
    assert runs == "ended tidily"
    assert isinstance(connects, Unrun)
    assert isinstance(waits, Unrun)
    assert {connects.exit_code, waits.exit_code} == {ExitCode.INTERRUPTED}
    assert connects.reason == "interrupted before it had a connection"
    assert waits.reason == "interrupted before it began"


def test_a_fault_in_a_unit_is_raised_where_the_crew_was_called() -> None:
    def work(each: Unit) -> str:
        raise ZeroDivisionError(each.stage)

    yard = Yard([unit("a", "1"), unit("a", "2")], work)
    with pytest.raises(ZeroDivisionError):
        yard.run(at_once=1)
    assert yard.stop.is_set()
    assert len(yard.order) == 1
