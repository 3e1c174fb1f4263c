"""What ascend-docker-runtime brings into a container: device files, the driver's libraries, npu-smi.

Contract: Ascend mind-cluster, component/ascend-docker-runtime: the environment variables, the list of mounts
``base.list`` and the wording of refusals. CANN itself (the runtime, ACL) isn't injected: images have it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.sim.drivers.ascend.cards import read_driver
from xbtasks.sim.drivers.ascend.models import Layout
from xbtasks.sim.drivers.ascend.visible import visible_devices, without_drivers
from xbtasks.sim.drivers.injection import NODE_IN_CONTAINER, InjectionError

if TYPE_CHECKING:
    from collections.abc import Collection

    from xbtasks.sim.drivers.ascend.cards import Driver
    from xbtasks.sim.drivers.injection import NodeFiles
    from xbtasks.sim.oci import OciSpec

__all__ = ["device_files", "inject"]

# Numbers that no driver of the machine has: the kernel gives out 234 to 254 and then 511 downwards.
_MAJOR: Final = 400
_MANAGER_MAJOR: Final = 401
_MANAGERS: Final = ("davinci_manager", "devmm_svm", "hisi_hdc")
_MANAGERS_950: Final = ("davinci_manager", "hisi_hdc")
_MOUNTS: Final = {
    "lib64": "/usr/local/Ascend/driver/lib64",
    "dcmi": "/usr/local/dcmi",
    "npu-smi": "/usr/local/bin/npu-smi",
}
_REFUSED_BY_RUNTIME: Final = "failed to modify spec file {}/config.json: "
_REFUSED_BY_HOOK: Final = (
    "runc create failed: unable to start container process: error during container init: "
    "error running hook #0: error running hook: exit status 1, stdout: , stderr: "
)


def inject(spec: OciSpec, files: NodeFiles) -> None:
    """Bring in what the container's environment asks for."""
    environment = spec.environment
    driver = read_driver(files.inventory)
    try:
        wanted = visible_devices(environment.get("ASCEND_VISIBLE_DEVICES", ""), driver.model)
        _check_devices(wanted, driver)
    except InjectionError as error:
        raise InjectionError(_REFUSED_BY_RUNTIME.format(spec.bundle) + str(error)) from error
    if wanted:
        try:
            bare = without_drivers(environment.get("ASCEND_RUNTIME_OPTIONS", ""))
        except InjectionError as error:
            raise InjectionError(_REFUSED_BY_HOOK + str(error)) from error
        _add_devices(spec, wanted, driver)
        spec.bind(files.node, NODE_IN_CONTAINER, "rw", "noexec")
        if not bare:
            for name, target in _MOUNTS.items():
                spec.bind(files.drivers / name, target)
    spec.set_environment("ASCEND_DOCKER_RUNTIME", "True")


def _check_devices(wanted: tuple[int, ...], driver: Driver) -> None:
    known = {die.phy_id for die in driver.dies}
    for phy_id in wanted:
        if phy_id not in known or driver.fault == "not-loaded":
            path = f"/dev/davinci{phy_id}"
            raise InjectionError(
                "failed to add device to env: failed to add davinci device to spec: "
                f"failed to get {path} info : lstat {path}: no such file or directory"
            )


def device_files(driver: Driver, wanted: Collection[int] | None = None) -> dict[str, tuple[int, int]]:
    """Return the names and numbers of the device files of dies, by default all, and of the managers."""
    dies = [die.phy_id for die in driver.dies] if wanted is None else wanted
    files = {f"davinci{phy_id}": (_MAJOR, phy_id) for phy_id in dies}
    managers = _MANAGERS_950 if driver.model.layout is Layout.A5 else _MANAGERS
    return files | {name: (_MANAGER_MAJOR, minor) for minor, name in enumerate(managers)}


def _add_devices(spec: OciSpec, wanted: tuple[int, ...], driver: Driver) -> None:
    for name, (major, minor) in device_files(driver, wanted).items():
        spec.device(f"/dev/{name}", major, minor)
