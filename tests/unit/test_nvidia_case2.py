"""nvidia.case2 as a whole, on cards in memory: each fault fails in the row that names it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpumodel import FAULTS, GpuModel, ModelCard
from tests.unit.nvidia_runs import CARDS, World, failing, statuses, verdict
from xbtasks.backends.nvidia.case2 import judge
from xbtasks.checks import Status, Verdict
from xbtasks.errors import Refused, UsageError
from xbtasks.hardware import Skipped, Unjudged
from xbtasks.preflight import read_preflight

MIB = 1 << 20


def world(*faults: str, **values: object) -> World:
    return World(GpuModel(CARDS, frozenset(faults), **values))  # type: ignore[arg-type]


def test_a_good_library_passes() -> None:
    here = world(pools_counted=True)
    here.pin = "52f33fc7fa1fbb3f08148ab076d0e7447bec7f2a"
    findings = here.run(judge)
    assert failing(findings) == set()
    assert verdict(findings) is Verdict.PASS
    assert findings.note == ""
    assert {"throttle", "context", "managed", "async", "vmm", "pool", "shared", "round2"} <= {
        name.rpartition(".")[2] for name in findings.required
    }


def test_a_library_before_52f33fc7_passes_although_it_counts_no_pools() -> None:
    findings = world().run(judge)
    assert verdict(findings) is Verdict.PASS
    found = statuses(findings.checks)
    assert found["pool"] == {Status.WARN}
    assert found["async"] == {Status.PASS}


def test_what_52f33fc7_mended_is_a_fault_from_then_on() -> None:
    here = world()
    here.pin = "52f33fc7fa1fbb3f08148ab076d0e7447bec7f2a"
    assert failing(here.run(judge)) == {"pool", "async"}


NAMED = {
    "nvml": "smi-total",
    "nvml-v1": "nvml-v1",
    "nvml-v2": "nvml-v2",
    "cap": "alloc-over",
    "meminfo": "total",
    "throttle": "throttle",
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
    findings = world(fault).run(judge)
    assert verdict(findings) is Verdict.FAIL
    assert row in failing(findings)


ALONE = ("nvml-v1", "throttle", "starves", "own-usage", "managed", "vmm", "async", "pitch", "device-total")


@pytest.mark.parametrize("fault", ALONE)
def test_what_one_row_alone_can_see(fault: str) -> None:
    found = failing(world(fault).run(judge))
    assert found - {"round2"} == {NAMED[fault]}


def test_every_fault_of_the_model_is_tried_here_or_needs_several_cards() -> None:
    several = {"limit-0", "first-card", "one-account", "other-card"}
    doubts = {"reworded", "other-form"}
    assert set(FAULTS) == set(NAMED) | several | doubts
    for fault in several:
        assert verdict(world(fault).run(judge)) is Verdict.PASS, fault


@pytest.mark.parametrize("fault", ["reworded", "other-form"])
def test_a_log_of_unknown_form_shows_neither_right_nor_wrong(fault: str) -> None:
    with pytest.raises(Unjudged, match="log format not recognised") as caught:
        world(fault).run(judge)
    found = statuses(caught.value.checks)
    assert found["sm-limit"] == {Status.WARN}
    assert found["alloc-over"] == {Status.PASS}
    assert Status.FAIL not in set().union(*found.values())


def test_a_log_of_unknown_form_excuses_nothing_else() -> None:
    assert "alloc-over" in failing(world("reworded", "cap").run(judge))


def test_a_constant_that_the_first_round_has_by_chance_fails_the_second() -> None:
    here = world("constant").knob(mem=3000)
    assert failing(here.run(judge)) == {"round2"}


def test_compute_that_can_not_be_measured_is_said_in_the_verdict() -> None:
    for here in (world("throttle", utilization=3), world("throttle", host_pid_error=True)):
        findings = here.run(judge)
        assert verdict(findings) is Verdict.PASS
        assert findings.note == "compute not measured"
        assert statuses(findings.checks)["throttle"] == {Status.SKIP}


def test_compute_that_is_not_measured_by_wish() -> None:
    here = world("throttle").knob(throttle=False)
    findings = here.run(judge)
    assert verdict(findings) is Verdict.PASS
    assert findings.note == "compute not measured"
    assert not any("throttle" in step.name for step in here.asked)


def test_a_fault_is_no_excuse_for_compute_that_could_be_measured() -> None:
    assert failing(world("throttle", utilization=6).run(judge)) == {"throttle"}


def test_a_family_that_the_device_lacks_is_skipped() -> None:
    findings = world(absent=frozenset({"async", "pool", "vmm"})).run(judge)
    assert verdict(findings) is Verdict.PASS
    found = statuses(findings.checks)
    assert found["async"] == found["pool"] == found["vmm"] == {Status.SKIP}


def test_the_rounds_have_different_odd_limits_and_a_cache_each() -> None:
    here = world()
    here.run(judge)
    words = [word for step in here.asked for item in step.sections for word in item.argv]
    limits = [word.partition("=")[2] for word in words if word.startswith("CUDA_DEVICE_MEMORY_LIMIT_0=")]
    first, second = dict.fromkeys(limits)
    assert first == "4096m"
    assert int(second.removesuffix("m")) % 2 == 1
    caches = [word for word in words if "target=/tmp/vgpu," in f"{word},"]
    assert len(set(caches)) == len(caches) == len(limits)


def test_the_second_round_is_the_runs_own_and_the_same_in_a_replay() -> None:
    texts = set()
    for number in range(8):
        here = world()
        here.run_id = f"20270101-000000-{number:06x}"
        rows = here.run(judge).checks
        again = here.run(judge).checks
        assert rows == again
        texts |= {row.detail for row in rows if row.id.endswith("round2")}
    assert len(texts) == 8


def test_the_container_is_sliced_as_the_operator_slices_it() -> None:
    here = world().knob(gpu="1", mem=3000, sm=30)
    here.run(judge)
    (argv,) = (item.argv for step in here.asked for item in step.sections if item.name == "limits")
    text = " ".join(argv)
    for word in (
        f"--env NVIDIA_VISIBLE_DEVICES={CARDS[1].uuid}",
        "--env NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        "--env CUDA_DEVICE_MEMORY_LIMIT_0=3000m",
        "--env CUDA_DEVICE_SM_LIMIT=30",
        "--env CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/vgpu/cudevshr.cache",
        "--env LIBCUDA_LOG_LEVEL=3",
        "--runtime nvidia",
        "--pull never",
        "--network none",
        "target=/usr/local/vgpu/libvgpu.so,readonly",
        "target=/etc/ld.so.preload,readonly",
        "target=/tmp/vgpulock",
    ):
        assert word in text
    assert " -v " not in text
    assert "CUDA_VISIBLE_DEVICES" not in text


def test_without_the_runtime_the_card_comes_as_a_cdi_device() -> None:
    here = world()
    host = read_preflight(here.facts.reply())
    for known, name in ((f"nvidia.com/gpu={CARDS[0].uuid}", CARDS[0].uuid), ("nvidia.com/gpu=0", "0")):
        engine = replace(host.engine, runtimes=frozenset({"runc"}), cdi_devices=frozenset({known}))
        run = here.case_run()
        object.__setattr__(run, "facts", replace(run.facts, engine=engine))
        # the model's cards come through the runtime alone
        here.answers["bare-smi"] = here.answers["control"] = (125, "", "docker: no such device")
        with pytest.raises(Unjudged, match="no such device"):
            judge(run)
        argv = next(item.argv for step in here.asked for item in step.sections if item.name == "bare-smi")
        assert argv[argv.index("--device") + 1] == f"nvidia.com/gpu={name}"
        assert "NVIDIA_VISIBLE_DEVICES=void" in argv
        assert "--runtime" not in argv
        here.asked.clear()


def test_a_limit_above_the_card_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="the limit of 49141 MiB is above GPU 0, which has 49140 MiB"):
        world().knob(mem=49141).run(judge)


def test_a_limit_that_the_control_can_not_exceed_shows_nothing() -> None:
    here = world().knob(mem=49000)
    with pytest.raises(Unjudged, match="are not granted"):
        here.run(judge)
    assert not any(item.name == "limits" for step in here.asked for item in step.sections)


def test_a_limit_that_contexts_alone_exceed_shows_nothing() -> None:
    with pytest.raises(Unjudged, match="leave no room") as caught:
        world().knob(mem=700).run(judge)
    assert caught.value.hint == "--mem 1284 or more"


@pytest.mark.parametrize("mem", [1284, 1285, 1500, 2048, 20000])
def test_low_and_high_limits_are_measured_alike(mem: int) -> None:
    assert verdict(world().knob(mem=mem).run(judge)) is Verdict.PASS
    for fault, row in NAMED.items():
        if fault not in ("constant", "hangs"):
            assert row in failing(world(fault).knob(mem=mem, throttle=row == "throttle").run(judge)), fault


def test_a_busy_card_is_refused_before_any_container_starts() -> None:
    here = world()
    here.tenants = [f"{CARDS[0].uuid}, 4242, 900, python3, train.py"]
    with pytest.raises(Refused, match=r"GPU 0 is busy: python3, train.py \(4242\)"):
        here.run(judge)
    assert [step.name for step in here.asked] == ["idle"]
    assert here.permissions == []
    assert verdict(here.knob(gpu="1").run(judge)) is Verdict.PASS
    assert verdict(here.knob(gpu="0", busy_ok=True).run(judge)) is Verdict.PASS


def test_auto_takes_an_idle_card() -> None:
    here = world().knob(gpu="auto")
    here.tenants = [f"{CARDS[0].uuid}, 4242, 900, python3"]
    findings = here.run(judge)
    assert any(f"GPU 1 (NVIDIA Model, {CARDS[1].uuid})" in row.detail for row in findings.checks)
    here.tenants = [f"{card.uuid}, 4242, 900, python3" for card in CARDS]
    with pytest.raises(Refused, match="0 idle GPUs, 1 needed"):
        here.run(judge)


def test_who_comes_during_the_run_may_be_why_something_is_wrong() -> None:
    here = world("cap")
    here.later = [f"{CARDS[0].uuid}, 4242, 900, python3"]
    with pytest.raises(Unjudged, match="became busy during the run"):
        here.run(judge)
    here = world()
    here.later = [f"{CARDS[0].uuid}, 4242, 900, python3"]
    findings = here.run(judge)
    assert verdict(findings) is Verdict.PASS
    assert statuses(findings.checks)["busy"] == {Status.WARN}


def test_there_is_no_such_card() -> None:
    with pytest.raises(UsageError, match="the host has no GPU 7"):
        world().knob(gpu="7").run(judge)


def test_a_card_may_be_named_by_its_uuid_in_any_case() -> None:
    assert verdict(world().knob(gpu=CARDS[1].uuid.lower()).run(judge)) is Verdict.PASS


def test_a_card_that_can_not_be_measured_is_skipped() -> None:
    here = world()
    here.changes = {0: "49140, Enabled, 570.1", 1: "[N/A], Disabled, 570.1"}
    with pytest.raises(Skipped, match="split by MIG"):
        here.run(judge)
    with pytest.raises(Skipped, match="reports no memory of its own"):
        here.knob(gpu="1").run(judge)


def test_a_container_that_does_not_start_is_no_fault_of_the_library() -> None:
    here = world()
    said = "docker: Error response from daemon: failed to inject CDI devices: unresolvable CDI devices\n"
    here.answers["bare-smi"] = here.answers["control"] = (125, "", said)
    with pytest.raises(Unjudged, match="unresolvable CDI devices") as caught:
        here.run(judge)
    assert statuses(caught.value.checks)["reachable"] == {Status.FAIL}
    assert [step.name for step in here.asked][-1] == "remove"


@pytest.mark.parametrize("status", [125, 126, 127])
def test_an_engine_that_fails_in_a_round_is_no_fault_of_the_library(status: int) -> None:
    here = world()
    here.answers["limits"] = (status, "", "docker: Error response from daemon: no space left on device\n")
    with pytest.raises(Unjudged, match="no space left on device"):
        here.run(judge)


def test_a_container_that_lost_its_devices_is_no_fault_of_the_library() -> None:
    here = world()
    here.answers["bare-smi"] = (255, "Failed to initialize NVML: Unknown Error\n", "")
    with pytest.raises(Unjudged, match="Unknown Error") as caught:
        here.run(judge)
    assert statuses(caught.value.checks)["reachable"] == {Status.FAIL}


def test_a_staged_file_that_is_another_is_not_mounted() -> None:
    here = world()
    here.answers["prepare"] = (0, f"644 {'6' * 64}\n", "")
    with pytest.raises(Unjudged, match="isn't what case 1 judges") as caught:
        here.run(judge)
    assert statuses(caught.value.checks)["artifact"] == {Status.FAIL}
    assert [step.name for step in here.asked] == ["idle", "prepare", "remove"]


def test_an_engine_elsewhere_that_mounts_another_file_is_found_out() -> None:
    here = world()
    here.answers["compile"] = (0, f"{'6' * 64}\n", "")
    with pytest.raises(Unjudged, match="another file than the host has"):
        here.run(judge)


@pytest.mark.parametrize(
    ("status", "said", "why"),
    [
        (96, "neither cc, gcc, clang nor c99", "has no C compiler"),
        (1, "error: no stdio.h", "doesn't compile"),
    ],
)
def test_a_probe_that_does_not_compile_has_a_row(status: int, said: str, why: str) -> None:
    here = world()
    here.answers["compile"] = (status, "", said)
    with pytest.raises(Unjudged, match=why) as caught:
        here.run(judge)
    (row,) = (row for row in caught.value.checks if row.id == "nvidia.case2.probe-build")
    assert row.status is Status.FAIL
    assert said in row.observed


def test_a_workload_without_the_programs_loader_could_not_be_measured() -> None:
    here = world()
    here.answers["control"] = (127, "", "exec /xbtasks/probe: no such file or directory\n")
    with pytest.raises(Unjudged, match="exec /xbtasks/probe: no such file or directory"):
        here.run(judge)


def test_a_workload_image_must_be_there() -> None:
    here = world()
    here.workload = "team/app:1"
    here.answers["image"] = (1, "", "Error response from daemon: No such image: team/app:1\n")
    with pytest.raises(UsageError, match="workload image team/app:1 is not on the host"):
        here.run(judge)


def test_a_card_held_by_another_run_for_long() -> None:
    here = world()
    here.answers["bare-smi"] = (75, "", "/tmp/x.lock: another run holds it for 300 s already\n")
    with pytest.raises(Unjudged, match="another run holds it"):
        here.run(judge)


def test_a_test_directory_that_stays_is_said() -> None:
    here = world()
    here.answers["removal"] = (1, "", "rm: cannot remove '/opt/vgpu/test/x': Permission denied\n")
    findings = here.run(judge)
    assert verdict(findings) is Verdict.PASS
    assert statuses(findings.checks)["removal"] == {Status.WARN}


def test_a_hang_is_a_fault_and_no_further_container_is_started() -> None:
    here = world("hangs")
    findings = here.run(judge)
    (row,) = (row for row in findings.checks if row.id == "nvidia.case2.exit")
    assert row.observed == "no end within 300 s in init, blocked: unified_lock locked, waiting"
    assert "round-2" not in [step.name for step in here.asked]


def test_a_crash_is_named_with_the_operation_that_it_came_in() -> None:
    findings = world("segv").run(judge)
    rows = [row.observed for row in findings.checks if row.id == "nvidia.case2.exit"]
    assert rows
    assert all("crashed in init: SIGSEGV, exit status 139" in row for row in rows)


def test_small_cards_are_measured_too() -> None:
    small = ModelCard(0, CARDS[0].uuid, total=8192 * MIB, reserved=300 * MIB, context=250 * MIB)
    findings = World(GpuModel((small,))).run(judge)
    assert verdict(findings) is Verdict.PASS


def test_permission_is_asked_before_the_first_container() -> None:
    here = world()

    def refuse(what: str) -> None:
        raise Refused(f"not confirmed: {what}")

    run = here.case_run()
    object.__setattr__(run, "permission", refuse)
    with pytest.raises(Refused, match=r"run containers of vgpu-build:12 on GPU 0 \(NVIDIA Model\)"):
        judge(run)
    assert [step.name for step in here.asked] == ["idle"]
