"""Whether a preload library gets into the CANN runtime of the workload image, told from the runtime's
bytes.

From CANN 9.2.0-beta.1 on ACL's allocation lies in ``libruntime.so``, which is linked ``-Bsymbolic``:
``aclrtMalloc`` never leaves the library, and no hook sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.backends.ascend.said import failed
from xbtasks.checks import Check, Status
from xbtasks.elf.facts import BadElf, read_elf
from xbtasks.hardware import Unjudged
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step
from xbtasks.images import read_file

if TYPE_CHECKING:
    from xbtasks.backends.ascend.report import Report
    from xbtasks.hardware import CaseRun
    from xbtasks.host.step import SectionReply

__all__ = ["judge_runtime", "read_runtime", "runtime_path"]

_INSIDE: Final = "aclrtMallocImpl"
_NAME: Final = "libruntime.so"


def runtime_path(report: Report) -> str:
    """Return where the workload's process has its runtime from.

    Raises:
        Unjudged: it has none.
    """
    maps = report.event("maps")
    paths = [path for path in (maps.paths if maps else ()) if path.rpartition("/")[2].startswith(_NAME)]
    if not paths:
        raise Unjudged(f"the workload's process has no {_NAME}: which runtime it uses is unknown")
    return paths[0]


def read_runtime(run: CaseRun, name: str, path: str) -> SectionReply:
    """Return the file ``path`` of the workload image, as a tar; no container starts."""
    engine, container = run.engine, run.container(name)
    remove = Section("remove", engine.remove_container(container), run.deadline)
    create = Section("create", engine.create(container, run.workload, run.platform, run.run_id), run.deadline)
    copy = Section("file", program("copy_first", engine.binary, container, path), run.deadline)
    return run.ask(Step("runtime", (create, copy, remove), on_loss=(remove,)))["file"]


def judge_runtime(row: str, path: str, answer: SectionReply) -> Check:
    """Return the row of the runtime.

    Raises:
        Unjudged: its bytes can't be read.
    """
    file = read_file(path, answer)
    try:
        facts = read_elf(file.data)
    except BadElf as error:
        raise Unjudged(f"{path} of the workload image can't be read: {error}") from error
    if facts.symbolic and _INSIDE in facts.exported:
        detail = (
            f"{path} holds {_INSIDE} and is linked -Bsymbolic (CANN 9.2 and later): no preload gets into it"
        )
        return failed(row, detail, "allocations that leave the library", "merged")
    how = "linked -Bsymbolic, without ACL's allocation" if facts.symbolic else "not linked -Bsymbolic"
    return Check(row, Status.PASS, f"{path} is {how}: a preload library gets into it")
