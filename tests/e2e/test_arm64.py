"""arm64 stages on this host: built across, judged from their bytes, and nothing of them is ever run."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.workplace import BASE, make_checkout, statuses

if TYPE_CHECKING:
    from tests.workplace import Workplace

pytestmark = pytest.mark.engine

FOREIGN, MACHINE = ("linux/arm64", "AArch64") if platform.machine() == "x86_64" else ("linux/amd64", "x86-64")


def started(place: Workplace, since: str) -> list[str]:
    """Return the names of the containers that the engine started since then."""
    text = place.engine.docker(
        *("events", "--since", since, "--until", now(place), "--filter", "event=start"),
        *("--format", "{{json .Actor.Attributes}}"),
    )
    return [json.loads(line)["name"] for line in text.splitlines()]


def now(place: Workplace) -> str:
    (found,) = re.findall(
        r"SystemTime: (\S+)|$", place.engine.docker("info", "--format", "SystemTime: {{.SystemTime}}")
    )[:1]
    return str(found)


def rows(case: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in case["checks"] if row["id"].endswith(f".{name}")]


@pytest.mark.parametrize("stage", ["xbuild-ascend-cann-9-910c", "xbuild-nvidia-cuda-12"])
def test_a_stage_for_another_architecture_passes_and_its_row_says_that_nothing_ran(
    place: Workplace, stage: str
) -> None:
    since = now(place)
    done = place.inv("verify", stage, "--cases", "1", "--platform", FOREIGN, "--json")
    assert done.code == 0, done.text
    (case,) = done.document["cases"]
    assert case["verdict"] == "PASS"
    assert set(statuses(case)["arch"]) == {"PASS"}
    for row in rows(case, "arch"):
        assert MACHINE in row["detail"]
        assert "nothing of it was run on this host" in row["detail"]
    assert "emulated" not in done.err
    assert started(place, since) == []
    inspected = json.loads(place.engine.docker("image", "inspect", place.tag("image")))[0]
    assert f"linux/{inspected['Architecture']}" == FOREIGN
    for artifact in done.document["artifacts"]:
        staged = next(place.staging.rglob(Path(artifact["path"]).name))
        assert staged.read_bytes()[18:20] == {"AArch64": b"\xb7\0", "x86-64": b"\x3e\0"}[MACHINE]
    again = place.inv("verify", stage, "--cases", "1", "--platform", FOREIGN, "--json")
    assert [build["outcome"] for build in again.document["builds"]] == ["up to date"]


def test_a_library_of_this_host_in_a_foreign_image_fails(place: Workplace) -> None:
    stage = "xbuild-nvidia-cuda-x"
    install = "RUN install -D -m 0644 /bin/true /out/libvgpu.so"
    text = f"FROM --platform=$BUILDPLATFORM {BASE} AS {stage}\n{install}\n"
    checkout = make_checkout(place.folder / "checkout", text)
    done = place.inv("verify", stage, "--cases", "1", "--platform", FOREIGN, "--json", XB_REPO=str(checkout))
    (case,) = done.document["cases"]
    assert (done.code, statuses(case)["arch"]) == (1, ["FAIL"])
    assert MACHINE in rows(case, "arch")[0]["expected"]


def test_the_image_of_one_platform_is_not_judged_as_the_others(place: Workplace) -> None:
    stage = "xbuild-nvidia-cuda-12"
    assert place.inv("verify", stage, "--cases", "1", "--platform", FOREIGN).code == 0
    done = place.inv("nvidia.case1", stage, "--json")
    assert done.code == 2, done.text
    assert f"is for {FOREIGN}" in done.document["reason"]
    back = place.inv("verify", stage, "--cases", "1", "--json")
    assert back.code == 0
    assert f"the image is for {FOREIGN}" in back.document["builds"][0]["reason"]


def test_a_stage_that_would_run_foreign_programs_is_refused_without_emulation(place: Workplace) -> None:
    """Where this kernel emulates the other platform, the run says beforehand that it is slow."""
    stage = "xbuild-nvidia-cuda-x"
    checkout = make_checkout(place.folder / "checkout", f"FROM {BASE} AS {stage}\nRUN true\n")
    emulated = any(
        "qemu" in path.name and "enabled" in path.read_text()
        for path in Path("/proc/sys/fs/binfmt_misc").glob("qemu-*")
    )
    done = place.inv("verify", stage, "--cases", "1", "--platform", FOREIGN, "--json", XB_REPO=str(checkout))
    if emulated:
        assert "emulated and slow" in done.err
        assert done.code in (1, 4)
    else:
        assert done.code == 2
        assert "emulation" in done.document["reason"]
    assert done.document["verdict"] != "PASS"
