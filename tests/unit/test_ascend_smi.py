from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.backends.ascend.smi import Card, Die, Table, TableRow, parse_list, parse_map, parse_table
from xbtasks.hostprobe import Trouble, Unusable

SAMPLES = Path(__file__).parents[1] / "samples" / "npu-smi"
PARSERS = (parse_list, parse_map, parse_table)


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.txt").read_text()


def cards(name: str) -> tuple[Card, ...]:
    found = parse_list(sample(name), 0)
    assert not isinstance(found, Unusable), found
    return found


def dies(name: str) -> tuple[Die, ...]:
    found = parse_map(sample(name), 0)
    assert not isinstance(found, Unusable), found
    return found


def table(name: str) -> Table:
    found = parse_table(sample(name), 0)
    assert not isinstance(found, Unusable), found
    return found


def test_list_of_eight_cards() -> None:
    assert cards("list-8-cards") == tuple(Card(number, 1) for number in range(8))


def test_list_in_a_container_keeps_the_physical_npu_id() -> None:
    assert cards("list-container-card1-only") == (Card(1, 1),)


def test_list_that_was_cut_short_is_not_believed() -> None:
    assert parse_list(sample("list-cut-short"), 0) == Unusable(
        Trouble.UNREADABLE, "npu-smi counts 16 cards and lists 2"
    )


def test_list_with_more_to_say_about_a_card() -> None:
    text = sample("list-container-card1-only").replace(
        "\tChip Count",
        "\tSerial Number                  :\n\tProduct Name                   : X 9\n\tChip Count",
    )
    assert parse_list(text, 0) == (Card(1, 1),)


@pytest.mark.parametrize(
    "text", ["NPU ID                         : one", "Chip Count : ", "3 cards", "Chip Count : 1"]
)
def test_list_with_a_line_that_cant_be_read(text: str) -> None:
    found = parse_list(sample("list-8-cards") + f"\t{text}\n", 0)
    assert isinstance(found, Unusable)
    assert found.trouble is Trouble.UNREADABLE


def test_list_with_no_card() -> None:
    assert parse_list("\tTotal Count                    : 0\n\n", 0) == Unusable(
        Trouble.NO_DEVICE, "npu-smi counts 0 cards"
    )


def test_map_of_910b_has_four_columns_and_a_mcu_is_no_die() -> None:
    assert dies("map-a2-4col") == (
        Die(0, 0, logic_id=0, phy_id=None, chip_name="Ascend 910B4"),
        Die(1, 0, logic_id=1, phy_id=None, chip_name="Ascend 910B4"),
    )
    assert [die.physical_id for die in dies("map-a2-4col")] == [0, 1]
    assert {die.family for die in dies("map-a2-4col")} == {"910b"}


def test_map_of_910_93_has_two_dies_a_card_and_their_physical_ids() -> None:
    found = dies("map-a3-5col")
    assert [(die.npu_id, die.chip_id, die.physical_id) for die in found] == [
        (0, 0, 0),
        (0, 1, 1),
        (1, 0, 2),
        (1, 1, 3),
    ]
    assert {die.family for die in found} == {"910c"}


def test_map_of_950_has_slots_and_no_logic_id() -> None:
    assert dies("map-950-5col-slot") == (
        Die(0, 0, logic_id=None, phy_id=0, chip_name="Ascend950PR"),
        Die(1, 0, logic_id=None, phy_id=1, chip_name="Ascend950PR"),
    )
    assert {die.family for die in dies("map-950-5col-slot")} == {"950"}


def test_map_of_310p_jumps_in_npu_ids_and_not_in_physical_ids() -> None:
    found = dies("map-310p-noncontiguous")
    assert [(die.npu_id, die.physical_id) for die in found] == [(4, 0), (64, 1)]
    assert {die.family for die in found} == {"310p"}


def test_driver_noise_before_the_map_is_not_read() -> None:
    assert dies("map-a2-after-driver-noise") == dies("map-a2-4col")


@pytest.mark.parametrize(
    ("physical", "sliceable"), [(0, True), (15, True), (16, False), (64, False), (None, False)]
)
def test_physical_ids_that_the_configuration_takes(physical: int | None, sliceable: bool) -> None:
    assert Die(0, 0, None, physical, "Ascend950PR").sliceable is sliceable


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("Ascend 910B3", "910b"),
        ("Ascend910B1", "910b"),
        ("Ascend910_9392", "910c"),
        ("Ascend950DT", "950"),
        ("Ascend 310P3", "310p"),
        ("Ascend 310", ""),
        ("Ascend910", ""),  # without a physical id it is not an A3
        ("Ascend 910A", ""),
        ("Something", ""),
    ],
)
def test_family_of_a_chip(name: str, family: str) -> None:
    assert Die(0, 0, logic_id=0, phy_id=None, chip_name=name).family == family


def test_table_of_910b() -> None:
    assert table("table-a2-910b1-23.0.rc2") == Table(
        "23.0.rc2", "23.0.rc2", (TableRow(0, 0, "910B1", "OK", "0000:C1:00.0"),)
    )
    assert [row.name for row in table("table-910B4-25.5.3").rows] == ["910B4", "910B4"]


def test_table_of_310p() -> None:
    rows = table("table-310p3-23.0.rc3").rows
    assert [(row.npu_id, row.chip_id, row.name) for row in rows] == [(0, 0, "310P3"), (64, 0, "310P3")]
    rows = table("table-310P3-24.1.rc2").rows
    assert [(row.npu_id, row.chip_id) for row in rows] == [(1, 0), (1, 1)]


def test_table_of_910_93_without_a_space_in_its_memory_column() -> None:
    found = table("table-a3-25.3.rc1")
    assert found.driver_version == "25.3.rc1"
    assert [(row.npu_id, row.chip_id) for row in found.rows] == [(0, 0), (0, 1), (1, 0)]


def test_process_rows_are_no_chips() -> None:
    assert len(table("table-a3-26.0.rc2-wide").rows) == 2


def test_table_of_950_has_no_chip_column() -> None:
    assert table("table-950pr-25.7.rc1").rows == (TableRow(0, None, "Ascend950PR", "OK", "0000:61:00.0"),)


def test_health_is_read() -> None:
    text = sample("table-a2-910b1-23.0.rc2").replace("| OK   ", "| Alarm")
    found = parse_table(text, 0)
    assert isinstance(found, Table)
    assert found.rows[0].health == "Alarm"


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    ("name", "trouble"),
    [
        ("error-dcmi-8005", Trouble.NO_DRIVER),
        ("error-dcmi-8020", Trouble.BUSY),
        ("error-board-type-9005", Trouble.UNSUPPORTED),
        ("error-invalid-card", Trouble.NO_DEVICE),
        ("error-invalid-chip", Trouble.NO_DEVICE),
    ],
)
@pytest.mark.parametrize("status", [0, 1, 172, 187, 211, 215])
def test_errors_come_on_stdout_with_any_exit_status(
    parse: type[parse_list], name: str, trouble: Trouble, status: int
) -> None:
    found = parse(sample(name), status)
    assert isinstance(found, Unusable)
    assert found.trouble is trouble
    assert found.text == " ".join(sample(name).split())


@pytest.mark.parametrize("parse", PARSERS)
def test_missing_library_is_named(parse: type[parse_list]) -> None:
    found = parse("", 127, sample("stderr-libc_sec-missing"))
    assert isinstance(found, Unusable)
    assert found.trouble is Trouble.NO_LIBRARY
    assert found.text.startswith("libc_sec.so is missing")


@pytest.mark.parametrize("parse", PARSERS)
def test_an_unknown_code_is_a_failure_and_silence_too(parse: type[parse_list]) -> None:
    assert parse("npu get something failed. ret is -8111\n", 1) == Unusable(
        Trouble.FAILED, "npu get something failed. ret is -8111"
    )
    assert parse("", 7) == Unusable(Trouble.FAILED, "it said nothing and ended with 7")
    unread = parse("", 0)
    assert isinstance(unread, Unusable)
    assert unread.trouble is Trouble.UNREADABLE


@pytest.mark.parametrize(
    ("parse", "name"),
    [(parse_list, "list-8-cards"), (parse_map, "map-a3-5col"), (parse_table, "table-910B4-25.5.3")],
)
def test_good_looking_text_with_a_bad_exit_status_is_not_believed(parse: type[parse_list], name: str) -> None:
    found = parse(sample(name), 1)
    assert isinstance(found, Unusable)
    assert found.trouble is Trouble.FAILED


def test_a_list_is_no_map_and_a_map_no_table() -> None:
    for parse, name in (
        (parse_map, "list-8-cards"),
        (parse_table, "map-a2-4col"),
        (parse_list, "map-a2-4col"),
    ):
        found = parse(sample(name), 0)
        assert isinstance(found, Unusable)
        assert found.trouble is Trouble.UNREADABLE


def test_digits_in_a_table_never_become_cards() -> None:
    for path in SAMPLES.glob("table-*.txt"):
        assert isinstance(parse_list(path.read_text(), 0), Unusable)
        assert isinstance(parse_map(path.read_text(), 0), Unusable)


def broken(line: str, instead: str, name: str = "map-a3-5col") -> str:
    lines = sample(name).splitlines()
    assert any(line in one for one in lines)
    return "\n".join(one.replace(line, instead) for one in lines)


@pytest.mark.parametrize(
    "text",
    [
        broken("Ascend910", "  "),  # a name is missing
        broken("Chip Phy-ID", "Chip Other"),
        broken("1                              1                              3", "1    x    3"),
        broken("3                              3 ", "3                              - "),
        broken("3                              3 ", "3                              2 "),
        sample("map-a2-4col")
        + "\t1                              0                              2   Ascend 910B4\n",
        sample("map-a3-5col")
        + "\t1                              0                              2   2   Ascend910\n",
        sample("map-a3-5col") + "dcmi says something\n",
    ],
)
def test_rows_of_a_map_that_are_not_whole_are_not_believed(text: str) -> None:
    found = parse_map(text, 0)
    assert isinstance(found, Unusable)
    assert found.trouble is Trouble.UNREADABLE


def test_an_unknown_logic_id_beside_a_known_physical_one() -> None:
    found = parse_map(broken("3                              3 ", "-                              3 "), 0)
    assert isinstance(found, tuple)
    assert (found[3].logic_id, found[3].physical_id) == (None, 3)


def test_map_of_a_mcu_alone_has_no_die() -> None:
    text = sample("map-a2-4col").replace("Ascend 910B4", "Mcu         ")
    assert parse_map(text, 0) == Unusable(Trouble.NO_DEVICE, "npu-smi's map has no chip")


def test_table_that_ends_inside_a_pair_of_rows() -> None:
    text = "\n".join(sample("table-910B4-25.5.3").splitlines()[:-2])
    found = parse_table(text, 0)
    assert isinstance(found, Unusable)
    assert found.trouble is Trouble.UNREADABLE


def test_table_without_a_chip() -> None:
    text = "\n".join(sample("table-910B4-25.5.3").splitlines()[:6])
    assert parse_table(text, 0) == Unusable(Trouble.NO_DEVICE, "npu-smi's table has no chip")


@given(st.sampled_from(PARSERS), st.text(), st.integers(0, 255), st.text())
def test_any_text_gives_a_typed_result(
    parse: type[parse_list], stdout: str, status: int, stderr: str
) -> None:
    found = parse(stdout, status, stderr)
    if isinstance(found, Unusable):
        assert found.text.isprintable()
    else:
        assert status == 0


@given(st.sampled_from(PARSERS), st.sampled_from(sorted(SAMPLES.glob("*.txt"))), st.data())
def test_a_damaged_sample_gives_a_typed_result(
    parse: type[parse_list], path: Path, data: st.DataObject
) -> None:
    text = path.read_text()
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 40))
    found = parse(text[:at] + data.draw(st.text(max_size=8)) + text[at + length :], 0)
    assert isinstance(found, Unusable | Table | tuple)
