"""The NVIDIA hardware cases as a user types them, on the simulated host: real containers and loader."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from xbtasks.sim.drivers.inventory import write_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.sshd import Rig
    from tests.workplace import Done, Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-nvidia-cuda-13"
CARD: dict[str, object] = {"model": "rtx-4090"}


@pytest.fixture
def cards(place: Workplace) -> Iterator[Cards]:
    """Return what changes the host's cards; they are the usual ones again afterwards."""
    changing = Cards(Path(place.engine.environment["DOCKER_CONFIG"]).parent / "inventory.json")
    kept = changing.file.read_bytes() if changing.file.exists() else None
    yield changing
    changing.file.unlink(missing_ok=True)
    if kept is not None:
        changing.file.write_bytes(kept)


class Cards:
    """The inventory of the simulated host."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def are(self, *cards: Mapping[str, object], **values: object) -> None:
        write_part(self.file, "nvidia", {"cards": [dict(card) for card in cards], **values})


@pytest.fixture
def built(place: Workplace) -> Workplace:
    """Return a place where the stage is built."""
    done = place.inv("build", STAGE)
    assert done.code == 0, done.text
    return place


def case(done: Done) -> dict[str, Any]:
    (found,) = done.document["cases"]
    return dict(found)


def statuses(done: Done) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for row in case(done)["checks"]:
        found.setdefault(row["id"].rpartition(".")[2], set()).add(row["status"])
    return found


def nothing_is_left(place: Workplace) -> bool:
    return place.left_over() == [] and not (place.staging / "test").exists()


def test_case_2_as_typed(built: Workplace) -> None:
    done = built.inv("nvidia.case2", "--gpu", "0", "--sm", "50")
    assert done.code == 0, done.text
    assert "SIMULATED" in done.out
    for row in ("smi-total", "sm-limit", "alloc-over", "shared", "round2", "throttle", "control"):
        assert f"nvidia.case2.{row} " in done.out
    assert nothing_is_left(built)

    evidence = built.evidence()[-1]
    again = built.inv("replay", evidence)
    assert again.code == 0, again.text
    assert again.out.partition("nvidia.case2  Single")[2] == done.out.partition("nvidia.case2  Single")[2]
    moved = built.folder / "moved"
    shutil.copytree(evidence, moved)
    far = built.inv("replay", moved, "--json", DOCKER_HOST="unix:///nonexistent")
    recorded = json.loads((evidence / "result.json").read_text())
    assert far.document["cases"][0]["checks"] == recorded["cases"][0]["checks"]


def test_case_2_over_ssh(built: Workplace, rig: Rig) -> None:
    """Through a login shell that prints noise, on a host that has the engine's variables."""
    server = rig.server(noise="echo Welcome; echo FAILS=0 >&2", environment=built.engine.environment)
    rig.alias("far", server.port)
    ssh = {"XB_MODE": "ssh", "XB_HOST": "far", "XB_SSH_CONFIG": str(rig.ssh_config)}
    done = built.inv("nvidia.case2", "--no-throttle", "--yes", "--json", **ssh)
    assert done.code == 0, done.text
    assert done.document["host"] == "far"
    assert nothing_is_left(built)


def test_case_2_without_the_throttle_says_so(built: Workplace) -> None:
    done = built.inv("nvidia.case2", "--no-throttle", "--gpu", "1", "--mem", "3001", "--sm", "7")
    assert done.code == 0, done.text
    assert "\nPASS (compute not measured)\n" in done.out
    assert "nvidia-smi memory.total is 3001 MiB" in done.out
    assert "the log says device 0: 7 %" in done.out


def test_case_3_in_any_order(built: Workplace, cards: Cards) -> None:
    cards.are({"model": "h200"}, CARD, {"model": "a100"})
    done = built.inv("nvidia.case3", "--gpus", "2,0", "--mem", "3000", "--json")
    assert done.code == 0, done.text
    details = " ".join(row["detail"] for row in case(done)["checks"])
    assert "GPU 0: nvidia-smi memory.total is 6000 MiB" in details
    assert "GPU 2: nvidia-smi memory.total is 3000 MiB" in details
    assert "GPU 1" not in details
    assert nothing_is_left(built)


def test_too_few_cards_are_skipped_with_a_row(built: Workplace, cards: Cards) -> None:
    cards.are(CARD)
    done = built.inv("nvidia.case3", "--json")
    assert done.code == 3, done.text
    assert statuses(done) == {"cards": {"WARN"}}
    cards.are({"model": "h200", "mig": True}, CARD)
    assert built.inv("nvidia.case2", "--no-throttle").code == 3


def test_a_busy_card_is_refused_unless_it_may_be_shared(built: Workplace, cards: Cards) -> None:
    tenant = {"pid": 4242, "name": "python3", "memory_mib": 900, "type": "C"}
    display = {"pid": 17, "name": "Xorg", "memory_mib": 90, "type": "G"}
    cards.are({**CARD, "processes": [tenant]}, {**CARD, "processes": [display]})
    done = built.inv("nvidia.case2", "--no-throttle")
    assert done.code == 2, done.text
    assert "GPU 0 is busy: python3 (4242)" in done.text
    assert built.inv("nvidia.case2", "--no-throttle", "--gpu", "auto").code == 0
    shared = built.inv("nvidia.case2", "--no-throttle", "--busy-ok")
    assert shared.code == 0, shared.text


def test_cards_that_can_not_be_reached_are_no_fault_of_the_library(built: Workplace, cards: Cards) -> None:
    cards.are(CARD, CARD, runtime="cdi")
    done = built.inv("nvidia.case2", "--json")
    assert done.code == 4, done.text
    assert statuses(done)["reachable"] == {"FAIL"}
    assert "unresolvable CDI devices" in case(done)["reason"]
    assert nothing_is_left(built)


def test_a_limit_above_the_card_is_wrong_usage(built: Workplace) -> None:
    done = built.inv("nvidia.case2", "--mem", "49141")
    assert done.code == 2
    assert "is above GPU 0" in done.text


def test_a_card_that_tells_nothing_of_processes_leaves_compute_unmeasured(
    built: Workplace, cards: Cards
) -> None:
    cards.are({**CARD, "process_utilization": False})
    done = built.inv("nvidia.case2", "--json")
    assert done.code == 0, done.text
    assert statuses(done)["throttle"] <= {"PASS", "SKIP"}


def test_two_runs_at_once_do_not_meet(built: Workplace) -> None:
    started = [built.start("nvidia.case2", "--no-throttle", "--json") for _ in range(2)]
    documents = []
    for process in started:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err.decode()
        documents.append(json.loads(out))
    assert {document["verdict"] for document in documents} == {"PASS"}
    assert len({document["run"] for document in documents}) == 2
    assert nothing_is_left(built)


def test_an_interrupted_run_leaves_nothing(built: Workplace) -> None:
    process = built.start("nvidia.case2")
    deadline = time.monotonic() + 120
    while not any(name.endswith("-throttle") for name in built.left_over()):
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 130
    assert nothing_is_left(built)
