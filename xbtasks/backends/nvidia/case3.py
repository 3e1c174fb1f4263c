"""nvidia.case3, "Multi-card per-device limits": several cards in one container, each with a limit of its own.

The limits differ and don't grow with the place, so that a mix-up of places shows. The place of a card is that
in the container, which is by the physical index whatever the order in which cards were asked for; what is
told of a card is matched by its UUID.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends.nvidia import choice, contract, judging, multicard, questions
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
from xbtasks.backends.nvidia.control import judge_reachable
from xbtasks.backends.nvidia.probe import operations as op
from xbtasks.backends.nvidia.rig import PROBE, Container, Rig
from xbtasks.backends.nvidia.rows import Rows
from xbtasks.backends.nvidia.smi_memory import COMMAND
from xbtasks.checks import Status
from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.backends.nvidia.smi import Gpu
    from xbtasks.hardware import CaseRun, Findings

__all__ = ["CASE", "judge", "limit_factors"]

CASE: Final = "nvidia.case3"
"""The id of the case."""
_DEFAULT_SM: Final = 30
_ROLES: Final = ("smi", "limits", "smi-2", "limits-2")
_REPEATED: Final = (
    "smi-total",
    "nvml-v1",
    "total",
    "device-total",
    "getproc-total",
    "alloc-under",
    "alloc-over",
)
"""What is asked of each card, and again in the second round."""

_REQUIRED: Final = (
    "artifact",
    "reachable",
    "probe-build",
    "control",
    "exit",
    "preload-mapped",
    "stdout",
    "visible",
    "sm-limit",
    *_REPEATED,
    "isolated",
    "round2",
)
"""Each per-card check has a row for every card, also where it wasn't reached."""


def limit_factors(cards: int) -> tuple[int, ...]:
    """Return what the memory knob is multiplied with, by place: distinct, and never just growing."""
    factors = [2, 1, 3]
    while len(factors) < cards:
        factors += [len(factors) + 2, len(factors) + 1]
    return tuple(factors[:cards])


def judge(run: CaseRun) -> Findings:
    """Judge the case.

    Raises:
        Skipped: a limit can't be measured on one of the cards.
        UsageError: there is no such card, fewer than two are named, or a limit is above its card.
        Refused: somebody computes on one of them.
        Unjudged: nothing wrong was shown, and nothing right either.
    """
    rows = Rows(CASE)
    with rows.kept():
        cards = _cards(run, rows)
        base = run.knobs.mem or contract.DEFAULT_MEMORY_MIB
        factors = limit_factors(len(cards))
        first = Limits(tuple(base * factor for factor in factors), run.knobs.sm or _DEFAULT_SM)
        require_terms(run, rows, cards, first.memory_mib)
        rig = Rig(run, rows, cards)
        if not run.knobs.busy_ok:
            choice.require_idle(cards, rig.tenants("idle"))
        names = ", ".join(f"{card.index} ({card.name})" for card in cards)
        run.permission(f"run containers of {image_name(run)} on GPUs {names}, for a minute")
        _note_limits(rows, cards, first, "")
        with rig.set_up(_ROLES):
            required = _measure(run, rig, rows, cards, first)
        return rows.findings(required)


def _cards(run: CaseRun, rows: Rows) -> tuple[Gpu, ...]:
    """Return the cards in the order that they have in a container."""
    if run.knobs.gpus == (choice.AUTO,):
        tenants = () if run.knobs.busy_ok else Rig(run, rows, ()).tenants("choose")
        cards = choice.idle_cards(2, run.facts.gpus, tenants)
    else:
        cards = choice.named_cards(run.knobs.gpus, run.facts.gpus)
    if len(cards) < 2:
        raise UsageError(f"the case needs at least 2 GPUs, {len(cards)} is named", hint="--gpus 0,1")
    return tuple(sorted(cards, key=lambda card: card.index))


def _note_limits(rows: Rows, cards: Sequence[Gpu], limits: Limits, which: str) -> None:
    for place, (card, mib) in enumerate(zip(cards, limits.memory_mib, strict=True)):
        what = f"GPU {card.index} ({card.name}, {card.uuid}) at place {place}: {mib} MiB, SM {limits.sm} %"
        rows.note("limits", Status.INFO, f"{which}{what}")


def _measure(run: CaseRun, rig: Rig, rows: Rows, cards: tuple[Gpu, ...], first: Limits) -> tuple[str, ...]:
    """Run all containers and add their rows; returns the names of those that must pass."""
    above = tuple(mib * MIB + questions.ABOVE for mib in first.memory_mib)
    groups = (
        questions.look_group(),
        *(questions.control_card(place, size) for place, size in enumerate(above)),
    )
    without = rig.run(
        "control", Container("bare-smi", COMMAND), Container("control", op.command(PROBE, *groups))
    )
    known = judge_reachable(rows, rig, without["bare-smi"], cards)
    control = read_answer(without["control"])
    contexts = multicard.judge_control(rows, control, cards, above)
    multicard.require_room(first, contexts)
    second = _second_limits(run.run_id, first, contexts)
    _note_limits(rows, cards, second, "second round: ")

    limits = tuple(mib * MIB for mib in first.memory_mib)
    words = (
        questions.look_group(),
        *_card_groups(limits, contexts),
        questions.together_group(limits, contexts),
    )
    ended = rig.run(
        "round-1", Container("smi", COMMAND, first), Container("limits", op.command(PROBE, *words), first)
    )
    answer = read_answer(ended["limits"])
    judging.judge_loading(rows, answer)
    judge_stdout(rows, answer)
    multicard.judge_visible(rows, answer, ended["smi"], cards)
    multicard.judge_cards(rows, answer, ended["smi"], cards, first, known, control)
    required = list(_REQUIRED)
    if multicard.judge_contexts(rows, answer, cards, first, contexts):
        required.append("context")
    judging.judge_sm_limit(rows, "sm-limit", answer.log, first.sm, len(cards))
    multicard.judge_isolated(rows, answer, cards, first, contexts)
    if go_on(ended):
        limits = tuple(mib * MIB for mib in second.memory_mib)
        words = (questions.look_group(), *_card_groups(limits, contexts))
        again = rig.run(
            "round-2",
            Container("smi-2", COMMAND, second),
            Container("limits-2", op.command(PROBE, *words), second),
        )
        answer, inner = read_answer(again["limits-2"]), Rows("round2")
        multicard.judge_cards(inner, answer, again["smi-2"], cards, second, known, control)
        judging.judge_sm_limit(inner, "sm-limit", answer.log, second.sm, len(cards))
        needed = {**dict.fromkeys(_REPEATED, len(cards)), "sm-limit": 1}
        rows.fold("round2", second.text, inner, needed)
        ended |= again
    judge_endings(rows, ended.values(), cards)
    judge_afterwards(run, rig, rows, cards)
    return tuple(required)


def _card_groups(limits: Sequence[int], contexts: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    return tuple(
        questions.memory_group(limit, context, place, f"card-{place}")
        for place, (limit, context) in enumerate(zip(limits, contexts, strict=True))
    )


def _second_limits(run_id: str, first: Limits, contexts: Sequence[int]) -> Limits:
    """Return odd limits of this run's own, no two alike, each some less than the first round's.

    The control has shown that each card has more than that.
    """
    chosen: list[int] = []
    for place, mib in enumerate(first.memory_mib):
        low = max(mib * 3 // 4, contexts[place] // MIB + multicard.LEAST_ROOM_MIB)
        but = (*first.memory_mib, *chosen)
        chosen.append(contract.odd_between(f"{run_id} memory {place}", low, mib + 2 * len(but), but=but))
    return Limits(tuple(chosen), contract.odd_between(f"{run_id} sm", 21, 89, but=(first.sm,)))
