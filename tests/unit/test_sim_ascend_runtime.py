"""The ascend runtime: which dies a text asks for, what a container gets, how a refusal is worded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from xbtasks.sim.drivers.ascend.injection import inject
from xbtasks.sim.drivers.ascend.models import MODELS
from xbtasks.sim.drivers.ascend.visible import visible_devices, without_drivers
from xbtasks.sim.drivers.injection import NODE_IN_CONTAINER, InjectionError, NodeFiles
from xbtasks.sim.drivers.inventory import write_part
from xbtasks.sim.oci import OciSpec

if TYPE_CHECKING:
    from pathlib import Path

A2 = MODELS["910b4"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", ()),
        ("void", ()),
        ("0", (0,)),
        ("0,2", (0, 2)),
        ("2,0", (0, 2)),
        (" 2 , 0 ", (0, 2)),
        ("0-3", (0, 1, 2, 3)),
        ("1,0-2,1", (0, 1, 2)),
        ("5-5", (5,)),
        ("+1", (1,)),
        ("126-128", (126, 127, 128)),
        ("Ascend910-0", (0,)),
        ("Ascend910-3, Ascend910-1", (1, 3)),
        ("npu-0,Ascend910-2", (0, 2)),
    ],
)
def test_forms_that_are_taken(text: str, found: tuple[int, ...]) -> None:
    assert visible_devices(text, A2) == found


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("all", "failed to parse device : invalid single device parameter: all"),
        ("0,", "failed to parse device : invalid single device parameter: "),
        ("-1", "failed to parse device : invalid left boarder range parameter: "),
        ("0-", "failed to parse device : invalid right boarder range parameter: "),
        ("0-129", "failed to parse device : invalid right boarder range parameter: 129"),
        ("3-1", "failed to parse device : left boarder (3) should not be larger than the right one(1)"),
        ("0-1-2", "failed to parse device : invalid device range: 0-1-2"),
        ("Ascend910B-0", "failed to parse ascend device : invalid device format: Ascend910B-0"),
        ("Ascend910-0,1", "failed to parse ascend device : invalid device format: 1"),
        ("Ascend310P-0", "failed to parse ascend device : chip type not match really: 310P"),
        ("npu-x", "failed to parse ascend device : invalid device format: npu-x"),
    ],
)
def test_forms_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(InjectionError) as refused:
        visible_devices(text, A2)
    assert str(refused.value) == f"failed to check ASCEND_VISIBLE_DEVICES parameter, err: {reason}"


def test_a_310p_is_named_otherwise() -> None:
    assert visible_devices("Ascend310P-1", MODELS["310p3"]) == (1,)
    with pytest.raises(InjectionError, match="chip type not match really: 910"):
        visible_devices("Ascend910-1", MODELS["310p3"])


@pytest.mark.parametrize(
    ("text", "bare"), [("", False), ("NODRV", True), ("VIRTUAL", False), ("VIRTUAL, NODRV", True)]
)
def test_options(text: str, bare: bool) -> None:
    assert without_drivers(text) is bare


@pytest.mark.parametrize("text", ["nodrv", "NODRV,X", "N" * 129])
def test_options_that_are_refused(text: str) -> None:
    with pytest.raises(InjectionError, match=r"invalid (runtime option|length)"):
        without_drivers(text)


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    """Return the files of a node with three cards."""
    write_part(tmp_path / "inventory.json", "ascend", {"cards": [{}, {}, {}]})
    return NodeFiles(tmp_path / "drivers/ascend", tmp_path / "node", tmp_path / "inventory.json")


def injected(folder: Path, files: NodeFiles, **environment: str) -> dict[str, Any]:
    variables = [f"{name}={value}" for name, value in environment.items()]
    configuration = {"root": {"path": "rootfs"}, "process": {"env": ["PATH=/bin", *variables]}}
    (folder / "config.json").write_text(json.dumps(configuration))
    spec = OciSpec(folder)
    inject(spec, files)
    spec.save()
    return dict(json.loads((folder / "config.json").read_text()))


def devices(configuration: dict[str, Any]) -> list[str]:
    return [device["path"] for device in configuration.get("linux", {}).get("devices", [])]


def mounts(configuration: dict[str, Any]) -> dict[str, str]:
    return {mount["destination"]: mount["source"] for mount in configuration.get("mounts", [])}


MANAGERS = ["/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"]


@pytest.mark.parametrize(
    "environment", [{}, {"ASCEND_VISIBLE_DEVICES": ""}, {"ASCEND_VISIBLE_DEVICES": "void"}]
)
def test_nothing_comes_unasked_but_a_variable(
    environment: dict[str, str], tmp_path: Path, files: NodeFiles
) -> None:
    configuration = injected(tmp_path, files, **environment)
    assert (devices(configuration), mounts(configuration)) == ([], {})
    assert configuration["process"]["env"][-1] == "ASCEND_DOCKER_RUNTIME=True"


def test_a_container_gets_its_dies_and_the_driver(tmp_path: Path, files: NodeFiles) -> None:
    configuration = injected(tmp_path, files, ASCEND_VISIBLE_DEVICES="2,0")
    assert devices(configuration) == ["/dev/davinci0", "/dev/davinci2", *MANAGERS]
    assert mounts(configuration) == {
        NODE_IN_CONTAINER: str(files.node),
        "/usr/local/Ascend/driver/lib64": str(files.drivers / "lib64"),
        "/usr/local/dcmi": str(files.drivers / "dcmi"),
        "/usr/local/bin/npu-smi": str(files.drivers / "npu-smi"),
    }
    assert all(
        "ro" in mount["options"] for mount in configuration["mounts"] if mount["source"] != str(files.node)
    )
    assert "ASCEND_DOCKER_RUNTIME=True" in configuration["process"]["env"]
    rules = [(rule["major"], rule["minor"]) for rule in configuration["linux"]["resources"]["devices"]]
    assert rules == [(400, 0), (400, 2), (401, 0), (401, 1), (401, 2)]


def test_the_last_of_two_variables_counts(tmp_path: Path, files: NodeFiles) -> None:
    (tmp_path / "config.json").write_text(
        json.dumps({"process": {"env": ["ASCEND_VISIBLE_DEVICES=0", "ASCEND_VISIBLE_DEVICES=1"]}})
    )
    spec = OciSpec(tmp_path)
    inject(spec, files)
    spec.save()
    assert devices(json.loads((tmp_path / "config.json").read_text()))[0] == "/dev/davinci1"


def test_the_driver_may_be_left_out(tmp_path: Path, files: NodeFiles) -> None:
    environment = {"ASCEND_VISIBLE_DEVICES": "0", "ASCEND_RUNTIME_OPTIONS": "NODRV"}
    configuration = injected(tmp_path, files, **environment)
    assert list(mounts(configuration)) == [NODE_IN_CONTAINER]
    assert devices(configuration) == ["/dev/davinci0", *MANAGERS]


def test_the_950_has_no_shared_memory_device(tmp_path: Path, files: NodeFiles) -> None:
    write_part(files.inventory, "ascend", {"model": "950pr", "cards": [{}]})
    configuration = injected(tmp_path, files, ASCEND_VISIBLE_DEVICES="0")
    assert devices(configuration) == ["/dev/davinci0", "/dev/davinci_manager", "/dev/hisi_hdc"]


@pytest.mark.parametrize("fault", ["none", "not-loaded"])
def test_a_die_that_is_not_there_is_refused(fault: str, tmp_path: Path, files: NodeFiles) -> None:
    write_part(files.inventory, "ascend", {"fault": fault, "cards": [{}, {}, {}]})
    wanted = "3" if fault == "none" else "0"
    with pytest.raises(InjectionError) as refused:
        injected(tmp_path, files, ASCEND_VISIBLE_DEVICES=wanted)
    assert str(refused.value) == (
        f"failed to modify spec file {tmp_path}/config.json: failed to add device to env: "
        f"failed to add davinci device to spec: failed to get /dev/davinci{wanted} info : "
        f"lstat /dev/davinci{wanted}: no such file or directory"
    )


def test_a_bad_option_is_refused_by_the_hook(tmp_path: Path, files: NodeFiles) -> None:
    environment = {"ASCEND_VISIBLE_DEVICES": "0", "ASCEND_RUNTIME_OPTIONS": "FAST"}
    with pytest.raises(
        InjectionError, match=r"error running hook: exit status 1.* invalid runtime option FAST"
    ):
        injected(tmp_path, files, **environment)
    assert injected(tmp_path, files, ASCEND_RUNTIME_OPTIONS="FAST")  # unread where nothing is asked for
