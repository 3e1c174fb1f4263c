"""Case 2 as a judge: what ``enpu-monitor`` and a CANN process said, round by round, becomes rows. Nothing
is asked.

What the asynchronous logger loses (measured: 9 of 150 runs, ubs-virt bac3d46; mostly all lines) is no
fault: a run is repeated a few times, and a line counts where any try has it. A wrong value or a value
loaded twice counts wherever it stands. A monitor that logs nothing at all in any try (sources newer than
bac3d46) is judged by its quotas alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend.contract import KEYS, SHARED_MEMORY
from xbtasks.backends.ascend.said import Said, failed, mapped_row, require_probe, tries_text, why
from xbtasks.checks import Check, Status
from xbtasks.hardware import Unjudged

if TYPE_CHECKING:
    from xbtasks.backends.ascend.contract import Slice

__all__ = ["judge_bare", "judge_monitor", "judge_process", "said_all"]

_CODES: Final = {
    172: "dcmi says -8020: the device is used; npu-smi set -t device-share shares it with containers",
    187: "dcmi says -8005: it can't be initialised in the container",
}
"""enpu-monitor's exit statuses that tell of the host: dcmi's negative code modulo 256."""


def said_all(tried: Said, part: Slice, *, modules: bool) -> bool:
    """Whether a try leaves nothing to be repeated for: it ended wrong, or all lines are there."""
    log = tried.log
    whole = all(log.values(key) for key in part.fields) and log.device > 0
    return tried.outcome.exit_status != 0 or (whole and (log.modules > 0 or not modules))


def judge_monitor(case: str, name: str, part: Slice, tries: list[Said]) -> list[Check]:
    """Return the rows of a round of ``enpu-monitor``.

    Raises:
        Unjudged: dcmi refused the device.
    """
    rows = [mapped_row(case, f"{name} round, enpu-monitor's container", tries[0])]
    for tried in tries:
        if tried.outcome.exit_status in _CODES and not tried.log.aicore:
            raise Unjudged(f"enpu-monitor {tried.outcome.ended}: {_CODES[tried.outcome.exit_status]}", *rows)
    bad = next((tried for tried in tries if tried.outcome.exit_status or tried.outcome.timed_out), None)
    if bad:
        rows.append(failed(f"{case}.exit", f"{name} round: {why(bad)}", "exit status 0", bad.outcome.ended))
    else:
        rows.append(Check(f"{case}.exit", Status.PASS, f"{name} round: enpu-monitor ended with 0"))
    rows += [
        *_fields(case, f"{name} round, enpu-monitor", part, tries),
        _line(case, "device", f"{name} round", [tried.log.device for tried in tries], tries),
        _quotas(case, name, part, tries),
    ]
    return rows


def judge_process(case: str, name: str, part: Slice, tries: list[Said]) -> list[Check]:
    """Return the rows of a round of a CANN process.

    Raises:
        Unjudged: the workload image can't run it.
    """
    for tried in tries:
        require_probe(tried)
    rows = [mapped_row(case, f"{name} round, a CANN process", tries[0])]
    rows += _fields(case, f"{name} round, the CANN process", part, tries)
    row = f"{case}.modules"
    for tried in tries:
        device = tried.report.event("device")
        if device is None or device.rc != 0:
            code = "no answer" if device is None else f"code {device.rc}"
            detail = f"{name} round: the device can't be used: {code}; {why(tried)}"
            rows.append(failed(row, detail, "rtSetDevice returns 0", code))
            return rows
    rows.append(_line(case, "modules", f"{name} round", [tried.log.modules for tried in tries], []))
    rows.append(_shared_memory(case, f"{name} round", part, tries[-1]))
    return rows


def _shared_memory(case: str, where: str, part: Slice, said: Said) -> Check:
    """Judge the shared memory of a card's slices, which the configuration names.

    Slices of two cards that meet in one, or those of a card that don't meet, have their compute shared out
    wrongly.
    """
    row, expected = f"{case}.shm-mapped", f"{SHARED_MEMORY}{part.shm_id}"
    found = said.report.paths(SHARED_MEMORY)
    if expected in found:
        return Check(row, Status.PASS, f"{where}: the CANN process shares {expected}")
    detail = f"{where}: the CANN process doesn't share the memory that shm-id names"
    return failed(row, detail, f"{expected} in /proc/self/maps", ", ".join(found) or "none")


def judge_bare(case: str, monitor: Said, process: Said) -> list[Check]:
    """Return the rows of the round without a configuration: nothing may initialise.

    Raises:
        Unjudged: the workload image can't run a CANN process.
    """
    require_probe(process)
    row = f"{case}.no-config"
    rows = [mapped_row(case, "no-config round", said) for said in (monitor, process)]
    log, status = monitor.log, monitor.outcome.exit_status
    if status == 0 or log.device or log.aicore or log.memory:
        observed = f"{monitor.outcome.ended}, {log.device} device lines, quotas {log.aicore + log.memory}"
        rows.append(failed(row, "enpu-monitor takes a slice without a configuration", "an error", observed))
    elif status != 1:
        rows.append(
            failed(row, f"enpu-monitor without a configuration: {why(monitor)}", "1", monitor.outcome.ended)
        )
    else:
        rows.append(Check(row, Status.PASS, "enpu-monitor without a configuration ends with 1"))
    device, taken = process.report.event("device"), process.report.event("take")
    if device is None:
        detail = f"a CANN process without a configuration didn't come to use the device: {why(process)}"
        rows.append(failed(row, detail, "an error code", process.outcome.ended))
    elif device.rc == 0 or process.log.modules or taken is not None:
        got = "memory was given" if taken and taken.rc == 0 else "no memory was given"
        observed = f"code {device.rc}, {process.log.modules} all-module lines, {got}"
        rows.append(
            failed(
                row, "fails open: nothing holds a CANN process without a configuration", "an error", observed
            )
        )
    else:
        rows.append(
            Check(
                row, Status.PASS, f"a CANN process without a configuration gets code {device.rc}, no device"
            )
        )
    return rows


def _fields(case: str, where: str, part: Slice, tries: list[Said]) -> list[Check]:
    """Judge the configuration that was loaded: each key once with its value, and no other."""
    row = f"{case}.fields"
    wrong = []
    for key, expected in part.fields.items():
        for tried in tries:
            values = tried.log.values(key)
            if values and values != (expected,):
                wrong.append(f"{key}: {' and '.join(values)}, not {expected} once")
                break
    strange = dict.fromkeys(key for tried in tries for key, _ in tried.log.loaded if key not in KEYS)
    wrong += [f"{key}: not a field" for key in strange]
    if wrong:
        return [
            failed(
                row,
                f"{where} loads other fields than the configuration's",
                "six, each once",
                "; ".join(wrong),
            )
        ]
    if all(tried.log.lines == 0 for tried in tries) and all(
        tried.outcome.exit_status == 0 for tried in tries
    ):
        detail = f"{where} logs nothing in {tries_text(tries)}: its quotas are the evidence"
        return [Check(row, Status.PASS, detail)]
    missing = [key for key in part.fields if not any(tried.log.values(key) for tried in tries)]
    if missing:
        observed = f"never in {tries_text(tries)}: {', '.join(missing)}"
        return [failed(row, f"{where} doesn't load all fields", "six, each once", observed)]
    detail = f"{where} loads all six fields, each once: {' '.join(part.config.split())}{_tries(tries)}"
    return [Check(row, Status.PASS, detail)]


def _line(case: str, check: str, where: str, counts: list[int], silent: list[Said]) -> Check:
    """Judge the line that tells of an initialised device, or of all modules; they are two lines."""
    what = {"device": "the vnpu device", "modules": "all modules"}[check]
    row = f"{case}.{check}"
    if max(counts) > 1:
        return failed(row, f"{where}: {what} initialised more than once", "one line", f"{max(counts)} lines")
    if max(counts) == 1:
        return Check(row, Status.PASS, f"{where}: {what} initialised")
    if silent and all(tried.log.lines == 0 and tried.outcome.exit_status == 0 for tried in silent):
        return Check(row, Status.PASS, f"{where}: the monitor logs nothing and ended with 0")
    return failed(row, f"{where}: {what} never initialised in {len(counts)} runs", "one line", "none")


def _quotas(case: str, name: str, part: Slice, tries: list[Said]) -> Check:
    row = f"{case}.quotas"
    expected = (str(part.aicore),), (str(part.memory_mib),)
    for tried in tries:
        found = tried.log.aicore, tried.log.memory
        if found != expected:
            observed = f"AICore {' and '.join(found[0]) or 'none'}, memory {' and '.join(found[1]) or 'none'}"
            return failed(row, f"{name} round: enpu-monitor prints other quotas", part.text, observed)
    return Check(row, Status.PASS, f"{name} round: enpu-monitor prints {part.text}")


def _tries(tries: list[Said]) -> str:
    return f"; {len(tries)} tries, for log lines that were lost" if len(tries) > 1 else ""
