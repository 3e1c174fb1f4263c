"""Evidence of which one answer is lost, cut off or told twice is judged as before, or is no verdict at all.

Tried are runs of all six cases that found a fault, one that passed and one that had to be refused, and of
each every step. A frame of which any line is lost is :mod:`tests.unit.test_host_frame`'s.
"""

from __future__ import annotations

import gzip
import io
import shutil
from typing import TYPE_CHECKING, Final

import pytest

from tests.workplace import SAMPLE
from xbtasks.checks import Verdict
from xbtasks.errors import UsageError
from xbtasks.reporting.console import Console
from xbtasks.session import replay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.workplace import Workplace
    from xbtasks.result import Result

pytestmark = pytest.mark.engine

ASCEND: Final = "xbuild-ascend-cann-9-910b"
NVIDIA: Final = "xbuild-nvidia-cuda-13"
BROKEN: Final = {
    "ascend/vcann-rt/quota.c": ("if (total > vnpu->memory_quota) {", "if (0) {"),
    "ascend/vcann-rt/monitor.c": ("return EXIT_SUCCESS;", "return EXIT_FAILURE;"),
    "nvidia/vgpu/nvml.c": ("return vgpu_memory_limit((int)index);", "return 0;"),
}
"""Files of the sample, what stands there, and what makes cases 2 and 3 of its vendor fail."""


def broken_sample(place: Workplace) -> Path:
    checkout = place.folder / "broken"
    shutil.copytree(SAMPLE, checkout)
    for name, (was, becomes) in BROKEN.items():
        file = checkout / "pack/gpustack-operator/external" / name
        text = file.read_text()
        assert text.count(was) == 1
        file.write_text(text.replace(was, becomes))
    return checkout


def recorded(place: Workplace) -> dict[str, Path]:
    """Return evidence of runs by what they are."""
    repo = {"XB_REPO": str(broken_sample(place))}
    runs: dict[str, tuple[int, tuple[str, ...]]] = {
        "ascend.case1": (1, ("ascend.case1", ASCEND, "--profile", "pre-weak")),
        "ascend.case2": (1, ("ascend.case2", ASCEND)),
        "ascend.case3": (1, ("ascend.case3", ASCEND)),
        "nvidia.case1": (1, ("nvidia.case1", NVIDIA, "--max-glibc", "2.0")),
        "nvidia.case2": (1, ("nvidia.case2", NVIDIA, "--no-throttle")),
        "nvidia.case3": (1, ("nvidia.case3", NVIDIA)),
        "doesn't fit": (2, ("nvidia.case2", NVIDIA, "--mem", "300")),
        "passes": (0, ("nvidia.case1", NVIDIA)),
    }
    for stage in (ASCEND, NVIDIA):
        assert place.inv("build", stage, XB_IMAGE=place.tag(stage), **repo).code == 0
    found = {}
    for name, (code, command) in runs.items():
        done = place.inv(*command, "--yes", XB_IMAGE=place.tag(command[1]), **repo)
        assert done.code == code, (name, done.text)
        found[name] = place.evidence()[-1]
    return found


def tampered(evidence: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield copies of ``evidence``, each with one thing changed, and what that is."""
    steps = sorted(path.name for path in (evidence / "steps").iterdir())

    def copy() -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(evidence, folder)
        return folder / "steps"

    for at, step in enumerate(steps):
        shutil.rmtree(copy() / step)
        yield f"{step} is gone", folder
        there = copy()
        for later in steps[at:]:
            shutil.rmtree(there / later)
        yield f"all from {step} on is gone", folder
        there = copy()
        shutil.copytree(there / step, there / f"{step}-again")
        yield f"{step} is there twice", folder
        if step != steps[-1]:
            there = copy()
            (there / step).rename(folder / "other")
            (there / steps[at + 1]).rename(there / step)
            (folder / "other").rename(there / steps[at + 1])
            yield f"{step} and the next are exchanged", folder
        answer = gzip.decompress((evidence / "steps" / step / "stdout.gz").read_bytes())
        lines = answer.split(b"\n")
        for what, changed in (
            ("is empty", b""),
            ("is cut off", answer[: len(answer) // 2]),
            ("lacks its end", b"\n".join(lines[:-2])),
            ("comes twice", answer * 2),
        ):
            (copy() / step / "stdout.gz").write_bytes(gzip.compress(changed, compresslevel=1))
            yield f"the answer to {step} {what}", folder


def judged(evidence: Path) -> Result | None:
    """Return what a replay finds, or None where it refuses the evidence."""
    try:
        return replay(evidence, Console(io.StringIO()))
    except UsageError:
        return None


def test_no_single_loss_turns_one_verdict_into_another(place: Workplace) -> None:
    for name, evidence in recorded(place).items():
        own = judged(evidence)
        assert own is not None, name
        for what, changed in tampered(evidence, place.folder / "tampered"):
            found = judged(changed)
            if found is not None and found.verdict is not Verdict.ERROR:
                assert found.verdict is own.verdict, (name, what)
                assert [case.checks for case in found.cases] == [case.checks for case in own.cases], (
                    name,
                    what,
                )
