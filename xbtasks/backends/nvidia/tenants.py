"""Who computes on the cards: ``nvidia-smi --query-compute-apps`` as values.

Layout: nvidia-smi(1), "Selective query options". A process that only draws is not in this list.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.backends.nvidia.hardware import ask_smi
from xbtasks.hardware import Unjudged
from xbtasks.hostprobe import Answers, one_line, unusable

if TYPE_CHECKING:
    from xbtasks.host.step import Section, SectionReply

__all__ = ["Tenant", "read_tenants", "tenants_section"]

_FIELDS: Final = ("gpu_uuid", "pid", "used_gpu_memory", "process_name")
_QUERY: Final = (f"--query-compute-apps={','.join(_FIELDS)}", "--format=csv,noheader,nounits")
_NONE: Final = "No running processes found"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process that computes on a card."""

    uuid: str
    pid: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


def tenants_section(name: str, deadline: int) -> Section:
    """Ask the host who computes on its cards."""
    return ask_smi(name, deadline, *_QUERY)


def read_tenants(reply: SectionReply) -> tuple[Tenant, ...]:
    """Return who computes on the host's cards.

    Raises:
        Unjudged: nvidia-smi doesn't say.
    """
    answers = Answers(reply)
    trouble = unusable(answers, "nvidia-smi")
    answer = answers.answer("gpus")
    if trouble is not None or answer is None or answer.exit_status != 0:
        said = trouble.text if trouble else (answer.stdout if answer else "") or answers.stderr
        raise Unjudged(
            f"nvidia-smi doesn't tell who computes on the GPUs: {one_line(said)}",
            hint="--busy-ok runs the case all the same",
        )
    lines = [line for line in answer.stdout.splitlines() if line.strip() and line.strip() != _NONE]
    return tuple(_tenant(line) for line in lines)


def _tenant(line: str) -> Tenant:
    row = next(csv.reader([line], skipinitialspace=True), [])
    if len(row) < len(_FIELDS) or not row[0].startswith("GPU-"):
        raise Unjudged(
            f"not a row of processes: {one_line(line)}", hint="--busy-ok runs the case all the same"
        )
    return Tenant(
        row[0].strip(), one_line(row[1]), one_line(", ".join(row[3:])) or "a process without a name"
    )
