"""Several runs at once on one machine, which each may know by another name: real sshd, real engine."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workplace import BASE, PROJECT, Done, Workplace, program

if TYPE_CHECKING:
    from tests.sshd import Rig

pytestmark = pytest.mark.engine

TWELVE, THIRTEEN = "xbuild-nvidia-cuda-12", "xbuild-nvidia-cuda-13"
CANN = "xbuild-ascend-cann-9-910b", "xbuild-ascend-cann-8-910b"


@dataclass
class Machine:
    """The session's simulated host behind an sshd, and two names for it."""

    rig: Rig
    place: Workplace

    def __post_init__(self) -> None:
        # a program put into this folder later comes before the machine's own
        self.programs = self.place.folder / "programs"
        self.programs.mkdir()
        environment = {"TMPDIR": str(self.place.temporary), **self.place.engine.environment}
        environment["PATH"] = f"{self.programs}:{environment['PATH']}"
        server = self.rig.server(environment=environment)
        for name in ("one", "two"):
            self.rig.alias(name, server.port)

    def variables(self, host: str) -> dict[str, str | None]:
        gone: dict[str, str | None] = dict.fromkeys(
            ("DOCKER_HOST", "DOCKER_CONFIG", "SSH_AUTH_SOCK", "XB_IMAGE")
        )
        return {**gone, "XB_HOST": host, "XB_SSH_CONFIG": str(self.rig.ssh_config), "XB_YES": "1"}

    def inv(self, host: str, *words: str) -> Done:
        return self.place.inv(*words, **self.variables(host))

    def shim(self, name: str, body: str) -> Path:
        """Put a program of our own before the machine's ``name``, which is ``$REAL`` in it."""
        real = next(
            path
            for folder in self.place.variables["PATH"].split(":")
            if (path := Path(folder) / name).is_file()
        )
        target = self.programs / name
        target.write_text(f'#!/bin/sh\nREAL={real}\n{body}\nexec $REAL "$@"\n')
        target.chmod(0o755)
        return target

    def typed(self, host: str, *words: str) -> str:
        """Return a line of shell that does what :meth:`inv` does."""
        environment = self.place.environment(**self.variables(host))
        pairs = [f"{name}={value}" for name, value in environment.items()]
        return f"cd {PROJECT} && {shlex.join(['env', '-i', *pairs, str(program('inv')), *words])}"


@pytest.fixture
def machine(rig: Rig, place: Workplace) -> Machine:
    return Machine(rig, place)


@pytest.mark.parametrize(
    ("stages", "tool", "question"),
    [((THIRTEEN, TWELVE), "nvidia-smi", "compute-apps"), (CANN, "npu-smi", "info -t board")],
    ids=["nvidia", "ascend"],
)
def test_what_another_client_stages_meanwhile_is_nothing_to_a_case(
    machine: Machine, stages: tuple[str, str], tool: str, question: str
) -> None:
    mine, theirs = stages
    assert machine.inv("two", "verify", theirs, "--cases", "1").code == 0
    said, once = machine.place.folder / "said", machine.place.folder / "once"
    # while this run asks about its card, which is after it staged, the other one stages
    restage = machine.typed("two", "verify", theirs, "--cases", "1", f"--json={said}")
    machine.shim(
        tool,
        f'case "$*" in *{shlex.quote(question)}*) mkdir {once} 2>/dev/null &&'
        f" ({restage}) >/dev/null 2>&1 </dev/null ;; esac",
    )
    done = machine.inv("one", "verify", mine, "--cases", "1,2", "--json")
    assert once.is_dir()
    assert json.loads(said.read_text())["verdict"] == "PASS"
    backend = mine.split("-")[1]
    manifest = json.loads((machine.place.staging / f".xbtasks-{backend}.json").read_text())
    assert manifest["stage"] == theirs
    assert done.code == 0, done.text
    assert [case["verdict"] for case in done.document["cases"]] == ["PASS", "PASS"]
    assert machine.place.left_over() == []
    assert not list(machine.place.staging.glob("test*"))


def test_what_somebody_removes_under_a_run_is_no_fault_of_its_library(machine: Machine) -> None:
    said, once = machine.place.folder / "said", machine.place.folder / "once"
    # the last container that the case judges takes its time, and is killed by a clean
    machine.shim(
        "docker",
        f"""name=$(printf '%s\\n' "$@" | grep -- '-limits-2$')
if [ "$1" = run ] && [ "$name" ] && mkdir {once}; then
  "$REAL" run --rm --name "$name" --label xbtasks.run=x --network none {BASE} sleep 60 &
  until [ "$("$REAL" ps --quiet --filter "name=$name")" ]; do kill -0 $! || break; done
  ({machine.typed("two", "clean")}) >{said} 2>&1 </dev/null
  wait $!
  exit
fi""",
    )
    done = machine.inv("one", "verify", THIRTEEN, "--cases", "1,2", "--json")
    assert "-limits-2" in said.read_text()
    assert done.code == 4, done.text
    (one, two) = done.document["cases"]
    assert (one["verdict"], two["verdict"]) == ("PASS", "ERROR")
    assert two["reason"].startswith("what this run had on the host was removed while it was at work")
    assert machine.inv("one", "nvidia.case2", THIRTEEN).code == 0


def test_two_clients_at_once_on_one_card_and_one_directory_both_measure(machine: Machine) -> None:
    children = [
        machine.place.start("verify", stage, "--cases", "1,2", "--json", **machine.variables(host))
        for host, stage in (("one", THIRTEEN), ("two", TWELVE))
    ]
    for child in children:
        out, err = child.communicate(timeout=240)
        assert child.returncode == 0, (out, err)
        assert [case["verdict"] for case in json.loads(out)["cases"]] == ["PASS", "PASS"]
    assert machine.place.left_over() == []
    assert not list(machine.place.staging.glob("test*"))
