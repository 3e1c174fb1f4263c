from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.knobs.cards import Auto, GpuId, GpuIndex, GpuUuid, parse_gpu, parse_gpus
from xbtasks.knobs.values import BadValue

UUID = "GPU-0a1b2c3d-0011-2233-4455-66778899aabb"

CARDS = st.builds(GpuIndex, st.integers(0, 255)) | st.builds(lambda uuid: GpuUuid(f"GPU-{uuid}"), st.uuids())
BLANKS = st.text(" \t", max_size=2)


def hint(text: str) -> str:
    with pytest.raises(BadValue) as caught:
        parse_gpus(text)
    return caught.value.hint


@given(CARDS)
def test_one_card_round_trip(card: GpuId) -> None:
    assert parse_gpu(str(card)) == card


@given(st.lists(st.tuples(CARDS, BLANKS, BLANKS), min_size=1, max_size=16, unique_by=lambda item: item[0]))
def test_list_round_trip_in_order(items: list[tuple[GpuId, str, str]]) -> None:
    text = ",".join(f"{before}{card}{after}" for card, before, after in items)
    assert parse_gpus(text) == tuple(card for card, _, _ in items)


@given(st.lists(CARDS, min_size=1, max_size=5), st.data())
def test_a_card_named_twice_is_refused(cards: list[GpuId], data: st.DataObject) -> None:
    twice = [*cards, data.draw(st.sampled_from(cards))]
    with pytest.raises(BadValue):
        parse_gpus(",".join(map(str, twice)))


def test_auto() -> None:
    assert parse_gpu("auto") is Auto.AUTO
    assert parse_gpus("auto") is Auto.AUTO
    assert str(Auto.AUTO) == "auto"


def test_uuid_is_normalised_before_it_is_compared() -> None:
    assert parse_gpu(UUID.upper()) == GpuUuid(UUID)
    assert parse_gpu(UUID.replace("GPU", "gpu")) == GpuUuid(UUID)
    assert hint(f"{UUID},{UUID.upper()}") == f"{UUID} is named twice"


@pytest.mark.parametrize("text", ["0,0", "1,1", "0, 0", "1,0,1"])
def test_duplicates(text: str) -> None:
    assert "is named twice" in hint(text)


@pytest.mark.parametrize("text", ["", ",", "0,", ",0", "0,,1", "0, ,1"])
def test_empty_items(text: str) -> None:
    assert hint(text) == "an empty item"


@pytest.mark.parametrize(
    "text",
    [
        "256",
        "00",
        "01",
        "-1",
        "0x1",
        "\uff11",
        "0-3",
        "0;1",
        "0 1",
        "GPU-0",
        UUID[:-1],
        UUID + "0",
        UUID[:-1] + "g",
        UUID.replace("-", "_"),
        "all",
        "GPU",
        "0\n,1",
    ],
)
def test_what_names_no_card(text: str) -> None:
    with pytest.raises(BadValue):
        parse_gpus(text)
    with pytest.raises(BadValue):
        parse_gpu(text)


def test_bounds_of_index_and_list() -> None:
    assert parse_gpu("255") == GpuIndex(255)
    sixteen = ",".join(map(str, range(16)))
    cards = parse_gpus(sixteen)
    assert isinstance(cards, tuple)
    assert len(cards) == 16
    with pytest.raises(BadValue):
        parse_gpus(sixteen + ",16")


def test_messages_say_what_is_wanted() -> None:
    with pytest.raises(BadValue, match="'x' is not a card index or GPU UUID"):
        parse_gpu("x")
    with pytest.raises(BadValue, match="'0,x' is not a list of card indices or GPU UUIDs"):
        parse_gpus("0,x")


def test_hints() -> None:
    assert "whole card" in hint("MIG-0a1b2c3d-0011-2233-4455-66778899aabb")
    assert hint(UUID.removeprefix("GPU-")) == f"write {UUID}"
    assert "auto stands alone" in hint("0,auto")
    with pytest.raises(BadValue) as caught:
        parse_gpu("0,1")
    assert "--gpus" in caught.value.hint
