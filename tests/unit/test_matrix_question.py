"""One question for a whole matrix, and nothing done that it did not name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.test_session import Person
from xbtasks.errors import Refused
from xbtasks.matrix.model import StageView, Unit, View
from xbtasks.matrix.question import Doing, asked_of, confirm, permission_for
from xbtasks.plan import CaseKnobs, RunPlan, StagePlan

CUDA, CANN = "xbuild-nvidia-cuda-13", "xbuild-ascend-cann-9-910c"
STAGES = (
    StagePlan(CUDA, "nvidia", "13", "vgpu-build:13", "/opt/vgpu", ()),
    StagePlan(CANN, "ascend", "9-910c", "vcann-build:9-910c", "/opt/enpu", ()),
)
PLAN = RunPlan("matrix", STAGES, (1, 2, 3), build=True, knobs=CaseKnobs(gpu="GPU-1", gpus=("0", "3"), npu=4))
STALE = (StageView(CUDA, build="there is no image yet"), StageView(CANN))


def asked(*units: Unit, simulated: bool = False, remote: bool = True) -> list[str]:
    view = View("h", simulated=simulated, stages=STALE)
    return [str(doing) for doing in asked_of(units, {"h": view}, {"h": PLAN}, {"h": remote})]


def test_each_build_elsewhere_and_each_container_on_a_card_is_named() -> None:
    assert asked(Unit("h", CUDA, (1, 2, 3), "x"), Unit("h", CANN, (2,), "y")) == [
        f"h: build {CUDA} as image vgpu-build:13",
        f"h: run containers of {CUDA} for case 2 on GPU GPU-1, case 3 on GPUs 0, 3, about a minute each",
        f"h: run containers of {CANN} for case 2 on NPU 4 chip 0, about a minute each",
    ]


def test_what_is_up_to_date_here_or_simulated_needs_no_word() -> None:
    assert asked(Unit("h", CANN, (1,), "x")) == []
    assert asked(Unit("h", CUDA, (1,), "x"), remote=False) == []
    assert asked(Unit("h", CUDA, (1, 2), "x"), simulated=True) == []


DOINGS = (Doing("h", CUDA, "build it"), Doing("k", CUDA, "run it", accelerator=True))


def test_one_question_names_everything() -> None:
    person = Person("y")
    confirm(DOINGS, person, yes=False)
    assert [line for line in person.heard if line.startswith("  ")] == ["  h: build it", "  k: run it"]
    assert sum("[y/N]" in line for line in person.heard) == 1
    for quiet in (Person(there=False), person):
        confirm(DOINGS, quiet, yes=True)
        confirm((), quiet, yes=False)


NOBODY = Person(there=False)


@pytest.mark.parametrize(
    ("person", "said"),
    [(Person("n"), "nothing was done"), (Person(""), "not confirmed"), (NOBODY, "h: build it; k: run it")],
)
def test_without_a_yes_nothing_is_done(person: Person, said: str) -> None:
    with pytest.raises(Refused, match=said):
        confirm(DOINGS, person, yes=False)


def test_a_unit_may_do_what_was_confirmed_for_it_and_no_more() -> None:
    unit = Unit("h", CUDA, (1, 2), "x")
    permit = permission_for(unit, DOINGS, remote=True, yes=False)
    permit("build it")
    with pytest.raises(Refused, match="run it on h; it was not in the plan"):
        permit("run it", accelerator=True)
    on_card = permission_for(replace(unit, host="k"), DOINGS, remote=True, yes=False)
    on_card("run it", accelerator=True)
    with pytest.raises(Refused):
        on_card("build it")
    with pytest.raises(Refused):
        permission_for(replace(unit, stage=CANN), DOINGS, remote=True, yes=False)("build it")
    permission_for(unit, (), remote=False, yes=False)("build it")
    permission_for(unit, (), remote=True, yes=True)("run it", accelerator=True)
