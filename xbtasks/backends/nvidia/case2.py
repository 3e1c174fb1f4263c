"""nvidia.case2, "Single-card inject + nvidia-smi": one card, sliced as the operator slices it.

Without the preload the card's own sizes are seen and all limits can be exceeded; with it every way to ask
tells the limit, and every way to take memory is held to it. The first round has the knobs' limits, the
second an odd one of this run's own, so that neither a constant nor a left-over can pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends.nvidia import choice, contract, judging, questions, throttle
from xbtasks.backends.nvidia.answers import read_answer
from xbtasks.backends.nvidia.common import (
    go_on,
    image_name,
    judge_afterwards,
    judge_endings,
    judge_stdout,
    require_terms,
)
from xbtasks.backends.nvidia.contract import MIB, Limits
from xbtasks.backends.nvidia.control import control_event, judge_control, judge_reachable
from xbtasks.backends.nvidia.probe import operations as op
from xbtasks.backends.nvidia.rig import PROBE, Container, Rig
from xbtasks.backends.nvidia.rows import Rows
from xbtasks.backends.nvidia.smi_memory import COMMAND, parse_memory
from xbtasks.checks import Status
from xbtasks.hardware import Unfit

if TYPE_CHECKING:
    from xbtasks.backends.nvidia.answers import Answer
    from xbtasks.backends.nvidia.smi import Gpu
    from xbtasks.backends.nvidia.smi_memory import SmiMemory
    from xbtasks.hardware import CaseRun, Findings
    from xbtasks.rig import Outcome

__all__ = ["CASE", "judge"]

CASE: Final = "nvidia.case2"
"""The id of the case."""
_DEFAULT_SM: Final = 50
_LEAST_ROOM: Final = 512  # MiB beside two contexts
_CARD_ROOM: Final = 2048  # MiB that a card must have beside the control's allocation
_REPEATED: Final = (
    "smi-total",
    "nvml-v1",
    "total",
    "device-total",
    "getproc-total",
    "alloc-under",
    "alloc-over",
    "sm-limit",
)
"""What the second round repeats."""

_COUNTS_POOLS: Final = "52f33fc7"
"""The pin from which cuMemAllocFromPoolAsync is counted, and cuMemAllocAsync refuses with 2."""

_ROLES: Final = ("smi", "limits", "smi-2", "limits-2", "throttle", "throttle-2")
_REQUIRED: Final = (
    "artifact",
    "reachable",
    "probe-build",
    "control",
    "exit",
    "preload-mapped",
    "stdout",
    "smi-total",
    "nvml-v1",
    "total",
    "device-total",
    "getproc-total",
    "plausible",
    "sm-limit",
    "alloc-under",
    "alloc-over",
    "free-credit",
    "shared",
    "round2",
)
"""Beside these, what the control shows the device to have: the families of memory, NVML v2, the throttle."""


def judge(run: CaseRun) -> Findings:
    """Judge the case.

    Raises:
        Skipped: a limit can't be measured on the card.
        Unfit: there is no such card, or the limit is above it.
        Refused: somebody computes on the card.
        Unjudged: nothing wrong was shown, and nothing right either.
    """
    rows = Rows(CASE)
    card = _card(run, rows)
    first = Limits((run.knobs.mem or contract.DEFAULT_MEMORY_MIB,), run.knobs.sm or _DEFAULT_SM)
    rig = Rig(run, rows, (card,))
    with rows.kept():
        require_terms(run, rows, (card,), first.memory_mib)
        if not run.knobs.busy_ok:
            choice.require_idle((card,), rig.tenants("idle"))
        run.permission(f"run containers of {image_name(run)} on GPU {card.index} ({card.name}), for a minute")
        rows.note("limits", Status.INFO, f"GPU {card.index} ({card.name}, {card.uuid}): {first.text}")
        with rig.set_up(_ROLES):
            required = _measure(run, rig, rows, card, first)
        note = "" if "throttle" in required else "compute not measured"
        return rows.findings(required, note)


def _card(run: CaseRun, rows: Rows) -> Gpu:
    if run.knobs.gpu != choice.AUTO:
        return choice.named_cards((run.knobs.gpu,), run.facts.gpus)[0]
    tenants = () if run.knobs.busy_ok else Rig(run, rows, ()).tenants("choose")
    return choice.idle_cards(1, run.facts.gpus, tenants)[0]


def _measure(run: CaseRun, rig: Rig, rows: Rows, card: Gpu, first: Limits) -> tuple[str, ...]:
    """Run all containers and add their rows; returns the names of those that must pass."""
    highest = _highest(card, first.memory_mib[0])
    above = highest * MIB + questions.ABOVE
    groups = (questions.control_group(above), *questions.control_pair(above))
    without = rig.run(
        "control", Container("bare-smi", COMMAND), Container("control", op.command(PROBE, *groups))
    )
    known = judge_reachable(rows, rig, without["bare-smi"], (card,))
    control = read_answer(without["control"])
    context = judge_control(rows, control, card, above)
    second = _second_limits(run.run_id, first, highest, context)
    rows.note("limits", Status.INFO, f"second round: {second.text}")

    ended = rig.run(
        "round-1",
        Container("smi", COMMAND, first),
        Container("limits", op.command(PROBE, *_questions(first, context)), first),
    )
    required = [*_REQUIRED, *_judge_first(run, rows, ended, control, card, first, context, known)]
    if go_on(ended):
        again = rig.run(
            "round-2",
            Container("smi-2", COMMAND, second),
            Container("limits-2", op.command(PROBE, *_short_questions(second, context)), second),
        )
        _judge_second(rows, again, control, card, second, known)
        ended |= again
    if not run.knobs.throttle:
        rows.note("throttle", Status.SKIP, "--no-throttle: compute is not measured")
    elif go_on(ended):
        held = _rates(rig, "throttle", first)
        if throttle.unclear(*held):
            held = _rates(rig, "throttle-2", first)
        judging.judge_sm_limit(rows, "throttle-limit", held[1].log, throttle.SM)
        if throttle.judge_throttle(rows, control, *held):
            required.append("throttle")
        ended["throttle"] = held[1].outcome
    judge_endings(rows, ended.values(), (card,))
    judge_afterwards(run, rig, rows, (card,))
    return tuple(required)


def _rates(rig: Rig, role: str, first: Limits) -> tuple[Answer, Answer]:
    """Return the rates of launches without limits and under the low one, one right after the other."""
    command = op.command(PROBE, questions.rate_group())
    limits = Limits(first.memory_mib, throttle.SM)
    ended = rig.run(role, Container(f"{role}-free", command), Container(role, command, limits))
    return read_answer(ended[f"{role}-free"]), read_answer(ended[role])


def _highest(card: Gpu, mib: int) -> int:
    """Return the highest limit of the second round, in MiB: above the first where the card has room."""
    more = mib * 5 // 4
    return more if more + _CARD_ROOM <= (card.memory_mib or 0) else mib


def _second_limits(run_id: str, first: Limits, highest: int, context: int) -> Limits:
    """Return an odd limit of this run's own, and an odd percentage.

    Raises:
        Unfit: the first limit leaves no room beside the contexts of two processes.
    """
    mib = first.memory_mib[0]
    least = 2 * (context // MIB) + _LEAST_ROOM
    if mib < least:
        raise Unfit(
            f"{mib} MiB leave no room: a context takes {context // MIB} MiB, and two processes are measured",
            hint=f"--mem {least} or more",
        )
    low = max(mib * 3 // 4, least - 1)
    return Limits(
        (contract.odd_between(f"{run_id} memory", low, max(highest, low + 3), but=(mib,)),),
        contract.odd_between(f"{run_id} sm", 21, 89, but=(first.sm,)),
    )


def _questions(limits: Limits, context: int) -> tuple[tuple[str, ...], ...]:
    limit = limits.memory
    return (
        questions.look_group(),
        questions.memory_group(limit, context),
        *(questions.family_group(family, limit, context) for family in questions.FAMILIES),
        *questions.shared_groups(limit, context),
    )


def _short_questions(limits: Limits, context: int) -> tuple[tuple[str, ...], ...]:
    return questions.look_group(), questions.memory_group(limits.memory, context)


def _judge_first(
    run: CaseRun,
    rows: Rows,
    sliced: dict[str, Outcome],
    control: Answer,
    card: Gpu,
    limits: Limits,
    context: int,
    known: SmiMemory,
) -> list[str]:
    """Add the rows of the first round; returns which must pass beside those that always must."""
    answer = read_answer(sliced["limits"])
    shown = parse_memory(sliced["smi"].stdout)
    required = ["context"]
    judging.judge_loading(rows, answer)
    judge_stdout(rows, answer)
    if sliced["smi"].exit_status == 0:
        judging.judge_smi(rows, "smi-total", shown, known.foreign, card.uuid, limits.memory_mib[0])
    init, nvml = answer.event("look", "init"), answer.event("look", "nvml")
    unlimited = control.event("control", "nvml")
    without = unlimited.card(card.uuid) if unlimited else None
    device = init.device(card.uuid) if init else None
    if init is not None and init.ok:
        told = control.event("control", "info")
        judging.judge_totals(rows, answer.event("look", "info"), device, limits.memory, control=told)
        has_v2 = without is None or without.v2.rc == 0
        judging.judge_nvml(rows, nvml.card(card.uuid) if nvml else None, limits.memory, has_v2=has_v2)
    if not judging.judge_context(rows, answer.event("look", "info"), answer.log, limits.memory, context):
        required.remove("context")
    judging.judge_plausible(rows, answer, shown, card.memory_mib or 0)
    judging.judge_sm_limit(rows, "sm-limit", answer.log, limits.sm)
    judging.judge_memory(rows, answer.process("alloc"))
    early = not run.stage.pin.startswith(_COUNTS_POOLS)
    for family in questions.FAMILIES:
        process, free = answer.process(family), control_event(control, family)
        if judging.judge_family(rows, family, process, control=free, early=early):
            required.append(family)
    judging.judge_shared(rows, answer, limits.memory)
    return required


def _judge_second(
    rows: Rows, sliced: dict[str, Outcome], control: Answer, card: Gpu, limits: Limits, known: SmiMemory
) -> None:
    """Add the one row of the second round: it stands for the checks of the first that it repeats."""
    inner = Rows("round2")
    answer = read_answer(sliced["limits-2"])
    shown = parse_memory(sliced["smi-2"].stdout)
    init, nvml = answer.event("look", "init"), answer.event("look", "nvml")
    judging.judge_smi(inner, "smi-total", shown, known.foreign, card.uuid, limits.memory_mib[0])
    device = init.device(card.uuid) if init else None
    info = answer.event("look", "info")
    judging.judge_totals(inner, info, device, limits.memory, control=control.event("control", "info"))
    judging.judge_nvml(inner, nvml.card(card.uuid) if nvml else None, limits.memory, has_v2=False)
    judging.judge_memory(inner, answer.process("alloc"))
    judging.judge_sm_limit(inner, "sm-limit", answer.log, limits.sm)
    rows.fold("round2", limits.text, inner, dict.fromkeys(_REPEATED, 1))
