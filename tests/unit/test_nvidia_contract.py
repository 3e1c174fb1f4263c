"""The injection contract, the engine's command line for it, and the small readers around it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.backends.nvidia.contract import Limits, environment, mounts, odd_between, visible
from xbtasks.backends.nvidia.smi_memory import COMMAND, SmiCard, parse_memory
from xbtasks.backends.nvidia.tenants import Tenant, read_tenants, tenants_section
from xbtasks.engine import ContainerRequest, Engine, Mount
from xbtasks.hardware import Unjudged
from xbtasks.host.step import SectionReply

UUID = "GPU-5a1c0d3e-1111-4c2b-9d3f-0123456789ab"


def test_the_environment_of_a_sliced_container() -> None:
    assert dict(environment(Limits((8192, 4096), 30))) == {
        "CUDA_DEVICE_MEMORY_LIMIT_0": "8192m",
        "CUDA_DEVICE_MEMORY_LIMIT_1": "4096m",
        "CUDA_DEVICE_SM_LIMIT": "30",
        "CUDA_DEVICE_MEMORY_SHARED_CACHE": "/tmp/vgpu/cudevshr.cache",
        "LIBCUDA_LOG_LEVEL": "3",
    }
    assert dict(visible(("a", "b"))) == {
        "NVIDIA_VISIBLE_DEVICES": "a,b",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }


def test_the_library_and_the_preload_file_are_read_only() -> None:
    found = {mount.target: (mount.source, mount.read_only) for mount in mounts("/l", "/p", "/c", "/k")}
    assert found == {
        "/usr/local/vgpu/libvgpu.so": ("/l", True),
        "/etc/ld.so.preload": ("/p", True),
        "/tmp/vgpu": ("/c", False),
        "/tmp/vgpulock": ("/k", False),
    }


@given(st.text(), st.integers(1, 10**6), st.integers(6, 1000), st.integers(1, 10**6))
def test_an_odd_number_is_in_bounds_and_not_the_forbidden_one(
    seed: str, low: int, width: int, but: int
) -> None:
    number = odd_between(seed, low, low + width, but=(but,))
    assert low <= number <= low + width
    assert number % 2
    assert number != but
    assert number == odd_between(seed, low, low + width, but=(but,))


def test_there_may_be_no_odd_number_left() -> None:
    with pytest.raises(ValueError, match="no odd number from 4 to 5 but 5"):
        odd_between("x", 4, 5, but=(5,))


def test_a_container_is_run_without_network_pull_or_volume() -> None:
    request = ContainerRequest(
        name="n",
        run_id="r",
        image="sha256:1",
        command=("nvidia-smi", "-L"),
        runtime="nvidia",
        environment=(("A", "b c"), ("EMPTY", "")),
        mounts=(Mount("/a b", "/x"), Mount("/c", "/y", read_only=False)),
    )
    assert Engine().run(request) == (
        *("docker", "run", "--rm", "--pull", "never", "--network", "none"),
        *("--name", "n", "--label", "xbtasks.run=r", "--runtime", "nvidia"),
        *("--env", "A=b c", "--env", "EMPTY="),
        *("--mount", "type=bind,source=/a b,target=/x,readonly"),
        *("--mount", "type=bind,source=/c,target=/y"),
        *("--entrypoint", "nvidia-smi", "sha256:1", "-L"),
    )


def test_cards_may_come_as_cdi_devices() -> None:
    request = ContainerRequest("n", "r", "i", ("p",), devices=("nvidia.com/gpu=0", "nvidia.com/gpu=1"))
    words = Engine().run(request)
    assert words.count("--device") == 2
    assert "--runtime" not in words


@pytest.mark.parametrize(
    ("source", "field"), [("/a,b", '"source=/a,b"'), ('/a"b', '"source=/a""b"'), ("/a'b", "source=/a'b")]
)
def test_a_path_with_the_csv_readers_own_characters(source: str, field: str) -> None:
    assert Mount(source, "/x").option == f"type=bind,{field},target=/x,readonly"


def test_memory_that_nvidia_smi_shows() -> None:
    memory = parse_memory(f"0, {UUID}, 4096, 0, 3710\n1, GPU-bb, [N/A], [N/A], [N/A]\n")
    assert COMMAND[1] == "--query-gpu=index,uuid,memory.total,memory.used,memory.free"
    assert memory.foreign == ()
    assert memory.card(UUID.lower()) == SmiCard(0, UUID, 4096, 0, 3710, f"0, {UUID}, 4096, 0, 3710")
    other = memory.card("GPU-bb")
    assert other is not None
    assert (other.total, other.used, other.free) == (None, None, None)
    assert memory.card("GPU-cc") is None


def test_lines_that_are_no_rows_are_kept_apart_and_no_number_is_taken_from_them() -> None:
    lines = ("[HAMI-core Msg(7:1:x.c:1)]: 4096", "4096", f"0, {UUID}, 81920, 1, 2", f"0, {UUID}, 4096", "No")
    memory = parse_memory("\n".join(lines))
    assert [card.total for card in memory.cards] == [81920]
    assert len(memory.foreign) == 4


def test_a_card_that_stands_there_twice_is_none() -> None:
    assert parse_memory(f"0, {UUID}, 1, 1, 1\n1, {UUID}, 2, 2, 2\n").card(UUID) is None


def told(*lines: str, status: int = 0, found: str = "found /usr/bin/nvidia-smi") -> SectionReply:
    text = "\n".join([found, f"gpus.status {status}", *(f"gpus {line}" for line in lines)])
    return SectionReply("tenants", 0, text.encode(), b"", 0, timed_out=False)


def test_who_computes_on_the_cards() -> None:
    rows = (f"{UUID}, 4242, 900, python3", "GPU-bb, 7, [N/A], a, b c")
    assert read_tenants(told(*rows)) == (Tenant(UUID, "4242", "python3"), Tenant("GPU-bb", "7", "a, b c"))
    assert str(read_tenants(told(*rows))[0]) == "python3 (4242)"
    assert read_tenants(told("")) == read_tenants(told("No running processes found")) == ()
    argv = tenants_section("t", 9).argv
    assert "--query-compute-apps=gpu_uuid,pid,used_gpu_memory,process_name" in argv


@pytest.mark.parametrize(
    "reply",
    [
        told("Failed to initialize NVML: Driver/library version mismatch", status=18),
        told("[Insufficient Permissions]"),
        told("4242, python3"),
        told(found="absent nvidia-smi"),
        SectionReply("tenants", 0, b"found /usr/bin/nvidia-smi\n", b"", 0, timed_out=False),
        SectionReply("tenants", 124, b"found /usr/bin/nvidia-smi\n", b"", 300, timed_out=True),
    ],
)
def test_silence_is_not_idleness(reply: SectionReply) -> None:
    with pytest.raises(Unjudged) as caught:
        read_tenants(reply)
    assert "--busy-ok" in caught.value.hint
