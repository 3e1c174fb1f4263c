"""What ``git diff --raw -z`` writes, read as changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.checkout.tree import Kind
from xbtasks.errors import CannotJudge
from xbtasks.history.divergence import Change, How, parse_raw

A, B, NONE = "a" * 40, "b" * 40, "0" * 40


@pytest.mark.parametrize(
    ("records", "changes"),
    [
        ([], []),
        ([f":100644 100644 {A} {B} M", "x"], [Change("x", How.MODIFIED, Kind.FILE, A)]),
        ([f":100644 100644 {A} {NONE} M", "x"], [Change("x", How.MODIFIED, Kind.FILE, A, by_stat=True)]),
        ([f":120000 120000 {A} {NONE} M", "x"], [Change("x", How.MODIFIED, Kind.LINK, A)]),
        ([f":100755 100644 {A} {A} M", "x"], [Change("x", How.MODE, Kind.EXECUTABLE, A)]),
        ([f":000000 100644 {NONE} {B} A", "x"], [Change("x", How.ADDED, None, "")]),
        ([f":100644 000000 {A} {NONE} D", "x y\n"], [Change("x y\n", How.DELETED, Kind.FILE, A)]),
        ([f":100644 120000 {A} {B} T", "x"], [Change("x", How.TYPE, Kind.FILE, A)]),
        ([f":000000 000000 {NONE} {NONE} U", "x"], [Change("x", How.UNMERGED, None, "")]),
        (
            [f":160000 160000 {A} {B} M", "x"],
            [Change("x", How.SUBMODULE, Kind.FILE, A, submodule=True)],
        ),
        (
            [f":100755 100755 {A} {B} R087", "from", ":to", f":000000 100644 {NONE} {B} A", "z"],
            [
                Change("from", How.MOVED_AWAY, Kind.EXECUTABLE, A, ":to"),
                Change(":to", How.MOVED_HERE, None, "", "from"),
                Change("z", How.ADDED, None, ""),
            ],
        ),
        ([f":100644 100644 {A} {B} C100", "from", "to"], [Change("to", How.MOVED_HERE, None, "", "from")]),
    ],
)
def test_reads(records: list[str], changes: list[Change]) -> None:
    assert list(parse_raw(records)) == changes


@pytest.mark.parametrize(
    "records",
    [
        ["x"],
        [""],
        [f":100644 100644 {A} {B} M"],
        [f":100644 100644 {A} {B} R100", "x"],
        [f":100666 100644 {A} {B} M", "x"],
        [f":100644 100644 {A} M", "x"],
        [f":100644 100644 {A} {B} ", "x"],
    ],
)
def test_anything_else_is_no_answer(records: list[str]) -> None:
    with pytest.raises(CannotJudge, match="raw format"):
        list(parse_raw(records))


@given(st.lists(st.text(max_size=20) | st.sampled_from([f":100644 000000 {A} {NONE} D"]), max_size=6))
def test_never_dies_otherwise(records: list[str]) -> None:
    try:
        changes = list(parse_raw(records))
    except CannotJudge:
        return
    assert sum(2 for _ in changes) == len(records)
