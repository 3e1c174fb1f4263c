"""Ascend cases 2 and 3 on simulated NPUs: the sample passes, each broken variant fails in its row."""

from __future__ import annotations

import mmap
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.workplace import SAMPLE
from xbtasks.sim.drivers.inventory import write_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.workplace import Done, PrivateEngine, Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-ascend-cann-9-910b"
SOURCES = "pack/gpustack-operator/external/ascend/vcann-rt"

MUTANTS = {
    "no-quota": (
        "quota.c",
        "if (total > vnpu->memory_quota) {",
        "if (0) {",
        "3",
        {"ceiling", "shared", "oom-line"},
    ),
    "one-chunk-late": (
        "quota.c",
        "if (total > vnpu->memory_quota) {",
        "if (used > vnpu->memory_quota) {",
        "3",
        {"oom-line"},
    ),
    "denies-all": ("quota.c", "if (total > vnpu->memory_quota) {", "if (1) {", "3", {"floor"}),
    "decimal-megabytes": ("vnpu.c", "VNPU_MEBIBYTE", "1000000", "3", {"oom-line", "reported-total"}),
    "code-of-a-full-card": (
        "quota.c",
        "return ACL_ERROR_STORAGE_OVER_LIMIT;",
        "return 207001;",
        "3",
        {"code"},
    ),
    "status-1": ("monitor.c", "return EXIT_SUCCESS;", "return EXIT_FAILURE;", "2", {"exit"}),
    "fails-open": (
        "device.c",
        "rtError_t failed = slice_start();",
        "rtError_t failed = 0;\n\n    slice_start();",
        "2",
        {"no-config"},
    ),
}
"""The file, what stands there and what instead, the case, and rows that must fail."""


@pytest.fixture
def npus(engine: PrivateEngine) -> Iterator[Path]:
    """Return the inventory of the session's host, which is put back."""
    file = Path(engine.environment["DOCKER_CONFIG"]).parent / "inventory.json"
    write_part(file, "ascend", {"cards": [{}, {}]})
    yield file
    write_part(file, "ascend", {"cards": [{}, {}]})


def rows(done: Done, status: str) -> set[str]:
    (case,) = done.document["cases"]
    checks: list[dict[str, Any]] = case["checks"]
    return {row["id"].rpartition(".")[2] for row in checks if row["status"] == status}


def detail(done: Done, name: str) -> str:
    (case,) = done.document["cases"]
    return next(str(row["detail"]) for row in case["checks"] if row["id"].endswith(f".{name}"))


def test_the_sample_passes_twice_leaves_nothing_and_a_replay_says_the_same(
    place: Workplace, npus: Path
) -> None:
    assert place.inv("build", STAGE).code == 0
    for case in ("2", "3"):
        done = place.inv(f"ascend.case{case}", STAGE, "--npu", "1", "--json")
        assert done.code == 0, done.text
        assert not rows(done, "FAIL")
        assert not (place.staging / "test").exists()
        assert place.left_over() == []
        again = place.inv("replay", str(place.evidence()[-1]), "--json")
        assert again.code == 0, again.text
        assert again.document["cases"][0]["checks"] == done.document["cases"][0]["checks"]
    done = place.inv("ascend.case2", STAGE, "--npu", "1", "--json")
    assert done.code == 0, done.text
    assert "left over" in detail(done, "shm-free")


def test_a_live_tenant_or_busy_card_is_refused_and_another_chip_skipped(place: Workplace, npus: Path) -> None:
    assert place.inv("build", STAGE).code == 0
    first = place.inv("ascend.case2", STAGE, "--json")
    assert first.code == 0, first.text
    shm_id = detail(first, "shm-id").rpartition(" gives ")[2]
    file = os.open(f"/dev/shm/{shm_id}", os.O_RDWR)
    with mmap.mmap(file, 0):
        os.close(file)
        live = place.inv("ascend.case3", STAGE)
    assert live.code == 2
    assert f"in use by process {os.getpid()}" in live.text

    write_part(npus, "ascend", {"cards": [{"dies": [{"processes": [{"pid": 4242, "memory_mib": 900}]}]}]})
    busy = place.inv("ascend.case2", STAGE)
    assert busy.code == 2
    assert "--busy-ok" in busy.text
    write_part(npus, "ascend", {"model": "910_93", "cards": [{}]})
    other = place.inv("ascend.case2", STAGE)
    assert other.code == 3
    assert "is 910c" in other.text


def test_the_second_die_of_a_card_has_a_physical_id_of_its_own(place: Workplace, npus: Path) -> None:
    stage = "xbuild-ascend-cann-9-910c"
    write_part(npus, "ascend", {"model": "910_93", "cards": [{}, {}]})
    assert place.inv("build", stage).code == 0
    done = place.inv("ascend.case2", stage, "--npu", "1", "--chip", "1", "--json")
    assert done.code == 0, done.text
    assert "physical id is 3" in detail(done, "card")
    assert "physical-npu-id=3 " in detail(done, "config")


def test_what_can_t_be_measured_is_no_verdict(place: Workplace, npus: Path) -> None:
    assert place.inv("build", STAGE).code == 0
    write_part(npus, "ascend", {"cards": [{"dies": [{"context_mib": 1100}]}]})
    large = place.inv("ascend.case3", STAGE)
    assert large.code == 2
    assert "--mem" in large.text
    write_part(npus, "ascend", {"cards": [{"dies": [{"memory_mib": 4000, "system_mib": 3000}]}]})
    full = place.inv("ascend.case3", STAGE, "--json")
    assert full.code == 4
    assert "the card itself is full" in full.text
    write_part(npus, "ascend", {"cards": [{"dies": [{"memory_mib": 4000, "system_mib": 3600}]}]})
    held = place.inv("ascend.case2", STAGE, "--json")
    assert held.code == 4, held.text
    assert "without injection two processes don't get the device's memory either" in held.text
    assert place.left_over() == []


@pytest.mark.parametrize("name", sorted(MUTANTS))
def test_a_broken_variant_fails_in_its_row(name: str, place: Workplace, npus: Path) -> None:
    file, was, becomes, case, expected = MUTANTS[name]
    checkout = place.folder / "checkout"
    shutil.copytree(SAMPLE, checkout)
    source = checkout / SOURCES / file
    text = source.read_text()
    assert was in text
    source.write_text(text.replace(was, becomes))
    built = place.inv("build", STAGE, XB_REPO=str(checkout))
    assert built.code == 0, built.text
    done = place.inv(f"ascend.case{case}", STAGE, "--json", XB_REPO=str(checkout))
    assert done.code == 1, done.text
    assert rows(done, "FAIL") >= expected
