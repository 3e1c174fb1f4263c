from __future__ import annotations

import io
import shlex
import subprocess
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from tests.workplace import SAMPLE, cells, make_checkout
from xbtasks.checkout.stages import discover
from xbtasks.knobs.resolve import resolve
from xbtasks.knobs.settings import describe
from xbtasks.reporting.console import Console
from xbtasks.reporting.listing import show_knobs, show_sim, show_stages, stage_documents
from xbtasks.sessions import FIELD_STAGES
from xbtasks.sim.daemon import SimStatus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DOCKERFILE = "pack/gpustack-operator/Dockerfile"


def shown(show: Callable[[Console], None]) -> str:
    out = io.StringIO()
    show(Console(out))
    return out.getvalue()


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "250")


def test_each_stage_is_a_line(tmp_path: Path) -> None:
    found = discover(SAMPLE, DOCKERFILE)
    states = ("yes", "stale", "no", "unknown", "yes", "no", "no")
    text = shown(lambda console: show_stages(found, found.stages, states, console))
    rows = {row[0]: row for row in cells(text)}
    assert tuple(name for name in rows if name != "STAGE") == FIELD_STAGES
    assert [rows[name][5] for name in FIELD_STAGES] == list(states)
    assert rows["xbuild-nvidia-cuda-13"][1:4] == ["52f33fc7fa1f", "amd64, arm64", "3"]


def test_the_document_says_all_that_the_table_says(tmp_path: Path) -> None:
    found = discover(SAMPLE, DOCKERFILE)
    document: dict[str, Any] = stage_documents(found, found.stages, ("no",) * 7)
    assert [stage["name"] for stage in document["stages"]] == list(FIELD_STAGES)
    last = document["stages"][-1]
    assert (last["backend"], last["suffix"], last["platforms"]) == (
        "nvidia",
        "13",
        ["linux/amd64", "linux/arm64"],
    )
    assert all(len(digest) == 64 for digest in last["digests"].values())
    assert [each["kind"] for each in last["inputs"]] == ["file", "dir", "file"]
    assert (last["built"], last["missing"]) == ("no", [])


def test_what_is_missing_and_what_nobody_knows_is_said(tmp_path: Path) -> None:
    text = (
        "FROM scratch AS xbuild-nvidia-cuda-1\nCOPY gone.so /out/libvgpu.so\n"
        "FROM scratch AS xbuild-amd-rocm-1\nCOPY gone.so /x\n"
    )
    found = discover(make_checkout(tmp_path, text), DOCKERFILE)
    listed = shown(lambda console: show_stages(found, found.stages, ("no",), console))
    assert "xbuild-nvidia-cuda-1 needs gone.so" in listed
    assert "no backend here knows: xbuild-amd-rocm-1" in listed


def test_a_dockerfile_without_stages_says_so(tmp_path: Path) -> None:
    found = discover(make_checkout(tmp_path, "FROM scratch AS other\n"), DOCKERFILE)
    assert "no builder stage in" in shown(lambda console: show_stages(found, (), (), console))


def test_knobs_tell_their_value_and_where_it_comes_from() -> None:
    chosen = resolve(
        {"mem": "2048"}, {"XB_SM": "40"}, user_file=None, explicit_user_file=False, project_file=None
    )
    rows = {row[0]: row for row in cells(shown(lambda console: show_knobs(describe(chosen), console)))}
    assert rows["XB_MEM"][2:4] == ["2048", "flag --mem"]
    assert rows["XB_SM"][2:4] == ["40", "XB_SM"]
    assert rows["XB_CTR"][2:4] == ["docker", "default"]


def sim_status(folder: Path, *, running: bool) -> SimStatus:
    state: dict[str, Any] = {each.name: folder / each.name for each in fields(SimStatus)}
    state |= {
        "running": running,
        "pid": 7 if running else None,
        "engine_version": "26.1.5" if running else None,
    }
    return SimStatus(**state)


def test_the_simulated_hosts_variables_are_lines_for_a_shell(tmp_path: Path) -> None:
    odd = tmp_path / "it's $(id)"
    status = sim_status(odd, running=True)
    text = shown(lambda console: show_sim(status, console, env=True))
    done = subprocess.run(
        ["sh", "-c", f'{text}printf %s "$XB_REPO"'],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == str(odd / "repo")
    assert all(shlex.split(line)[0] == "export" for line in text.splitlines())
    running = shown(lambda console: show_sim(status, console, env=False))
    assert "SIMULATED" in running
    assert "pid 7" in running


def test_a_simulated_host_that_does_not_run_says_how_to_start_it(tmp_path: Path) -> None:
    status = sim_status(tmp_path, running=False)
    assert "sim.up" in shown(lambda console: show_sim(status, console, env=False))
