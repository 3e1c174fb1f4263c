"""nvidia.case3 as a whole, on cards in memory."""

from __future__ import annotations

import pytest

from tests.gpumodel import GpuModel, ModelCard
from tests.unit.nvidia_runs import CARDS, World, failing, on_cards, statuses, verdict
from xbtasks.backends.nvidia.case3 import judge, limit_factors
from xbtasks.checks import Status, Verdict
from xbtasks.errors import Refused, UsageError
from xbtasks.hardware import Skipped, Unfit, Unjudged

MIB = 1 << 20


def limits(here: World, role: str) -> dict[str, str]:
    (argv,) = (item.argv for step in here.asked for item in step.sections if item.name == role)
    pairs = (word.partition("=") for word in argv if word.startswith("CUDA_DEVICE_MEMORY_LIMIT"))
    return {name: value for name, _, value in pairs}


def test_limits_by_place_are_distinct_and_never_just_grow() -> None:
    assert limit_factors(2) == (2, 1)
    assert limit_factors(5) == (2, 1, 3, 5, 4)
    for cards in range(2, 17):
        factors = limit_factors(cards)
        assert len(set(factors)) == cards
        assert set(factors) <= set(range(1, cards + 2))
        assert list(factors) != sorted(factors)


@pytest.mark.parametrize("gpus", [("0", "1"), ("0", "1", "2"), ("2", "0"), ("auto",)])
def test_a_good_library_passes(gpus: tuple[str, ...]) -> None:
    findings = on_cards().knob(gpus=gpus).run(judge)
    assert failing(findings) == set()
    assert verdict(findings) is Verdict.PASS


def test_places_are_by_physical_index_whatever_the_order_asked_for() -> None:
    texts = []
    for gpus in (("2", "0"), ("0", CARDS[2].uuid.lower())):
        here = on_cards().knob(gpus=gpus)
        here.run(judge)
        assert limits(here, "limits") == {
            "CUDA_DEVICE_MEMORY_LIMIT_0": "8192m",
            "CUDA_DEVICE_MEMORY_LIMIT_1": "4096m",
        }
        argv = " ".join(word for step in here.asked for item in step.sections for word in item.argv)
        assert f"NVIDIA_VISIBLE_DEVICES={CARDS[0].uuid},{CARDS[2].uuid}" in argv
        texts.append(argv)
    assert texts[0] == texts[1]


def test_the_second_round_has_odd_limits_no_two_alike() -> None:
    here = on_cards().knob(gpus=("0", "1", "2"))
    here.run(judge)
    first, second = limits(here, "limits"), limits(here, "limits-2")
    values = [int(value.removesuffix("m")) for value in second.values()]
    assert all(value % 2 for value in values)
    assert len(set(values)) == 3
    assert not set(second.values()) & set(first.values())


NAMED = {
    "limit-0": "total",
    "limit-next": "total",
    "nvml-swapped": "smi-total",
    "first-card": "alloc-over",
    "one-account": "isolated",
    "other-card": "isolated",
    "constant": "total",
    "nvml": "smi-total",
    "nvml-v1": "nvml-v1",
    "nvml-v2": "smi-total",
    "no-v2": "nvml-v2",
    "meminfo": "total",
    "device-total": "device-total",
    "lookup": "getproc-total",
    "cap": "alloc-over",
    "loose": "alloc-over",
    "tight": "alloc-under",
    "minus-one": "alloc-over",
    "no-credit": "free-credit",
    "no-context": "context",
    "refuses": "alloc-under",
    "sm-100": "sm-limit",
    "sm-half": "sm-limit",
    "no-log": "sm-limit",
    "hidden-card": "visible",
    "stdout": "stdout",
    "segv": "exit",
    "hangs": "exit",
    "bad-exit": "exit",
    "smi-fails": "exit",
    "not-loaded": "preload-mapped",
    "no-start": "preload-mapped",
    "decimal": "total",
}


@pytest.mark.parametrize(("fault", "row"), NAMED.items())
def test_each_fault_fails_in_the_row_that_names_it(fault: str, row: str) -> None:
    findings = on_cards(fault).run(judge)
    assert verdict(findings) is Verdict.FAIL
    assert row in failing(findings)


def test_the_row_names_the_card() -> None:
    findings = on_cards("first-card").run(judge)
    rows = [row for row in findings.checks if row.id == "nvidia.case3.alloc-over"]
    assert [(row.status, row.detail.partition(":")[0]) for row in rows] == [
        (Status.PASS, "GPU 0"),
        (Status.FAIL, "GPU 1"),
    ]


def test_a_card_that_was_not_reached_fails_beside_one_that_passed() -> None:
    findings = on_cards("hidden-card").run(judge)
    rows = [row for row in findings.checks if row.id == "nvidia.case3.nvml-v1"]
    assert [row.status for row in rows] == [Status.PASS, Status.FAIL]


def test_a_log_of_unknown_form_shows_neither_right_nor_wrong() -> None:
    with pytest.raises(Unjudged, match="log format not recognised"):
        on_cards("reworded").run(judge)


def test_one_card_is_not_several() -> None:
    with pytest.raises(UsageError, match="needs at least 2 GPUs"):
        on_cards().knob(gpus=("1",)).run(judge)
    with pytest.raises(UsageError, match="GPU 1 is named twice"):
        on_cards().knob(gpus=("1", CARDS[1].uuid)).run(judge)


def test_a_limit_above_its_card_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="the limit of 60000 MiB is above GPU 0, which has 49140 MiB"):
        on_cards().knob(mem=30000).run(judge)


def test_a_limit_that_a_context_alone_exceeds_is_wrong_usage() -> None:
    with pytest.raises(Unfit, match="leave no room") as caught:
        on_cards().knob(mem=500).run(judge)
    least = int(caught.value.hint.split()[1])
    assert verdict(on_cards().knob(mem=least).run(judge)) is Verdict.PASS


def test_a_card_that_can_not_be_measured_is_skipped() -> None:
    here = on_cards()
    here.changes = {1: "49140, Enabled, 570.1"}
    with pytest.raises(Skipped, match=r"GPU 1 .* is split by MIG"):
        here.run(judge)


def test_busy_cards_are_refused_and_auto_avoids_them() -> None:
    here = on_cards()
    here.tenants = [f"{CARDS[1].uuid}, 4242, 900, python3"]
    with pytest.raises(Refused, match="GPU 1 is busy"):
        here.run(judge)
    findings = here.knob(gpus=("auto",)).run(judge)
    assert verdict(findings) is Verdict.PASS
    assert CARDS[2].uuid in " ".join(row.detail for row in findings.checks)
    here.tenants.append(f"{CARDS[2].uuid}, 4243, 900, python3")
    with pytest.raises(Refused, match="1 idle GPUs, 2 needed"):
        here.run(judge)


def test_cuda_that_orders_cards_otherwise_shows_nothing() -> None:
    here = on_cards()
    here.model = GpuModel((CARDS[1], CARDS[0]))
    with pytest.raises(Unjudged, match="CUDA lists"):
        here.run(judge)


def test_contexts_of_different_sizes_are_told_apart() -> None:
    cards = (CARDS[0], ModelCard(1, CARDS[1].uuid, context=900 * MIB))
    assert verdict(World(GpuModel(cards)).run(judge)) is Verdict.PASS


def test_every_limit_stands_in_the_table() -> None:
    findings = on_cards().run(judge)
    texts = [row.detail for row in findings.checks if row.status is Status.INFO]
    assert len(texts) == 4
    assert sum("second round" in text for text in texts) == 2
    assert statuses(findings.checks)["limits"] == {Status.INFO}
