"""Ascend case 3 as a judge: what the probe got with and without a quota becomes rows."""

from __future__ import annotations

import json

import pytest

from xbtasks.backends.ascend.contract import LIBRARY, MIB, Slice
from xbtasks.backends.ascend.quota import (
    Sizes,
    families,
    judge_baseline,
    judge_fill,
    judge_shared,
    least_together,
    require_room,
    wants_line,
)
from xbtasks.backends.ascend.said import Said
from xbtasks.checks import Check, Status
from xbtasks.hardware import Unfit, Unjudged
from xbtasks.rig import Outcome

CASE = "ascend.case3"
PART = Slice(0, 0, 20, 1024, "A-B")
SIZES = Sizes.of(1024)
CONTEXT = 102 * MIB
CHUNK = SIZES.chunk
ERROR = "[2026-11-30 10:45:48.717] [ERROR] [eNPU] [vCANN_RT] [17:1397:mem_limiter.c:31] "


def line(request: int = CHUNK + 32, used: int = 961 * MIB, quota: int = 1024 * MIB) -> str:
    return f"{ERROR}Out of memory! Request:{request} B, used:{used} B, quota:{quota} B."


Fields = dict[str, object]


def said(*events: Fields, err: str = line(), status: int = 0, mapped: bool = True) -> Said:
    maps: Fields = {"op": "maps", "paths": [LIBRARY] if mapped else []}
    done: list[Fields] = [{"op": "open"}, {"op": "device"}, maps, *events]
    documents = [{"who": "a", "rc": 0, **event} for event in done]
    text = "".join(f"xbtasks-probe {json.dumps(document)}\n" for document in documents)
    return Said(Outcome("x", status, False, 1, text, err))


def fill(size: int, rc: int = 300000, who: str = "a") -> Fields:
    return {"op": "fill", "size": size * MIB, "rc": rc, "chunk": CHUNK, "who": who}


MEMORY: Fields = {"op": "memory", "free": 922 * MIB, "total": 1024 * MIB}


def failing(rows: list[Check]) -> set[str]:
    return {row.id.removeprefix(f"{CASE}.") for row in rows if row.status is Status.FAIL}


def fills(*tries: Said) -> set[str]:
    return failing(judge_fill(CASE, "first", PART, SIZES, CONTEXT, list(tries), ways={}))


GOOD = said(MEMORY, fill(832))


def test_a_good_round_passes_with_all_its_rows() -> None:
    rows = judge_fill(CASE, "first", PART, SIZES, CONTEXT, [GOOD], ways={})
    assert {row.status for row in rows} == {Status.PASS}
    names = {row.id.removeprefix(f"{CASE}.") for row in rows}
    assert names == {"mapped", "probe", "reported-total", "ceiling", "code", "oom-line", "floor"}


@pytest.mark.parametrize(
    ("tried", "fails"),
    [
        (said(MEMORY, fill(1152, 0), err=""), {"ceiling", "code", "oom-line"}),
        (said(MEMORY, fill(1152, 0)), {"ceiling", "code"}),
        (said(MEMORY, fill(1088)), {"ceiling"}),
        (said(MEMORY, fill(832), err=""), {"oom-line"}),
        (said(MEMORY, fill(0), err=line(used=102 * MIB)), {"oom-line", "floor"}),
        (said(MEMORY, fill(0), err=line(used=1024 * MIB)), {"floor"}),
        (said(MEMORY, fill(448), err=line(used=1000 * MIB)), {"floor"}),
        (said(MEMORY, fill(832), err=line(quota=1024 * 10**6)), {"oom-line"}),
        (said(MEMORY, fill(832), err=line(quota=512 * MIB)), {"oom-line"}),
        (said(MEMORY, fill(832), err=line(used=1026 * MIB)), {"oom-line"}),
        (said(MEMORY, fill(832), err=line(request=CHUNK - 1)), {"oom-line"}),
        (said(MEMORY, fill(832, 207001)), {"code"}),
        (said(MEMORY, fill(832, 500001)), {"code"}),
        (said(MEMORY, fill(832, -2)), {"code"}),
        (said({**MEMORY, "total": 32768 * MIB}, fill(832)), {"reported-total"}),
        (said({**MEMORY, "rc": 107000, "total": 0}, fill(832)), {"reported-total"}),
        (said(MEMORY, fill(832), mapped=False), {"mapped"}),
        (said(MEMORY, fill(832), {"op": "family", "why": "cached"}), {"families"}),
        (said(MEMORY, fill(832), status=139), {"probe"}),
        (said(MEMORY, status=139), {"probe"}),
        (said({"op": "device", "rc": 100001}, status=4), {"probe"}),
    ],
)
def test_each_fault_fails_in_its_row(tried: Said, fails: set[str]) -> None:
    assert fills(tried) == fails


def test_a_quota_is_met_exactly_or_with_the_padding_of_the_real_allocator() -> None:
    assert not fills(said(MEMORY, fill(1024), err=line(used=1024 * MIB)))
    assert not fills(said(MEMORY, fill(832), err=line(request=66 * MIB)))
    assert not fills(said(MEMORY, fill(832), err=line(used=1025 * MIB)))
    assert not fills(said(MEMORY, fill(832), {"op": "family", "why": "cached", "rc": 300000}))


def test_a_lost_line_is_looked_for_in_every_try() -> None:
    lost = said(MEMORY, fill(832), err="")
    assert wants_line(lost)
    assert not wants_line(GOOD)
    assert not wants_line(said(MEMORY, fill(1152, 0), err=""))
    rows = judge_fill(CASE, "first", PART, SIZES, CONTEXT, [lost, GOOD], ways={})
    assert not failing(rows)
    assert any("2 tries" in row.detail for row in rows)
    assert fills(said(MEMORY, fill(832), err=line(quota=5)), GOOD) == {"oom-line"}


ALONE = least_together(SIZES, CONTEXT, GOOD)


def shared(*events: Fields, err: str = line(), status: int = 0, second: int = 0) -> set[str]:
    ended: Fields = {"op": "second", "rc": second}
    tried = said(*events, ended, err=err, status=status)
    return failing(judge_shared(CASE, PART, SIZES, ALONE, [tried]))


def test_two_processes_share_the_quota() -> None:
    first = fill(512, 0)
    assert not shared(first, fill(256, who="b"))
    assert shared(first, fill(832, who="b")) == {"shared"}
    assert shared(first, fill(0, who="b"), err=line(used=650 * MIB)) == {"shared", "oom-line"}
    assert shared(first, fill(0, who="b")) == {"shared"}
    assert shared(first, fill(1152, 0, who="b"), err="") == {"shared", "code", "oom-line"}
    assert shared(first, fill(256, 207001, who="b")) == {"code"}
    assert shared(fill(256), err="") == {"shared"}
    assert shared(first, {"op": "device", "who": "b", "rc": 500001}) == {"shared"}
    assert shared(first, status=139) == {"probe"}
    assert shared(first, fill(256, who="b"), second=-11) == {"probe"}


def test_two_processes_get_what_one_got_less_a_context() -> None:
    assert ALONE == (832 - 129) * MIB - 2 * CHUNK
    lying = said(MEMORY, fill(832), err=line(used=1 << 50))
    assert least_together(SIZES, CONTEXT, lying) == (832 - 102 - 256) * MIB - 2 * CHUNK
    assert least_together(SIZES, CONTEXT, said(MEMORY)) == 0


BASELINE: tuple[Fields, ...] = ({"op": "context", "size": CONTEXT}, fill(1152, 0))


def baseline(*events: Fields, err: str = "", status: int = 0, mapped: bool = False) -> tuple[Check, int]:
    return judge_baseline(CASE, said(*events, err=err, status=status, mapped=mapped), SIZES)


def test_the_baseline_shows_that_the_card_has_more() -> None:
    row, context = baseline(*BASELINE)
    assert row.status is Status.PASS
    assert context == CONTEXT


@pytest.mark.parametrize(
    ("events", "more", "said_of_it"),
    [
        (BASELINE, {"err": line()}, "not injected"),
        (BASELINE, {"mapped": True}, "not injected"),
        (BASELINE, {"status": 139}, "SIGSEGV"),
        ((BASELINE[0], fill(900, 207001)), {}, "the card itself is full"),
        ((BASELINE[0],), {}, "didn't come to its end"),
        ((BASELINE[1],), {}, "second process"),
        (({"op": "device", "rc": 507033}, *BASELINE), {}, "507033"),
    ],
)
def test_a_baseline_that_shows_nothing_is_no_verdict(
    events: tuple[Fields, ...], more: dict[str, object], said_of_it: str
) -> None:
    with pytest.raises(Unjudged, match=said_of_it) as caught:
        baseline(*events, **more)  # type: ignore[arg-type]
    assert [row.id for row in caught.value.checks] == [f"{CASE}.baseline"]


def test_a_context_as_large_as_the_quota_is_wrong_usage_and_the_hint_is_enough() -> None:
    require_room(SIZES, CONTEXT)
    with pytest.raises(Unfit, match="--mem") as caught:
        require_room(SIZES, 1100 * MIB)
    advised = int(str(caught.value).partition("--mem ")[2].split(" ")[0])
    require_room(Sizes.of(advised), 1100 * MIB)
    with pytest.raises(Unfit):
        require_room(Sizes.of(256), CONTEXT)


@pytest.mark.parametrize("memory", [32, 255, 1023, 1024, 16384])
def test_chunks_come_near_to_the_quota(memory: int) -> None:
    sizes = Sizes.of(memory)
    assert 0 < sizes.chunk <= max(sizes.quota // 4, 8 * MIB)
    assert sizes.slack + sizes.chunk < sizes.quota
    assert (sizes.chunk + 32) % (2 * MIB) == 0


def family(way: str, rc: int) -> Fields:
    return {"op": "family", "why": way, "rc": rc}


@pytest.mark.parametrize(
    ("asked", "ways", "found"),
    [
        ({"cached": 300000}, {"cached": 0}, [Status.PASS]),
        (
            {"cached": 300000, "physical": 107000},
            {"cached": 0, "physical": 107000},
            [Status.PASS, Status.WARN],
        ),
        ({"physical": 107000}, {"physical": 107000}, [Status.WARN]),
        ({"physical": 107000}, {"physical": 0}, [Status.FAIL]),
        ({"cached": 207001}, {"cached": 0}, [Status.FAIL]),
        ({"cached": 0}, {"cached": 107000}, [Status.FAIL]),
        ({}, {"cached": 0}, [Status.FAIL]),
        ({}, {}, []),
    ],
)
def test_another_way_is_shown_to_be_held_by_the_quota_alone(
    asked: dict[str, int], ways: dict[str, int], found: list[Status]
) -> None:
    tried = said(MEMORY, fill(832), *(family(way, code) for way, code in asked.items()))
    rows = judge_fill(CASE, "first", PART, SIZES, CONTEXT, [tried], ways=ways)
    assert [row.status for row in rows if row.id.endswith(".families")] == found
    assert families(said(*(family(way, code) for way, code in ways.items()))) == ways
