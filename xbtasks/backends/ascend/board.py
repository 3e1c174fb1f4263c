"""``npu-smi info -t board``: the id of a die, which names the shared memory of its slices.

Layouts (``npu-smi-samples``): a label padded to 30, `` :`` and five words of eight hexadecimal digits. The
label is ``VDie ID`` on 910B and 910_93, with ``NDie ID`` behind it, ``Die ID`` on 310P and ``DDie ID`` on
950, where npu-smi takes no ``-c``. Without ``-c`` a 910B tells no die id.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge
from xbtasks.hostprobe import one_line

if TYPE_CHECKING:
    from xbtasks.backends.ascend.smi import Die
    from xbtasks.hostprobe import Answer

__all__ = ["LABELS", "board_arguments", "read_die_id"]

LABELS: Final = {"910b": "VDie ID", "910c": "VDie ID", "310p": "Die ID", "950": "DDie ID"}
"""What npu-smi calls the id, by the chip as stage suffixes spell it."""

_WORDS: Final = re.compile(r"[0-9A-Fa-f]{8}(?: [0-9A-Fa-f]{8}){4}")
_HINT: Final = "npu-smi info -t board must show it on the host"


def board_arguments(die: Die) -> tuple[str, ...]:
    """Return npu-smi's arguments that ask for the board of ``die``."""
    card = ("info", "-t", "board", "-i", str(die.npu_id))
    return card if die.family == "950" else (*card, "-c", str(die.chip_id))


def read_die_id(answer: Answer | None, die: Die) -> str:
    """Return the id of ``die`` as npu-smi prints it.

    Raises:
        CannotJudge: npu-smi doesn't tell it; the message has npu-smi's own words.
    """
    label = LABELS.get(die.family)
    if label is None:
        raise CannotJudge(f"{die.chip_name} is a chip whose die id nobody has described here")
    if answer is None:
        raise CannotJudge(f"npu-smi was cut off before it told the {label}", hint=_HINT)
    if answer.exit_status != 0:
        raise CannotJudge(f"npu-smi doesn't tell the {label}: {one_line(answer.stdout)}", hint=_HINT)
    pairs = [
        (key.strip(), value.strip())
        for key, colon, value in (line.partition(":") for line in answer.stdout.split("\n"))
        if colon
    ]
    asked = [("NPU ID", die.npu_id)] + [("Chip ID", die.chip_id)] * (die.family != "950")
    for key, number in asked:
        told = [value for name, value in pairs if name == key]
        if told != [str(number)]:
            said = ", ".join(told) or one_line(answer.stdout) or "nothing"
            raise CannotJudge(f"npu-smi was asked for {key} {number} and tells of {said}", hint=_HINT)
    found = [value for name, value in pairs if name == label]
    if len(found) != 1 or not _WORDS.fullmatch(found[0]) or not found[0].strip("0 "):
        said = ", ".join(found) or one_line(answer.stdout) or "nothing"
        raise CannotJudge(f"npu-smi tells no {label} of five words: {said}", hint=_HINT)
    return found[0]
