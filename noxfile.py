"""The sessions of :mod:`xbtasks.noxsessions` (verify, case, matrix, demo), and the project's own checks."""

from __future__ import annotations

import sys
from pathlib import Path

import nox

import xbtasks.noxsessions  # noqa: F401 - this registers its sessions
from xbtasks.tasks.development import side_by_side

nox.needs_version = ">=2026.10"
nox.options.default_venv_backend = "none"  # .venv, made by xb from the lock, is the one environment
nox.options.sessions = ["verify"]  # what a bare nox does, and what nox --list --json names

PYTHON = sys.executable


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests."""
    session.run(PYTHON, "-m", "pytest", *side_by_side(session.posargs), *session.posargs)


@nox.session
def mutants(session: nox.Session) -> None:
    """Try all broken variants of the sample, which must fail, and the good ones, which must pass."""
    session.run(PYTHON, "-m", "xbtasks", "sim.mutants", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and the shell programs."""
    session.run(PYTHON, "-m", "ruff", "check", ".")
    session.run(PYTHON, "-m", "ruff", "format", "--check", ".")
    programs = sorted(str(path) for path in Path("xbtasks").glob("**/programs/*.sh"))
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
def recordings(session: nox.Session) -> None:
    """Record anew the runs that the tests judge again, on the simulated host."""
    session.run(PYTHON, "-m", "tests.recordings")


@nox.session
def docs(session: nox.Session) -> None:
    """Write the API pages, from the docstrings, to .venv/api, or to the folder given after --."""
    folder = session.posargs[0] if session.posargs else ".venv/api"
    session.run(PYTHON, "-m", "pdoc", "--docformat", "google", "--output-directory", folder, "xbtasks")


@nox.session
def bench(session: nox.Session) -> None:
    """Measure what is fast, against named peers."""
    for script in sorted(Path("bench").glob("bench_*.py")):
        session.run(PYTHON, str(script))
