"""The inventory of the simulated host, its NVIDIA part, and what the node answers for it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xbtasks.errors import Refused
from xbtasks.sim.drivers.ascend.cards import read_driver as read_ascend
from xbtasks.sim.drivers.ascend.injection import device_files as ascend_files
from xbtasks.sim.drivers.devicefiles import show_device_files
from xbtasks.sim.drivers.inventory import read_part, write_part
from xbtasks.sim.drivers.ledger import Ledger
from xbtasks.sim.drivers.nvidia.answers import SAMPLE_NS, Answerer, Status
from xbtasks.sim.drivers.nvidia.cards import MIB, MODELS, Card, Driver, read_driver
from xbtasks.sim.drivers.nvidia.injection import device_files as nvidia_files

if TYPE_CHECKING:
    from collections.abc import Callable

SECOND = 1_000_000_000


def driver_of(folder: Path, **values: object) -> Driver:
    write_part(folder / "inventory.json", "nvidia", values)
    return read_driver(folder / "inventory.json")


def card_of(folder: Path, **values: object) -> Card:
    return driver_of(folder, cards=[values]).cards[0]


def test_a_host_without_an_inventory_has_two_cards_of_its_own_uuids(tmp_path: Path) -> None:
    driver = read_driver(tmp_path / "inventory.json")
    assert [(card.index, card.model.name, card.memory // MIB) for card in driver.cards] == [
        (0, "NVIDIA GeForce RTX 4090", 49140),
        (1, "NVIDIA GeForce RTX 4090", 49140),
    ]
    assert driver.cards[0].uuid != driver.cards[1].uuid
    assert driver == read_driver(tmp_path / "inventory.json")
    assert (driver.fault, driver.runtime) == ("none", "legacy")


def test_an_inventory_that_says_nothing_of_a_vendor_leaves_its_default(tmp_path: Path) -> None:
    write_part(tmp_path / "inventory.json", "other", {"cards": []})
    assert len(read_driver(tmp_path / "inventory.json").cards) == 2


def test_writing_one_part_keeps_the_others(tmp_path: Path) -> None:
    file = tmp_path / "inventory.json"
    write_part(file, "one", {"cards": []})
    write_part(file, "two", {"a": 1})
    write_part(file, "one", {"b": 2})
    assert json.loads(file.read_text()) == {"one": {"b": 2}, "two": {"a": 1}}
    assert [path.name for path in tmp_path.iterdir()] == ["inventory.json"]


def test_no_cards_is_possible(tmp_path: Path) -> None:
    assert driver_of(tmp_path, cards=[]).cards == ()
    assert driver_of(tmp_path).cards == ()


def test_what_a_card_says_goes_before_its_model(tmp_path: Path) -> None:
    card = card_of(tmp_path, model="h200", memory_mib=1000, context_mib=10, uuid="GPU-x", mig=True)
    assert (card.memory, card.context, card.uuid, card.mig) == (1000 * MIB, 10 * MIB, "GPU-x", True)
    assert card.reserved == MODELS["h200"].reserved_mib * MIB
    assert card.for_programs == card.memory - card.reserved


def test_tenants_use_a_card(tmp_path: Path) -> None:
    card = card_of(tmp_path, processes=[{"pid": 7, "name": "x", "memory_mib": 5, "type": "G"}, {}])
    assert [(tenant.pid, tenant.memory, tenant.type) for tenant in card.tenants] == [
        (7, 5 * MIB, "G"),
        (4242, 0, "C"),
    ]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"cards": {}}, "cards is not a list"),
        ({"cards": [1]}, "cards[0]: not an object"),
        ({"cards": [{"model": "b300"}]}, 'cards[0]: model is "b300", not one of rtx-4090, a100, h200, gb10'),
        ({"cards": [{"memory": 4}]}, "cards[0]: unknown: memory"),
        ({"cards": [{"memory_mib": "4"}]}, 'cards[0]: memory_mib is "4", not a whole number'),
        ({"cards": [{"memory_mib": -4}]}, "cards[0]: memory_mib is -4, not a whole number"),
        ({"cards": [{"mig": 1}]}, "cards[0]: mig is 1, not true or false"),
        ({"cards": [{"memory_mib": True}]}, "cards[0]: memory_mib is true, not a whole number"),
        ({"cards": [{"mig": True}]}, "cards[0]: NVIDIA GeForce RTX 4090 has no MIG"),
        ({"cards": [{"uuid": "a"}, {"uuid": "a"}]}, "two cards have the same uuid"),
        ({"cards": [{"processes": [{"memory_mib": 50000}]}]}, "its processes hold more memory than there is"),
        ({"cards": [{"processes": [{"type": "X"}]}]}, 'processes[0]: type is "X", not one of C, G, C+G'),
        ({"fault": "odd"}, 'fault is "odd", not one of none, not-loaded, mismatch, unknown-error'),
        ({"cuda": "12"}, "cuda is not a version such as 12.8"),
        ({"drivers": "1"}, "unknown: drivers"),
    ],
)
def test_an_inventory_that_is_wrong_is_refused_in_one_line(
    values: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(Refused) as refused:
        driver_of(tmp_path, **values)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "\x00"])
def test_a_file_that_is_no_document_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "inventory.json").write_text(text)
    with pytest.raises(Refused):
        read_part(tmp_path / "inventory.json", "nvidia")


class Process:
    """A process that asks the node; it sees all cards unless told otherwise."""

    def __init__(self, driver: Driver, ledger: Ledger, pid: int, sees: Callable[[int], bool] = bool) -> None:
        self.driver = driver
        self.ledger = ledger
        self.account = ledger.open(pid)
        self.answerer = Answerer(ledger, self.account, sees)

    def ask(self, *question: object) -> list[str]:
        return self.answerer.answer(self.driver, [str(field) for field in question])

    def status(self, *question: object) -> Status:
        return Status(int(self.ask(*question)[0]))


@pytest.fixture
def host(tmp_path: Path) -> Callable[[int], Process]:
    """Return a maker of processes on a host with a 4090 and an H200, whose contexts take 300 MiB."""
    cards = [{"model": "rtx-4090", "context_mib": 300}, {"model": "h200", "context_mib": 300}]
    driver, ledger = driver_of(tmp_path, cards=cards), Ledger()
    return lambda pid: Process(driver, ledger, pid, lambda index: True)


def test_only_cards_whose_device_file_is_seen_are_there(tmp_path: Path) -> None:
    driver = driver_of(tmp_path, cards=[{}, {}, {}])
    process = Process(driver, Ledger(), 1, lambda index: index == 2)
    answer = process.ask("hello")
    assert answer[:6] == ["0", "0", "570.195.03", "570.195", "12080", "1"]
    assert answer[6] == driver.cards[2].uuid
    assert answer[9] == "2"
    assert process.status("memory", 2) is Status.OK
    assert process.status("memory", 0) is Status.NO_CARD


def test_memory_counts_over_processes_and_comes_back_with_them(host: Callable[[int], Process]) -> None:
    one, two = host(10), host(11)
    assert one.status("take", 0, 100 * MIB) is Status.OK
    assert two.status("take", 0, 50 * MIB) is Status.OK
    assert one.ask("memory", 0) == ["0", str(150 * MIB)]
    assert one.ask("memory", 1) == ["0", "0"]
    assert one.status("give", 0, 30 * MIB) is Status.OK
    assert two.ask("memory", 0) == ["0", str(120 * MIB)]
    one.ledger.close(one.account)
    assert two.ask("memory", 0) == ["0", str(50 * MIB)]


def test_a_card_gives_what_programs_can_have_and_not_a_byte_more(host: Callable[[int], Process]) -> None:
    process = host(10)
    room = process.driver.cards[0].for_programs
    assert process.status("take", 0, room) is Status.OK
    assert process.status("take", 0, 1) is Status.NO_MEMORY
    assert process.status("enter", 0) is Status.NO_MEMORY
    assert process.status("take", 1, room) is Status.OK


def test_what_wasnt_taken_cant_be_given_back(host: Callable[[int], Process]) -> None:
    one, two = host(10), host(11)
    assert one.status("take", 0, 5) is Status.OK
    assert two.status("give", 0, 5) is Status.INVALID
    assert two.status("leave", 0) is Status.INVALID


def test_a_context_lists_its_process_with_what_it_takes(host: Callable[[int], Process]) -> None:
    process = host(10)
    assert process.ask("processes", 0, "C") == ["0"]
    assert process.status("take", 0, MIB) is Status.OK
    assert process.ask("processes", 0, "C") == ["0"]
    assert process.status("enter", 0) is Status.OK
    assert process.ask("processes", 0, "C") == ["0", "10", str(301 * MIB)]
    assert process.status("leave", 0) is Status.OK
    assert process.ask("processes", 0, "C") == ["0"]
    assert process.ask("memory", 0) == ["0", str(MIB)]


def test_two_connections_of_a_process_are_one_process(host: Callable[[int], Process]) -> None:
    cuda, nvml = host(10), host(10)
    assert cuda.status("enter", 0) is Status.OK
    assert nvml.status("enter", 0) is Status.OK
    assert nvml.ask("processes", 0, "C") == ["0", "10", str(600 * MIB)]


def test_tenants_are_listed_by_what_they_do(tmp_path: Path) -> None:
    tenants = [{"pid": 5, "memory_mib": 1, "type": "C+G"}, {"pid": 6, "type": "G"}, {"pid": 7, "name": "job"}]
    process = Process(driver_of(tmp_path, cards=[{"processes": tenants}]), Ledger(), 1, lambda index: True)
    assert process.ask("processes", 0, "C") == ["0", "5", str(MIB), "7", "0"]
    assert process.ask("processes", 0, "G") == ["0", "5", str(MIB), "6", "0"]
    assert process.ask("memory", 0) == ["0", str(MIB)]
    assert process.ask("name", 7) == ["0", "job"]
    room = process.driver.cards[0].for_programs
    assert process.status("take", 0, room) is Status.NO_MEMORY
    assert process.status("take", 0, room - MIB) is Status.OK


def test_a_lost_card_answers_nothing(tmp_path: Path) -> None:
    process = Process(driver_of(tmp_path, cards=[{"fault": "lost"}]), Ledger(), 1, lambda index: True)
    assert process.status("memory", 0) is Status.LOST
    assert process.status("ran", 0, 5, 6) is Status.LOST


@pytest.mark.parametrize(
    "question",
    [
        "",
        "hello 1",
        "memory",
        "memory x",
        "memory 9",
        "take 0",
        "take 0 -1",
        "take 0 1 2",
        "odd 0",
        "name x",
        "processes 0",
        "processes x C",
        "ran",
        "ran 0 5",
        "ran 0 6 5",
    ],
)
def test_a_question_that_makes_no_sense_gets_an_answer(question: str, host: Callable[[int], Process]) -> None:
    assert host(10).ask(*question.split(" "))[0] in {str(Status.INVALID), str(Status.NO_CARD)}


def test_kernels_follow_one_another_whoever_launches_them() -> None:
    ledger = Ledger()
    one, two = ledger.open(1), ledger.open(2)
    assert ledger.run(one, "a", SECOND, 10) == SECOND + 10
    assert ledger.run(two, "a", SECOND, 10) == SECOND + 20
    assert ledger.run(one, "a", SECOND + 5, 10) == SECOND + 30
    assert ledger.run(two, "b", SECOND, 10) == SECOND + 10


def test_a_kernel_that_comes_a_little_late_follows_at_once() -> None:
    ledger = Ledger()
    account, late = ledger.open(1), 9_000_000
    assert ledger.run(account, "a", SECOND, 10) == SECOND + 10
    assert ledger.run(account, "a", SECOND + 10 + late, 10) == SECOND + 20
    assert ledger.run(account, "a", SECOND + 21 + late, 10) == SECOND + 31 + late


def test_what_a_process_queued_goes_with_it() -> None:
    ledger = Ledger()
    one, two = ledger.open(1), ledger.open(2)
    ledger.run(one, "a", SECOND, SECOND)
    ledger.close(one)
    assert ledger.last_end("a") == 0
    assert ledger.run(two, "a", SECOND + 10, 5) == ledger.last_end("a") == SECOND + 15


def test_how_long_a_card_was_busy_is_known_by_process() -> None:
    ledger = Ledger()
    one, two = ledger.open(1), ledger.open(2)
    ledger.run(one, "a", SECOND, 100)
    ledger.run(two, "a", SECOND, 50)
    ledger.run(one, "a", 2 * SECOND, 100)
    assert ledger.busy("a", 0, 3 * SECOND) == {1: 200, 2: 50}
    assert ledger.busy("a", SECOND + 50, SECOND + 125) == {1: 50, 2: 25}
    assert ledger.busy("a", SECOND + 150, 2 * SECOND) == {1: 0, 2: 0}
    assert ledger.busy("b", 0, 3 * SECOND) == {}


def test_what_is_long_past_is_forgotten() -> None:
    ledger = Ledger()
    account = ledger.open(1)
    for start in range(0, 100 * SECOND, SECOND):
        ledger.run(account, "a", start, 10)
    assert ledger.busy("a", 0, 100 * SECOND)[1] <= 50


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the time in nanoseconds, to be set; the real time clock is 1000 s ahead of it."""
    now = [10 * SECOND]
    monkeypatch.setattr("time.monotonic_ns", lambda: now[0])
    monkeypatch.setattr("time.time_ns", lambda: now[0] + 1000 * SECOND)
    return now


def test_utilization_is_that_of_the_last_whole_sample(
    host: Callable[[int], Process], clock: list[int]
) -> None:
    one, two = host(10), host(11)
    clock[0] = 60 * SAMPLE_NS
    quarter = SAMPLE_NS // 4
    assert one.ask("ran", 0, clock[0], clock[0] + quarter) == []
    assert two.ask("ran", 0, clock[0] + quarter, clock[0] + 3 * quarter) == []
    assert one.ask("utilization", 0, 0) == ["0"]
    clock[0] = 61 * SAMPLE_NS
    at = str((clock[0] + 1000 * SECOND) // 1000)
    assert one.ask("utilization", 0, 0) == ["0", "10", at, "25", "11", at, "50"]
    assert one.ask("load", 0) == ["0", "75"]
    assert one.ask("utilization", 0, at) == ["0"]
    clock[0] = 62 * SAMPLE_NS
    assert one.ask("utilization", 0, 0) == ["0"]
    assert one.ask("load", 0) == ["0", "0"]


def test_a_card_without_utilization_by_process_has_the_newer_call(
    host: Callable[[int], Process], clock: list[int]
) -> None:
    process = host(10)
    card = replace(process.driver.cards[0], process_utilization=False)
    process.driver = replace(process.driver, cards=(card, *process.driver.cards[1:]))
    clock[0] = 60 * SAMPLE_NS
    process.ask("ran", 0, clock[0], clock[0] + SAMPLE_NS)
    clock[0] = 61 * SAMPLE_NS
    assert process.status("utilization", 0, 0) is Status.UNSUPPORTED
    assert process.ask("busy", 0, 0)[1::2] == ["10", "100"]


def test_device_files_follow_the_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: dict[str, int] = {}

    def make(path: Path, mode: int, device: int) -> None:
        made[path.name] = device
        path.touch()

    monkeypatch.setattr("os.mknod", make)
    ascend = read_ascend(tmp_path / "inventory.json")
    folder = tmp_path / "root/dev"
    show_device_files(folder, driver_of(tmp_path, cards=[{}, {}]), ascend)
    everything = {path.name for path in folder.iterdir()}
    assert {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "davinci0", "davinci_manager"} <= everything
    assert everything == set(made)
    show_device_files(folder, driver_of(tmp_path, cards=[{}]), ascend)
    assert {path.name for path in folder.iterdir()} == everything - {"nvidia1"}
    show_device_files(folder, driver_of(tmp_path, cards=[{}], fault="not-loaded"), ascend)
    assert not any(path.name.startswith("nvidia") for path in folder.iterdir())
    assert len(made) == len(everything)


def test_no_device_file_has_the_number_of_a_real_driver(tmp_path: Path) -> None:
    numbers = nvidia_files(driver_of(tmp_path, cards=[{}])) | ascend_files(read_ascend(tmp_path / "none"))
    characters = Path("/proc/devices").read_text().partition("Block devices:")[0].splitlines()
    taken = {int(line.split()[0]) for line in characters if line.strip()[:1].isdigit()}
    assert taken.isdisjoint(major for major, _ in numbers.values())
    assert all(major >= 400 for major, _ in numbers.values())
