"""Who is on a die: processes that compute there, and those that share the memory of its slices.

Layout: the second table of ``npu-smi info``, a row ``NPU, Chip | Process id | …`` for each process or a
line for a card that has none; 950 names no chip. A slice's shared memory is a file of ``/dev/shm`` that
nobody ever removes: only a process that has it mapped is a tenant.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge
from xbtasks.hostprobe import Answers, one_line, probe, unusable

if TYPE_CHECKING:
    from xbtasks.backends.ascend.smi import Die
    from xbtasks.host.step import Section, SectionReply

__all__ = ["SharedMemory", "Tenant", "parse_tenants", "read_shared", "read_tenants", "tenants_section"]

# grep names each file that has the line, and on stderr those that it may not read.
_TEXT: Final = r"""
scan() {
  [ -e "/dev/shm/$1" ] || return 0
  say file "/dev/shm/$1"
  inode=$(stat -c %i "/dev/shm/$1") || return 1
  grep -lE " $inode +/dev/shm/$1( \(deleted\))?\$" /proc/[0-9]*/maps 2>&1 | while IFS= read -r line; do
    case $line in
    */proc/1/maps*) ;; # init, which may let nobody look, is no workload
    /proc/*/maps) say user "${line#/proc/}" ;;
    *'Permission denied') say unseen "$line" ;;
    esac
  done
}
scan "$3" && say scanned yes
find "$1" "$2" || exit 0
ask table "$tool" info
"""
_ROW: Final = re.compile(r"(\d{1,6})(?: +(\d{1,6}))?", re.ASCII)
_NONE: Final = re.compile(r"No running processes found in NPU (\d{1,6})", re.ASCII)
_HINT: Final = "--busy-ok runs the case all the same"


@dataclass(frozen=True, slots=True)
class Tenant:
    """A process on a die. ``chip_id`` is None where npu-smi names the card alone."""

    npu_id: int
    chip_id: int | None
    pid: str
    name: str

    def on(self, die: Die) -> bool:
        """Whether it computes on ``die``."""
        return self.npu_id == die.npu_id and self.chip_id in (None, die.chip_id)

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """A slice's shared memory: whether its file is there, who has it mapped, how many are unseen."""

    exists: bool
    users: tuple[str, ...]
    unseen: int


def tenants_section(name: str, places: str, shm_id: str, deadline: int) -> Section:
    """Ask the host who computes on its dies, and who uses the shared memory ``shm_id``."""
    return probe(name, _TEXT, deadline, "npu-smi", places, shm_id)


def read_shared(reply: SectionReply) -> SharedMemory:
    """Return how the shared memory stands.

    Raises:
        CannotJudge: it couldn't be looked for.
    """
    answers = Answers(reply)
    if answers.first("scanned") != "yes":
        raise CannotJudge(f"whether /dev/shm is in use can't be told: {one_line(answers.stderr)}")
    users = tuple(line.partition("/")[0] for line in answers.lines("user"))
    return SharedMemory(bool(answers.lines("file")), users, len(answers.lines("unseen")))


def read_tenants(reply: SectionReply, die: Die) -> tuple[Tenant, ...]:
    """Return who computes on ``die``.

    Raises:
        CannotJudge: npu-smi doesn't tell.
    """
    answers = Answers(reply)
    trouble = unusable(answers, "npu-smi")
    answer = answers.answer("table")
    if trouble is not None or answer is None or answer.exit_status != 0:
        said = trouble.text if trouble else (answer.stdout if answer else "") or answers.stderr
        raise CannotJudge(f"npu-smi doesn't tell who computes on the NPUs: {one_line(said)}", hint=_HINT)
    return parse_tenants(answer.stdout, die)


def parse_tenants(table: str, die: Die) -> tuple[Tenant, ...]:
    """Return who computes on ``die``, from ``npu-smi info``.

    Raises:
        CannotJudge: the table says nothing of the card's processes, or not what is known.
    """
    found: list[Tenant] = []
    idle: set[int] = set()
    begun = False
    for line in table.split("\n"):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if "Process id" in cells:
            begun = True
        elif none := _NONE.fullmatch(cells[0]):
            idle.add(int(none[1]))
        elif begun and (row := _ROW.fullmatch(cells[0])) and len(cells) >= 3 and cells[1].isdecimal():
            chip = int(row[2]) if row[2] else None
            found.append(Tenant(int(row[1]), chip, cells[1], one_line(cells[2]) or "a process"))
        elif begun:
            raise CannotJudge(f"not a row of npu-smi's processes: {one_line(line)}", hint=_HINT)
    if die.npu_id not in idle | {tenant.npu_id for tenant in found}:
        raise CannotJudge(f"npu-smi tells nothing of the processes on NPU {die.npu_id}", hint=_HINT)
    return tuple(tenant for tenant in found if tenant.on(die))
