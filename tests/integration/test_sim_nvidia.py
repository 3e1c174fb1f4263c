"""The simulated NVIDIA cards in real containers of the private engine: tools, OCI runtime, driver."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

import pytest

from tests.integration.test_sim import alive
from tests.nvidiakit import CARD, SPIN, words
from xbtasks.backends.nvidia.smi import QUERY, Gpu, parse_gpus
from xbtasks.elf.facts import read_elf
from xbtasks.hostprobe import Trouble, Unusable
from xbtasks.sim.drivers.inventory import write_part

if TYPE_CHECKING:
    from tests.nvidiakit import Node

pytestmark = pytest.mark.engine


@pytest.fixture
def node(nvidia_host: Node) -> Node:
    nvidia_host.cards(CARD, CARD)
    return nvidia_host


# The host's own tool.


def test_the_hosts_nvidia_smi_says_what_preflight_reads(node: Node) -> None:
    node.cards(CARD, {"model": "h200"}, {"model": "gb10"}, {"model": "a100", "mig": True})
    answer = node.smi(*QUERY)
    gpus = parse_gpus(answer.stdout, answer.returncode, answer.stderr)
    assert isinstance(gpus, tuple)
    assert [(gpu.name, gpu.memory_mib, gpu.mig, gpu.unified, gpu.sliceable) for gpu in gpus] == [
        ("NVIDIA GeForce RTX 4090", 49140, None, False, True),
        ("NVIDIA H200", 143771, False, False, True),
        ("NVIDIA GB10", None, None, True, False),
        ("NVIDIA A100-SXM4-80GB", 81920, True, False, False),
    ]
    assert all(isinstance(gpu, Gpu) and gpu.driver == "570.195.03" for gpu in gpus)


@pytest.mark.parametrize(
    ("values", "status", "trouble", "said"),
    [
        ({"fault": "mismatch"}, 18, Trouble.MISMATCH, "NVML library version: 570.195"),
        ({"fault": "not-loaded"}, 9, Trouble.NO_DRIVER, "couldn't communicate with the NVIDIA driver"),
        ({"fault": "unknown-error"}, 255, Trouble.LOST, "Failed to initialize NVML: Unknown Error"),
        ({"cards": [{"fault": "lost"}]}, 15, Trouble.LOST, "GPU is lost"),
        ({"cards": []}, 6, Trouble.NO_DEVICE, "No devices were found"),
    ],
)
def test_a_host_that_isnt_right_says_so_as_the_vendor_does(
    values: dict[str, object], status: int, trouble: Trouble, said: str, node: Node
) -> None:
    write_part(node.host.paths.inventory, "nvidia", {"cards": [CARD], **values})
    answer = node.smi(*QUERY)
    assert (answer.returncode, said in answer.stdout) == (status, True)
    found = parse_gpus(answer.stdout, answer.returncode, answer.stderr)
    assert isinstance(found, Unusable)
    assert found.trouble is trouble


def test_the_table_and_the_list_are_laid_out_as_the_vendors(node: Node) -> None:
    tenants = [{"pid": 77, "name": "/usr/bin/" + "x" * 60, "memory_mib": 900}, {"pid": 8, "type": "G"}]
    node.cards({"model": "a100", "mig": True, "processes": tenants}, {"model": "gb10"})
    table = node.smi().stdout.splitlines()
    assert {len(line) for line in table[1:] if line.strip()} == {91}
    assert (
        "|   0  NVIDIA A100-SXM4-80GB           On |   00000000:01:00.0 Off |                    0 |" in table
    )
    assert any("     900MiB /  81920MiB |" in line for line in table)
    assert any("|          Not Supported |" in line for line in table)
    assert any("    77      C   ..." in line and line.endswith(" 900MiB |") for line in table)
    assert any("No MIG devices found" in line for line in table)
    assert [line.partition(" (")[0] for line in node.smi("-L").stdout.splitlines()] == [
        "GPU 0: NVIDIA A100-SXM4-80GB",
        "GPU 1: NVIDIA GB10",
    ]


def test_fields_headers_units_and_one_card_are_chosen(node: Node) -> None:
    answer = node.smi("--query-gpu=index,memory.total,mig.mode.current", "--format=csv", "-i", "1")
    header = "index, memory.total [MiB], mig.mode.current"
    assert answer.stdout.splitlines() == [header, "1, 49140 MiB, [N/A]"]
    answer = node.smi("--query-gpu=index,colour", "--format=csv")
    assert answer.returncode == 2
    assert answer.stdout.startswith('Field "colour" is not a valid field to query.\n')
    assert node.smi("--query-gpu=index").returncode == 2
    assert node.smi("--odd").returncode == 2


@pytest.mark.parametrize("name", ["libcuda.so.1", "libnvidia-ml.so.1", "nvidia-smi"])
def test_the_driver_runs_with_c_libraries_much_older_than_its_compilers(name: str, nvidia_host: Node) -> None:
    facts = read_elf((nvidia_host.host.paths.drivers / "nvidia" / name).read_bytes())
    assert facts.glibc_need is not None
    assert facts.glibc_need <= (2, 17)


# The OCI runtime.


def test_containers_see_the_cards_they_asked_for(node: Node) -> None:
    everything = node.smi("-L").stdout.splitlines()
    uuid = everything[1].rpartition("UUID: ")[2].removesuffix(")")
    for visible, wanted in (("0", [0]), ("all", [0, 1]), (f"{uuid},0", [0, 1]), (uuid, [1])):
        listed = node.run("nvidia-smi", "-L", visible=visible).stdout.splitlines()
        assert [line.partition("(")[2] for line in listed] == [
            everything[index].partition("(")[2] for index in wanted
        ]


def test_none_brings_libraries_and_no_card(node: Node) -> None:
    done = node.run("nvidia-smi", visible="none")
    assert (done.returncode, done.stdout) == (6, "No devices were found\n")


@pytest.mark.parametrize("visible", [None, "void"])
def test_unasked_nothing_is_there(visible: str | None, node: Node) -> None:
    done = node.run("nvidia-smi", visible=visible)
    assert (done.returncode, "executable file not found" in done.stderr) == (127, True)


def test_a_refusal_reaches_the_docker_client(node: Node) -> None:
    done = node.run("true", visible="7")
    assert done.returncode in (125, 128)
    assert "nvidia-container-cli: device error: 7: unknown device" in done.stderr
    node.cards(CARD, runtime="cdi")
    done = node.run("true", visible="all")
    assert "failed to inject CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=all" in done.stderr
    node.cards(CARD, fault="mismatch")
    assert "nvml error: driver/library version mismatch" in node.run("true").stderr


def test_capabilities_decide_what_can_be_opened(node: Node) -> None:
    look = "ls /dev/nvidia*; /shared/words; nvidia-smi -L"
    utility = node.run("sh", "-c", look, capabilities="utility")
    assert utility.stdout.splitlines()[:3] == [
        "/dev/nvidia0",
        "/dev/nvidiactl",
        "libcuda.so.1: cannot open shared object file: No such file or directory",
    ]
    compute = node.run("sh", "-c", "/shared/words start; command -v nvidia-smi", capabilities="compute")
    assert (compute.stdout, compute.returncode) == ("start 0\n", 127)


def test_a_user_of_a_container_reaches_the_node(node: Node) -> None:
    assert words(node.run("/shared/words", "start", options=("--user", "1000:1000"))) == {"start": "0"}


# The driver.


def test_cuda_has_less_than_nvml_shows_and_contexts_take_their_part(node: Node) -> None:
    assert words(node.run("/shared/words", "start", "info")) == {"start": "0", "info": "0 48212 48512 48512"}


def test_memory_is_taken_and_given_back_in_every_way(node: Node) -> None:
    room = 48212
    ways = ("alloc", "pitch", "async", "create")
    asked = [word for way in ways for word in (f"{way}={room}", f"{way}={room + 2}")]
    found = words(
        node.run("/shared/words", "start", *asked, f"managed={room * 2}", "host=10", "info", "copies")
    )
    for way in ways:
        assert (found[f"{way}={room}"], found[f"{way}={room + 2}"]) == ("0 0", "2")
    assert found[f"managed={room * 2}"] == found["host=10"] == "0 0"
    assert found["info"] == "0 48212 48512 48512"
    assert found["copies"] == "0 written 1"


def test_containers_share_a_card_and_a_killed_one_leaves_nothing(node: Node) -> None:
    script = "/shared/words start keep=20000 touch=/shared/held wait=/shared/never"
    held, name = node.shared / "held", f"sim-{os.getpid()}"
    held.unlink(missing_ok=True)
    options = ("--detach", "--name", name)
    assert node.run("sh", "-c", f"exec {script}", options=options).returncode == 0
    while not held.exists():
        time.sleep(0.05)
    pid = int(node.docker("inspect", "--format", "{{.State.Pid}}", name).stdout)
    listed = node.smi("--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader")
    assert listed.stdout == f"{pid}, /shared/words, 20300 MiB\n"
    other = words(node.run("/shared/words", "start", "info", "alloc=27912", "alloc=27914"))
    assert other["info"].startswith("0 27912 ")
    assert (other["alloc=27912"], other["alloc=27914"]) == ("0 0", "2")
    assert node.used() == 20300
    node.docker("kill", name)
    while alive(pid):
        time.sleep(0.05)
    assert node.used() == 0


def test_a_child_of_a_process_isnt_its_parent(node: Node) -> None:
    done = node.run("/shared/words", "start", "keep=100", "fork", "info")
    lines = sorted(done.stdout.splitlines())
    # The child inherits nothing that it could use, and takes nothing of its parent's with it.
    assert [line for line in lines if line.startswith("info")] == ["info 0 48112 48512 48512", "info 3 0 0 0"]


def test_the_visible_devices_of_cuda_are_chosen_and_ordered(node: Node) -> None:
    node.cards(CARD, {"model": "h200"})
    look = "/shared/words start info | tail -n 1"
    total_4090, total_h200 = "48512", "143167"
    for setting, total in (
        ("A=1", total_4090),
        ("CUDA_DEVICE_ORDER=PCI_BUS_ID", total_4090),
        ("CUDA_VISIBLE_DEVICES=1", total_h200),
        ("CUDA_VISIBLE_DEVICES=1,0", total_h200),
    ):
        done = node.run("sh", "-c", f"export {setting}; {look}", visible="all")
        assert done.stdout.split()[-1] == total, setting
    for setting in ("CUDA_VISIBLE_DEVICES=", "CUDA_VISIBLE_DEVICES=-1", "CUDA_VISIBLE_DEVICES=0,0"):
        done = node.run("sh", "-c", f"export {setting}; /shared/words start", visible="all")
        assert done.stdout == "start 100\n"


def test_a_kernel_takes_as_long_as_it_says(node: Node) -> None:
    found = words(node.run("/shared/words", "start", "rate=1:25200000:3", SPIN))
    assert [rate.split()[0] for rate in (found["rate=1:25200000:3"], found[SPIN])] == ["0", "0"]
    assert 80 <= int(found["rate=1:25200000:3"].split()[1]) <= 100  # 10 ms of 2520 MHz
    assert 250 <= int(found[SPIN].split()[1]) <= 510  # 66 waves of 30 us


def test_the_node_outlives_an_inventory_that_is_wrong(node: Node) -> None:
    good = node.host.paths.inventory.read_text()
    assert len(node.smi("-L").stdout.splitlines()) == 2
    node.host.paths.inventory.write_text("{")
    assert len(node.smi("-L").stdout.splitlines()) == 2
    node.host.paths.inventory.write_text(good)
    assert "the inventory stays as it was" in (node.host.paths.state / "node.log").read_text()
    assert json.loads(good)["nvidia"]["cards"] == [CARD, CARD]
