"""Which host takes which cell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.checks import Verdict
from xbtasks.errors import ExitCode
from xbtasks.matrix.assignment import assign
from xbtasks.matrix.model import Cell, StageView, Unit, View

B8, C9, CUDA = "xbuild-ascend-cann-8-910b", "xbuild-ascend-cann-9-910c", "xbuild-nvidia-cuda-13"
ALL = (B8, C9, CUDA)


def view(host: str, gpus: int = 0, npus: int = 0, chip: str = "", stages: tuple[str, ...] = ALL) -> View:
    return View(
        host,
        cards=(("ascend", npus), ("nvidia", gpus)),
        chips=(("ascend", (chip,) if chip else ()), ("nvidia", ())),
        stages=tuple(StageView(stage) for stage in stages),
    )


def units(
    *views: View, stages: tuple[str, ...] = ALL, cases: tuple[int, ...] = (1, 2, 3)
) -> dict[str, object]:
    found, _ = assign(views, stages, cases)
    return {f"{unit.host} {unit.stage.rpartition('-')[2]}": unit.cases for unit in found}


def idle(*views: View, stages: tuple[str, ...] = ALL, cases: tuple[int, ...] = (1, 2, 3)) -> list[str]:
    _, not_run = assign(views, stages, cases)
    return [
        f"{each.cell.host or 'any'} {each.cell.stage.rpartition('-')[2]}.{each.cell.case}" for each in not_run
    ]


def test_a_single_host_gets_everything_and_says_itself_what_it_skips() -> None:
    lone = view("one", gpus=1, npus=1, chip="910b")
    assert units(lone) == {"one 910b": (1, 2, 3), "one 910c": (1, 2, 3), "one 13": (1, 2, 3)}
    assert idle(lone) == []
    blocked = replace(lone, stages=(StageView(CUDA, build="no image", obstacle="no buildx"),))
    assert units(blocked, stages=(CUDA,)) == {"one 13": (1, 2, 3)}


def test_cards_and_chips_choose_among_several() -> None:
    gpu, npu, bare = view("gpu", gpus=2), view("npu", npus=8, chip="910c"), view("bare")
    assert units(gpu, npu, bare) == {
        "gpu 910b": (1,),
        "bare 910b": (1,),
        "npu 910c": (1, 2, 3),
        "gpu 910c": (1,),
        "bare 910c": (1,),
        "gpu 13": (1, 2, 3),
        "npu 13": (1,),
        "bare 13": (1,),
    }
    assert idle(gpu, npu, bare) == ["any 910b.2", "any 910b.3"]


def test_a_host_of_another_chip_takes_a_stage_that_no_other_takes() -> None:
    b, c = view("b", npus=1, chip="910b"), view("c", npus=1, chip="910c")
    assert units(b, c, stages=(B8, C9)) == {"b 910b": (1, 2, 3), "c 910c": (1, 2, 3)}
    assert units(b, view("d", npus=1, chip="910b"), stages=(C9,)) == {"b 910c": (1,), "d 910c": (1,)}


def test_what_no_host_can_take_tells_of_each() -> None:
    one, none = view("one", gpus=1), view("none")
    _, not_run = assign((one, none), (CUDA,), (3,))
    (found,) = not_run
    assert (found.cell, found.verdict, found.exit_code) == (Cell("", CUDA, 3), Verdict.SKIP, ExitCode.SKIPPED)
    assert found.reason == (
        "no host can take it: one: needs 2 GPU, the host has 1; none: needs 2 GPU, the host has 0"
    )
    report = found.report()
    assert (report.id, report.title) == ("nvidia.case3", "Multi-card per-device limits")


def test_an_obstacle_keeps_one_of_several_from_a_stage() -> None:
    foreign = replace(view("arm"), stages=(StageView(CUDA, build="no image", obstacle="no emulation"),))
    assert units(foreign, view("x86"), stages=(CUDA,), cases=(1,)) == {"x86 13": (1,)}
    assert idle(foreign, view("x86"), stages=(CUDA,), cases=(1,)) == []
    _, not_run = assign((foreign, view("npu", stages=(B8,))), (CUDA,), (1,))
    assert not_run[0].reason == "no host can take it: arm: no emulation; npu: it is not for nvidia"


def test_a_dead_host_has_each_of_its_cells_named_and_leaves_the_others_alone() -> None:
    dead = View("dead", stages=(StageView(CUDA),), problem="no route", exit_code=ExitCode.CANNOT_JUDGE)
    found, not_run = assign((dead, view("x", gpus=2)), (B8, CUDA), (1, 2))
    assert [(unit.host, unit.stage) for unit in found] == [("x", B8), ("x", CUDA)]
    assert [(each.cell.host, each.cell.case, each.verdict, each.reason) for each in not_run] == [
        ("x", 2, Verdict.SKIP, "needs 1 NPU, the host has 0"),
        ("dead", 1, Verdict.ERROR, "no route"),
        ("dead", 2, Verdict.ERROR, "no route"),
    ]
    lone, not_run = assign((dead,), (CUDA,), (1,))
    assert lone == ()
    assert [each.cell for each in not_run] == [Cell("dead", CUDA, 1)]


def test_what_is_done_is_in_neither_list_and_folders_are_new() -> None:
    done = {Cell("h", CUDA, 1), Cell("dead", CUDA, 1)}
    dead = View("dead", stages=(StageView(CUDA),), problem="gone")
    found, not_run = assign(
        (view("h", gpus=2), dead), (CUDA,), (1, 2), done=done, taken={f"h.{CUDA}", f"h.{CUDA}.2"}
    )
    assert found == (Unit("h", CUDA, (2,), f"h.{CUDA}.3"),)
    assert [each.cell for each in not_run] == [Cell("dead", CUDA, 2)]


@pytest.mark.parametrize("cases", [(1,), (1, 2, 3), (4,)])
def test_every_cell_is_somewhere(cases: tuple[int, ...]) -> None:
    dead = View("dead", stages=tuple(StageView(each) for each in ALL), problem="gone")
    hosts = (view("a", gpus=1), view("b", npus=1, chip="910b"), dead)
    found, not_run = assign(hosts, ALL, cases)
    named = {(unit.stage, case) for unit in found for case in unit.cases}
    named |= {(each.cell.stage, each.cell.case) for each in not_run if each.cell.host != "dead"}
    assert named == {(stage, case) for stage in ALL for case in cases if case < 4}


HOSTS = st.builds(
    View,
    host=st.just(""),
    cards=st.integers(0, 2).map(lambda count: (("ascend", count), ("nvidia", count))),
    chips=st.sampled_from(["", "910b", "910c"]).map(lambda chip: (("ascend", (chip,) if chip else ()),)),
    stages=st.lists(st.builds(StageView, st.sampled_from(ALL), obstacle=st.sampled_from(["", "no buildx"])))
    .map(lambda seen: {each.stage: each for each in seen})
    .map(lambda seen: tuple(seen.values())),
    problem=st.sampled_from(["", "no route"]),
)


@given(
    st.lists(HOSTS, min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(ALL), st.integers(1, 3)), max_size=4),
)
def test_no_case_of_a_stage_is_lost_whatever_the_hosts_are(
    hosts: list[View], verdicts: list[tuple[int, str, int]]
) -> None:
    views = [replace(host, host=str(number)) for number, host in enumerate(hosts)]
    done = {Cell(str(number), stage, case) for number, stage, case in verdicts}
    found, not_run = assign(views, ALL, (1, 2, 3), done=done)
    cells = [cell for each in found for cell in each.cells] + [each.cell for each in not_run]
    assert len(cells) == len(set(cells))
    assert not done & set(cells)
    told = {(cell.stage, cell.case) for cell in (*cells, *done)}
    assert told == {(stage, case) for stage in ALL for case in (1, 2, 3)}
    # what has a verdict is not also a case that nobody can take
    assert not {(cell.stage, cell.case) for cell in cells if not cell.host} & {
        (cell.stage, cell.case) for cell in done
    }


def test_a_dead_host_that_is_for_none_of_the_stages_hides_no_cell() -> None:
    dead = View("dead", stages=(StageView(CUDA),), problem="no route")
    found, not_run = assign((dead,), (C9,), (1, 2))
    assert found == ()
    assert [(each.cell.case, each.verdict, each.reason) for each in not_run] == [
        (1, Verdict.SKIP, "it is not for ascend"),
        (2, Verdict.SKIP, "it is not for ascend"),
    ]


def test_what_had_a_verdict_on_a_host_that_is_gone_is_not_told_again_as_nobodys() -> None:
    dead = View("dead", stages=(StageView(CUDA),), problem="gone")
    found, not_run = assign((dead, view("bare")), (CUDA,), (2,), done={Cell("dead", CUDA, 2)})
    assert (found, not_run) == ((), ())
