"""Simulated NPUs on the real thing: npu-smi in the layouts of real ones, the ascend runtime, accounting."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.npus import FULL, RUNTIME
from xbtasks.backends.ascend.smi import Card, Table, parse_list, parse_map, parse_table
from xbtasks.sim.drivers.ascend.image import CANN_IMAGE
from xbtasks.sim.drivers.ascend.models import MODELS

if TYPE_CHECKING:
    from tests.npus import NpuHost
    from tests.workplace import PrivateEngine

pytestmark = pytest.mark.engine

SAMPLES = Path(__file__).parents[1] / "samples" / "npu-smi"


def labels(text: str) -> list[str]:
    return [line.partition(":")[0].strip() for line in text.splitlines()]


BOARDS = {
    "910b4": ("board", "-i", "0", "-c", "0", "a2-910b-23.0.5-board-i0-c0.txt"),
    "910_93": ("board", "-i", "1", "-c", "1", "a3-910_93-board-i1-c1.txt"),
    "310p3": ("board", "-i", "0", "-c", "0", "310p3-board-i0-c0.txt"),
    "950pr": ("board", "-i", "0", "950pr-25.7.rc1-board-i0.txt"),
}
USAGES = {
    "910b4": ("usages", "-i", "0", "a2-910b-25.5.1-usages-i0.txt"),
    "910_93": ("usages", "-i", "1", "a3-usages-i7-two-chips.txt"),
    "950pr": ("usages", "-i", "0", "950-usages-i0.txt"),
}


@pytest.mark.parametrize("model", sorted(MODELS))
def test_the_product_reads_what_npu_smi_prints(model: str, npu_host: NpuHost) -> None:
    npu_host.cards(model=model, cards=[{"npu_id": 2}, {"npu_id": 64}])
    dies = MODELS[model].dies
    done = [npu_host.smi("info", *options) for options in (("-l",), ("-m",), ())]
    assert all(each.code == 0 and each.err == "" for each in done)
    assert parse_list(done[0].out, 0) == (Card(2, dies), Card(64, dies))
    found = parse_map(done[1].out, 0)
    assert isinstance(found, tuple)
    assert [(die.npu_id, die.chip_id) for die in found] == [(n, c) for n in (2, 64) for c in range(dies)]
    assert [die.physical_id for die in found] == list(range(2 * dies))
    names = {"910b4": "910b", "910b1": "910b", "910_93": "910c", "310p3": "310p", "950pr": "950"}
    assert {die.family for die in found} == {names[model]}
    table = parse_table(done[2].out, 0)
    assert isinstance(table, Table)
    assert (table.driver_version, len(table.rows)) == (MODELS[model].driver, 2 * dies)
    assert len({len(line) for line in done[2].out.splitlines()}) == 1


@pytest.mark.parametrize("model", sorted(BOARDS | USAGES))
def test_fields_are_those_of_a_real_npu_smi(model: str, npu_host: NpuHost) -> None:
    npu_host.cards(model=model, cards=[{}, {}])
    for *question, sample in filter(None, (BOARDS.get(model), USAGES.get(model))):
        done = npu_host.smi("info", "-t", *question)
        expected = (SAMPLES / sample).read_text()
        assert done.code == 0
        assert labels(done.out) == labels(expected)
        assert all(line.startswith("\t") and line[31:34] == " : " for line in done.out.splitlines() if line)


@pytest.mark.parametrize(
    ("model", "driver", "sample"),
    [
        ("910b1", "23.0.rc2", "table-a2-910b1-23.0.rc2.txt"),
        ("910_93", "25.3.rc1", "table-a3-25.3.rc1.txt"),
        ("910_93", "26.0.rc2", "table-a3-26.0.rc2-wide.txt"),
        ("950pr", "25.7.rc1", "table-950pr-25.7.rc1.txt"),
    ],
)
def test_tables_have_the_lines_of_a_real_npu_smi(
    model: str, driver: str, sample: str, npu_host: NpuHost
) -> None:
    tenant = [{"processes": [{"pid": 100001, "memory_mib": 12417}]}, {}]
    npu_host.cards(
        model=model, driver=driver, cards=[{"dies": tenant} if driver.startswith("26") else {}, {}]
    )
    printed = npu_host.smi("info").out.splitlines()
    expected = (SAMPLES / sample).read_text().splitlines()
    shape = [re.sub(r"[^|+=-]", "x", line) for line in printed]
    fixed = [
        line
        for line in expected
        if re.match(r"\+|\| (npu-smi|NPU|Chip|No run| {5})|\| 0 +0 +\| 100001", line)
    ]
    for line in expected:
        assert re.sub(r"[^|+=-]", "x", line).count("|") in {each.count("|") for each in shape}
        assert len(line) == len(printed[0])
    assert [line for line in fixed if "0000:" not in line and line not in printed] == []


def test_a_container_sees_its_card_by_its_physical_id(npu_host: NpuHost) -> None:
    script = "npu-smi info -l; npu-smi info -t board -i 0; echo $?; echo /dev/davinci* $ASCEND_DOCKER_RUNTIME"
    done = npu_host.run("sh", "-c", script, card="1")
    assert parse_list(done.out.split("Invalid")[0], 0) == (Card(1, 1),)
    assert done.out.endswith("Invalid card id.\n215\n/dev/davinci1 /dev/davinci_manager True\n")


def test_a_refusal_reaches_the_docker_client(npu_host: NpuHost) -> None:
    done = npu_host.run("true", card="all")
    assert done.code not in (0, 1)
    assert "err: failed to parse device : invalid single device parameter: all" in done.err
    assert "/dev/davinci7: no such file or directory" in npu_host.run("true", card="7").err


@pytest.mark.parametrize(
    ("cards", "code", "line"),
    [
        ({"fault": "not-loaded", "cards": [{}]}, 187, "dcmi module initialize failed. ret is -8005"),
        (
            {"cards": [{"dies": [{"device_share": False, "processes": [{"memory_mib": 1}]}]}]},
            172,
            "dcmi model initialized failed, because the device is used. ret is -8020",
        ),
        ({"fault": "board-type", "cards": [{}]}, 211, "npu get board type failed. ret is -9005"),
    ],
)
def test_trouble_is_told_on_stdout(cards: dict[str, object], code: int, line: str, npu_host: NpuHost) -> None:
    npu_host.cards(**cards)
    done = npu_host.smi("info") if code == 187 else npu_host.run("npu-smi", "info")
    assert (done.code, done.out.splitlines()[-1], done.err) == (code, line, "")


def test_sharing_is_set_on_the_host_and_asks(npu_host: NpuHost) -> None:
    question = ("info", "-t", "device-share", "-i", "0", "-c", "0")
    assert npu_host.smi("set", "-t", "device-share", "-i", "0", "-d", "0").code == 0
    assert npu_host.smi(*question).out == "\tDevice-share Status            : False\n"
    asked = npu_host.smi("set", "-t", "device-share", "-i", "0", "-c", "0", "-d", "1", answer="n\n")
    assert "Are you sure you want to continue setting?(Y/N)" in asked.out
    assert npu_host.smi(*question).out.endswith(": False\n")
    assert "Status                         : OK" in npu_host.smi(*asked_again(), answer="Y\n").out
    assert npu_host.smi(*question).out.endswith(": True\n")


def asked_again() -> tuple[str, ...]:
    return ("set", "-t", "device-share", "-i", "0", "-c", "0", "-d", "1")


def test_a_card_alone_gives_all_that_it_has_and_then_says_that_it_is_full(npu_host: NpuHost) -> None:
    npu_host.cards(cards=[{"dies": [FULL]}])
    assert npu_host.run("/probes/rt", "99").out == "15360 207001\n"
    done = npu_host.run("python3", "/probes/probe.py")
    assert done.code == 0, done.err
    # ACL adds 32 bytes to each, and memory comes in pages of 2 MiB: 59 blocks of 258 MiB
    assert done.out.splitlines() == ["Ascend910B4 15360 15360 15104 207001", "True (1, 0) 0"]


def test_containers_count_against_one_card_and_free_it_when_killed(
    npu_host: NpuHost, engine: PrivateEngine
) -> None:
    npu_host.cards(cards=[{"dies": [FULL]}])
    probes = ("--mount", f"type=bind,src={npu_host.folder},dst=/probes,readonly")
    holder = engine.docker(
        *("run", "-d", "--pull", "never", *RUNTIME, "-e", "ASCEND_VISIBLE_DEVICES=0", *probes, CANN_IMAGE),
        *("sh", "-c", "/probes/rt 40 600"),
    )
    while "10240" not in engine.docker("logs", holder):
        time.sleep(0.1)
    assert npu_host.run("/probes/rt", "99").out == "5120 207001\n"
    table = npu_host.smi("info").out
    assert re.search(r"\| 0 +0 +\| \d+ +\| rt +\| 10240 +\|", table)
    engine.docker("rm", "-f", holder)
    assert npu_host.run("/probes/rt", "99").out == "15360 207001\n"
