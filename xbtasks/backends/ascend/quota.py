"""Case 3 as a judge: what the probe got with and without a quota becomes rows. Nothing is asked.

Contract: ubs-virt 4d7e4b1, 9f8c779, bac3d46, ``mem_limiter.c``: a request is refused when it and what is
used are more than the quota; the code is 300000. What is used are all processes of the container with their
contexts, so the memory that a workload gets is less than the quota by what its contexts cost. Codes: CANN's
``acl_base.h``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend.contract import LIBRARY, MIB
from xbtasks.backends.ascend.said import Said, failed, mapped_row, require_probe, tries_text, why
from xbtasks.checks import Check, Status
from xbtasks.hardware import Unfit, Unjudged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xbtasks.backends.ascend.contract import Slice
    from xbtasks.backends.ascend.report import Event

__all__ = [
    "CARD_FULL",
    "PAGE",
    "Sizes",
    "code_text",
    "families",
    "judge_baseline",
    "judge_fill",
    "judge_shared",
    "least_together",
    "require_room",
    "wants_line",
]

REFUSED: Final = 300000
CARD_FULL: Final = 207001
"""ACL: the card itself is out of memory."""
_CODES: Final = {
    REFUSED: "the quota",
    CARD_FULL: "the card itself is full",
    500001: "vcann-rt's lock or its look at the card failed",
    100001: "vcann-rt failed to initialise",
    -2: "a success without an address",
}
PAGE: Final = 2 * MIB
"""A page of a device's memory, in bytes."""
_PADDING: Final = 4 * MIB
"""What aclrtMalloc may add to a request: 32 bytes, and rounding to pages of 2 MiB."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the probe asks for: chunks of so many bytes, against a quota of so many."""

    quota: int
    chunk: int

    @classmethod
    def of(cls, memory_mib: int) -> Sizes:
        """Return the sizes for a quota: chunks are small enough to come near to it.

        With its padding a chunk is whole pages, so that what is asked for is also what the card counts.
        """
        pages = min(32, max(4, memory_mib // 32))
        return cls(memory_mib * MIB, pages * PAGE - 32)

    @property
    def slack(self) -> int:
        """How much less than the quota a workload may get, beside its contexts and a chunk."""
        return min(256 * MIB, self.quota // 4)


def judge_baseline(case: str, said: Said, sizes: Sizes) -> tuple[Check, int]:
    """Return the row of the run without injection, and what a context costs in bytes.

    Raises: Unjudged: it doesn't show that the card has more than the quota: nothing that follows would mean
    anything.
    """
    row = f"{case}.baseline"
    require_probe(said)
    report = said.report
    device, filled, context = report.event("device"), report.event("fill"), report.event("context")
    wrong = ""
    if said.log.lines or report.mapped(LIBRARY):
        wrong = "vcann-rt is in a container that it was not injected into"
    elif device is None or device.rc != 0:
        wrong = f"the device can't be used: {code_text(device)}"
    elif context is None or context.rc != 0:
        wrong = "a second process can't use the device, so what a context costs is unknown"
    elif filled is None or said.outcome.exit_status != 0:
        wrong = f"the probe didn't come to its end: {why(said)}"
    elif filled.rc != 0:
        wrong = f"the card gave only {_mib(filled.size)} ({code_text(filled)})"
    if wrong or filled is None or context is None:
        raise Unjudged(
            f"inconclusive, without injection {wrong}",
            failed(row, wrong, f"more than {_mib(sizes.quota + sizes.chunk)}", "inconclusive"),
            hint="an idle NPU, or a smaller --mem",
        )
    detail = (
        f"without injection the same card gives {_mib(filled.size)}; a context costs {_mib(context.size)}"
    )
    return Check(row, Status.PASS, detail), context.size


def require_room(sizes: Sizes, context: int) -> None:
    """Return when the quota leaves room for two processes to be measured.

    Raises:
        Unfit: their contexts alone are about as large.
    """
    need = 2 * context + 4 * sizes.chunk
    if sizes.quota * 3 // 4 < need:
        least = -(-(2 * context + 256 * MIB) * 4 // 3 // MIB)
        raise Unfit(
            f"a quota of {_mib(sizes.quota)} can't be measured where a context alone costs {_mib(context)}",
            hint=f"--mem {least} or more",
        )


def wants_line(said: Said) -> bool:
    """Whether a refusal is without its line in the log, which may have been lost."""
    event = said.report.event("fill", "b") or said.report.event("fill")
    return event is not None and event.rc != 0 and not said.log.refusals


def families(baseline: Said) -> dict[str, int]:
    """Return the code of each of ACL's other ways to take memory, without injection."""
    return {event.why: event.rc for event in baseline.report.events if event.op == "family"}


def judge_fill(
    case: str,
    name: str,
    part: Slice,
    sizes: Sizes,
    context: int,
    tries: list[Said],
    *,
    ways: Mapping[str, int],
) -> list[Check]:
    """Return the rows of a round of one process that fills its quota; ``ways`` is :func:`families`."""
    said = tries[-1]
    rows = [mapped_row(case, f"{name} round", said)]
    filled = said.report.event("fill")
    if not _came_to(case, f"{name} round", said, filled, rows) or filled is None:
        return rows
    memory = said.report.event("memory")
    total = memory.total if memory and memory.rc == 0 else None
    row = f"{case}.reported-total"
    if total == part.memory:
        rows.append(Check(row, Status.PASS, f"{name} round: aclrtGetMemInfo reports the quota as the total"))
    else:
        observed = f"{total} bytes" if total is not None else code_text(memory)
        rows.append(
            failed(
                row, f"{name} round: aclrtGetMemInfo reports another total", f"{part.memory} bytes", observed
            )
        )
    rows += _capped(case, "ceiling", f"{name} round", part, filled.size, filled)
    rows.append(_line(case, f"{name} round", part, sizes, tries))
    rows.append(_floor(case, f"{name} round", sizes, filled.size, context))
    if filled.rc != 0:
        rows += _families(case, f"{name} round", said, ways)
    return rows


def judge_shared(case: str, part: Slice, sizes: Sizes, alone: int, tries: list[Said]) -> list[Check]:
    """Return the rows of two processes of one container: their memory and their contexts are one sum.

    ``alone`` is the least that both must get together: see :func:`least_together`.
    """
    said = tries[-1]
    where = "two processes"
    rows = [mapped_row(case, where, said)]
    first, second = said.report.event("fill"), said.report.event("fill", "b")
    if not _came_to(case, where, said, first, rows) or first is None:
        return rows
    row = f"{case}.shared"
    if first.rc != 0:
        detail = f"the first of {where} was refused at half of the quota: {code_text(first)}"
        return [*rows, failed(row, detail, f"{_mib(part.memory // 2)}", _mib(first.size))]
    if second is None:
        device = said.report.event("device", "b")
        detail = f"the second of {where} can't use the device: {code_text(device)}; {why(said)}"
        return [*rows, failed(row, detail, "a second process", code_text(device))]
    ended = said.report.event("second")
    if ended is None or ended.rc != 0:
        code = "no answer" if ended is None else f"exit status {ended.rc}"
        detail = f"the second of {where} didn't come to its end"
        rows.append(failed(f"{case}.probe", detail, "exit status 0", code))
    total = first.size + second.size
    rows += _capped(
        case, "shared", f"{where}, {_mib(first.size)} and {_mib(second.size)}", part, total, second
    )
    rows.append(_line(case, where, part, sizes, tries))
    if total < alone or second.size == 0:
        text = f"at least {_mib(alone)}, which one process got less another context"
        rows.append(failed(row, f"{where}: the second was refused too early", text, _mib(total)))
    return rows


def least_together(sizes: Sizes, context: int, single: Said) -> int:
    """Return the least that two processes must get, from what ``single`` got of the same quota.

    They get another context less. What that costs is what the card shows, or vcann-rt's own count where that
    is more and not out of all proportion.
    """
    filled = single.report.event("fill")
    if filled is None:
        return 0
    counted = max((line.used - filled.size for line in single.log.refusals), default=0)
    return max(0, filled.size - max(context, min(counted, context + sizes.slack)) - 2 * sizes.chunk)


def _came_to(case: str, where: str, said: Said, filled: Event | None, rows: list[Check]) -> bool:
    """Tell whether the probe came to take memory and to its end; add the row that says so."""
    row = f"{case}.probe"
    require_probe(said, *rows)
    device = said.report.event("device")
    if filled is not None and said.outcome.exit_status == 0:
        rows.append(Check(row, Status.PASS, f"{where}: the probe came to its end"))
        return True
    if device is not None and device.rc != 0:
        rows.append(
            failed(
                row,
                f"{where}: the device can't be used: {code_text(device)}",
                "rtSetDevice returns 0",
                code_text(device),
            )
        )
    else:
        rows.append(
            failed(
                row,
                f"{where}: the probe didn't come to its end: {why(said)}",
                "exit status 0",
                said.outcome.ended,
            )
        )
    return False


def _capped(case: str, check: str, where: str, part: Slice, size: int, last: Event) -> list[Check]:
    """Judge the ceiling, and the code of the refusal."""
    row = f"{case}.{check}"
    quota = _mib(part.memory)
    if last.rc == 0 or size > part.memory:
        observed = f"{_mib(size)}{', and no refusal' if last.rc == 0 else ''}"
        rows = [failed(row, f"{where}: more than the quota was given", f"at most {quota}", observed)]
    else:
        rows = [Check(row, Status.PASS, f"{where}: refused after {_mib(size)} of {quota}")]
    code = f"{case}.code"
    if last.rc == REFUSED:
        return [*rows, Check(code, Status.PASS, f"{where}: the code is the quota's, {REFUSED}")]
    detail = f"refused, but not by the quota: {code_text(last)}" if last.rc else "never refused"
    return [*rows, failed(code, f"{where}: {detail}", str(REFUSED), str(last.rc))]


def _families(case: str, where: str, said: Said, ways: Mapping[str, int]) -> list[Check]:
    """Judge ACL's other ways to take memory, which are asked once the quota is full.

    A way that gives nothing without injection either shows nothing when it is refused.
    """
    row = f"{case}.families"
    codes = {event.why: event.rc for event in said.report.events if event.op == "family"}
    given = [way for way, code in codes.items() if code == 0]
    if given:
        return [failed(row, f"{where}: a full quota gives more, in another way", "refused", ", ".join(given))]
    shown = [way for way, code in ways.items() if code == 0]
    other = [f"{way} {codes.get(way, 'no answer')}" for way in shown if codes.get(way) != REFUSED]
    if other:
        detail = f"{where}: refused in another way, but not by the quota"
        return [failed(row, detail, str(REFUSED), ", ".join(other))]
    rows = []
    if shown:
        detail = f"{where}: the quota refuses in other ways too: {', '.join(shown)}"
        rows.append(Check(row, Status.PASS, detail))
    lacking = [f"{way} {code}" for way, code in ways.items() if code != 0]
    if lacking:
        detail = f"{where}: these ways give nothing without injection either: {', '.join(lacking)}"
        rows.append(Check(row, Status.WARN, detail))
    return rows


def _line(case: str, where: str, part: Slice, sizes: Sizes, tries: list[Said]) -> Check:
    """Judge the lines that tell of refusals: the quota's exact bytes, and numbers that add up."""
    row = f"{case}.oom-line"
    lines = [line for tried in tries for line in tried.log.refusals]
    expected = f"used <= quota < used + request, quota {part.memory}, request {sizes.chunk} and padding"
    if not lines:
        return failed(row, f"{where}: no Out of memory! line in {tries_text(tries)}", expected, "none")
    for line in lines:
        # the other ways are asked for two chunks, so that one less padded isn't just within the quota
        asked = any(0 <= line.request - chunks * sizes.chunk <= _PADDING for chunks in (1, 2))
        # the last grant may have been counted as a page more than was asked for
        adds_up = line.used < line.quota + PAGE and line.quota < line.used + line.request
        if line.quota != part.memory or not adds_up or not asked:
            return failed(row, f"{where}: the Out of memory! line has other numbers", expected, str(line))
    detail = f"{where}: {lines[-1]} bytes: the quota's own bytes, and they add up"
    return Check(row, Status.PASS, f"{detail}; {len(tries)} tries" if len(tries) > 1 else detail)


def _floor(case: str, where: str, sizes: Sizes, size: int, context: int) -> Check:
    row = f"{case}.floor"
    least = max(0, sizes.quota - context - sizes.chunk - sizes.slack)
    text = f"at least {_mib(least)}: the quota less a context of {_mib(context)}, a chunk and some slack"
    if size < least:
        return failed(row, f"{where}: refused too early", text, _mib(size))
    return Check(row, Status.PASS, f"{where}: {_mib(size)} were given, {text}")


def code_text(event: Event | None) -> str:
    """Return the code of an operation, for a person."""
    if event is None:
        return "no answer"
    known = _CODES.get(event.rc)
    return f"code {event.rc}, {known}" if known else f"code {event.rc}"


def _mib(size: int) -> str:
    return f"{size // MIB} MiB" if size % MIB == 0 else f"{size / MIB:.1f} MiB"
