"""Ascend case 2: Inject + enpu-monitor. What the operator injects takes effect in a container, as it was
asked.

Two rounds, the knobs' quotas and odd ones of the run's own, each with ``enpu-monitor`` and with a CANN
process; both without a configuration, where nothing may initialise; then the monitor beside processes that
hold memory. Contract: ubs-virt 4d7e4b1, 9f8c779, bac3d46.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend.contract import DEFAULT_MEMORY_MIB, MONITOR, Slice, odd_between
from xbtasks.backends.ascend.monitor import judge_bare, judge_monitor, judge_process, said_all
from xbtasks.backends.ascend.rig import Container, Rig, probe_command
from xbtasks.backends.ascend.said import MAPS, Said
from xbtasks.backends.ascend.target import find_target
from xbtasks.backends.ascend.usage import QUOTA_MIB, Held, judge_usage, refused, require_memory
from xbtasks.hardware import Findings, Unjudged

if TYPE_CHECKING:
    from xbtasks.backends.ascend.target import Target
    from xbtasks.hardware import CaseRun

__all__ = ["REQUIRED", "judge"]

_CASE: Final = "ascend.case2"

REQUIRED: Final = tuple(
    f"{_CASE}.{check}"
    for check in (
        "card",
        "shm-id",
        "artifact",
        "preload",
        "config",
        "mapped",
        "exit",
        "fields",
        "device",
        "quotas",
        "modules",
        "shm-mapped",
        "no-config",
        "usage",
    )
)
"""The checks that need a PASS row."""

_ROUNDS: Final = ("first", "second")
_TRIES: Final = 5
_SECOND: Final = (257, 2047)  # MB; below every card

# The monitor takes the place of the shell that has shown its own maps.
_MONITOR: Final = f"""while IFS= read -r line; do printf '{MAPS}%s\\n' "$line"; done </proc/self/maps
exec "$0"
"""


def judge(run: CaseRun) -> Findings:
    """Judge the case; see :mod:`xbtasks.hardware`."""
    target = find_target(run, _CASE)
    slices = _slices(run, target)
    held = Held.of(run.run_id)
    run.permission(
        f"run containers of {run.workload} on NPU {target.die.npu_id}, which take {held.mib} MiB of it, for "
        f"about a minute"
    )
    rig = Rig(run, _CASE, target, slices)
    with rig.set_up() as made:
        said = _measure(rig, {name: slices[name] for name in _ROUNDS})
        used = _use(rig, held)
    rows = [*target.rows, *made]
    try:
        for name in _ROUNDS:
            rows += judge_monitor(_CASE, name, slices[name], said[f"{name}-monitor"])
            rows += judge_process(_CASE, name, slices[name], said[f"{name}-process"])
        rows += judge_bare(_CASE, said["bare-monitor"][0], said["bare-process"][0])
        if "usage-bare" in used:
            require_memory(f"{_CASE}.usage", used["usage-bare"])
        rows += judge_usage(_CASE, held, used["usage"])
    except Unjudged as unjudged:
        raise unjudged.behind(*rows) from unjudged
    return Findings(REQUIRED, tuple(rows))


def _slices(run: CaseRun, target: Target) -> dict[str, Slice]:
    knobs = run.knobs
    memory = knobs.mem or DEFAULT_MEMORY_MIB
    aicore = odd_between(f"{run.run_id} aicore", 3, 97, but=knobs.aicore)
    second = odd_between(f"{run.run_id} memory", *_SECOND, but=memory)
    place = (target.physical_id, knobs.vnpu)
    return {
        "first": Slice(*place, knobs.aicore, memory, target.shm_id),
        "second": Slice(*place, aicore, second, target.shm_id),
        "usage": Slice(*place, aicore, odd_between(f"{run.run_id} usage", *QUOTA_MIB, but=0), target.shm_id),
    }


def _use(rig: Rig, held: Held) -> dict[str, Said]:
    """Run the monitor beside processes that hold memory; if they are refused, the same without injection."""
    command = probe_command("usage", held.first, held.second)
    said = {"usage": Said(rig.run("usage", Container("usage", command, "usage"))["usage"])}
    if refused(said["usage"]):
        bare = Container("usage-bare", command)
        said["usage-bare"] = Said(rig.run("usage-bare", bare)["usage-bare"])
    return said


def _measure(rig: Rig, slices: dict[str, Slice]) -> dict[str, list[Said]]:
    """Run the rounds, and again what may have lost lines of its log."""
    commands = {"monitor": ("sh", "-c", _MONITOR, MONITOR), "process": probe_command("begin")}
    containers = [
        Container(f"{name or 'bare'}-{kind}", command, name)
        for name in (*slices, "")
        for kind, command in commands.items()
    ]
    ended = rig.run("rounds", *containers)
    said = {role: [Said(outcome)] for role, outcome in ended.items()}
    for again in range(2, _TRIES + 1):
        wanting = [
            item
            for item in containers
            if item.slice
            and not said_all(
                said[item.role][-1], slices[item.slice], modules=item.command == commands["process"]
            )
        ]
        if not wanting:
            break
        repeated = [Container(f"{item.role}-{again}", item.command, item.slice) for item in wanting]
        ended = rig.run(f"rounds-{again}", *repeated)
        for item, container in zip(wanting, repeated, strict=True):
            said[item.role].append(Said(ended[container.role]))
    return said
