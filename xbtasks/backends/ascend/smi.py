"""``npu-smi``: cards, dies and the driver's version as values, or a typed reason why not.

Layouts (all measured): ``info -l`` lists cards; ``info -m`` maps NPU and chip to the physical id, in four
columns on 910B and 310P, in five with Phy-ID on 910_93, in five with Slot ID on 950, with a row for each
card's Mcu, which is no die; ``info`` is the table of names and health. npu-smi prints its errors on
stdout and ends with the negative code modulo 256.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from xbtasks.hostprobe import Trouble, Unusable, one_line

__all__ = ["Card", "Die", "Table", "TableRow", "parse_list", "parse_map", "parse_table"]


@dataclass(frozen=True, slots=True)
class Card:
    """A card of ``info -l``: npu-smi's ``-i``, and how many chips it holds."""

    npu_id: int
    chips: int


@dataclass(frozen=True, slots=True)
class Die:
    """A chip of ``info -m``: ``npu_id`` and ``chip_id`` are npu-smi's ``-i`` and ``-c``.

    ``logic_id`` and ``phy_id`` are None where the layout has no such column.
    """

    npu_id: int
    chip_id: int
    logic_id: int | None
    phy_id: int | None
    chip_name: str

    @property
    def physical_id(self) -> int | None:
        """The id of ``/dev/davinciN`` and ``ASCEND_VISIBLE_DEVICES``: Phy-ID, else the logic id."""
        return self.logic_id if self.phy_id is None else self.phy_id

    @property
    def sliceable(self) -> bool:
        """Whether vcann-rt's configuration takes the die: it refuses physical ids above 15."""
        return self.physical_id is not None and self.physical_id <= _HIGHEST_PHYSICAL_ID

    @property
    def family(self) -> str:
        """The chip as stage suffixes spell it (``910b``, ``910c``, ``950``, ``310p``), or an empty string.

        910_93 (A3, 910C) calls itself ``Ascend910`` and is told by its map, which has logic and physical ids.
        """
        name = self.chip_name.removeprefix("Ascend").strip()
        if name == "910" and self.logic_id is not None and self.phy_id is not None:
            return "910c"
        match = re.match(r"910_93|910B|950|310P", name)
        return {"910_93": "910c"}.get(match[0], match[0].lower()) if match else ""


@dataclass(frozen=True, slots=True)
class TableRow:
    """A chip of the table. ``chip_id`` is None on 950, whose table has no such column."""

    npu_id: int
    chip_id: int | None
    name: str
    health: str
    bus_id: str


@dataclass(frozen=True, slots=True)
class Table:
    """``npu-smi info``: the tool's version, the driver's version and a row for each chip."""

    tool_version: str
    driver_version: str
    rows: tuple[TableRow, ...]


_NUMBER = re.compile(r"\d{1,6}", re.ASCII)
_LIST_KEYS = ("Total Count", "NPU ID", "Chip Count")
_HIGHEST_PHYSICAL_ID = 15
_CODE = re.compile(r"\bret is (-\d{1,6})\b")
_LIBRARY = re.compile(r"error while loading shared libraries: ([^\s:]+):")
_CODES = {
    -8005: Trouble.NO_DRIVER,
    -8020: Trouble.BUSY,
    -9005: Trouble.UNSUPPORTED,
    -8002: Trouble.PERMISSION,
}
_LINES = {"Invalid card id.": Trouble.NO_DEVICE, "Invalid chip id.": Trouble.NO_DEVICE}
_COLUMNS = {
    ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Name"),
    ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Phy-ID", "Chip Name"),
    ("NPU ID", "Slot ID", "Chip ID", "Chip Phy-ID", "Chip Name"),
}
_VERSIONS = re.compile(r"\|\s*npu-smi\s+(\S+)\s+Version:\s*(\S+)\s*\|")


def parse_list(stdout: str, exit_status: int, stderr: str = "") -> tuple[Card, ...] | Unusable:
    """Return the cards of ``npu-smi info -l``, or why there are none."""
    pairs: list[tuple[str, int]] = []
    for line in _lines(stdout):
        key, colon, value = (part.strip() for part in line.partition(":"))
        if key in _LIST_KEYS and _NUMBER.fullmatch(value):
            pairs.append((key, int(value)))
        elif pairs and (not colon or key in _LIST_KEYS):
            return _why_not(stdout, exit_status, stderr, f"not a line of the list: {line}")
    if exit_status != 0 or not pairs or pairs[0][0] != "Total Count":
        return _why_not(stdout, exit_status, stderr, "it has no Total Count")
    total, body = pairs[0][1], pairs[1:]
    if [key for key, _ in body] != ["NPU ID", "Chip Count"] * (len(body) // 2):
        return _why_not(stdout, exit_status, stderr, "its cards are not whole")
    cards = tuple(Card(body[at][1], body[at + 1][1]) for at in range(0, len(body), 2))
    if len({card.npu_id for card in cards}) != total or len(cards) != total:
        return Unusable(Trouble.UNREADABLE, f"npu-smi counts {total} cards and lists {len(cards)}")
    return cards or Unusable(Trouble.NO_DEVICE, "npu-smi counts 0 cards")


def parse_map(stdout: str, exit_status: int, stderr: str = "") -> tuple[Die, ...] | Unusable:
    """Return the dies of ``npu-smi info -m``, or why there are none; a Mcu is no die."""
    columns: tuple[str, ...] = ()
    dies: list[Die] = []
    for line in _lines(stdout):
        cells = tuple(re.split(r"\s{2,}", line.strip()))
        if not columns:
            columns = cells if cells in _COLUMNS else ()
            continue
        row = dict(zip(columns, cells, strict=False))
        if len(cells) != len(columns) or not (die := _die(row)):
            return _why_not(stdout, exit_status, stderr, f"not a row of the map: {line}")
        if die.chip_name != _MCU:
            dies.append(die)
    if exit_status != 0 or not columns:
        return _why_not(stdout, exit_status, stderr, "it has no known header")
    chips, physical = {(die.npu_id, die.chip_id) for die in dies}, {die.physical_id for die in dies}
    if len(chips) != len(dies) or len(physical) != len(dies):
        return Unusable(Trouble.UNREADABLE, "two rows of npu-smi's map name the same chip")
    return tuple(dies) or Unusable(Trouble.NO_DEVICE, "npu-smi's map has no chip")


_MCU = "Mcu"


def _die(row: dict[str, str]) -> Die | None:
    name = row["Chip Name"]
    ids = [row.get(key) for key in ("NPU ID", "Chip ID", "Chip Logic ID", "Chip Phy-ID")]
    npu, chip, logic, phy = (int(text) if text and _NUMBER.fullmatch(text) else None for text in ids)
    known = [
        text is None or text == "-" or number is not None
        for text, number in zip(ids, (npu, chip, logic, phy), strict=True)
    ]
    physical = phy if "Chip Phy-ID" in row else logic
    if npu is None or chip is None or not all(known) or (physical is None and name != _MCU):
        return None
    return Die(npu, chip, logic, phy, one_line(name))


def parse_table(stdout: str, exit_status: int, stderr: str = "") -> Table | Unusable:
    """Return the table of ``npu-smi info``, or why there is none. Its process rows are not read."""
    versions = None
    header: list[list[str]] = []
    pairs: list[list[str]] = []
    for line in _lines(stdout):
        if not line.startswith("|"):
            continue
        versions = versions or _VERSIONS.fullmatch(line.rstrip())
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 3:
            continue
        if "Process id" in cells:
            break
        (header if len(header) < 2 else pairs).append(cells)
    if exit_status != 0 or versions is None or len(header) < 2:
        return _why_not(stdout, exit_status, stderr, "it has no known header")
    rows = [
        _table_row(header[0], *pairs[at : at + 2]) for at in range(0, len(pairs), 2) if at + 1 < len(pairs)
    ]
    known = tuple(row for row in rows if row)
    if len(pairs) % 2 or len(known) != len(rows):
        return _why_not(stdout, exit_status, stderr, "its rows are not whole")
    if not known:
        return Unusable(Trouble.NO_DEVICE, "npu-smi's table has no chip")
    return Table(one_line(versions[1]), one_line(versions[2]), known)


def _table_row(header: list[str], upper: list[str], lower: list[str]) -> TableRow | None:
    if header[0] == "NPU ID":  # 950: the id stands alone, the name in a column of its own
        npu, name, health, bus = upper[0], upper[1], upper[2:3], lower[2:3]
        chip = ""
    else:
        npu, _, name = upper[0].partition(" ")
        chip, health, bus = lower[0].split(" ")[0], upper[1:2], lower[1:2]
    if not _NUMBER.fullmatch(npu) or (chip and not _NUMBER.fullmatch(chip)):
        return None
    if not name.strip() or not health or not bus:
        return None
    return TableRow(
        int(npu), int(chip) if chip else None, one_line(name), one_line(health[0]), one_line(bus[0])
    )


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.strip()]


def _why_not(stdout: str, exit_status: int, stderr: str, otherwise: str) -> Unusable:
    """Return npu-smi's own reason; ``otherwise`` tells what of an answer without one can't be read."""
    said = one_line(stdout) or one_line(stderr)
    if library := _LIBRARY.search(stderr) or _LIBRARY.search(stdout):
        return Unusable(Trouble.NO_LIBRARY, f"{one_line(library[1])} is missing: {said}")
    for line in _lines(stdout):
        code = _CODE.search(line)
        if code:
            return Unusable(_CODES.get(int(code[1]), Trouble.FAILED), said)
        if line.strip() in _LINES:
            return Unusable(_LINES[line.strip()], said)
    if exit_status != 0:
        return Unusable(Trouble.FAILED, said or f"it said nothing and ended with {exit_status}")
    return Unusable(Trouble.UNREADABLE, one_line(f"npu-smi's answer can't be read: {otherwise}"))
