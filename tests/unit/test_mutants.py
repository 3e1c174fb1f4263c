"""The mutants' catalogue, and how a trial's result is judged."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from xbtasks.backends import BACKENDS
from xbtasks.backends.ascend import case2 as ascend2
from xbtasks.backends.ascend import case3 as ascend3
from xbtasks.errors import UsageError
from xbtasks.sim.drivers.inventory import write_part
from xbtasks.sim.mutants.catalogue import VARIANTS, chosen
from xbtasks.sim.mutants.model import Edit, Kind, Variant
from xbtasks.sim.mutants.running import summary
from xbtasks.sim.mutants.trial import (
    EditError,
    Ending,
    Trial,
    apply_edits,
    command_line,
    judge_result,
    shim,
)
from xbtasks.sim.paths import SAMPLE_CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

MUTANTS = [variant for variant in VARIANTS if not variant.good]
GOOD = [variant for variant in VARIANTS if variant.good]
MUTANT = Variant("m", Kind.LIBRARY, "w", "xbuild-nvidia-cuda-12", 2, ("shared", "alloc-over"))
REFUSED = Variant("r", Kind.DRIVER, "w", "xbuild-nvidia-cuda-12", 2, exit_code=2, says="busy")
RIGHT = Variant("g", Kind.IMAGE, "w", "xbuild-nvidia-cuda-12", 1, says="terms")


def result(verdict: str, *failed: str, reason: str = "") -> dict[str, Any]:
    checks = [{"id": f"nvidia.case2.{name}", "status": "FAIL"} for name in failed]
    checks.append({"id": "nvidia.case2.exit", "status": "PASS"})
    return {"cases": [{"verdict": verdict, "checks": checks}], "reason": reason}


def test_there_are_enough_of_every_kind() -> None:
    assert len(MUTANTS) >= 60
    assert len(GOOD) >= 25
    assert {variant.kind for variant in MUTANTS} == set(Kind)


def test_names_are_distinct() -> None:
    names = [variant.name for variant in VARIANTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.edits], ids=lambda v: str(v.name))
def test_edits_apply_exactly_once(variant: Variant, tmp_path: Path) -> None:
    for edit in variant.edits:
        copy = tmp_path / "pack/gpustack-operator" / edit.file
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(SAMPLE_CHECKOUT / "pack/gpustack-operator" / edit.file, copy)
    apply_edits(tmp_path, variant.edits)


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v.cards is not None], ids=lambda v: str(v.name))
def test_cards_are_an_inventory(variant: Variant, tmp_path: Path) -> None:
    from xbtasks.sim.drivers.ascend.cards import read_driver as ascend_driver
    from xbtasks.sim.drivers.nvidia.cards import read_driver as nvidia_driver

    assert variant.cards is not None
    file = tmp_path / "inventory.json"
    write_part(file, variant.vendor, variant.cards)
    nvidia_driver(file)
    ascend_driver(file)


def test_rows_of_ascend_are_the_cases_own() -> None:
    known = {name.rpartition(".")[2] for name in (*ascend2.REQUIRED, *ascend3.REQUIRED)} | {"families"}
    used = {row for v in MUTANTS if v.vendor == "ascend" and v.case > 1 for row in v.rows}
    assert used <= known


def test_an_edit_that_fits_twice_or_never_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "pack/gpustack-operator/Dockerfile"
    file.parent.mkdir(parents=True)
    file.write_text("a a b")
    with pytest.raises(EditError, match="2 times"):
        apply_edits(tmp_path, [Edit("Dockerfile", "a", "c")])
    with pytest.raises(EditError, match="0 times"):
        apply_edits(tmp_path, [Edit("Dockerfile", "d", "c")])
    apply_edits(tmp_path, [Edit("Dockerfile", "b", "c")])
    assert file.read_text() == "a a c"


@pytest.mark.parametrize(
    ("variant", "status", "document", "ending"),
    [
        (MUTANT, 1, result("FAIL", "alloc-over"), Ending.KILLED),
        (MUTANT, 1, result("FAIL", "total"), Ending.ELSEWHERE),
        (MUTANT, 0, result("PASS"), Ending.SURVIVED),
        (MUTANT, 4, result("ERROR", "alloc-over"), Ending.ERROR),
        (MUTANT, 3, result("SKIP"), Ending.ERROR),
        (MUTANT, 1, {"cases": [], "reason": "the build failed"}, Ending.ERROR),
        (MUTANT, 1, None, Ending.ERROR),
        (REFUSED, 2, result("ERROR", reason="GPU 0 is busy"), Ending.KILLED),
        (REFUSED, 2, result("ERROR", reason="no such GPU"), Ending.ERROR),
        (REFUSED, 0, result("PASS"), Ending.SURVIVED),
        (REFUSED, 1, result("FAIL", "total"), Ending.ELSEWHERE),
        (RIGHT, 0, result("PASS", reason="on these terms"), Ending.PASSED),
        (RIGHT, 0, result("PASS"), Ending.FAILED),
        (RIGHT, 1, result("FAIL", "mode", reason="terms"), Ending.FAILED),
        (RIGHT, 3, result("SKIP", reason="terms"), Ending.FAILED),
    ],
)
def test_a_result_is_judged(variant: Variant, status: int, document: dict[str, Any], ending: Ending) -> None:
    assert judge_result(variant, status, document)[0] is ending


def test_the_summary_counts_what_was_not_judged_apart() -> None:
    trials = [
        Trial(MUTANT, Ending.KILLED, ""),
        Trial(MUTANT, Ending.ELSEWHERE, ""),
        Trial(MUTANT, Ending.SURVIVED, ""),
        Trial(RIGHT, Ending.PASSED, ""),
        Trial(RIGHT, Ending.FAILED, ""),
    ]
    assert summary(trials) == "3 mutants, 2 killed, 1 survived; 2 good, 1 failed"
    trials.append(Trial(MUTANT, Ending.ERROR, ""))
    assert summary(trials) == "4 mutants, 2 killed, 1 survived, 1 not judged; 2 good, 1 failed"


def test_variants_are_chosen_by_patterns() -> None:
    assert chosen("") == VARIANTS
    assert [variant.name for variant in chosen("good-npu,nvidia-cr*")] == [
        "nvidia-crash",
        "nvidia-create",
        "good-npu",
    ]
    with pytest.raises(UsageError):
        chosen("nothing-like-it")


def test_a_card_is_given_unless_the_variant_names_its_own() -> None:
    assert command_line(MUTANT, 1)[-2:] == ["--gpu", "1"]
    assert command_line(replace(MUTANT, options=("--gpu", "0")), 1)[-2:] == ["--gpu", "0"]
    assert command_line(replace(MUTANT, stage="xbuild-ascend-cann-8-910b"), 1)[-2:] == ["--npu", "1"]
    assert command_line(RIGHT, None) == ["verify", RIGHT.stage, "--cases", "1", "--json"]


def test_a_variant_of_a_vendor_without_simulated_cards_takes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(BACKENDS["nvidia"], name="toy", stage_prefix="xbuild-toy-")
    monkeypatch.setitem(BACKENDS, "toy", other)
    variant = Variant("toy-twice", Kind.LIBRARY, "twice the limit", "xbuild-toy-1", 2, ("limit",))
    assert (variant.vendor, variant.places) == ("toy", 0)
    command = ["build", "xbuild-toy-1", "toy.case2", "xbuild-toy-1", "--yes", "--json"]
    assert command_line(variant, None) == command


def test_the_program_before_docker_changes_words_and_nothing_else(tmp_path: Path) -> None:
    program = tmp_path / "docker"
    program.write_text(shim("printf '<%s>'", 'LIMIT=*) word="LIMIT=1" ;;'))
    program.chmod(0o755)
    done = subprocess.run([program, "run", "", "a b", "LIMIT=2"], capture_output=True, text=True, check=True)
    assert done.stdout == "<run><><a b><LIMIT=1>"
