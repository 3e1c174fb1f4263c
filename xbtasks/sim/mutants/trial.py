"""One trial: a variant is made, built and judged by the product's own commands, in a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import xbtasks
from xbtasks.errors import XbError
from xbtasks.sim.paths import SAMPLE_CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from xbtasks.sim.mutants.model import Edit, Variant

__all__ = ["EditError", "Ending", "Trial", "apply_edits", "command_line", "judge_result", "perform", "shim"]

_FOLDER: Final = "pack/gpustack-operator"
_PROJECT: Final = Path(xbtasks.__file__).resolve().parents[1]
_SECONDS: Final = 900
_SHOWN: Final = 100


class EditError(XbError):
    """An edit doesn't apply exactly once."""


class Ending(StrEnum):
    """How a trial ended."""

    KILLED = "killed"
    ELSEWHERE = "killed elsewhere"
    SURVIVED = "survived"
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial that is over; ``text`` says why it ended so."""

    variant: Variant
    ending: Ending
    text: str
    seconds: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the cases did what they must."""
        return self.ending in (Ending.KILLED, Ending.ELSEWHERE, Ending.PASSED)

    @property
    def line(self) -> str:
        """The trial in a line, for a person."""
        words = {
            Ending.KILLED: "killed by ",
            Ending.ELSEWHERE: "killed by another row, ",
            Ending.PASSED: "passed",
        }
        said = words.get(self.ending, f"{self.ending.upper()}: ")
        return f"{self.variant.name}: {said}{self.text} ({self.seconds:.0f} s)"

    def document(self) -> dict[str, object]:
        """Return the trial as JSON values."""
        return {
            **self.variant.document(),
            "ending": self.ending,
            "detail": self.text,
            "seconds": round(self.seconds, 1),
        }


def apply_edits(checkout: Path, edits: Iterable[Edit]) -> None:
    """Make each edit in ``checkout``.

    Raises:
        EditError: its old text doesn't stand there exactly once.
    """
    for edit in edits:
        path = checkout / _FOLDER / edit.file
        text = path.read_text(encoding="utf-8")
        found = text.count(edit.old)
        if found != 1:
            raise EditError(f"{edit.file} has {found} times, not once: {edit.old[:80]!r}")
        path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")


def shim(real: str, words: str) -> str:
    """Return the program before docker: each ``word`` of the command line passes the arms in ``words``."""
    return f"""#!/bin/sh
for word; do
  shift
  case ${{word}} in
    {words}
  esac
  set -- "$@" "${{word}}"
done
exec {real} "$@"
"""


def command_line(variant: Variant, card: int | None) -> list[str]:
    """Return the product's tasks that build and judge ``variant``."""
    if variant.case == 1:
        return ["verify", variant.stage, "--cases", "1", "--json", *variant.options]
    options = list(variant.options)
    if card is not None and not any(word in options for word in ("--gpu", "--gpus", "--npu")):
        if variant.vendor == "ascend":
            options += ["--npu", str(card)]
        elif variant.case == 2:
            options += ["--gpu", str(card)]
    case = f"{variant.vendor}.case{variant.case}"
    return ["build", variant.stage, case, variant.stage, "--yes", "--json", *options]


def judge_result(variant: Variant, status: int, document: Mapping[str, Any] | None) -> tuple[Ending, str]:
    """Return how a trial ended, and why, from the exit status and the result of its last command."""
    if document is None:
        return Ending.ERROR, f"exit status {status} without a result"
    cases: Sequence[Mapping[str, Any]] = document.get("cases", ())
    reason = str(document.get("reason", ""))
    failed = list(
        dict.fromkeys(row["id"] for case in cases for row in case["checks"] if row["status"] == "FAIL")
    )
    verdicts = [case["verdict"] for case in cases]
    if variant.good:
        if status == 0 and verdicts == ["PASS"] and variant.says in reason:
            return Ending.PASSED, f" ({reason})" if reason else ""
        return Ending.FAILED, ", ".join(failed) or f"exit status {status}: {reason}"
    if status == 0 or verdicts == ["PASS"]:
        return Ending.SURVIVED, f"every required row passed; expected {_expected(variant)}"
    if not variant.rows:
        if status == variant.exit_code and variant.says in reason:
            return Ending.KILLED, f"exit status {status}: {reason[:_SHOWN]}"
        if verdicts == ["FAIL"]:
            return Ending.ELSEWHERE, f"{', '.join(failed)} instead of {_expected(variant)}"
        return Ending.ERROR, f"exit status {status}, not {variant.exit_code}: {reason}"
    if verdicts != ["FAIL"]:
        return Ending.ERROR, f"exit status {status}: {reason}"
    named = [row for row in failed if row.rpartition(".")[2] in variant.rows]
    if named:
        return Ending.KILLED, named[0]
    return Ending.ELSEWHERE, f"{', '.join(failed)} instead of {_expected(variant)}"


def _expected(variant: Variant) -> str:
    return " or ".join(variant.rows) or f"exit status {variant.exit_code}"


def perform(
    variant: Variant, folder: Path, environment: Mapping[str, str], card: int | None
) -> tuple[Ending, str]:
    """Make ``variant`` in ``folder``, which is new, build it and let its case judge it.

    ``environment`` points docker and xbtasks at the simulated host. The folder goes if the cases did what
    they must; else what they left there shows why.
    """
    checkout = folder / "checkout"
    image = f"xbtasks-mutant/{variant.name}:1"
    shutil.copytree(SAMPLE_CHECKOUT, checkout)
    try:
        apply_edits(checkout, variant.edits)
    except EditError as error:
        return Ending.ERROR, str(error)
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XB_")},
        **environment,
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XB_REPO": str(checkout),
        "XB_STAGE": str(folder / "stage"),
        "XB_REMOTE_CTX": str(folder / "contexts"),
        "XB_IMAGE": image,
        "NO_COLOR": "1",
    }
    docker = shutil.which("docker", path=variables["PATH"]) or "docker"
    if variant.words:
        program = folder / "bin/docker"
        program.parent.mkdir()
        program.write_text(shim(docker, variant.words))
        program.chmod(0o755)
        variables["PATH"] = f"{program.parent}{os.pathsep}{variables['PATH']}"
    try:
        status, document = _ask(command_line(variant, card), folder, variables)
    finally:
        subprocess.run(
            (docker, "image", "rm", "--force", image),
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,  # it may not have been built
        )
    ending, text = judge_result(variant, status, document)
    if ending in (Ending.KILLED, Ending.ELSEWHERE, Ending.PASSED):
        shutil.rmtree(folder)
    else:
        text = f"{text}; see {folder}"
    return ending, text


def _ask(
    words: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> tuple[int, Mapping[str, Any] | None]:
    try:
        done = subprocess.run(
            (sys.executable, "-m", "xbtasks", *words),
            cwd=_PROJECT,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 4, None
    (folder / "output.txt").write_bytes(done.stderr)
    at = done.stdout.find(b"{\n")
    try:
        document = json.loads(done.stdout[max(at, 0) :])
    except ValueError:
        return done.returncode, None
    return done.returncode, document if isinstance(document, dict) else None
