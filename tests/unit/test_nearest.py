"""What is offered instead of a word that nothing is called: what may have been meant, and else nothing."""

from __future__ import annotations

import pytest

from xbtasks.nearest import nearest

STAGES = ("xbuild-ascend-cann-9-910c", "xbuild-nvidia-cuda-12", "xbuild-nvidia-cuda-13")
FLAGS = ("--cases", "--stage", "--image", "--platform", "--gpu", "--gpus", "--host", "--host-keys", "--yes")
TASKS = ("ascend.case1", "ascend.case2", "nvidia.case1", "nvidia.case2", "verify", "sim.up")
CHECKS = ("ascend.case1.mode", "nvidia.case1.mode", "nvidia.case2.sm-limit", "nvidia")


@pytest.mark.parametrize(
    ("word", "known", "near"),
    [
        ("xbuild-nvidia-cude-13", STAGES, STAGES[2:]),
        ("xbuild-nvidia-cuda-14", STAGES, STAGES[1:]),
        ("XBUILD-NVIDIA-CUDA-13", STAGES, STAGES[2:]),
        ("xbuild-nvidia", STAGES, STAGES[1:]),
        ("cuda-13", STAGES, STAGES[2:]),
        ("da-13", STAGES, ()),
        ("foo", STAGES, ()),
        ("", STAGES, ()),
        ("--case", FLAGS, ("--cases",)),
        ("--platfrm", FLAGS, ("--platform",)),
        ("--hots", FLAGS, ("--host",)),
        ("--bogus", FLAGS, ()),
        ("--sm", FLAGS, ()),
        ("memory", ("mem", "npu"), ("mem",)),
        ("men", ("mem", "npu"), ("mem",)),
        ("--", FLAGS, ()),
        ("verfy", TASKS, ("verify",)),
        ("case2", TASKS, ("ascend.case2", "nvidia.case2")),
        ("nvidia.case4", TASKS, ("nvidia.case1", "nvidia.case2")),
        ("mode", CHECKS, CHECKS[:2]),
        ("sm-limt", CHECKS, ("nvidia.case2.sm-limit",)),
        ("nvdia", CHECKS, ("nvidia",)),
        ("x", (), ()),
    ],
)
def test_what_may_have_been_meant(word: str, known: tuple[str, ...], near: tuple[str, ...]) -> None:
    assert nearest(word, known) == near


def test_no_more_than_was_asked_for() -> None:
    assert nearest("nvidia.case4", TASKS, most=1) == ("nvidia.case1",)
