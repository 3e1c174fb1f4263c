"""The evidence of a run: where it lies, how it is begun and kept, and whom it may name."""

from __future__ import annotations

import os
import secrets
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks import __version__
from xbtasks.errors import CannotJudge, disk_error, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xbtasks.host.framed import Transport
    from xbtasks.host.recording import Evidence
    from xbtasks.plan import RunPlan

__all__ = [
    "ELSEWHERE",
    "OWN_SIDE",
    "RUN_FOLDER",
    "SCHEMA",
    "evidence_kept",
    "keep_evidence",
    "new_run_id",
    "note_names",
    "run_directory",
    "runs_directory",
]

RUN_FOLDER = "XBTASKS_RUN_FOLDER"
"""The variable that names a folder for the evidence of one run, set by who starts several as one."""

SCHEMA = 1
"""The form of a run's directory."""
OWN_SIDE = "own-side.json"
"""The file of what went wrong on this side of the run."""
ELSEWHERE = "XDG_STATE_HOME names another place"
"""What helps where evidence can't be kept."""


def new_run_id() -> str:
    """Return the id of a new run: its time in UTC, and six random digits."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(3)}"


def runs_directory() -> Path:
    """Return where evidence is kept: ``$XDG_STATE_HOME/xbtasks/runs``, else under ``~/.local/state``."""
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".local/state") / "xbtasks/runs"


def run_directory(run_id: str) -> Path:
    """Return where the evidence of a run goes: the folder that XBTASKS_RUN_FOLDER names, if it is new."""
    given = os.environ.get(RUN_FOLDER, "")
    if given.startswith("/") and not (Path(given) / "run.json").exists():
        return Path(given)
    return runs_directory() / run_id


def keep_evidence(directory: Path, plan: RunPlan, run_id: str, host: str) -> Evidence:
    """Return the evidence in ``directory``, with what is asked of ``host`` noted in it.

    Raises:
        UsageError: it can't be written there.
        CannotJudge: the disk is full or broken.
    """
    from xbtasks.host.recording import Evidence

    try:
        evidence = Evidence(directory)
        evidence.write(
            "run.json",
            {
                "schema": SCHEMA,
                "run": run_id,
                "host": host,
                "xbtasks": __version__,
                "python": sys.version.split()[0],
                "plan": plan.to_json(),
            },
        )
    except OSError as error:
        raise disk_error(f"the evidence can't be kept in {directory}", error, hint=ELSEWHERE) from error
    return evidence


@contextmanager
def evidence_kept(directory: Path) -> Iterator[None]:
    """Do what keeps evidence in ``directory``.

    Raises:
        CannotJudge: it can't be kept any more.
    """
    try:
        yield
    except OSError as error:
        problem = f"the evidence can't be kept in {directory}: {reason_of(error)}"
        raise CannotJudge(problem, hint=ELSEWHERE) from error


def note_names(evidence: Evidence, transport: Transport) -> None:
    """Keep whom the evidence of a run may name: the way to the host, and this machine.

    Raises:
        OSError: it can't be written.
    """
    import getpass
    import socket

    from xbtasks.host.redaction import NAMES

    hosts, users = transport.names
    here = socket.gethostname()
    own: list[str] = []
    with suppress(KeyError, OSError):  # not every user id has a name
        own.append(getpass.getuser())
    called = [] if "@" in transport.label else [transport.label]
    names = {"hosts": [*hosts, *called, here, here.partition(".")[0]], "users": [*users, *own]}
    evidence.write(NAMES, names)
