"""What the node answers to the Ascend libraries: who sees what, who holds what, who is refused."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from xbtasks.sim.drivers.ascend.answers import Answerer, Status
from xbtasks.sim.drivers.ascend.cards import MIB, Driver, read_driver
from xbtasks.sim.drivers.ascend.peer import Peer
from xbtasks.sim.drivers.inventory import write_part
from xbtasks.sim.drivers.ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path

    from xbtasks.sim.drivers.ledger import Account

OK, NO_MEMORY, NO_CARD = [str(int(status)) for status in (Status.OK, Status.NO_MEMORY, Status.NO_CARD)]
INVALID, BUSY, DENIED = [str(int(status)) for status in (Status.INVALID, Status.BUSY, Status.DENIED)]


@dataclass
class FakePeer:
    """A process in a container; processes with numbers of the same hundred are in one container."""

    pid: int
    devices: frozenset[str]
    on_host: bool = False
    privileged: bool = False

    @property
    def sees_everybody(self) -> bool:
        return self.on_host or self.privileged

    def sees(self, name: str) -> bool:
        return self.on_host or name in self.devices

    def shares_mounts_with(self, pid: int) -> bool:
        return pid // 100 == self.pid // 100

    def number_of(self, pid: int) -> int:
        return pid if self.on_host else pid % 100


@dataclass
class Node:
    """A node with its ledger, as ``node.py`` keeps it."""

    driver: Driver
    ledger: Ledger = field(default_factory=Ledger)
    shares: dict[int, bool] = field(default_factory=dict)

    def process(self, pid: int, *dies: int, **how: bool) -> Process:
        names = {"davinci_manager", *(f"davinci{die}" for die in dies)}
        peer = FakePeer(pid, frozenset(names), **how)
        account = self.ledger.open(pid)
        return Process(self, account, Answerer(self.ledger, account, self.shares, peer))  # type: ignore[arg-type]


@dataclass
class Process:
    """A process that asks."""

    node: Node
    account: Account
    answerer: Answerer

    def ask(self, *question: object) -> list[str]:
        return self.answerer.answer(self.node.driver, [str(part) for part in question])


def node(folder: Path, **values: object) -> Node:
    file = folder / "inventory.json"
    write_part(file, "ascend", values)
    return Node(read_driver(file))


DIE = {"memory_mib": 1000, "system_mib": 100, "context_mib": 50}


@pytest.fixture
def two(tmp_path: Path) -> Node:
    """Return a node with two cards of 900 MiB for programs, whose contexts take 50."""
    return node(tmp_path, cards=[{"dies": [DIE]}, {"dies": [DIE]}])


def test_a_container_sees_the_dies_whose_device_files_it_has(two: Node) -> None:
    answer = two.process(100, 1).ask("hello")
    assert answer[:7] == [OK, "0", "25.5.1", "7.8.0.6.201", "0", "Ascend910B4", "1"]
    assert len(answer) == 8 + 12
    assert answer[8] == "910B4"
    assert answer[14:] == ["1", "0", "1", "1", "1", str(1000 * MIB)]
    assert two.process(200).ask("hello")[6:] == ["0", "0"]
    assert two.process(300, on_host=True).ask("hello")[6:8] == ["2", "2"]


def test_a_container_without_the_management_device_has_no_driver(two: Node) -> None:
    peer = FakePeer(100, frozenset({"davinci0"}))
    answerer = Answerer(two.ledger, two.ledger.open(100), {}, peer)  # type: ignore[arg-type]
    assert answerer.answer(two.driver, ["hello"])[1] == "1"


def test_a_board_that_cannot_be_told_can_be_told_on_the_host(tmp_path: Path) -> None:
    broken = node(tmp_path, fault="board-type", cards=[{}])
    assert broken.process(100, 0).ask("hello")[1] == "2"
    assert broken.process(200, on_host=True).ask("hello")[1] == "0"


def test_memory_is_taken_and_given_by_who_has_it(two: Node) -> None:
    one, other = two.process(100, 0), two.process(200, 0)
    assert one.ask("memory", 0) == [OK, str(100 * MIB), str(900 * MIB), str(900 * MIB)]
    assert one.ask("enter", 0) == [OK]
    assert one.ask("take", 0, 500 * MIB) == [OK]
    assert other.ask("take", 0, 1) == [INVALID]
    assert other.ask("enter", 0) == [OK]
    assert other.ask("take", 0, 301 * MIB) == [NO_MEMORY]
    assert other.ask("take", 0, 300 * MIB) == [OK]
    assert one.ask("memory", 0) == [OK, str(1000 * MIB), str(900 * MIB), "0"]
    assert other.ask("give", 0, 351 * MIB) == [INVALID]
    assert other.ask("give", 0, 300 * MIB) == [OK]
    two.ledger.close(one.account)
    assert other.ask("memory", 0)[3] == str(850 * MIB)
    assert other.ask("leave", 0) == [OK]
    assert other.ask("take", 0, 1) == [INVALID]


def test_a_context_costs_memory_until_it_is_left(two: Node) -> None:
    one = two.process(100, 0)
    assert one.ask("leave", 0) == [INVALID]
    assert one.ask("enter", 0) == [OK]
    assert one.ask("processes", 0) == [OK, "0", str(50 * MIB)]
    assert one.ask("leave", 0) == [OK]
    assert one.ask("processes", 0) == [OK]


def test_a_context_that_does_not_fit_is_refused(two: Node) -> None:
    one = two.process(100, 0)
    assert one.ask("enter", 0) == [OK]
    assert one.ask("take", 0, 810 * MIB) == [OK]
    other = two.process(101, 0)
    assert other.ask("enter", 0) == [NO_MEMORY]
    assert other.ask("processes", 0) == [OK, "0", str(860 * MIB)]


def test_processes_of_ones_container_are_listed_and_all_to_host_and_privileged(tmp_path: Path) -> None:
    shared = node(tmp_path, cards=[{"dies": [{**DIE, "processes": [{"pid": 77, "memory_mib": 9}]}]}])
    for pid in (101, 102, 201):
        assert shared.process(pid, 0).ask("enter", 0) == [OK]
    size = str(50 * MIB)
    assert shared.process(103, 0).ask("processes", 0) == [OK, "1", size, "2", size]
    assert shared.process(203, 0).ask("processes", 0) == [OK, "1", size]
    tenant = ["77", str(9 * MIB)]
    everybody = [OK, *tenant, "101", size, "102", size, "201", size]
    assert shared.process(300, on_host=True).ask("processes", 0) == everybody
    assert (
        len(shared.process(400, 0, privileged=True).ask("processes", 0)) == 1 + 2 * 3
    )  # two have one number


def test_another_card_is_unknown_unless_the_inventory_lets_it_be_read(tmp_path: Path) -> None:
    assert node(tmp_path, cards=[{}, {}]).process(100, 0).ask("memory", 1) == [NO_CARD]
    open_to_all = node(tmp_path, other_cards=True, cards=[{}, {}])
    one = open_to_all.process(100, 1)
    assert one.ask("hello")[6:8] == ["1", "2"]
    assert one.ask("hello")[8 + 6 : 8 + 11] == ["1", "0", "1", "1", "1"]  # its own one first
    assert one.ask("processes", 0) == [OK]


def test_a_die_that_is_not_shared_is_its_first_users_containers(two: Node) -> None:
    first, companion, other = two.process(101, 0), two.process(102, 0), two.process(201, 0)
    host = two.process(301, on_host=True)
    assert first.ask("share", 0) == [OK, "1"]
    assert first.ask("share", 0, 0) == [DENIED]
    assert host.ask("share", 0, 0) == [OK]
    assert first.ask("share", 0) == [OK, "0"]
    assert (first.ask("start"), first.ask("enter", 0)) == ([OK], [OK])
    assert (companion.ask("start"), companion.ask("enter", 0)) == ([OK], [OK])
    assert (other.ask("start"), other.ask("enter", 0)) == ([BUSY], [BUSY])
    assert host.ask("start") == [OK]
    assert host.ask("share", 0, 1) == [OK]
    assert (other.ask("start"), other.ask("enter", 0)) == ([OK], [OK])


def test_a_die_that_is_not_shared_may_be_anothers_from_the_start(tmp_path: Path) -> None:
    die = {"device_share": False, "processes": [{"memory_mib": 1}]}
    taken = node(tmp_path, cards=[{"dies": [die]}, {"dies": [{"device_share": False}]}])
    assert taken.process(100, 0).ask("start") == [BUSY]
    assert taken.process(100, 1).ask("start") == [OK]
    assert taken.process(100, on_host=True).ask("start") == [OK]


def test_work_is_done_in_turn_and_counts_as_load(two: Node) -> None:
    one, other = two.process(100, 0), two.process(200, 0)
    end = int(one.ask("run", 0, 400_000_000)[1])
    assert int(other.ask("run", 0, 100_000_000)[1]) == end + 100_000_000
    assert two.process(300, 1).ask("load", 1) == [OK, "0"]
    assert 0 <= int(one.ask("load", 0)[1]) <= 100


def test_names_are_tenants_or_this_machines(tmp_path: Path) -> None:
    named = node(tmp_path, cards=[{"dies": [{"processes": [{"pid": 999999999, "name": "train"}]}]}])
    one = named.process(100, 0)
    assert one.ask("name", 999999999) == [OK, "train"]
    assert one.ask("name", os.getpid())[0] == OK
    assert one.ask("name", 999999998) == [INVALID]


@pytest.mark.parametrize(
    "question",
    [
        (),
        ("bye",),
        ("bye", 0),
        ("take", 0),
        ("take", 0, "x"),
        ("take", 0, "-1"),
        ("share", 0, 1, 2),
    ],
)
def test_other_questions_are_invalid(question: tuple[object, ...], two: Node) -> None:
    assert two.process(100, 0).ask(*question) == [INVALID]


@pytest.mark.parametrize("question", [("take", 7, 1), ("memory", 7)])
def test_a_die_that_is_not_there_is_no_card(question: tuple[object, ...], two: Node) -> None:
    assert two.process(100, 0).ask(*question) == [NO_CARD]


def test_a_process_of_this_machine_is_on_the_host() -> None:
    me = Peer(os.getpid())
    assert (me.on_host, me.sees("davinci0"), me.sees_everybody) == (True, True, True)
    assert me.shares_mounts_with(os.getpid())
    assert me.number_of(os.getpid()) == os.getpid()


def test_a_process_that_has_ended_sees_nothing() -> None:
    gone = Peer(2**22 + 1)
    assert (gone.on_host, gone.sees("davinci0"), gone.sees_everybody) == (False, False, False)
    assert not gone.shares_mounts_with(os.getpid())
