"""Ascend case 3: Memory-quota enforcement. A container gets its quota of memory, and no more.

Without injection the same probe must first exceed the quota on the same card, else nothing would be shown.
Then one process fills the knobs' quota, two processes share it, and one fills an odd quota of the run's
own. Contract: ubs-virt 4d7e4b1, 9f8c779, bac3d46.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend.contract import DEFAULT_MEMORY_MIB, Slice, odd_between
from xbtasks.backends.ascend.merged import judge_runtime, read_runtime, runtime_path
from xbtasks.backends.ascend.quota import (
    CARD_FULL,
    Sizes,
    families,
    judge_baseline,
    judge_fill,
    judge_shared,
    least_together,
    require_room,
    wants_line,
)
from xbtasks.backends.ascend.rig import Container, Rig, probe_command
from xbtasks.backends.ascend.said import Said
from xbtasks.backends.ascend.target import find_target
from xbtasks.errors import UsageError
from xbtasks.hardware import Findings, Unjudged

if TYPE_CHECKING:
    from xbtasks.backends.ascend.target import Target
    from xbtasks.checks import Check
    from xbtasks.hardware import CaseRun

__all__ = ["REQUIRED", "judge"]

_CASE: Final = "ascend.case3"

REQUIRED: Final = tuple(
    f"{_CASE}.{check}"
    for check in (
        "card",
        "shm-id",
        "artifact",
        "preload",
        "config",
        "baseline",
        "runtime",
        "mapped",
        "probe",
        "reported-total",
        "ceiling",
        "code",
        "oom-line",
        "floor",
        "shared",
    )
)
"""The checks that need a PASS row."""

_TRIES: Final = 3
_LEAST: Final = 32  # MiB


def judge(run: CaseRun) -> Findings:
    """Judge the case; see :mod:`xbtasks.hardware`."""
    target = find_target(run, _CASE)
    slices = _slices(run, target)
    first = slices["first"]
    run.permission(
        f"run containers of {run.workload} on NPU {target.die.npu_id}, which take {first.memory_mib} MiB "
        f"and more of it, for about a minute"
    )
    rig = Rig(run, _CASE, target, slices)
    measured = _Measured(list(target.rows))
    try:
        with rig.set_up() as made:
            prepared = len(made)
            measured.rows += made
            _measure(run, rig, measured, slices)
        measured.rows += made[prepared:]
        rows = [*measured.rows, *_judged(measured, slices)]
    except Unjudged as unjudged:
        raise unjudged.behind(*measured.rows) from unjudged
    return Findings(REQUIRED, tuple(rows))


@dataclass
class _Measured:
    """What the case has found so far: what a context costs, in bytes; ACL's other ways, by `families`."""

    rows: list[Check]
    context: int = 0
    ways: dict[str, int] = field(default_factory=dict)
    said: dict[str, list[Said]] = field(default_factory=dict)


def _slices(run: CaseRun, target: Target) -> dict[str, Slice]:
    memory = run.knobs.mem or DEFAULT_MEMORY_MIB
    if memory < _LEAST:
        raise UsageError(f"a quota of {memory} MiB is less than what a context costs", hint="a larger --mem")
    odd = odd_between(f"{run.run_id} quota", memory * 3 // 4, memory - 1, but=memory)
    return {
        name: Slice(target.physical_id, run.knobs.vnpu, run.knobs.aicore, quota, target.shm_id)
        for name, quota in (("first", memory), ("second", odd))
    }


def _measure(run: CaseRun, rig: Rig, measured: _Measured, slices: dict[str, Slice]) -> None:
    """Run the baseline and the rounds."""
    first, second = (Sizes.of(part.memory_mib) for part in slices.values())
    bare = Container("baseline", probe_command("measure", first.chunk, first.quota + first.chunk))
    baseline = Said(rig.run("baseline", bare)["baseline"])
    row, measured.context = judge_baseline(_CASE, baseline, first)
    measured.rows.append(row)
    measured.ways = families(baseline)
    require_room(first, measured.context)
    path = runtime_path(baseline.report)
    answer = read_runtime(run, "case3-runtime", path)
    measured.rows.append(judge_runtime(f"{_CASE}.runtime", path, answer))
    half = first.quota // 2
    containers = [
        Container("first", _fill(first), "first"),
        Container("pair", probe_command("pair", first.chunk, first.quota + first.chunk, half), "first"),
        Container("second", _fill(second), "second"),
    ]
    for role, outcome in rig.run("rounds", *containers).items():
        measured.said[role] = [Said(outcome)]
    for again in range(2, _TRIES + 1):
        wanting = [item for item in containers if wants_line(measured.said[item.role][-1])]
        if not wanting:
            return
        repeated = [Container(f"{item.role}-{again}", item.command, item.slice) for item in wanting]
        ended = rig.run(f"rounds-{again}", *repeated)
        for item, container in zip(wanting, repeated, strict=True):
            measured.said[item.role].append(Said(ended[container.role]))
    if any(_card_full(said[-1]) for said in measured.said.values()):
        again_bare = Container("baseline-again", bare.command)
        judge_baseline(_CASE, Said(rig.run("baseline-again", again_bare)["baseline-again"]), first)


def _fill(sizes: Sizes) -> tuple[str, ...]:
    return probe_command("fill", sizes.chunk, sizes.quota + sizes.chunk)


def _card_full(said: Said) -> bool:
    """Whether the card itself refused, as it says: others may have taken it meanwhile."""
    return any(event.op == "fill" and event.rc == CARD_FULL for event in said.report.events)


def _judged(measured: _Measured, slices: dict[str, Slice]) -> list[Check]:
    rows = []
    for name, part in slices.items():
        sizes = Sizes.of(part.memory_mib)
        rows += judge_fill(
            _CASE, name, part, sizes, measured.context, measured.said[name], ways=measured.ways
        )
    first = slices["first"]
    sizes = Sizes.of(first.memory_mib)
    least = least_together(sizes, measured.context, measured.said["first"][-1])
    return rows + judge_shared(_CASE, first, sizes, least, measured.said["pair"])
