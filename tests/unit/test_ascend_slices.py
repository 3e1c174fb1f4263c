"""What ascend cases inject, and what they find out about a die first."""

from __future__ import annotations

from pathlib import Path

import pytest

from xbtasks.backends.ascend.board import board_arguments, read_die_id
from xbtasks.backends.ascend.contract import PRELOAD, Slice, mounts, odd_between, shm_name
from xbtasks.backends.ascend.smi import Die
from xbtasks.backends.ascend.tenants import parse_tenants, read_shared, read_tenants
from xbtasks.errors import CannotJudge
from xbtasks.host.step import SectionReply
from xbtasks.hostprobe import Answer

SAMPLES = Path(__file__).parents[1] / "samples" / "npu-smi"


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text()


def die(npu: int = 0, chip: int = 0, name: str = "910B4", phy: int | None = None) -> Die:
    return Die(npu, chip, 0 if phy is None else phy, phy, name)


A3 = Die(1, 1, 3, 3, "Ascend910")
P950 = Die(0, 0, None, 0, "Ascend950PR")


def test_the_configuration_has_six_fields() -> None:
    part = Slice(3, 7, 41, 901, "A-B")
    assert part.config == (
        "physical-npu-id=3\nvirtual-npu-id=7\naicore-quota=41\nmemory-quota=901\nscheduling-policy=2\nshm-id=A-B\n"
    )
    assert part.memory == 901 * 1048576


def test_the_preload_file_names_libdcmi_twice_and_the_library_last() -> None:
    assert PRELOAD == (
        "/usr/local/dcmi/libdcmi.so",
        "/usr/local/Ascend/driver/lib64/driver/libdcmi.so",
        "/opt/enpu/vcann-rt/lib/libvruntime.so",
    )


def test_only_the_shared_memory_is_writable_and_a_round_may_lack_a_configuration() -> None:
    made = mounts("l", "m", "p", "")
    assert [mount.target for mount in made if not mount.read_only] == ["/dev/shm"]
    assert "/etc/enpu/vcann-rt/npu_info.config" not in {mount.target for mount in made}
    assert len(mounts("l", "m", "p", "c")) == len(made) + 1


def test_odd_numbers_are_the_seeds_own() -> None:
    numbers = {odd_between(f"run {at}", 257, 2047, but=1023) for at in range(200)}
    assert len(numbers) > 150
    assert all(number % 2 and 257 <= number <= 2047 and number != 1023 for number in numbers)
    assert odd_between("x", 3, 97, but=20) == odd_between("x", 3, 97, but=20)
    assert odd_between("x", 2, 5, but=3) == 5
    with pytest.raises(ValueError, match="no odd number"):
        odd_between("x", 3, 4, but=3)


@pytest.mark.parametrize(
    ("name", "which", "expected"),
    [
        ("a2-910b-23.0.5-board-i0-c0", die(), "A1B2C3D4 20B03704 4A10C8D4 14CC040A D2102003"),
        ("a3-910_93-board-i1-c1", A3, "B1B2C3D4 20B03704 4A10C8D4 14CC040A D2102004"),
        ("310p3-board-i0-c0", die(name="Ascend 310P3"), "C1B2C3D4 2140A100 E54BDDD4 07CC040A 9B00301F"),
        ("950pr-25.7.rc1-board-i0", P950, "E1B2C3D4 2120D518 77936EE6 80B40A0A D4100003"),
    ],
)
def test_the_die_id_by_layout(name: str, which: Die, expected: str) -> None:
    assert read_die_id(Answer(0, sample(name)), which) == expected
    assert shm_name(expected) == expected.replace(" ", "-")


@pytest.mark.parametrize(
    ("which", "words"), [(A3, "-i 1 -c 1"), (P950, "-i 0"), (die(64, 0, "Ascend 310P3"), "-i 64 -c 0")]
)
def test_a_950_is_asked_without_a_chip(which: Die, words: str) -> None:
    assert board_arguments(which) == ("info", "-t", "board", *words.split())


BOARD = sample("a2-910b-23.0.5-board-i0-c0")


@pytest.mark.parametrize(
    ("answer", "which", "said"),
    [
        (Answer(0, sample("a2-910b-25.5.1-board-i0-noc")), die(), "tells of"),
        (Answer(211, sample("error-board-type-9005")), die(), "ret is -9005"),
        (Answer(172, sample("error-dcmi-8020")), die(), "ret is -8020"),
        (Answer(215, sample("error-invalid-card")), die(), "Invalid card id"),
        (Answer(0, ""), die(), "nothing"),
        (None, die(), "cut off"),
        (Answer(0, BOARD), die(1), "tells of 0"),
        (Answer(0, BOARD), die(0, 1), "tells of 0"),
        (Answer(0, BOARD), die(name="Ascend910A"), "nobody has described"),
        (Answer(0, BOARD.replace("VDie ID", "XDie ID")), die(), "no VDie ID"),
        (Answer(0, BOARD.replace(" D2102003", "")), die(), "no VDie ID of five words"),
        (Answer(0, BOARD.replace("A1B2C3D4 20B03704 4A10C8D4 14CC040A D2102003", "NA")), die(), ": NA"),
        (
            Answer(0, BOARD.replace("A1B2C3D4 20B03704 4A10C8D4 14CC040A D2102003", " ".join(["0" * 8] * 5))),
            die(),
            "00000000",
        ),
    ],
)
def test_no_die_id_is_never_made_up(answer: Answer | None, which: Die, said: str) -> None:
    with pytest.raises(CannotJudge, match=said):
        read_die_id(answer, which)


def test_a_process_on_the_other_chip_of_a_card_is_nobodys_business() -> None:
    table = sample("table-a3-26.0.rc2-wide")
    assert [str(tenant) for tenant in parse_tenants(table, Die(0, 0, 0, 0, "Ascend910"))] == [
        "python3 (100001)"
    ]
    assert parse_tenants(table, Die(0, 1, 1, 1, "Ascend910")) == ()


def test_a_950_names_no_chip() -> None:
    table = sample("table-950pr-25.7.rc1")
    assert parse_tenants(table, P950) == ()
    rule = "+========+\n| NPU ID | Process id | Process name | Process memory(MB) |\n"
    busy = (
        table[: table.index("| No running")]
        + rule
        + "| 0      | 77         | python       | 900                |\n"
    )
    assert [tenant.pid for tenant in parse_tenants(busy, P950)] == ["77"]


@pytest.mark.parametrize("table", ["table-a2-910b1-23.0.rc2", "table-a3-25.3.rc1"])
def test_a_table_without_processes_says_nothing_of_them(table: str) -> None:
    with pytest.raises(CannotJudge, match="nothing of the processes"):
        parse_tenants(sample(table), die())


def test_a_row_of_processes_that_cant_be_read_is_not_passed_over() -> None:
    table = sample("table-a3-26.0.rc2-wide").replace("| 100001  ", "| 1000?1  ")
    with pytest.raises(CannotJudge, match="not a row"):
        parse_tenants(table, Die(0, 0, 0, 0, "Ascend910"))


def reply(text: str, errors: str = "") -> SectionReply:
    return SectionReply("tenants", 0, text.encode(), errors.encode(), 0, False)


def test_a_left_over_file_is_no_tenant_and_a_process_is() -> None:
    left = read_shared(reply("file /dev/shm/A-B\nscanned yes\n"))
    assert left.exists
    assert not left.users
    live = read_shared(
        reply(
            "file /dev/shm/A-B\nuser 4242/maps\nunseen grep: /proc/7/maps: Permission denied\nscanned yes\n"
        )
    )
    assert live.users == ("4242",)
    assert live.unseen == 1
    with pytest.raises(CannotJudge, match="can't be told"):
        read_shared(reply("file /dev/shm/A-B\n", "stat: lost"))


def test_npu_smi_that_fails_tells_nobody() -> None:
    with pytest.raises(CannotJudge, match="-8005"):
        read_tenants(reply("found /x/npu-smi\ntable.status 187\ntable ret is -8005\n"), die())
    with pytest.raises(CannotJudge, match="usual places"):
        read_tenants(reply("absent npu-smi\n"), die())
