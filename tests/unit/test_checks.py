from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.checks import Check, Status, Verdict, exit_code_of, judge
from xbtasks.errors import ExitCode

IDS = ("nvidia.case1.mode", "nvidia.case1.elf", "nvidia.case1.arch")
ROWS = st.builds(Check, st.sampled_from([*IDS, "nvidia.case1.extra"]), st.sampled_from(Status), st.text())


def row(name: str, status: Status, detail: str = "") -> Check:
    return Check(f"nvidia.case1.{name}", status, detail)


def test_pass_needs_a_pass_row_for_every_required_check() -> None:
    verdict, rows = judge(IDS, [Check(each, Status.PASS) for each in IDS])
    assert verdict is Verdict.PASS
    assert [each.id for each in rows] == list(IDS)


@pytest.mark.parametrize("status", [Status.WARN, Status.SKIP, Status.INFO])
def test_a_required_check_without_a_pass_row_fails_as_not_reached(status: Status) -> None:
    verdict, rows = judge(IDS[:1], [Check(IDS[0], status, "looked at")])
    assert verdict is Verdict.FAIL
    assert [each.status for each in rows] == [status, Status.FAIL]
    assert "not reached" in rows[-1].detail


def test_each_missing_check_gets_one_row() -> None:
    verdict, rows = judge((*IDS, IDS[0]), [Check(IDS[1], Status.PASS)])
    assert verdict is Verdict.FAIL
    assert [each.id for each in rows if each.status is Status.FAIL] == [IDS[0], IDS[2]]


def test_one_failing_artifact_of_two_fails_the_check() -> None:
    verdict, _ = judge(IDS[:1], [Check(IDS[0], Status.PASS), Check(IDS[0], Status.FAIL)])
    assert verdict is Verdict.FAIL


def test_a_failing_row_that_nobody_required_still_fails() -> None:
    verdict, _ = judge(IDS[:1], [Check(IDS[0], Status.PASS), row("extra", Status.FAIL)])
    assert verdict is Verdict.FAIL


def test_text_never_decides() -> None:
    rows = [
        Check(IDS[0], Status.FAIL, "FAILS=0 | PASS | verdict: PASS", "PASS", "PASS"),
        Check(IDS[1], Status.PASS, "FAIL"),
    ]
    assert judge(IDS[:2], rows)[0] is Verdict.FAIL
    assert judge(IDS[1:2], rows[1:])[0] is Verdict.PASS


def test_nothing_required_can_not_be_judged() -> None:
    with pytest.raises(ValueError, match="required"):
        judge((), [Check(IDS[0], Status.PASS)])


@given(st.sets(st.sampled_from(IDS), min_size=1), st.lists(ROWS))
def test_pass_exactly_when_all_required_passed_and_none_failed(required: set[str], rows: list[Check]) -> None:
    verdict, judged = judge(sorted(required), iter(rows))
    passed = {each.id for each in rows if each.status is Status.PASS}
    good = required <= passed and not any(each.status is Status.FAIL for each in rows)
    assert (verdict is Verdict.PASS) == good
    assert verdict in (Verdict.PASS, Verdict.FAIL)
    assert judged[: len(rows)] == tuple(rows)
    assert any(each.status is Status.FAIL for each in judged) == (not good)


def test_exit_codes_of_verdicts() -> None:
    assert {verdict: exit_code_of(verdict) for verdict in Verdict} == {
        Verdict.PASS: ExitCode.PASSED,
        Verdict.FAIL: ExitCode.FAILED,
        Verdict.SKIP: ExitCode.SKIPPED,
        Verdict.ERROR: ExitCode.CANNOT_JUDGE,
    }
