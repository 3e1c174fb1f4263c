"""The injecting OCI runtimes: what becomes of a bundle, and how a refusal is told."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from xbtasks.sim import runtime
from xbtasks.sim.drivers.injection import NODE_IN_CONTAINER, InjectionError, NodeFiles
from xbtasks.sim.drivers.inventory import write_part
from xbtasks.sim.drivers.nvidia.cards import read_driver
from xbtasks.sim.drivers.nvidia.injection import inject
from xbtasks.sim.oci import OciSpec
from xbtasks.sim.paths import SimPaths

if TYPE_CHECKING:
    from pathlib import Path

DEBIAN = f"/usr/lib/{platform.machine()}-linux-gnu"
VISIBLE, CAPABILITIES = "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES"


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    """Return the files of a node with three cards."""
    write_part(tmp_path / "inventory.json", "nvidia", {"cards": [{}, {}, {}]})
    return NodeFiles(tmp_path / "drivers/nvidia", tmp_path / "node", tmp_path / "inventory.json")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Return a bundle whose root file system is a Debian."""
    folder = tmp_path / "bundle"
    (folder / "rootfs/etc").mkdir(parents=True)
    (folder / "rootfs/etc/debian_version").touch()
    configuration = {"root": {"path": "rootfs"}, "process": {"env": ["PATH=/bin"]}}
    (folder / "config.json").write_text(json.dumps(configuration))
    return folder


def injected(bundle: Path, files: NodeFiles, **environment: str) -> OciSpec:
    configuration = json.loads((bundle / "config.json").read_text())
    configuration["process"]["env"] += [f"{name}={value}" for name, value in environment.items()]
    (bundle / "config.json").write_text(json.dumps(configuration))
    spec = OciSpec(bundle)
    inject(spec, files)
    spec.save()
    return OciSpec(bundle)


def config(bundle: Path) -> dict[str, object]:
    return json.loads((bundle / "config.json").read_text())


def devices(bundle: Path) -> list[str]:
    return [device["path"] for device in config(bundle).get("linux", {}).get("devices", [])]


def targets(bundle: Path) -> list[str]:
    return [mount["destination"] for mount in config(bundle).get("mounts", [])]


@pytest.mark.parametrize("visible", [None, "", "void"])
def test_nothing_is_injected_unasked(visible: str | None, bundle: Path, files: NodeFiles) -> None:
    environment = {} if visible is None else {VISIBLE: visible}
    before = config(bundle)["root"]
    injected(bundle, files, **environment)
    assert (devices(bundle), targets(bundle), config(bundle)["root"]) == ([], [], before)


def uuid(files: NodeFiles, index: int) -> str:
    return read_driver(files.inventory).cards[index].uuid


@pytest.mark.parametrize(
    ("visible", "cards"),
    [
        ("0", [0]),
        ("2,0", [0, 2]),
        ("1,1", [1]),
        ("all", [0, 1, 2]),
        ("none", []),
        ("{1}", [1]),
        ("{2},0", [0, 2]),
        ("{1},1", [1]),
        ("00000000:21:00.0", [1]),
    ],
)
def test_cards_come_by_index_whatever_the_order(
    visible: str, cards: list[int], bundle: Path, files: NodeFiles
) -> None:
    for index in range(3):
        visible = visible.replace(f"{{{index}}}", uuid(files, index))
    injected(bundle, files, **{VISIBLE: visible})
    assert devices(bundle) == ["/dev/nvidiactl", *(f"/dev/nvidia{index}" for index in cards)]


def test_a_uuid_is_taken_in_either_case(bundle: Path, files: NodeFiles) -> None:
    injected(bundle, files, **{VISIBLE: uuid(files, 1).upper()})
    assert "/dev/nvidia1" in devices(bundle)


@pytest.mark.parametrize("visible", ["7", "GPU-1", "0,7", "-1", "0, 1", "0,", "nvidia0"])
def test_an_unknown_card_is_refused_as_the_vendor_does(visible: str, bundle: Path, files: NodeFiles) -> None:
    with pytest.raises(InjectionError) as refused:
        injected(bundle, files, **{VISIBLE: visible})
    unknown = next(item for item in visible.split(",") if item != "0")
    assert str(refused.value).endswith(f"nvidia-container-cli: device error: {unknown}: unknown device")


SMI, NVML, CUDA = "/usr/bin/nvidia-smi", f"{DEBIAN}/libnvidia-ml.so.1", f"{DEBIAN}/libcuda.so.1"


@pytest.mark.parametrize(
    ("capabilities", "brought"),
    [
        (None, {SMI, NVML}),
        ("", {SMI, NVML}),
        ("utility", {SMI, NVML}),
        ("compute", {CUDA}),
        ("compute,utility", {SMI, NVML, CUDA}),
        ("all", {SMI, NVML, CUDA}),
        ("graphics", set()),
    ],
)
def test_capabilities_choose_what_is_brought_in(
    capabilities: str | None, brought: set[str], bundle: Path, files: NodeFiles
) -> None:
    environment = {VISIBLE: "0"} if capabilities is None else {VISIBLE: "0", CAPABILITIES: capabilities}
    injected(bundle, files, **environment)
    assert {target for target in targets(bundle) if target in {SMI, NVML, CUDA}} == brought
    assert NODE_IN_CONTAINER in targets(bundle)
    assert ("/dev/nvidia-uvm" in devices(bundle)) == (CUDA in brought)


def test_an_unknown_capability_is_refused(bundle: Path, files: NodeFiles) -> None:
    with pytest.raises(InjectionError, match=r"unsupported capabilities found in 'gaming' \(allowed "):
        injected(bundle, files, **{VISIBLE: "0", CAPABILITIES: "compute,gaming"})


def test_libraries_lie_where_the_images_loader_looks(bundle: Path, files: NodeFiles) -> None:
    (bundle / "rootfs/etc/debian_version").unlink()
    injected(bundle, files, **{VISIBLE: "0", CAPABILITIES: "all"})
    found = {target for target in targets(bundle) if "lib" in target}
    assert found == {
        f"/usr/lib64/{name}.{version}"
        for name in ("libcuda.so", "libnvidia-ml.so")
        for version in ("1", "570.195.03")
    }


def test_an_absolute_root_is_looked_into(bundle: Path, files: NodeFiles, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    configuration = config(bundle) | {"root": {"path": str(tmp_path / "elsewhere")}}
    (bundle / "config.json").write_text(json.dumps(configuration))
    injected(bundle, files, **{VISIBLE: "0"})
    assert "/usr/lib64/libnvidia-ml.so.1" in targets(bundle)


def test_mounts_of_files_are_read_only_and_devices_are_allowed(bundle: Path, files: NodeFiles) -> None:
    injected(bundle, files, **{VISIBLE: "0"})
    mounts = {mount["destination"]: mount for mount in config(bundle)["mounts"]}
    assert mounts[SMI]["options"] == ["bind", "nosuid", "nodev", "ro"]
    assert mounts[SMI]["source"] == str(files.drivers / "nvidia-smi")
    rules = config(bundle)["linux"]["resources"]["devices"]
    assert {"allow": True, "type": "c", "major": 402, "minor": 0, "access": "rwm"} in rules


def test_the_later_of_two_environment_entries_counts(bundle: Path, files: NodeFiles) -> None:
    configuration = config(bundle)
    configuration["process"]["env"] = [f"{VISIBLE}=0", f"{VISIBLE}=1"]
    (bundle / "config.json").write_text(json.dumps(configuration))
    injected(bundle, files)
    assert devices(bundle) == ["/dev/nvidiactl", "/dev/nvidia1"]


@pytest.mark.parametrize(
    ("values", "visible", "said"),
    [
        ({"runtime": "cdi"}, "all", "unresolvable CDI devices runtime.nvidia.com/gpu=all"),
        ({"runtime": "cdi"}, "0,1", "CDI devices runtime.nvidia.com/gpu=0, runtime.nvidia.com/gpu=1"),
        ({}, "nvidia.com/gpu=0", "unresolvable CDI devices nvidia.com/gpu=0"),
        ({"fault": "mismatch"}, "all", "initialization error: nvml error: driver/library version mismatch"),
        ({"fault": "not-loaded"}, "all", "initialization error: nvml error: driver not loaded"),
    ],
)
def test_a_host_that_isnt_right_refuses(
    values: dict[str, object], visible: str, said: str, bundle: Path, files: NodeFiles
) -> None:
    write_part(files.inventory, "nvidia", {"cards": [{}, {}], **values})
    with pytest.raises(InjectionError, match=said):
        injected(bundle, files, **{VISIBLE: visible})


def test_a_host_that_lost_its_devices_makes_the_container(bundle: Path, files: NodeFiles) -> None:
    write_part(files.inventory, "nvidia", {"cards": [{}], "fault": "unknown-error"})
    injected(bundle, files, **{VISIBLE: "0"})
    assert "/dev/nvidia0" in devices(bundle)


@pytest.fixture
def paths(tmp_path: Path, files: NodeFiles) -> SimPaths:
    """Return a host whose runc writes its arguments down, with the runtimes installed."""
    state = tmp_path / "a state"
    (state / "programs/sbin").mkdir(parents=True)
    runc = state / "programs/sbin/runc"
    runc.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > "{tmp_path}/arguments"\nexit 3\n')
    runc.chmod(0o755)
    paths = SimPaths(cache=tmp_path / "cache", state=state, runtime=tmp_path / "run")
    files.inventory.rename(paths.inventory)
    runtime.install(paths)
    return paths


def call(paths: SimPaths, *arguments: str) -> subprocess.CompletedProcess[str]:
    program = runtime.settings(paths)["nvidia"]["path"]
    return subprocess.run((program, *arguments), env={}, capture_output=True, text=True)


def test_every_command_but_create_is_runcs_alone(paths: SimPaths, bundle: Path, tmp_path: Path) -> None:
    before = config(bundle)
    arguments = ("--root", "/r", "start", "a b")
    assert call(paths, *arguments).returncode == 3
    assert (tmp_path / "arguments").read_text().splitlines() == list(arguments)
    assert config(bundle) == before


def test_create_injects_and_becomes_runc(paths: SimPaths, bundle: Path, tmp_path: Path) -> None:
    configuration = config(bundle)
    configuration["process"]["env"] = [f"{VISIBLE}=1"]
    (bundle / "config.json").write_text(json.dumps(configuration))
    arguments = (
        "--log",
        str(tmp_path / "log.json"),
        "create",
        "--bundle",
        str(bundle),
        "--pid-file",
        "p",
        "name",
    )
    assert call(paths, *arguments).returncode == 3
    assert (tmp_path / "arguments").read_text().splitlines() == list(arguments)
    assert devices(bundle) == ["/dev/nvidiactl", "/dev/nvidia1"]
    assert not (tmp_path / "log.json").exists()


@pytest.mark.parametrize("form", ["--bundle {}", "--bundle={}", "-b {}"])
def test_a_refusal_is_a_line_of_json_with_a_time(
    form: str, paths: SimPaths, bundle: Path, tmp_path: Path
) -> None:
    configuration = config(bundle)
    configuration["process"]["env"] = [f"{VISIBLE}=7"]
    (bundle / "config.json").write_text(json.dumps(configuration))
    done = call(paths, f"--log={tmp_path}/log.json", "create", *form.format(bundle).split(" "), "name")
    assert done.returncode == 1
    assert not (tmp_path / "arguments").exists()
    (line,) = (tmp_path / "log.json").read_text().splitlines()
    entry = json.loads(line)
    assert entry["level"] == "error"
    assert entry["msg"].endswith("device error: 7: unknown device")
    assert datetime.fromisoformat(entry["time"]).tzinfo is not None


def test_a_bundle_that_isnt_there_is_a_refusal_too(paths: SimPaths, tmp_path: Path) -> None:
    done = call(paths, "--log", f"{tmp_path}/log.json", "create", "--bundle", str(tmp_path / "none"), "name")
    assert done.returncode == 1
    assert "none/config.json" in json.loads((tmp_path / "log.json").read_text())["msg"]


def test_installing_again_leaves_what_runs_alone(paths: SimPaths) -> None:
    program = paths.state / "runtimes/nvidia"
    before = program.stat()
    runtime.install(paths)
    assert os.path.samestat(before, program.stat())
    program.write_text("of another version")
    runtime.install(paths)
    assert call(paths, "features").returncode == 3
