"""Which die a case runs on: what the user named, the right chip for the stage, free, and known by its id.

Three numbers are kept apart: npu-smi's card and chip (``-i``, ``-c``), and the physical id that the device
file, the Ascend runtime and vcann-rt's configuration use. What is looked at here starts no container.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend import contract
from xbtasks.backends.ascend.board import LABELS, board_arguments, read_die_id
from xbtasks.backends.ascend.hardware import PLACES
from xbtasks.backends.ascend.tenants import read_shared, read_tenants, tenants_section
from xbtasks.checks import Check, Status
from xbtasks.errors import CannotJudge, Refused, UsageError
from xbtasks.hardware import Skipped
from xbtasks.host.step import Section, Step
from xbtasks.hostprobe import Answers, one_line, probe, unusable
from xbtasks.rig import HELD, WAIT, hold

if TYPE_CHECKING:
    from xbtasks.backends.ascend.smi import Die
    from xbtasks.hardware import CaseRun
    from xbtasks.host.step import SectionReply
    from xbtasks.hostprobe import Answer

__all__ = ["RUNTIME", "Target", "find_target", "held", "require_held"]

RUNTIME: Final = "ascend"
"""The OCI runtime that injects the driver."""

_BOARD: Final = 'find "$1" "$2" || exit 0\nshift 2\nask board "$tool" "$@"\n'


@dataclass(frozen=True, slots=True)
class Target:
    """The die of a case, what the shared memory of its slices is called, and the rows that say so."""

    die: Die
    physical_id: int
    shm_id: str
    rows: tuple[Check, ...]


def find_target(run: CaseRun, case: str) -> Target:
    """Return the die that the knobs name, looked at on the host.

    Raises:
        UsageError: there is no such die, or it can't be sliced.
        Skipped: it isn't the stage's chip.
        Refused: it is busy, or its slices have a live tenant.
        Skipped: the engine can't inject it.
        CannotJudge: npu-smi doesn't tell what must be known.
    """
    if RUNTIME not in run.facts.engine.runtimes:
        reason = f"the engine has no runtime {RUNTIME}: NPUs can't be brought into a container"
        raise Skipped(reason, Check(f"{case}.card", Status.WARN, reason))
    die, physical_id = _named(run)
    rows = [_card_row(run, f"{case}.card", die, physical_id)]
    die_id = read_die_id(_board(run, die), die)
    shm_id = contract.shm_name(die_id)
    detail = f"{LABELS[die.family]} {die_id} gives {shm_id}"
    rows.append(Check(f"{case}.shm-id", Status.PASS, detail))
    asked = tenants_section("tenants", PLACES, shm_id, run.deadline)
    section = Section("tenants", held(shm_id, asked.argv), asked.deadline + WAIT)
    answer = run.ask(Step("tenants", (section,)))["tenants"]
    require_held(answer)
    rows.append(_shared_row(answer, case, shm_id))
    rows.append(_idle_row(run, answer, case, die))
    return Target(die, physical_id, shm_id, tuple(rows))


def held(shm_id: str, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argv that runs ``argv`` while no other run has the die."""
    lock = f"/tmp/xbtasks-{shm_id}.lock"  # noqa: S108 - any user's
    return hold((lock,), argv)


def require_held(answer: SectionReply) -> None:
    """Return when the die was held by this run while the section ran.

    Raises:
        CannotJudge: another run had it all the time.
    """
    if answer.exit_status == HELD and "another run holds it" in answer.error_text:
        raise CannotJudge(f"the NPU was held by another run for {WAIT} s")


def _named(run: CaseRun) -> tuple[Die, int]:
    npu, chip = run.knobs.npu, run.knobs.chip
    for die in run.facts.npus:
        if (die.npu_id, die.chip_id) == (npu, chip):
            if die.physical_id is None or not die.sliceable:
                raise UsageError(
                    f"NPU {npu} chip {chip} has the physical id {die.physical_id}: vcann-rt takes 0 to 15"
                )
            return die, die.physical_id
    there = ", ".join(f"{die.npu_id}/{die.chip_id}" for die in run.facts.npus)
    raise UsageError(
        f"the host has no NPU {npu} chip {chip}", hint=f"--npu and --chip name one of {there} (npu-smi -i/-c)"
    )


def _card_row(run: CaseRun, row: str, die: Die, physical_id: int) -> Check:
    """Say which die it is; a stage that is for another chip is skipped."""
    wanted = run.stage.suffix.rpartition("-")[2]
    if wanted not in LABELS:
        raise CannotJudge(f"stage {run.stage.stage} doesn't tell the chip that it is for: {one_line(wanted)}")
    where = f"NPU {die.npu_id} chip {die.chip_id} ({die.chip_name})"
    if die.family != wanted:
        reason = f"stage {run.stage.stage} is for {wanted}, {where} is {die.family or 'of an unknown kind'}"
        raise Skipped(reason, Check(row, Status.WARN, reason))
    detail = f"{where} is {wanted}, as the stage; its physical id is {physical_id}"
    return Check(row, Status.PASS, f"{detail}; runtime {RUNTIME} brings it in")


def _board(run: CaseRun, die: Die) -> Answer | None:
    section = probe("board", _BOARD, run.deadline, "npu-smi", PLACES, *board_arguments(die))
    answers = Answers(run.ask(Step("board", (section,)))["board"])
    trouble = unusable(answers, "npu-smi")
    if trouble:
        raise CannotJudge(f"npu-smi can't be asked for the die id: {trouble.text}")
    return answers.answer("board")


def _shared_row(answer: SectionReply, case: str, shm_id: str) -> Check:
    shared = read_shared(answer)
    row = f"{case}.shm-free"
    if shared.users:
        raise Refused(
            f"shared memory {shm_id} is in use by process {', '.join(shared.users[:5])}: the NPU is sliced",
            hint="another NPU, or stop the workload that uses the slice",
        )
    if shared.unseen:
        detail = f"{shared.unseen} processes can't be looked into: whether one uses {shm_id} is unknown"
        return Check(row, Status.WARN, detail)
    left = (
        "a file of that name is left over, and no process uses it"
        if shared.exists
        else "no file of that name"
    )
    return Check(row, Status.PASS, f"no live tenant: {left}")


def _idle_row(run: CaseRun, answer: SectionReply, case: str, die: Die) -> Check:
    row = f"{case}.idle"
    if run.knobs.busy_ok:
        return Check(row, Status.WARN, "--busy-ok: whether somebody computes on the NPU was not looked at")
    tenants = read_tenants(answer, die)
    if tenants:
        raise Refused(
            f"NPU {die.npu_id} chip {die.chip_id} is busy: {', '.join(map(str, tenants[:5]))}",
            hint="another NPU, or --busy-ok to share it",
        )
    return Check(row, Status.PASS, "nobody computes on the NPU")
