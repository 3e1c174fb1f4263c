"""The sample preload library for NVIDIA, on the simulated cards in real containers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.nvidiakit import CARD, SPIN, words

if TYPE_CHECKING:
    from tests.nvidiakit import Node

pytestmark = pytest.mark.engine


@pytest.fixture
def node(nvidia_host: Node) -> Node:
    nvidia_host.cards(CARD, CARD)
    return nvidia_host


LIMITS = {
    "3000m": "3000",
    "3072000k": "3000",
    "3145728000": "3000",
    "3.5g": "3072",
    "3000": "0",
    "3000mb": "0",
    "0x800m": "2048",
    "010m": "8",
    "abc": "49140",
    "": "49140",
    "-1": "17592186044415",
    "-1m": "49140",
    "200g": "204800",
}


def test_limits_are_read_as_they_are_written(node: Node) -> None:
    ask = "nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits"
    lines = [
        f"CUDA_DEVICE_MEMORY_LIMIT_0='{value}' CUDA_DEVICE_MEMORY_SHARED_CACHE=/tmp/{place} {ask}"
        for place, value in enumerate(LIMITS)
    ]
    done = node.limited("\n".join(lines), "LIBCUDA_LOG_LEVEL=0")
    assert dict(zip(LIMITS, done.stdout.split(), strict=True)) == LIMITS
    assert "invalid device memory limit CUDA_DEVICE_MEMORY_LIMIT_0=abc" in done.stderr
    assert "Limit overflow: CUDA_DEVICE_MEMORY_LIMIT_0=-1m" in done.stderr


def test_a_limit_holds_to_the_byte_in_every_way_and_counts_the_context(node: Node) -> None:
    ways = ("alloc", "managed", "pitch", "async", "create")
    asked = [word for way in ways for word in (f"{way}=2700", f"{way}=2702")]
    script = f"/shared/words start info find=cuMemGetInfo alloc=2701 {' '.join(asked)} host=10"
    done = node.limited(script, "CUDA_DEVICE_MEMORY_LIMIT_0=3000m")
    found = words(done)
    assert found["info"] == "0 2700 3000 3000"
    assert found["find=cuMemGetInfo"] == "0 0 0 3000"
    assert found["alloc=2701"] == "2"
    for way in ways:
        assert (found[f"{way}=2700"], found[f"{way}=2702"]) == ("0 0", "2"), way
    assert "allocat" not in done.stdout
    assert "]: Device 0 OOM 3146776576 / 3145728000" in done.stderr


def test_processes_of_a_cache_share_a_limit_and_the_dead_give_theirs_back(node: Node) -> None:
    script = """
    /shared/words start keep=1200 touch=/shared/$$ wait=/shared/$$.go kill & first=$!
    until [ -e /shared/$$ ]; do sleep 0.05; done
    /shared/words start info alloc=1200 alloc=1201
    nvidia-smi --query-gpu=memory.used,memory.free --format=csv,noheader
    touch /shared/$$.go; wait $first
    /shared/words start info
    """
    done = node.limited(script, "CUDA_DEVICE_MEMORY_LIMIT_0=3000m", "LIBCUDA_LOG_LEVEL=2")
    lines = [line for line in done.stdout.splitlines() if line.startswith(("info", "alloc", "1500"))]
    assert lines == [
        "info 0 1200 3000 3000",
        "alloc=1200 0 0",
        "alloc=1201 2",
        "1500 MiB, 1500 MiB",
        "info 0 2700 3000 3000",
    ]
    assert "Kick dead proc" in done.stderr


def test_each_card_has_its_own_limit_and_use(node: Node) -> None:
    script = """
    nvidia-smi --query-gpu=memory.total --format=csv,noheader,nounits
    /shared/words device=1 start info alloc=2701 keep=2000 device=0 start info
    """
    limits = ("CUDA_DEVICE_MEMORY_LIMIT_0=6000m", "CUDA_DEVICE_MEMORY_LIMIT_1=3000m")
    done = node.limited(script, *limits, visible="0,1")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["6000", "3000"]
    assert [line for line in lines if line.startswith(("info", "alloc"))] == [
        "info 0 2700 3000 3000",
        "alloc=2701 2",
        "info 0 5700 6000 6000",
    ]


def test_the_first_user_of_a_cache_fixes_its_limits(node: Node) -> None:
    script = """
    CUDA_DEVICE_MEMORY_LIMIT_0=3000m CUDA_DEVICE_SM_LIMIT=40 /shared/words start
    CUDA_DEVICE_MEMORY_LIMIT_0=5000m CUDA_DEVICE_SM_LIMIT=60 /shared/words start info
    """
    done = node.limited(script, "LIBCUDA_LOG_LEVEL=3")
    assert words(done)["info"] == "0 2700 3000 3000"
    said = "Limit inconsistency detected for 0th device, 5242880000 expected, get 3145728000"
    assert f"]: {said}" in done.stderr
    assert done.stderr.count("device 0: core utilization limit = 40\n") == 2


def test_a_context_that_is_larger_than_the_limit(node: Node) -> None:
    found = words(node.limited("/shared/words start info alloc=1", "CUDA_DEVICE_MEMORY_LIMIT_0=200m"))
    assert found["info"].startswith("1 ")
    assert found["alloc=1"] == "2"


def test_without_a_place_for_the_cache_a_program_ends(node: Node) -> None:
    done = node.limited("CUDA_DEVICE_MEMORY_SHARED_CACHE=/none/x /shared/words start")
    assert done.returncode == 1
    assert "]: Fail to open shrreg /none/x: errno=2" in done.stderr


@pytest.mark.parametrize(
    ("level", "wanted"),
    [
        ("0", {"ERROR"}),
        ("1", {"ERROR"}),
        ("", {"ERROR", "Msg"}),
        ("2", {"ERROR", "Msg"}),
        ("3", {"ERROR", "Msg", "Info"}),
    ],
)
def test_messages_by_level(level: str, wanted: set[str], node: Node) -> None:
    setting = (f"LIBCUDA_LOG_LEVEL={level}",) if level else ()
    done = node.limited("/shared/words start alloc=4000", "CUDA_DEVICE_MEMORY_LIMIT_0=3000m", *setting)
    assert {line.split("(")[0].split()[1] for line in done.stderr.splitlines()} == wanted


def test_nvidia_smi_keeps_the_default_level_and_its_stdout_clean(node: Node) -> None:
    done = node.limited("nvidia-smi -L", "LIBCUDA_LOG_LEVEL=4", "CUDA_DEVICE_MEMORY_LIMIT_0=3000m")
    assert [line.partition("]: ")[2].rpartition(" ")[0] for line in done.stderr.splitlines()] == [
        "Cleanup on exit for PID",
        "Exit cleanup complete for PID",
    ]
    assert len(done.stdout.splitlines()) == 1


def rate(node: Node, *environment: str) -> int:
    done = node.limited(f"/shared/words start {SPIN}", "LIBCUDA_LOG_LEVEL=0", *environment)
    result, launches = words(done)[SPIN].split()
    assert result == "0"
    return int(launches)


def test_a_compute_limit_holds_launches_back(node: Node) -> None:
    free = rate(node)
    assert rate(node, "CUDA_DEVICE_SM_LIMIT=20") <= free / 2
    assert rate(node, "CUDA_DEVICE_SM_LIMIT=20", "GPU_CORE_UTILIZATION_POLICY=DISABLE") > free / 2


def test_a_compute_limit_holds_without_the_older_call_too(node: Node) -> None:
    node.cards({**CARD, "process_utilization": False})
    assert rate(node, "CUDA_DEVICE_SM_LIMIT=20") <= rate(node) / 2
