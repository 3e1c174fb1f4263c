"""The monitor's memory in use as a judge: against what processes of known size hold."""

from __future__ import annotations

import json
import math
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.backends.ascend.contract import LIBRARY, MIB
from xbtasks.backends.ascend.said import Said
from xbtasks.backends.ascend.usage import QUOTA_MIB, Held, judge_usage, refused, require_memory
from xbtasks.checks import Check, Status
from xbtasks.hardware import Unjudged
from xbtasks.rig import Outcome

CASE: Final = "ascend.case2"
ROW: Final = f"{CASE}.usage"
HELD: Final = Held(226 * MIB - 32, 86 * MIB - 32)
TOTAL: Final = 11087 * MIB
CONTEXT: Final = 102

Fields = dict[str, object]


def said(*events: Fields, status: int = 0) -> Said:
    documents = [{"who": "a", "rc": 0, **event} for event in events]
    text = "".join(f"xbtasks-probe {json.dumps(document)}\n" for document in documents)
    return Said(Outcome("usage", status, False, 1, text, ""))


def monitor(text: object, rc: int = 0) -> Fields:
    table = f"       Memory Limit quota(MB)    : 11087\n       Memory Usage(MB)          : {text}\n"
    return {"op": "monitor", "rc": rc, "why": table}


def memory(used: float) -> Fields:
    return {"op": "memory", "free": TOTAL - int(used * MIB), "total": TOTAL}


def take(size: int, who: str = "a", rc: int = 0) -> Fields:
    return {"op": "take", "size": size, "who": who, "rc": rc}


BEGUN: Final[list[Fields]] = [
    {"op": "open"},
    {"op": "device"},
    {"op": "maps", "paths": [LIBRARY]},
]


def round_of(
    shown: tuple[object, object, object], counted: tuple[float, float, float] | None = None
) -> list[Fields]:
    """Return the round of a monitor that shows so much, beside a library that counts what is there."""
    own = counted or (CONTEXT, CONTEXT + 226, 2 * CONTEXT + 226 + 86)
    return [
        *BEGUN,
        memory(own[0]),
        monitor(shown[0]),
        take(HELD.first),
        memory(own[1]),
        monitor(shown[1]),
        {"op": "device", "who": "b"},
        take(HELD.second, "b"),
        memory(own[2]),
        monitor(shown[2]),
        {"op": "second"},
    ]


GOOD: Final = round_of((102, 328, 516))


def judged(events: list[Fields], status: int = 0) -> dict[str, Check]:
    rows = judge_usage(CASE, HELD, said(*events, status=status))
    assert len({row.id for row in rows}) == len(rows) == 2
    return {row.id: row for row in rows}


def test_what_is_shown_as_it_is_passes_with_all_its_rows() -> None:
    rows = judged(GOOD)
    assert {row.status for row in rows.values()} == {Status.PASS}
    assert rows[ROW].detail.startswith("enpu-monitor shows 102, 328 and 516 MB in use")


@pytest.mark.parametrize(
    "good",
    [
        round_of((0, 226, 312), (0, 226, 312)),
        round_of((0, 225, 311), (0.9, 225.99, 311.99)),
        round_of((1100, 1326, 2512), (1100, 1326, 2512)),
        round_of((102, 360, 470), (102, 360, 470)),
        round_of((5000, 5226, 5414), (5000, 5226, 5414)),
    ],
    ids=["no context", "rounded down", "large contexts", "a runtime's own memory", "others beside them"],
)
def test_no_cost_of_a_context_is_demanded(good: list[Fields]) -> None:
    assert judged(good)[ROW].status is Status.PASS


@pytest.mark.parametrize(
    "shown",
    [
        (0, 0, 0),
        (102, 102, 102),
        (11087, 11087, 11087),
        (10985, 10759, 10571),
        (106, 343, 541),
        (0, 226, 86),
        (102, 328, 328),
        (102, 328, 188),
        (104448, 335872, 528384),
        (3002, 3228, 3416),
        (102, 328, "none"),
        (102, "328.0", 516),
        (102, "-1", 516),
        (102, "٣٢٨", 516),
        (102, "", 516),
    ],
)
def test_a_monitor_that_shows_other_memory_fails(shown: tuple[object, object, object]) -> None:
    assert judged(round_of(shown))[ROW].status is Status.FAIL


@pytest.mark.parametrize(
    "counted", [(0, 0, 0), (102, 102, 102), (102, 328, 328), (102, 328, 188), (204, 656, 1032)]
)
def test_a_library_and_a_monitor_that_are_wrong_alike_fail(counted: tuple[float, float, float]) -> None:
    shown = tuple(math.floor(value) for value in counted)
    assert judged(round_of((shown[0], shown[1], shown[2]), counted))[ROW].status is Status.FAIL


@pytest.mark.parametrize("place", range(3, len(GOOD)))
def test_an_operation_that_is_lost_or_told_twice_is_no_pass(place: int) -> None:
    told = GOOD[place]["op"]
    for changed in (GOOD[:place] + GOOD[place + 1 :], GOOD[: place + 1] + GOOD[place:]):
        same = told == "device"  # what was taken on it shows that it was used
        assert (judged(changed)[ROW].status is Status.FAIL) is not same


def test_operations_in_another_order_are_no_pass() -> None:
    for place in range(3, len(GOOD) - 1):
        other = [*GOOD[:place], GOOD[place + 1], GOOD[place], *GOOD[place + 2 :]]
        if "device" not in (GOOD[place]["op"], GOOD[place + 1]["op"]):
            assert judged(other)[ROW].status is Status.FAIL


def test_two_tables_in_one_reading_are_none() -> None:
    twice = [dict(event) for event in GOOD]
    twice[4]["why"] = f"{twice[4]['why']}{twice[4]['why']}"
    assert judged(twice)[ROW].status is Status.FAIL


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([{"op": "open"}, {"op": "device", "rc": 100001}], "the device can't be used: code 100001"),
        (
            [*GOOD[:5], take(HELD.first, rc=300000)],
            "memory below the quota is refused: code 300000, the quota",
        ),
        ([*GOOD[:8], {"op": "device", "who": "b", "rc": 100001}], "the device can't be used: code 100001"),
        ([*GOOD[:9], take(HELD.second, "b", 300000)], "memory below the quota is refused"),
        ([*GOOD[:5]], "it crashed by SIGSEGV (139)"),
    ],
)
def test_processes_that_don_t_come_to_hold_memory_fail(events: list[Fields], words: str) -> None:
    status = 139 if events == GOOD[:5] else 4
    row = judged(events, status)[ROW]
    assert row.status is Status.FAIL
    assert words in row.detail


def test_a_monitor_that_ends_wrong_fails_whatever_it_shows() -> None:
    for rc in (1, -11):
        assert judged([*GOOD[:-2], monitor(516, rc), GOOD[-1]])[ROW].status is Status.FAIL


def test_a_second_process_that_ends_wrong_fails() -> None:
    row = judged([*GOOD[:-1], {"op": "second", "rc": -11}])[ROW]
    assert row.status is Status.FAIL
    assert "the second process ended with -11" in row.detail


@pytest.mark.parametrize(
    "event", [take(HELD.second, "b", 207001), {"op": "device", "who": "b", "rc": 207001}]
)
def test_a_full_card_is_told_from_a_library_that_says_so(event: Fields) -> None:
    assert refused(said(*GOOD)) is None
    assert refused(said(*GOOD[:8], event)) is not None
    assert judged([*GOOD[:8], event])[ROW].status is Status.FAIL
    bare = [item for item in GOOD if item["op"] != "monitor"]
    require_memory(ROW, said(*bare))
    for events in ([*bare[:6], event], bare[:6], bare[:2]):
        with pytest.raises(Unjudged, match="without injection two processes don't get") as caught:
            require_memory(ROW, said(*events))
        assert [row.status for row in caught.value.checks] == [Status.FAIL]


def test_an_image_without_acl_is_no_verdict() -> None:
    with pytest.raises(Unjudged, match="no ACL"):
        judge_usage(CASE, HELD, said({"op": "open", "rc": -1}, status=3))


@given(st.text(max_size=40))
def test_what_is_held_is_the_run_s_own_and_fits_its_quota(run_id: str) -> None:
    held = Held.of(run_id)
    assert (held.first + 32) % (2 * MIB) == (held.second + 32) % (2 * MIB) == 0
    assert held.second < held.first
    assert 240 <= held.mib <= 384 < QUOTA_MIB[0]
