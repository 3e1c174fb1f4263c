"""nvidia.case2 as a whole, on cards in memory: each fault fails in the row that names it."""

from __future__ import annotations

import pytest

from tests.gpumodel import FAULTS
from tests.unit.nvidia_runs import failing, on_cards, statuses, verdict
from xbtasks.backends.nvidia.case2 import judge
from xbtasks.checks import Status, Verdict
from xbtasks.hardware import Unjudged


def test_a_good_library_passes() -> None:
    here = on_cards(pools_counted=True)
    here.pin = "52f33fc7fa1fbb3f08148ab076d0e7447bec7f2a"
    findings = here.run(judge)
    assert failing(findings) == set()
    assert verdict(findings) is Verdict.PASS
    assert findings.note == ""
    assert {"throttle", "context", "managed", "async", "vmm", "pool", "shared", "round2"} <= {
        name.rpartition(".")[2] for name in findings.required
    }


def test_a_library_before_52f33fc7_passes_although_it_counts_no_pools() -> None:
    findings = on_cards().run(judge)
    assert verdict(findings) is Verdict.PASS
    found = statuses(findings.checks)
    assert found["pool"] == {Status.WARN}
    assert found["async"] == {Status.PASS}


def test_what_52f33fc7_mended_is_a_fault_from_then_on() -> None:
    here = on_cards()
    here.pin = "52f33fc7fa1fbb3f08148ab076d0e7447bec7f2a"
    assert failing(here.run(judge)) == {"pool", "async"}


NAMED = {
    "nvml": "smi-total",
    "nvml-v1": "nvml-v1",
    "nvml-v2": "nvml-v2",
    "no-v2": "nvml-v2",
    "cap": "alloc-over",
    "meminfo": "total",
    "throttle": "throttle",
    "throttle-ex": "throttle",
    "launch-ex-fails": "throttle",
    "sm-100": "sm-limit",
    "sm-half": "sm-limit",
    "limit-next": "total",
    "nvml-swapped": "smi-total",
    "decimal": "total",
    "own-usage": "shared",
    "no-context": "context",
    "managed": "managed",
    "vmm": "vmm",
    "async": "async",
    "pitch": "pitch",
    "no-credit": "free-credit",
    "minus-one": "alloc-over",
    "lookup": "getproc-total",
    "lookup-alloc": "getproc",
    "lookup-managed": "managed",
    "lookup-none": "managed",
    "lookup-old": "getproc-total",
    "lookup-second": "getproc-total",
    "lookup-launch": "throttle",
    "loose": "alloc-over",
    "tight": "alloc-under",
    "device-total": "device-total",
    "stdout": "stdout",
    "refuses": "alloc-under",
    "constant": "total",
    "starves": "throttle",
    "segv": "exit",
    "hangs": "exit",
    "not-loaded": "preload-mapped",
    "no-start": "preload-mapped",
    "no-log": "sm-limit",
    "underflow": "plausible",
    "bad-exit": "exit",
    "smi-fails": "exit",
    "hidden-card": "smi-total",
}


@pytest.mark.parametrize(("fault", "row"), NAMED.items())
def test_each_fault_fails_in_the_row_that_names_it(fault: str, row: str) -> None:
    findings = on_cards(fault).run(judge)
    assert verdict(findings) is Verdict.FAIL
    assert row in failing(findings)


ALONE = (
    "nvml-v1",
    "throttle",
    "throttle-ex",
    "launch-ex-fails",
    "lookup-managed",
    "lookup-none",
    "lookup-old",
    "lookup-second",
    "lookup-launch",
    "starves",
    "own-usage",
    "managed",
    "vmm",
    "async",
    "pitch",
    "device-total",
)


@pytest.mark.parametrize("fault", ALONE)
def test_what_one_row_alone_can_see(fault: str) -> None:
    found = failing(on_cards(fault).run(judge))
    assert found - {"round2"} == {NAMED[fault]}


def test_every_fault_of_the_model_is_tried_here_or_needs_several_cards() -> None:
    several = {"limit-0", "first-card", "one-account", "other-card"}
    doubts = {"reworded", "other-form"}
    assert set(FAULTS) == set(NAMED) | several | doubts
    for fault in several:
        assert verdict(on_cards(fault).run(judge)) is Verdict.PASS, fault


@pytest.mark.parametrize("fault", ["reworded", "other-form"])
def test_a_log_of_unknown_form_shows_neither_right_nor_wrong(fault: str) -> None:
    with pytest.raises(Unjudged, match="log format not recognised") as caught:
        on_cards(fault).run(judge)
    found = statuses(caught.value.checks)
    assert found["sm-limit"] == {Status.WARN}
    assert found["alloc-over"] == {Status.PASS}
    assert Status.FAIL not in set().union(*found.values())


def test_a_log_of_unknown_form_excuses_nothing_else() -> None:
    assert "alloc-over" in failing(on_cards("reworded", "cap").run(judge))


def test_a_constant_that_the_first_round_has_by_chance_fails_the_second() -> None:
    here = on_cards("constant").knob(mem=3000)
    assert failing(here.run(judge)) == {"round2"}


def test_compute_that_can_not_be_measured_is_said_in_the_verdict() -> None:
    for here in (on_cards("throttle", utilization=3), on_cards("throttle", host_pid_error=True)):
        findings = here.run(judge)
        assert verdict(findings) is Verdict.PASS
        assert findings.note == "compute not measured"
        assert statuses(findings.checks)["throttle"] == {Status.SKIP}


def test_a_driver_without_the_newer_launch_is_measured_by_the_older() -> None:
    findings = on_cards(newer_launch=False).run(judge)
    assert verdict(findings) is Verdict.PASS
    told = [row.detail for row in findings.checks if row.id.endswith(".throttle")]
    assert len(told) == 2
    assert not any("cuLaunchKernelEx" in text for text in told)


def test_a_driver_that_looks_a_function_up_to_nothing_shows_nothing() -> None:
    with pytest.raises(Unjudged, match=r"cuGetProcAddress has no cuMemAllocManaged: no such function"):
        on_cards(unknown=frozenset({"managed"})).run(judge)
    assert failing(on_cards("throttle", newer_launch=False).run(judge)) == {"throttle"}


def test_compute_that_is_not_measured_by_wish() -> None:
    here = on_cards("throttle").knob(throttle=False)
    findings = here.run(judge)
    assert verdict(findings) is Verdict.PASS
    assert findings.note == "compute not measured"
    assert not any("throttle" in step.name for step in here.asked)


def test_a_fault_is_no_excuse_for_compute_that_could_be_measured() -> None:
    assert failing(on_cards("throttle", utilization=6).run(judge)) == {"throttle"}


def test_a_driver_without_the_second_nvml_call_is_measured_by_the_first() -> None:
    findings = on_cards(absent=frozenset({"nvml-v2"})).run(judge)
    assert verdict(findings) is Verdict.PASS
    assert statuses(findings.checks)["nvml-v2"] == {Status.SKIP}


def test_a_family_that_the_device_lacks_is_skipped() -> None:
    findings = on_cards(absent=frozenset({"async", "pool", "vmm"})).run(judge)
    assert verdict(findings) is Verdict.PASS
    found = statuses(findings.checks)
    assert found["async"] == found["pool"] == found["vmm"] == {Status.SKIP}


@pytest.mark.parametrize("mem", [1284, 1285, 1500, 2048, 20000])
def test_low_and_high_limits_are_measured_alike(mem: int) -> None:
    assert verdict(on_cards().knob(mem=mem).run(judge)) is Verdict.PASS
    for fault, row in NAMED.items():
        if fault not in ("constant", "hangs"):
            assert row in failing(on_cards(fault).knob(mem=mem, throttle=row == "throttle").run(judge)), fault


def test_a_hang_is_a_fault_and_no_further_container_is_started() -> None:
    here = on_cards("hangs")
    findings = here.run(judge)
    (row,) = (row for row in findings.checks if row.id == "nvidia.case2.exit")
    assert row.observed == "no end within 300 s in init, blocked: unified_lock locked, waiting"
    assert "round-2" not in [step.name for step in here.asked]


def test_a_crash_is_named_with_the_operation_that_it_came_in() -> None:
    findings = on_cards("segv").run(judge)
    rows = [row.observed for row in findings.checks if row.id == "nvidia.case2.exit"]
    assert rows
    assert all("crashed in init: SIGSEGV, exit status 139" in row for row in rows)
