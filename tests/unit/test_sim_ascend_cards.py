"""The inventory's Ascend part: what it says of cards, and what it may not say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from xbtasks.errors import Refused
from xbtasks.sim.drivers.ascend.cards import MIB, Driver, read_driver
from xbtasks.sim.drivers.ascend.models import MODELS, Layout
from xbtasks.sim.drivers.inventory import write_part

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, **values: object) -> Driver:
    file = folder / "inventory.json"
    write_part(file, "ascend", values)
    return read_driver(file)


def test_a_host_without_an_inventory_has_two_910b_cards(tmp_path: Path) -> None:
    driver = read_driver(tmp_path / "inventory.json")
    assert (driver.model, driver.fault, driver.other_cards) == (MODELS["910b4"], "none", False)
    assert [(die.npu_id, die.chip_id, die.phy_id, die.logic_id) for die in driver.dies] == [
        (0, 0, 0, 0),
        (1, 0, 1, 1),
    ]
    assert all(die.device_share and die.health == "OK" and not die.tenants for die in driver.dies)


def test_an_empty_list_of_cards_is_no_card(tmp_path: Path) -> None:
    assert read(tmp_path, cards=[]).dies == ()


@pytest.mark.parametrize("model", sorted(MODELS))
def test_a_card_is_as_its_model_unless_it_says_otherwise(model: str, tmp_path: Path) -> None:
    driver = read(tmp_path, model=model, cards=[{}, {}])
    kind = MODELS[model]
    assert (driver.version, driver.firmware) == (kind.driver, kind.firmware)
    assert len(driver.dies) == 2 * kind.dies
    for number, die in enumerate(driver.dies):
        assert (die.logic_id, die.phy_id) == (number, number)
        assert (die.npu_id, die.chip_id, die.chips) == (number // kind.dies, number % kind.dies, kind.dies)
        assert (die.memory, die.system, die.context) == (
            kind.memory_mib * MIB,
            kind.system_mib * MIB,
            kind.context_mib * MIB,
        )


def test_only_a3_has_two_dies_and_only_the_310p_another_device_name() -> None:
    assert {name for name, model in MODELS.items() if model.dies == 2} == {"910_93"}
    names = {model.layout: model.device_name for model in MODELS.values()}
    assert names == {
        Layout.A2: "Ascend910",
        Layout.A3: "Ascend910",
        Layout.P310: "Ascend310P",
        Layout.A5: "Ascend910",
    }


def test_every_field_can_be_given(tmp_path: Path) -> None:
    die: dict[str, Any] = {
        "phy_id": 5,
        "die_id": "A B",
        "ndie_id": "C D",
        "memory_mib": 100,
        "system_mib": 10,
        "context_mib": 0,
        "device_share": False,
        "health": "Alarm",
        "processes": [{"pid": 7, "name": "x", "memory_mib": 20}],
    }
    driver = read(
        tmp_path,
        model="310p3",
        driver="1.2",
        firmware="3.4",
        fault="board-type",
        other_cards=True,
        cards=[{"npu_id": 64, "dies": [die]}],
    )
    assert (driver.version, driver.firmware, driver.fault) == ("1.2", "3.4", "board-type")
    assert driver.other_cards
    (found,) = driver.dies
    assert (found.npu_id, found.chip_id, found.phy_id, found.logic_id) == (64, 0, 5, 0)
    assert (found.die_id, found.ndie_id, found.health) == ("A B", "C D", "Alarm")
    assert (found.context, found.device_share, found.for_programs) == (0, False, 70 * MIB)
    assert [(t.pid, t.name, t.memory) for t in found.tenants] == [(7, "x", 20 * MIB)]
    assert (found.account, found.device) == ("npu 5", "davinci5")


def test_die_ids_are_five_words_of_their_own_and_stay(tmp_path: Path) -> None:
    dies = read(tmp_path, model="910_93", cards=[{}, {}]).dies
    assert dies == read_driver(tmp_path / "inventory.json").dies
    (tmp_path / "other").mkdir()
    others = read(tmp_path / "other", model="910_93", cards=[{}, {}]).dies
    assert not {die.die_id for die in dies} & {die.die_id for die in others}
    ids = [words for die in dies for words in (die.die_id, die.ndie_id)]
    assert all(re.fullmatch(r"(?:[0-9A-F]{8} ){4}[0-9A-F]{8}", words) for words in ids)
    assert len(set(ids)) == len(ids)
    assert len({die.bus for die in dies}) == len(dies)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"model": "910"}, "model is"),
        ({"fault": "broken"}, "fault is"),
        ({"cards": {}}, "cards is not a list"),
        ({"card": []}, "unknown: card"),
        ({"cards": [{"npu": 1}]}, "unknown: npu"),
        ({"cards": [{"dies": [{"phy": 1}]}]}, "unknown: phy"),
        ({"cards": [{"dies": [{"phy_id": "1"}]}]}, "not a whole number"),
        ({"cards": [{"dies": [{"phy_id": 1}, {"phy_id": 1}]}]}, "same phy_id"),
        ({"cards": [{"npu_id": 3}, {"npu_id": 3}]}, "same npu_id"),
        ({"cards": [{}] * 33}, "33 dies are more than 32"),
        ({"cards": [{"dies": [{"memory_mib": 10, "system_mib": 11}]}]}, "more memory than there is"),
        (
            {"cards": [{"dies": [{"memory_mib": 10, "system_mib": 5, "processes": [{"memory_mib": 6}]}]}]},
            "more memory than there is",
        ),
        ({"cards": [{"dies": [{"processes": [{"name": 1}]}]}]}, "not a text"),
    ],
)
def test_what_an_inventory_may_not_say(values: dict[str, object], reason: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=reason):
        read(tmp_path, **values)
