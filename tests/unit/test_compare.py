"""What a change of the source did, from two results: all of it, and nothing that didn't happen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from tests.unit.result_samples import ARTIFACT, ELF, OTHER, RESULT, RESULTS, ROWS, STAGE, case
from xbtasks.checks import Check, Status, Verdict
from xbtasks.compare import Change, compare
from xbtasks.elf.summary import ElfSummary
from xbtasks.result import BuildRecord, Result, merge

ONE = Result("r", "verify", "local", "", cases=(case(Verdict.PASS),), artifacts=(ARTIFACT,))


def changes(before: Result, after: Result) -> dict[tuple[str, str], Change]:
    """Return the changes by subject and what."""
    found = compare(before, after).changes
    named = {(change.subject, change.what): change for change in found}
    assert len(named) == len(found)
    return named


@settings(deadline=None)
@given(RESULTS)
def test_nothing_differs_from_itself(result: Result) -> None:
    assert compare(result, result).changes == ()


def test_a_case_that_fails_now_is_worse_and_says_why() -> None:
    after = replace(ONE, cases=(case(Verdict.FAIL, reason="nvidia.case1.mode"),))
    found = changes(ONE, after)
    name = "nvidia.case1"
    assert set(found) == {("the run", "verdict"), (name, "verdict"), (name, "nvidia.case1.mode")}
    verdict = found[name, "verdict"]
    assert (verdict.before, verdict.after, verdict.trend, verdict.detail) == (
        *("PASS", "FAIL", "worse", "nvidia.case1.mode"),
    )
    assert verdict.place == STAGE
    row = found[name, "nvidia.case1.mode"]
    assert (row.before, row.after, row.trend) == ("no row", "FAIL", "worse")
    assert row.detail.endswith("(observed 0600)")
    back = changes(after, ONE)
    assert {change.trend for change in back.values()} == {"better"}


@pytest.mark.parametrize(
    ("before", "after", "trend"),
    [
        (Status.PASS, Status.FAIL, "worse"),
        (Status.FAIL, Status.PASS, "better"),
        (Status.PASS, Status.WARN, "worse"),
        (Status.WARN, Status.FAIL, "worse"),
        (Status.WARN, Status.PASS, "better"),
        (Status.INFO, Status.WARN, "worse"),
    ],
)
def test_a_check_has_a_trend(before: Status, after: Status, trend: str) -> None:
    def one(status: Status) -> Result:
        report = replace(case(Verdict.SKIP), checks=(Check("nvidia.case1.x", status, "d"),))
        return replace(ONE, cases=(report,))

    (change,) = compare(one(before), one(after)).changes
    assert (change.what, change.before, change.after, change.trend) == (
        "nvidia.case1.x",
        before,
        after,
        trend,
    )


def test_a_case_that_was_not_judged_is_one_line_and_not_all_its_rows() -> None:
    skipped = replace(ONE, cases=(case(Verdict.SKIP, rows=()),))
    assert {what for _, what in changes(ONE, skipped)} == {"verdict"}
    lost = replace(ONE, cases=(case(Verdict.ERROR, rows=(Check("nvidia.case1.mode", Status.FAIL, "d"),)),))
    assert {what for _, what in changes(ONE, lost)} == {"verdict", "nvidia.case1.mode"}
    warned = replace(ONE, cases=(case(Verdict.SKIP, rows=(replace(ROWS[0], status=Status.WARN),)),))
    assert {what for _, what in changes(ONE, warned)} == {"verdict", ROWS[0].id}


def test_a_row_that_is_gone_from_a_judged_case_is_told() -> None:
    shorter = replace(ONE, cases=(replace(ONE.cases[0], checks=ONE.cases[0].checks[:1]),))
    assert {change.after for change in compare(ONE, shorter).changes} == {"no row"}


def test_the_rows_of_one_check_are_told_apart() -> None:
    def two(first: Status, second: Status) -> Result:
        rows = tuple(Check("ascend.case1.mode", status, "d") for status in (first, second))
        return replace(ONE, cases=(replace(case(Verdict.SKIP), checks=rows),))

    for now in ((Status.PASS, Status.WARN), (Status.WARN, Status.PASS)):
        (change,) = compare(two(Status.PASS, Status.PASS), two(*now)).changes
        assert (change.before, change.after) == ("PASS", "WARN")


def bumped(**elf: Any) -> Result:
    """Return the result of another build of the artifact."""
    artifact = replace(ARTIFACT, sha256="f" * 64, size=1005, pin="7" * 40, elf=replace(ELF, **elf))
    return replace(ONE, artifacts=(artifact,))


def test_what_a_bump_of_the_source_did_is_told() -> None:
    after = bumped(
        needed=("libcuda.so.1", "libc.so.6", "libm.so.6"),
        glibc="2.38",
        exported=("cuInit", "cuMemCreate", "dlsym"),
        runpath="/root/build",
        imports=("_dl_sym@GLIBC_PRIVATE", "dlopen@GLIBC_2.34", "printf@GLIBC_2.2.5"),
        glibc_tags=("GLIBC_PRIVATE",),
        textrel=True,
    )
    found = changes(ONE, after)
    name = "/out/libvgpu.so"
    told = {
        what: (c.before, c.after, c.lost, c.gained) for (subject, what), c in found.items() if subject == name
    }
    assert told == {
        "sha256": ("0" * 64, "f" * 64, (), ()),
        "size": ("5", "1,005", (), ()),
        "NEEDED": (
            "libcuda.so.1, libnvidia-ml.so.1, libc.so.6",
            "libcuda.so.1, libc.so.6, libm.so.6",
            ("libnvidia-ml.so.1",),
            ("libm.so.6",),
        ),
        "GLIBC need": ("2.34", "2.38", (), ()),
        "GLIBC tags": ("0", "1", (), ("GLIBC_PRIVATE",)),
        "exported functions": ("3", "3", ("cuMemAlloc_v2",), ("cuMemCreate",)),
        "imported symbols": ("2", "3", (), ("_dl_sym@GLIBC_PRIVATE",)),
        "RUNPATH": ("none", "/root/build", (), ()),
        "text relocations": ("no", "yes", (), ()),
    }
    assert found[name, "size"].detail == "+1,000 bytes"
    assert found["the stage", "source pin"].after == "7" * 40
    assert {change.trend for change in found.values()} == {"changed"}


FIELDS: dict[str, Any] = {
    "arch": "AArch64",
    "type": "EXEC",
    "soname": None,
    "needed": (),
    "rpath": "/x",
    "runpath": "/x",
    "interp": "/lib/ld.so",
    "glibc": "",
    "glibc_tags": ("GLIBC_PRIVATE",),
    "textrel": True,
    "bind_now": True,
    "exported": (),
    "imports": (),
    "weak_imports": (),
}


def test_there_is_an_example_for_each_fact() -> None:
    assert set(FIELDS) == set(ElfSummary.__slots__)


@pytest.mark.parametrize("field", FIELDS)
def test_no_fact_changes_unseen(field: str) -> None:
    expected = {"sha256", "size", "source pin"}
    found = {what for _, what in changes(ONE, bumped(**{field: FIELDS[field]}))}
    assert len(found - expected) == 1


def test_the_order_of_what_is_needed_is_a_change_too() -> None:
    found = changes(ONE, bumped(needed=ELF.needed[::-1]))
    assert found["/out/libvgpu.so", "NEEDED"].lost == ()


def test_facts_that_one_result_did_not_keep_are_not_lost_hooks() -> None:
    older = replace(ONE, artifacts=(replace(ARTIFACT, elf=None, sha256="f" * 64),))
    for before, after in ((ONE, older), (older, ONE)):
        found = changes(before, after)
        assert {what for _, what in found} == {"sha256", "ELF facts"}


def test_an_artifact_that_is_only_in_one_is_named_and_nothing_is_said_of_the_rest() -> None:
    (change,) = compare(ONE, replace(ONE, artifacts=())).changes
    assert (change.what, change.before, change.after) == ("file", "found", "not found, or not looked at")


def test_a_stage_that_only_one_of_them_ran_is_one_line() -> None:
    two = replace(ONE, cases=(*ONE.cases, case(Verdict.PASS, stage=OTHER)))
    (change,) = compare(ONE, two).changes
    assert (change.place, change.what, change.before, change.after) == (OTHER, "run", "not run", "run")


def test_one_stage_each_is_compared_whatever_the_names() -> None:
    other = replace(ONE, cases=(case(Verdict.PASS, stage="xbuild-nvidia-cuda-12"),), artifacts=())
    comparison = compare(replace(ONE, artifacts=()), other)
    assert (comparison.changes, comparison.cases) == ((), 1)
    failed = replace(other, cases=(case(Verdict.ERROR, stage="xbuild-nvidia-cuda-12"),))
    assert changes(ONE, failed)["nvidia.case1", "verdict"].place == f"{STAGE} → xbuild-nvidia-cuda-12"


def test_hosts_are_told_apart_where_a_result_has_several() -> None:
    bad = replace(ONE, host="b", cases=(case(Verdict.ERROR),))

    def both(second: Result) -> Result:
        return merge([replace(ONE, host="a"), second], run="m", command="matrix", evidence="")

    found = changes(both(replace(ONE, host="b")), both(bad))
    assert found["nvidia.case1", "verdict"].place == f"{STAGE} on b"
    assert not [change for change in found.values() if change.place.endswith(" on a")]
    assert compare(both(bad), both(bad)).artifacts == 2


def test_a_build_that_fails_now_is_worse() -> None:
    failed = replace(ONE, builds=(BuildRecord(STAGE, "failed", "exit code 3", 1.0),))
    built = replace(ONE, builds=(BuildRecord(STAGE, "built", "", 1.0),))
    assert changes(built, failed)["the stage", "build"].trend == "worse"
    assert compare(built, replace(ONE, builds=(BuildRecord(STAGE, "up to date", "", 0.0),))).changes == ()


def test_another_engine_and_a_simulated_one_are_told() -> None:
    found = changes(RESULT, replace(RESULT, engine="docker 27", simulated=False, host="gpu1"))
    assert {what for _, what in found} == {"engine", "simulated", "host"}


def test_what_was_compared_is_counted() -> None:
    comparison = compare(RESULT, replace(RESULT, cases=RESULT.cases[:2]))
    assert (comparison.cases, comparison.artifacts) == (2, 1)
