"""Whether a compute limit really holds launches back.

The log says the limit whatever becomes of it. HAMi-core (8f3a89c, ``multiprocess_utilization_watcher.c``)
holds launches back by what NVML says that its process takes of the card: where NVML doesn't say, or the
library can't find its process, the limit isn't enforced and nothing can be measured. Its controller
overshoots, so the rate is compared with a half, not with the limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.checks import Status

if TYPE_CHECKING:
    from xbtasks.backends.nvidia.answers import Answer
    from xbtasks.backends.nvidia.probe.report import Event
    from xbtasks.backends.nvidia.rows import Rows

__all__ = ["SM", "judge_throttle", "unclear"]

SM: Final = 20
"""The compute limit under which the rate is measured, in percent."""

_MOST: Final = 0.5
_UNCLEAR: Final = 0.8
_LEAST: Final = 0.02  # less is no slice of the card: launches starve
_LEAST_LAUNCHES: Final = 20
_NOT_SUPPORTED: Final = 3
_PLAIN: Final = ("rate", 0)
_WAYS: Final = {
    _PLAIN: "",
    ("rate-ex", 0): "by cuLaunchKernelEx",
    ("rate", 1): "by what cuGetProcAddress gives out as cuLaunchKernel",
    ("rate-ex", 1): "by what cuGetProcAddress gives out as cuLaunchKernelEx",
}
"""The ways to launch: the operation, and which of its name in the group."""


def unclear(free: Answer, held: Answer) -> bool:
    """Whether a second measurement may tell more: a busy machine slows both down, though not alike."""
    return any(_unclear(free.event("rate", *way), held.event("rate", *way)) for way in _WAYS)


def _unclear(free: Event | None, held: Event | None) -> bool:
    if free is None or held is None or not (free.ok and held.ok and free.launches and held.launches):
        return False
    return _MOST < _rate(held) / _rate(free) < _UNCLEAR


def judge_throttle(rows: Rows, control: Answer, without: Answer, answer: Answer) -> bool:
    """Add the rows; returns whether they must pass: not where compute can't be measured.

    ``control`` says what the device can; ``without`` has the rate without limits, ``answer`` that under them.
    """
    free, held = without.event("rate", *_PLAIN), answer.event("rate", *_PLAIN)
    nvml = control.event("control", "nvml")
    if free is None or not free.ok or free.launches < _LEAST_LAUNCHES:
        said = "no launch" if free is None else f"{free.launches} launches, result {free.rc}"
        rows.note("throttle", Status.SKIP, f"can't be measured: without limits there was {said}")
        return False
    if held is None or not held.ok:
        if held is not None:
            rows.failed("throttle", "launches fail under the limit", "launches", f"result {held.rc}")
        return True
    ratio = _rate(held) / _rate(free)
    text = f"{_rate(held):.0f} launches/s at SM {SM} %, {_rate(free):.0f} without: {ratio:.2f}"
    if _LEAST <= ratio <= _MOST:
        rows.passed("throttle", text)
        for way in _WAYS:
            if way != _PLAIN:
                _judge_way(rows, way, without, answer)
        return True
    if ratio < _LEAST:
        rows.failed("throttle", text, f"at least {_LEAST} of the rate without limits", f"{ratio:.3f}")
        return True
    if nvml and any(card.utilization == _NOT_SUPPORTED for card in nvml.cards):
        rows.note(
            "throttle", Status.SKIP, f"can't be measured: NVML tells no process's utilization here; {text}"
        )
        return False
    if answer.log.host_pid_error:
        rows.note(
            "throttle",
            Status.SKIP,
            f"can't be measured: the library can't find its process on the card (host pid error); {text}",
        )
        return False
    rows.failed("throttle", text, f"at most {_MOST} of the rate without limits", f"{ratio:.2f}")
    return True


def _judge_way(rows: Rows, way: tuple[str, int], without: Answer, answer: Answer) -> None:
    """Add the row of another way to launch, where the driver has it: cuLaunchKernelEx is CUDA 11.8's."""
    free, held, how = without.event("rate", *way), answer.event("rate", *way), _WAYS[way]
    if free is None or not free.ok or free.launches < _LEAST_LAUNCHES:
        return
    if held is None or not held.ok:
        observed = "none" if held is None else f"result {held.rc}"
        rows.failed("throttle", f"launches {how} fail under the limit", "launches", observed)
        return
    ratio = _rate(held) / _rate(free)
    text = f"{how} {_rate(held):.0f}/s at SM {SM} %, {_rate(free):.0f} without: {ratio:.2f}"
    if _LEAST <= ratio <= _MOST:
        rows.passed("throttle", text)
    else:
        rows.failed("throttle", text, f"{_LEAST} to {_MOST} of the rate without limits", f"{ratio:.3f}")


def _rate(event: Event) -> float:
    return event.launches * 1e6 / max(event.microseconds, 1)
