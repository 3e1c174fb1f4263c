"""What the two hardware cases have in common: their terms, how their containers ended, who came meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.backends.nvidia.answers import ending, read_answer
from xbtasks.checks import Status
from xbtasks.errors import Refused, UsageError
from xbtasks.hardware import Unjudged
from xbtasks.host.step import Section, Step
from xbtasks.hostprobe import one_line
from xbtasks.images import read_image

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from xbtasks.backends.nvidia.answers import Answer
    from xbtasks.backends.nvidia.rig import Rig
    from xbtasks.backends.nvidia.rows import Rows
    from xbtasks.backends.nvidia.smi import Gpu
    from xbtasks.hardware import CaseRun
    from xbtasks.rig import Outcome

__all__ = ["go_on", "image_name", "judge_afterwards", "judge_endings", "judge_stdout", "require_terms"]


def require_terms(run: CaseRun, rows: Rows, cards: Sequence[Gpu], memory_mib: Sequence[int]) -> None:
    """Return when these limits can be set on these cards, and the host can run the images.

    Raises:
        UsageError: a limit is above its card, or the workload image isn't there.
        Refused: an image is for another platform.
    """
    for card, mib in zip(cards, memory_mib, strict=True):
        if mib > (card.memory_mib or 0):
            raise UsageError(
                f"the limit of {mib} MiB is above GPU {card.index}, which has {card.memory_mib} MiB"
            )
    if run.platform is not run.facts.platform:
        raise Refused(f"the image is for {run.platform}, the host is {run.facts.platform}")
    if run.workload != run.image:
        section = Section("image", run.engine.inspect_image(run.workload), run.deadline)
        image = read_image(run.ask(Step("workload", (section,)))["image"])
        if image is None:
            raise UsageError(f"workload image {run.workload} is not on the host; nothing is ever pulled")
        if image.platform != run.platform:
            raise Refused(f"workload image {run.workload} is for {image.platform}, not for {run.platform}")
    if run.facts.nvidia.mps:
        where = one_line(run.facts.nvidia.mps)
        rows.note("mps", Status.WARN, f"MPS pipe directory {where}: under MPS, limits are not proven")


def image_name(run: CaseRun) -> str:
    """Return what a person calls the image whose containers run on the cards."""
    return run.stage.image if run.workload == run.image else run.workload


def go_on(ended: Mapping[str, Outcome]) -> bool:
    """Whether more containers may tell more: not where programs hang or don't start under the preload."""
    return not any(outcome.timed_out or read_answer(outcome).log.loader for outcome in ended.values())


def judge_stdout(rows: Rows, answer: Answer) -> None:
    """The library writes nothing on its program's stdout."""
    if answer.report is None:
        return
    foreign = answer.report.foreign
    rows.require(
        "stdout",
        "what stands on the probe's stdout",
        "one document",
        one_line(foreign[0]) if foreign else "",
        holds=not foreign,
        good="nothing but the probe's document stands on its stdout",
    )


def judge_endings(rows: Rows, outcomes: Iterable[Outcome], cards: Sequence[Gpu]) -> None:
    """Every container with limits ended with 0. A hang may be the driver's: its version is told."""
    ended = list(outcomes)
    drivers = ", ".join(dict.fromkeys(card.driver for card in cards))
    wrong = False
    for outcome in ended:
        answer = read_answer(outcome)
        smi = outcome.role.startswith("smi")
        why = ending(outcome, answer.log) if smi else answer.trouble
        if why:
            wrong = True
            said = f" ({one_line(outcome.stdout)})" if smi and outcome.stdout.strip() else ""
            rows.failed("exit", f"container {outcome.role}, driver {drivers}", "exit status 0", why + said)
    if not wrong:
        rows.passed("exit", f"{len(ended)} containers with limits ended with 0")


def judge_afterwards(run: CaseRun, rig: Rig, rows: Rows, cards: Sequence[Gpu]) -> None:
    """Whoever came to compute on a card meanwhile may have spoilt what was measured.

    Raises:
        Unjudged: something is wrong, and it may be for that reason.
    """
    if run.knobs.busy_ok:
        return
    mine = {card.uuid.casefold() for card in cards}
    came = [tenant for tenant in rig.tenants("afterwards") if tenant.uuid.casefold() in mine]
    if came and rows.wrong:
        raise Unjudged(f"a GPU became busy during the run ({came[0]}), and not all was well")
    if came:
        rows.note("busy", Status.WARN, f"{came[0]} came to compute during the run")
