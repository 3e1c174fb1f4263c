"""Ascend in preflight: what is asked, what was found, and the rows that say which cases it leaves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from xbtasks.backends.ascend.smi import Card, Die, Table, parse_list, parse_map, parse_table
from xbtasks.checks import Check, Status
from xbtasks.hostprobe import Answer, Answers, Trouble, Unusable, one_line, probe, unusable

if TYPE_CHECKING:
    from collections.abc import Callable

    from xbtasks.host.step import Reply, Section
    from xbtasks.hostfacts import EngineFacts

__all__ = ["PLACES", "AscendFacts", "checks", "read", "sections"]

_T = TypeVar("_T")

PLACES: Final = "/usr/local/bin:/usr/local/sbin:/usr/local/Ascend/driver/tools"
"""Where npu-smi is looked for beside PATH."""

_SMI = r"""
find "$1" "$2" || exit 0
ask list "$tool" info -l
ask map "$tool" info -m
ask table "$tool" info
"""
_LOOK = r"""
dev=${XBTASKS_DEVICE_ROOT%/}/dev
for file in "$dev"/davinci*; do
  case ${file#"$dev"/davinci} in '' | *[!0-9]*) continue ;; esac
  [ ! -c "$file" ] || say node "/dev/${file##*/}"
done
for name in davinci_manager hisi_hdc; do [ -c "$dev/$name" ] || say missing "/dev/$name"; done
"""


@dataclass(frozen=True, slots=True)
class AscendFacts:
    """What the host has of Ascend.

    ``unusable`` tells why ``dies`` is empty; ``table`` is None where npu-smi's table couldn't be read;
    ``nodes`` are the dies' device files, ``missing`` the management devices that aren't there.
    """

    cards: tuple[Card, ...]
    dies: tuple[Die, ...]
    table: Table | None
    unusable: Unusable | None
    nodes: frozenset[str]
    missing: frozenset[str]

    @property
    def usable(self) -> int:
        """How many dies a case can use."""
        return sum(die.sliceable for die in self.dies)

    @property
    def chips(self) -> tuple[str, ...]:
        """The chips' names as stage suffixes spell them, without repeats."""
        return tuple(sorted({die.family for die in self.dies if die.family}))

    @property
    def driver(self) -> str:
        """The driver's version, or an empty string."""
        return self.table.driver_version if self.table else ""


def sections(*, tool: int, look: int) -> tuple[Section, ...]:
    """Return the sections that ask a host for its NPUs: ``tool`` and ``look`` are deadlines in seconds."""
    return (
        probe("npu-smi", _SMI, tool, "npu-smi", PLACES),
        probe("ascend-devices", _LOOK, look),
    )


def read(reply: Reply) -> AscendFacts:
    """Return what the sections' answers say."""
    smi, look = Answers(reply["npu-smi"]), Answers(reply["ascend-devices"])
    nodes, missing = frozenset(look.lines("node")), frozenset(look.lines("missing"))
    trouble = unusable(smi, "npu-smi")
    if trouble:
        return AscendFacts((), (), None, trouble, nodes, missing)
    cards, dies = _parsed(parse_list, smi, "list"), _parsed(parse_map, smi, "map")
    table = _parsed(parse_table, smi, "table")
    known = None if isinstance(table, Unusable) else table
    if isinstance(cards, Unusable):
        return AscendFacts((), (), known, cards, nodes, missing)
    if isinstance(dies, Unusable):
        return AscendFacts((), (), known, dies, nodes, missing)
    listed, mapped = {card.npu_id for card in cards}, {die.npu_id for die in dies}
    if listed != mapped:
        text = one_line(f"npu-smi lists cards {sorted(listed)} and maps cards {sorted(mapped)}")
        return AscendFacts((), (), known, Unusable(Trouble.UNREADABLE, text), nodes, missing)
    return AscendFacts(cards, dies, known, None, nodes, missing)


def _parsed(parse: Callable[[str, int, str], _T], smi: Answers, tag: str) -> _T | Unusable:
    answer: Answer | None = smi.answer(tag)
    if answer is None:
        return Unusable(Trouble.FAILED, one_line(f"npu-smi was cut off: {smi.stderr}"))
    return parse(answer.stdout, answer.exit_status, smi.stderr)


_CASES = "ascend.case2 and ascend.case3 unavailable"


def checks(facts: AscendFacts, engine: EngineFacts) -> tuple[Check, ...]:
    """Return the rows: cards and dies, runtime, device files."""
    return (_smi(facts), _runtime(engine), _devices(facts))


def _smi(facts: AscendFacts) -> Check:
    row = "preflight.npu-smi"
    if facts.unusable:
        if facts.unusable.trouble is Trouble.ABSENT:
            return Check(row, Status.WARN, f"{_CASES}: no NPU ({facts.unusable.text})")
        return Check(row, Status.WARN, f"{_CASES}: {facts.unusable.trouble}: {facts.unusable.text}")
    names = Counter(die.chip_name for die in facts.dies)
    chips = ", ".join(f"{count} {name}" for name, count in sorted(names.items()))
    detail = f"{len(facts.cards)} cards, {len(facts.dies)} dies: {chips}"
    if facts.usable == 0:
        return Check(row, Status.WARN, f"{_CASES}: no die has a physical id from 0 to 15; {detail}")
    if not facts.table:
        text = f"{detail}; health and driver are unknown: npu-smi's table can't be read"
        return Check(row, Status.WARN, text)
    detail = f"{detail}; driver {facts.driver}"
    ill = [f"NPU {chip.npu_id} is {chip.health}" for chip in facts.table.rows if chip.health != "OK"]
    if ill:
        return Check(
            row, Status.WARN, f"{', '.join(ill)}: ascend.case2 and ascend.case3 may fail there; {detail}"
        )
    if facts.usable < len(facts.dies):
        above = len(facts.dies) - facts.usable
        text = f"{above} dies have a physical id above 15 and can't be sliced; {detail}"
        return Check(row, Status.WARN, text)
    return Check(row, Status.PASS, detail)


def _runtime(engine: EngineFacts) -> Check:
    row = "preflight.ascend-runtime"
    if not engine.up:
        return Check(row, Status.WARN, f"{_CASES}: the engine doesn't answer")
    if "ascend" in engine.runtimes:
        return Check(row, Status.PASS, "runtime ascend is registered; the cases ask for it by name")
    return Check(row, Status.WARN, f"{_CASES}: no runtime ascend")


def _devices(facts: AscendFacts) -> Check:
    row = "preflight.ascend-devices"
    if not facts.nodes:
        if facts.dies:
            return Check(row, Status.WARN, "npu-smi maps NPUs, but there is no /dev/davinci<N>")
        return Check(row, Status.WARN, f"{_CASES}: no /dev/davinci<N>")
    detail = f"{len(facts.nodes)} /dev/davinci<N>"
    if facts.missing:
        return Check(row, Status.WARN, f"{detail}, but no {' and no '.join(sorted(facts.missing))}: {_CASES}")
    if facts.dies and len(facts.dies) != len(facts.nodes):
        return Check(row, Status.WARN, f"{detail}, but npu-smi maps {len(facts.dies)} dies")
    return Check(row, Status.PASS, detail)
