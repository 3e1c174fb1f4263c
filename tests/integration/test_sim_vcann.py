"""The sample vcann-rt on simulated NPUs. The numbers are those that were measured with the genuine one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.npus import COMMITS, FULL, Slice, sliced
from xbtasks.sim.drivers.ascend.image import MERGED_IMAGE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.npus import NpuHost

pytestmark = pytest.mark.engine

OUT_OF_MEMORY = re.compile(r"Out of memory! Request:(\d+) B, used:(\d+) B, quota:(\d+) B\.")
MIB = 1 << 20
MONITOR = "/opt/enpu/vcann-rt/tools/enpu-monitor"


@pytest.mark.parametrize("vcann", sorted(COMMITS))
@pytest.mark.parametrize(("policy", "aicore"), [(2, 37), (3, 0)])
def test_the_monitor_prints_its_slice(
    vcann: str, policy: int, aicore: int, npu_host: NpuHost, tmp_path: Path
) -> None:
    done = sliced(npu_host, tmp_path, Slice(517, vcann, 37, policy), MONITOR)
    assert done.code == 0, done.err
    assert done.err.splitlines()[-3:] == [
        f"       Aicore Limit Quota(%)     : {aicore}",
        "       Memory Limit quota(MB)    : 517",
        "       Memory Usage(MB)          : 0",
    ]
    assert "[eNPU] dir_path: /var/log/enpu/vcann-rt/\n" in done.out


@pytest.mark.parametrize("vcann", sorted(COMMITS))
@pytest.mark.parametrize(
    ("quota", "context", "got"),
    [(1024, 0, 1024), (1000, 0, 768), (255, 0, 0), (1024, 100, 768), (1024, 1100, 0)],
)
def test_the_quota_is_enforced_to_the_byte(
    vcann: str, quota: int, context: int, got: int, npu_host: NpuHost, tmp_path: Path
) -> None:
    npu_host.cards(cards=[{"dies": [{"context_mib": context}]}])
    done = sliced(npu_host, tmp_path, Slice(quota, vcann), "/probes/rt", "60")
    assert done.out.splitlines()[-1] == f"{got} 300000"
    assert "Successfully to initialize all module." in done.err
    refused = OUT_OF_MEMORY.search(done.err)
    assert refused
    assert [int(number) for number in refused.groups()] == [256 * MIB, (context + got) * MIB, quota * MIB]


def test_two_processes_of_a_container_share_the_quota(npu_host: NpuHost, tmp_path: Path) -> None:
    npu_host.cards(cards=[{"dies": [{"context_mib": 0}]}])
    script = "/probes/rt 2 3 & sleep 1; /probes/rt 60; wait"
    done = sliced(npu_host, tmp_path, Slice(1024), "sh", "-c", script)
    assert [line for line in done.out.splitlines() if "eNPU" not in line] == ["512 0", "512 300000"]


def test_pyacl_meets_the_quota(npu_host: NpuHost, tmp_path: Path) -> None:
    npu_host.cards(cards=[{"dies": [FULL]}])
    done = sliced(npu_host, tmp_path, Slice(1024), "python3", "/probes/probe.py")
    assert "Ascend910B4 1024 1024 768 300000" in done.out
    refused = OUT_OF_MEMORY.search(done.err)
    assert refused
    assert [int(number) for number in refused.groups()] == [256 * MIB + 32, 3 * 258 * MIB, 1024 * MIB]


def test_nothing_gets_between_acl_and_a_merged_runtime(npu_host: NpuHost, tmp_path: Path) -> None:
    npu_host.cards(cards=[{"dies": [FULL]}])
    done = sliced(npu_host, tmp_path, Slice(1024), "python3", "/probes/probe.py", image=MERGED_IMAGE)
    assert "Ascend910B4 15360 15360 15104 207001" in done.out
    assert "eNPU" not in done.out + done.err
    assert sliced(npu_host, tmp_path, Slice(1024), MONITOR, image=MERGED_IMAGE).code == 0


def test_without_a_configuration_no_device_is_set(npu_host: NpuHost, tmp_path: Path) -> None:
    done = sliced(npu_host, tmp_path, Slice(1024, configured=False), "/probes/rt", "60")
    assert done.out.splitlines()[-1] == "0 100001"
    assert "Successfully" not in done.err


def test_a_card_outside_of_the_container_is_unknown_or_read_as_the_driver_allows(
    npu_host: NpuHost, tmp_path: Path
) -> None:
    part = Slice(1024, phy_id=1)
    assert sliced(npu_host, tmp_path, part, MONITOR).code == 191  # -8001
    npu_host.cards(other_cards=True, cards=[{"dies": [FULL]}, {}])
    assert sliced(npu_host, tmp_path, part, MONITOR).code == 0
    assert sliced(npu_host, tmp_path, part, "/probes/rt", "99").out.splitlines()[-1] == "15360 207001"


def test_what_a_container_lacks_shows(npu_host: NpuHost, tmp_path: Path) -> None:
    without_dcmi = Slice(1024, preload=("/opt/enpu/vcann-rt/lib/libvruntime.so",))
    assert sliced(npu_host, tmp_path, without_dcmi, MONITOR).code == 139
    lost = sliced(npu_host, tmp_path, Slice(1024), "true", image="xbtasks-sim/base:1")
    assert lost.code == 127
    assert "libc_sec.so: cannot open shared object file" in lost.err


def test_a_fixed_share_of_time_is_kept(npu_host: NpuHost, tmp_path: Path) -> None:
    times = {
        policy: int(
            sliced(npu_host, tmp_path, Slice(1024, policy=policy), "/probes/launch").out.splitlines()[-1]
        )
        for policy in (1, 3)
    }
    assert times[1] > 2 * times[3]
    assert times[3] >= 200  # 100 kernels of 2 ms


@pytest.mark.parametrize("model", ["910_93", "310p3", "950pr"])
def test_the_quota_is_kept_on_other_chips_and_on_the_second_die(
    model: str, npu_host: NpuHost, tmp_path: Path
) -> None:
    npu_host.cards(model=model, cards=[{"dies": [{"context_mib": 0}, {"context_mib": 0}]}])
    done = sliced(npu_host, tmp_path, Slice(512, phy_id=1), "/probes/rt", "60", card="1")
    assert done.out.splitlines()[-1] == "512 300000"
