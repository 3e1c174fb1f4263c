"""The probe: what it is asked, how its answers are read, and what it answers without a driver."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.backends.nvidia import questions
from xbtasks.backends.nvidia.probe import operations as op
from xbtasks.backends.nvidia.probe.operations import Family
from xbtasks.backends.nvidia.probe.report import ABSENT, Memory, parse_report

if TYPE_CHECKING:
    from pathlib import Path

DOCUMENT = {
    "xbtasks-probe": 1,
    "processes": [
        {
            "name": "look",
            "status": 0,
            "events": [
                {"op": "maps:/x.so", "rc": 0, "mapped": True},
                {
                    "op": "init",
                    "rc": 0,
                    "version": 12080,
                    "devices": [{"uuid_rc": 0, "uuid": "GPU-aa", "total_rc": 0, "total": 7}],
                },
                {
                    "op": "nvml",
                    "rc": 0,
                    "cards": [
                        {
                            "rc": 0,
                            "uuid": "GPU-aa",
                            "v1": {"rc": 0, "total": 9, "free": 5, "used": 4},
                            "v2": {"rc": 13, "total": 0, "free": 0, "used": 0},
                            "utilization": 3,
                        }
                    ],
                },
                {"op": "take:alloc:0:5", "rc": 2, "size": 5},
                {"op": "take:alloc:1:6", "rc": 0, "size": 6},
            ],
        },
        {"name": "rate", "status": 139, "events": []},
    ],
}


def test_a_document_is_read() -> None:
    report = parse_report(json.dumps(DOCUMENT, separators=(",", ":")) + "\n")
    assert report is not None
    assert report.foreign == ()
    look, rate = report.process("look"), report.process("rate")
    assert look is not None
    assert rate is not None
    assert (rate.status, rate.events) == (139, ())
    assert report.process("other") is None
    maps, init, nvml = (look.event(name) for name in ("maps", "init", "nvml"))
    assert maps is not None
    assert maps.mapped
    assert init is not None
    assert init.device("gpu-AA") == init.devices[0]
    assert init.device("GPU-bb") is None
    assert nvml is not None
    card = nvml.card("gpu-aa")
    assert card is not None
    assert (card.v1, card.v2.rc, card.utilization) == (Memory(0, 5, 9, 4), 13, 3)
    refused, granted = look.event("take"), look.event("take", 1)
    assert refused is not None
    assert (refused.ok, refused.size) == (False, 5)
    assert granted is not None
    assert granted.ok
    assert look.event("take", 2) is None


def test_what_else_stands_on_stdout_is_foreign() -> None:
    text = json.dumps(DOCUMENT, separators=(",", ":"))
    report = parse_report(f"[HAMI-core Msg(1:1:x.c:1)]: Initialized\n\n{text}\nbye\n")
    assert report is not None
    assert report.foreign == ("[HAMI-core Msg(1:1:x.c:1)]: Initialized", "bye")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"xbtasks-probe":1,"processes":[',
        '{"xbtasks-probe":1,"processes":{}}',
        '{"xbtasks-probe":1,"processes":[{"name":"a","status":"0","events":[]}]}',
        '{"xbtasks-probe":1,"processes":[{"name":"a","status":0,"events":[{"op":"init"}]}]}',
        '{"xbtasks-probe":1,"processes":[{"name":"a","status":0,"events":[{"op":"init","rc":true}]}]}',
        '{"xbtasks-probe":1,"processes":[]}\n{"xbtasks-probe":1,"processes":[]}',
        '{"xbtasks-probe":1,"processes":[3]}',
    ],
)
def test_what_is_no_whole_document_is_none(text: str) -> None:
    assert parse_report(text) is None


@given(st.integers(min_value=1, max_value=400))
def test_a_document_that_was_cut_is_none(cut: int) -> None:
    text = json.dumps(DOCUMENT, separators=(",", ":"))
    assert parse_report(text[:-cut]) is None


def test_sizes_are_written_as_the_probe_reads_them() -> None:
    assert op.of_room() == "room"
    assert op.of_room(3, 4) == "room*3/4"
    assert op.of_room(1, 4, -8) == "room*1/4-8"
    assert op.of_room(plus=-8) == "room-8"
    assert op.take(Family.VMM, 1, op.of_room(1, 2)) == "take:vmm:1:room*1/2"
    assert op.command("/p", ("a", "init"), ("b", "info")) == ("/p", "a", "init", "--", "b", "info")


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the probe, warnings forbidden."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler here")
    program = tmp_path_factory.mktemp("probe") / "probe"
    sources = [str(path) for name, path in op.sources() if name.endswith(".c")]
    options = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror")
    subprocess.run(["cc", *options, "-o", program, *sources, "-ldl"], check=True)
    return program


def run(program: Path, *groups: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(op.command(str(program), *groups), capture_output=True, text=True, timeout=60)


def test_without_a_driver_every_operation_answers(probe: Path) -> None:
    groups = (
        questions.look_group(),
        *(questions.family_group(family, 1 << 32, 1 << 28) for family in questions.FAMILIES),
        questions.rate_group(),
    )
    done = run(probe, *groups)
    assert done.returncode == 0
    report = parse_report(done.stdout)
    assert report is not None
    assert [process.name for process in report.processes] == [group[0] for group in groups]
    for process, group in zip(report.processes, groups, strict=True):
        assert [event.op for event in process.events] == list(group[1:])
    look = report.process("look")
    assert look is not None
    init = look.event("init")
    assert init is not None
    assert init.rc == ABSENT
    assert "libcuda.so.1" in init.why
    assert done.stderr.startswith("xbtasks-probe: maps:")


def test_next_lets_the_following_group_run_first(probe: Path) -> None:
    done = run(probe, ("a", "maps:/x", "next", "maps:/y"), ("b", "next"), ("c", "maps:/z"), ("d", "next"))
    report = parse_report(done.stdout)
    assert report is not None
    # a lets b run, b lets c run; d has nobody to let run
    assert [process.name for process in report.processes] == ["c", "b", "a", "d"]
    assert all(event.rc == 0 for process in report.processes for event in process.events)


def test_what_a_process_did_before_it_crashed_is_kept(probe: Path, tmp_path: Path) -> None:
    source = tmp_path / "crash.c"
    source.write_text("int cuInit(unsigned int flags) { *(volatile int *)8 = (int)flags; return 0; }\n")
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    done = subprocess.run(
        op.command(str(probe), ("a", "maps:/x", "init"), ("b", "maps:/y")),
        capture_output=True,
        text=True,
        env={"LD_LIBRARY_PATH": str(tmp_path)},
        timeout=60,
    )
    report = parse_report(done.stdout)
    assert report is not None
    first, second = report.processes
    assert (first.status, [event.op for event in first.events]) == (139, ["maps:/x"])
    assert (second.status, len(second.events)) == (0, 1)
    assert done.returncode == 139
    assert done.stderr.splitlines()[1] == "xbtasks-probe: init"


def test_a_mapped_file_is_found_by_its_whole_path(probe: Path) -> None:
    with_dots = probe.parent / "." / probe.name
    done = run(probe, ("a", f"maps:{probe}", f"maps:{probe}x", f"maps:{str(with_dots)[:-1]}"))
    report = parse_report(done.stdout)
    assert report is not None
    assert [event.mapped for event in report.processes[0].events] == [True, False, False]
