"""Sessions: verify (a stage), case (one case of one), matrix, demo, and the project's own checks."""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

from xbtasks.errors import XbError
from xbtasks.session import RUN_FOLDER
from xbtasks.sessions import FIELD_STAGES, case_cells, close_group, group_folder, meaning, stage_names

nox.needs_version = ">=2026.10"
nox.options.default_venv_backend = "none"  # .venv, made by xb from the lock, is the one environment
nox.options.sessions = ["verify"]  # what a bare nox does, and what nox --list --json names

PYTHON = sys.executable

try:
    STAGES, NO_CHECKOUT = stage_names(os.environ, Path.cwd()), ""
except XbError as error:
    STAGES, NO_CHECKOUT = FIELD_STAGES, str(error)


GROUP, TYPED = group_folder(os.environ)
if TYPED:
    atexit.register(close_group, GROUP)


def run(session: nox.Session, name: str, *words: str) -> None:
    """Run a task of xbtasks; its evidence and result go to a folder of their own in that of this nox."""
    if NO_CHECKOUT and words[0] != "demo":
        session.error(f"{NO_CHECKOUT}; set XB_REPO to the operator checkout, or try: nox -s demo")
    folder = GROUP / name
    try:
        session.run(PYTHON, "-m", "xbtasks", *words, *session.posargs, env={RUN_FOLDER: str(folder)})
    except CommandFailed as error:
        session.error(f"{name}: {meaning(error.return_code, folder)}")


@nox.session
@nox.parametrize("stage", STAGES)
def verify(session: nox.Session, stage: str) -> None:
    """Build one stage if it is out of date, and run its cases; knob flags come after --."""
    run(session, stage, "verify", stage)


@nox.session
@nox.parametrize(("stage", "case"), case_cells(STAGES))
def case(session: nox.Session, stage: str, case: int) -> None:
    """Build one stage if it is out of date, and run one of its cases."""
    run(session, f"{stage}.case{case}", "verify", stage, "--cases", str(case))


@nox.session
def matrix(session: nox.Session) -> None:
    """Verify stages side by side, on one host or several; --stages, --hosts-file and so on come after --."""
    run(session, "matrix", "matrix")


@nox.session
def demo(session: nox.Session) -> None:
    """Build and verify the sample checkout on the simulated host."""
    run(session, "demo", "demo")


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests."""
    session.run(PYTHON, "-m", "pytest", *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Try all broken variants of the sample, which must fail, and the good ones, which must pass."""
    session.run(PYTHON, "-m", "xbtasks", "sim.mutants", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and the shell programs."""
    session.run(PYTHON, "-m", "ruff", "check", ".")
    session.run(PYTHON, "-m", "ruff", "format", "--check", ".")
    programs = sorted(str(path) for path in Path("xbtasks/host/programs").glob("*.sh"))
    # SC2088: a "~/" that arrives as text is expanded by the program itself
    session.run(str(Path(PYTHON).with_name("shellcheck")), "--shell=sh", "--exclude=SC2088", *programs)


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    session.run(PYTHON, "-m", "mypy")


@nox.session
def picture(session: nox.Session) -> None:
    """Make the README's picture anew, of a run on the simulated host."""
    session.run(PYTHON, "docs/picture.py")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure what is fast, against named peers."""
    for script in sorted(Path("bench").glob("bench_*.py")):
        session.run(PYTHON, str(script))
