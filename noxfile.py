"""Sessions: verify (one per builder stage), demo, and the project's own checks."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

from xbtasks.errors import XbError
from xbtasks.sessions import FIELD_STAGES, meaning, stage_names

nox.needs_version = ">=2026.10"
nox.options.default_venv_backend = "none"  # .venv, made by xb from the lock, is the one environment
nox.options.sessions = ["verify"]  # what a bare nox does, and what nox --list --json names

PYTHON = sys.executable

try:
    STAGES, NO_CHECKOUT = stage_names(os.environ, Path.cwd()), ""
except XbError as error:
    STAGES, NO_CHECKOUT = FIELD_STAGES, str(error)


@nox.session
@nox.parametrize("stage", STAGES)
def verify(session: nox.Session, stage: str) -> None:
    """Build one stage if it is out of date, and run its cases; knob flags come after --."""
    if NO_CHECKOUT:
        session.error(f"{NO_CHECKOUT}; set XB_REPO to the operator checkout, or try: nox -s demo")
    try:
        session.run(PYTHON, "-m", "xbtasks", "verify", stage, *session.posargs)
    except CommandFailed as error:
        session.error(f"{stage}: {meaning(error.return_code)}")


@nox.session
def demo(session: nox.Session) -> None:
    """Build and verify the sample checkout on the simulated host."""
    session.run(PYTHON, "-m", "xbtasks", "demo", *session.posargs)


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
def bench(session: nox.Session) -> None:
    """Measure what is fast, against named peers."""
    for script in sorted(Path("bench").glob("bench_*.py")):
        session.run(PYTHON, str(script))
