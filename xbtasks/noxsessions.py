"""The nox sessions verify, case, matrix and demo. Importing this module in a ``noxfile.py`` registers them.

The operator's own ``noxfile.py`` needs one line, ``import xbtasks.noxsessions``, and the nox of the
environment that xbtasks is installed in; each session runs there, in no environment of its own.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

from xbtasks.errors import XbError
from xbtasks.evidence import RUN_FOLDER
from xbtasks.sessions import (
    FIELD_STAGES,
    case_cells,
    close_group,
    group_folder,
    meaning,
    stage_names,
    why_unproven,
)
from xbtasks.typed import as_typed

__all__ = ["case", "demo", "matrix", "verify"]

try:
    _stages, _no_checkout = stage_names(os.environ, Path.cwd()), ""
except XbError as error:
    _stages, _no_checkout = FIELD_STAGES, as_typed(str(error))

_group, _typed = group_folder(os.environ)
if _typed:
    atexit.register(close_group, _group)


def _run(session: nox.Session, name: str, *words: str, case: int = 0) -> None:
    """Run a task of xbtasks; its evidence and result go to a folder of their own in that of this nox.

    The session is good where that result is, of ``case`` if one is named, whatever stands after ``--``.
    """
    if _no_checkout and words[0] != "demo":
        session.error(f"{_no_checkout}; set XB_REPO to the operator checkout, or try: nox -s demo")
    folder = _group / name
    program = (sys.executable, "-P", "-m", "xbtasks")  # -P: nothing of the current directory is imported
    try:
        session.run(*program, *words, *session.posargs, env={RUN_FOLDER: str(folder)})
    except CommandFailed as error:
        session.error(f"{name}: {meaning(error.return_code, folder)}")
    if problem := why_unproven(folder, case):
        session.error(f"{name}: {problem}")


@nox.session(venv_backend="none")
@nox.parametrize("stage", _stages)
def verify(session: nox.Session, stage: str) -> None:
    """Build one stage if it is out of date, and run its cases; knob flags come after --."""
    _run(session, stage, "verify", stage)


@nox.session(venv_backend="none")
@nox.parametrize(("stage", "case"), case_cells(_stages))
def case(session: nox.Session, stage: str, case: int) -> None:
    """Build one stage if it is out of date, and run one of its cases."""
    _run(session, f"{stage}.case{case}", "verify", stage, "--cases", str(case), case=case)


@nox.session(venv_backend="none")
def matrix(session: nox.Session) -> None:
    """Verify stages side by side, on one host or several; --stages, --hosts-file and so on come after --."""
    _run(session, "matrix", "matrix")


@nox.session(venv_backend="none")
def demo(session: nox.Session) -> None:
    """Build and verify the sample checkout on the simulated host."""
    _run(session, "demo", "demo")
