"""nvidia.case2 on cards in memory: its terms, and what is no fault of the library."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.gpumodel import GpuModel, ModelCard
from tests.unit.nvidia_runs import CARDS, World, on_cards, statuses, verdict
from xbtasks.backends.nvidia.case2 import judge
from xbtasks.checks import Status, Verdict
from xbtasks.errors import Refused, UsageError
from xbtasks.hardware import Skipped, Unfit, Unjudged
from xbtasks.preflight import read_preflight

MIB = 1 << 20


def test_the_rounds_have_different_odd_limits_and_a_cache_each() -> None:
    here = on_cards()
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
        here = on_cards()
        here.run_id = f"20270101-000000-{number:06x}"
        rows = here.run(judge).checks
        again = here.run(judge).checks
        assert rows == again
        texts |= {row.detail for row in rows if row.id.endswith("round2")}
    assert len(texts) == 8


def test_the_container_is_sliced_as_the_operator_slices_it() -> None:
    here = on_cards().knob(gpu="1", mem=3000, sm=30)
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
    here = on_cards()
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
        on_cards().knob(mem=49141).run(judge)


def test_a_limit_that_the_control_can_not_exceed_shows_nothing() -> None:
    here = on_cards().knob(mem=49000)
    with pytest.raises(Unjudged, match="are not granted"):
        here.run(judge)
    assert not any(item.name == "limits" for step in here.asked for item in step.sections)


def test_a_limit_that_contexts_alone_exceed_is_wrong_usage() -> None:
    with pytest.raises(Unfit, match="leave no room") as caught:
        on_cards().knob(mem=700).run(judge)
    assert caught.value.hint == "--mem 1284 or more"


def test_a_busy_card_is_refused_before_any_container_starts() -> None:
    here = on_cards()
    here.tenants = [f"{CARDS[0].uuid}, 4242, 900, python3, train.py"]
    with pytest.raises(Refused, match=r"GPU 0 is busy: python3, train.py \(4242\)"):
        here.run(judge)
    assert [step.name for step in here.asked] == ["idle"]
    assert here.permissions == []
    assert verdict(here.knob(gpu="1").run(judge)) is Verdict.PASS
    assert verdict(here.knob(gpu="0", busy_ok=True).run(judge)) is Verdict.PASS


def test_auto_takes_an_idle_card() -> None:
    here = on_cards().knob(gpu="auto")
    here.tenants = [f"{CARDS[0].uuid}, 4242, 900, python3"]
    findings = here.run(judge)
    assert any(f"GPU 1 (NVIDIA Model, {CARDS[1].uuid})" in row.detail for row in findings.checks)
    here.tenants = [f"{card.uuid}, 4242, 900, python3" for card in CARDS]
    with pytest.raises(Refused, match="0 idle GPUs, 1 needed"):
        here.run(judge)


def test_who_comes_during_the_run_may_be_why_something_is_wrong() -> None:
    here = on_cards("cap")
    here.later = [f"{CARDS[0].uuid}, 4242, 900, python3"]
    with pytest.raises(Unjudged, match="became busy during the run"):
        here.run(judge)
    here = on_cards()
    here.later = [f"{CARDS[0].uuid}, 4242, 900, python3"]
    findings = here.run(judge)
    assert verdict(findings) is Verdict.PASS
    assert statuses(findings.checks)["busy"] == {Status.WARN}


def test_there_is_no_such_card() -> None:
    with pytest.raises(UsageError, match="the host has no GPU 7"):
        on_cards().knob(gpu="7").run(judge)


def test_a_card_may_be_named_by_its_uuid_in_any_case() -> None:
    assert verdict(on_cards().knob(gpu=CARDS[1].uuid.lower()).run(judge)) is Verdict.PASS


def test_a_card_that_can_not_be_measured_is_skipped() -> None:
    here = on_cards()
    here.changes = {0: "49140, Enabled, 570.1", 1: "[N/A], Disabled, 570.1"}
    with pytest.raises(Skipped, match="split by MIG"):
        here.run(judge)
    with pytest.raises(Skipped, match="reports no memory of its own"):
        here.knob(gpu="1").run(judge)


def test_a_container_that_does_not_start_is_no_fault_of_the_library() -> None:
    here = on_cards()
    said = "docker: Error response from daemon: failed to inject CDI devices: unresolvable CDI devices\n"
    here.answers["bare-smi"] = here.answers["control"] = (125, "", said)
    with pytest.raises(Unjudged, match="unresolvable CDI devices") as caught:
        here.run(judge)
    assert statuses(caught.value.checks)["reachable"] == {Status.FAIL}
    assert [step.name for step in here.asked][-1] == "remove"


@pytest.mark.parametrize("status", [125, 126, 127])
def test_an_engine_that_fails_in_a_round_is_no_fault_of_the_library(status: int) -> None:
    here = on_cards()
    here.answers["limits"] = (status, "", "docker: Error response from daemon: no space left on device\n")
    with pytest.raises(Unjudged, match="no space left on device"):
        here.run(judge)


def test_a_container_that_lost_its_devices_is_no_fault_of_the_library() -> None:
    here = on_cards()
    here.answers["bare-smi"] = (255, "Failed to initialize NVML: Unknown Error\n", "")
    with pytest.raises(Unjudged, match="Unknown Error") as caught:
        here.run(judge)
    assert statuses(caught.value.checks)["reachable"] == {Status.FAIL}


def test_a_copy_that_is_another_file_is_not_mounted() -> None:
    here = on_cards()
    here.answers["prepare"] = (0, f"644 {'6' * 64}\n", "")
    with pytest.raises(Unjudged, match="isn't what case 1 judges") as caught:
        here.run(judge)
    assert statuses(caught.value.checks)["artifact"] == {Status.FAIL}
    assert [step.name for step in here.asked] == ["idle", "prepare", "remove"]


def test_an_engine_elsewhere_that_mounts_another_file_is_found_out() -> None:
    here = on_cards()
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
    here = on_cards()
    here.answers["compile"] = (status, "", said)
    with pytest.raises(Unjudged, match=why) as caught:
        here.run(judge)
    (row,) = (row for row in caught.value.checks if row.id == "nvidia.case2.probe-build")
    assert row.status is Status.FAIL
    assert said in row.observed


def test_a_workload_without_the_programs_loader_could_not_be_measured() -> None:
    here = on_cards()
    here.answers["control"] = (127, "", "exec /xbtasks/probe: no such file or directory\n")
    with pytest.raises(Unjudged, match="exec /xbtasks/probe: no such file or directory"):
        here.run(judge)


def test_a_workload_image_must_be_there() -> None:
    here = on_cards()
    here.workload = "team/app:1"
    here.answers["image"] = (1, "", "Error response from daemon: No such image: team/app:1\n")
    with pytest.raises(UsageError, match="workload image team/app:1 is not on the host"):
        here.run(judge)


def test_a_card_held_by_another_run_for_long() -> None:
    here = on_cards()
    here.answers["bare-smi"] = (75, "", "/tmp/x.lock: another run holds it for 300 s already\n")
    with pytest.raises(Unjudged, match="another run holds it"):
        here.run(judge)


@pytest.mark.parametrize("killed", ["", "bare-smi", "limits-2"])
def test_a_run_under_which_everything_is_removed_gives_no_verdict(killed: str) -> None:
    here = on_cards()
    here.answers["removal"] = (0, "gone\n", "")
    if killed:
        here.answers[killed] = (137, "", "")
    with pytest.raises(Unjudged, match="was removed while it was at work") as caught:
        here.run(judge)
    assert "artifact" in statuses(caught.value.checks)


def test_what_was_never_made_was_not_removed_by_others() -> None:
    here = on_cards()
    here.answers |= {"prepare": (1, "", "mkdir: Permission denied"), "removal": (0, "gone\n", "")}
    with pytest.raises(Unjudged, match="the test directory can't be made: mkdir"):
        here.run(judge)


def test_a_test_directory_that_stays_is_said() -> None:
    here = on_cards()
    here.answers["removal"] = (1, "", "rm: cannot remove '/opt/vgpu/test/x': Permission denied\n")
    findings = here.run(judge)
    assert verdict(findings) is Verdict.PASS
    assert statuses(findings.checks)["removal"] == {Status.WARN}


def test_small_cards_are_measured_too() -> None:
    small = ModelCard(0, CARDS[0].uuid, total=8192 * MIB, reserved=300 * MIB, context=250 * MIB)
    findings = World(GpuModel((small,))).run(judge)
    assert verdict(findings) is Verdict.PASS


def test_permission_is_asked_before_the_first_container() -> None:
    here = on_cards()

    def refuse(what: str) -> None:
        raise Refused(f"not confirmed: {what}")

    run = here.case_run()
    object.__setattr__(run, "permission", refuse)
    with pytest.raises(Refused, match=r"run containers of vgpu-build:12 on GPU 0 \(NVIDIA Model\)"):
        judge(run)
    assert [step.name for step in here.asked] == ["idle"]
