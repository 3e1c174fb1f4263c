"""What the NVIDIA container runtime brings into a container: device files, libraries, nvidia-smi.

Contract: NVIDIA Container Toolkit, "Specialized configurations with Docker": ``NVIDIA_VISIBLE_DEVICES`` and
``NVIDIA_DRIVER_CAPABILITIES``. Refusals are worded as by nvidia-container-cli and nvidia-container-runtime.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

from xbtasks.sim.drivers.injection import NODE_IN_CONTAINER, InjectionError
from xbtasks.sim.drivers.nvidia.cards import read_driver

if TYPE_CHECKING:
    from pathlib import Path

    from xbtasks.sim.drivers.injection import NodeFiles
    from xbtasks.sim.drivers.nvidia.cards import Card, Driver
    from xbtasks.sim.oci import OciSpec

__all__ = ["device_files", "inject"]

# Numbers that no driver of the machine has: NVIDIA's own (195) would open a real card where there is one.
_MAJOR: Final = 402
_CONTROL_MINOR: Final = 255
_UVM_MAJOR: Final = 403
_NO_INJECTION: Final = ("", "void")
_CAPABILITIES: Final = ("compute", "compat32", "graphics", "utility", "video", "display", "ngx")
_DEFAULT_CAPABILITIES: Final = "utility"
_REFUSED_BY_RUNTIME: Final = (
    "could not apply required modification to OCI specification: error modifying OCI spec: "
)
_REFUSED_BY_HOOK: Final = (
    "runc create failed: unable to start container process: error during container init: "
    "error running hook #0: error running hook: exit status 1, stdout: , stderr: "
    "Auto-detected mode as 'legacy'\nnvidia-container-cli: "
)


def inject(spec: OciSpec, files: NodeFiles) -> None:
    """Bring in what the container's environment asks for."""
    environment = spec.environment
    wanted = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    if wanted in _NO_INJECTION:
        return
    driver = read_driver(files.inventory)
    _refuse_cdi(driver, wanted)
    capabilities = _capabilities(environment.get("NVIDIA_DRIVER_CAPABILITIES", ""))
    if driver.fault in _DRIVER_REFUSALS:
        raise InjectionError(_REFUSED_BY_HOOK + _DRIVER_REFUSALS[driver.fault])
    cards = _cards(driver, wanted)
    folder = _library_folder(spec.root)
    spec.bind(files.node, NODE_IN_CONTAINER, "rw", "noexec")
    if "utility" in capabilities:
        _bind_library(spec, files, folder, "libnvidia-ml.so", driver)
        spec.bind(files.drivers / "nvidia-smi", "/usr/bin/nvidia-smi")
    if "compute" in capabilities:
        _bind_library(spec, files, folder, "libcuda.so", driver)
    for name, (major, minor) in _device_files(cards, compute="compute" in capabilities).items():
        spec.device(f"/dev/{name}", major, minor)


def device_files(driver: Driver) -> dict[str, tuple[int, int]]:
    """Return the names and numbers of the device files that the host has: none without a kernel driver."""
    return {} if driver.fault == "not-loaded" else _device_files(driver.cards, compute=True)


def _device_files(cards: tuple[Card, ...], *, compute: bool) -> dict[str, tuple[int, int]]:
    files = {"nvidiactl": (_MAJOR, _CONTROL_MINOR)}
    if compute:
        files |= {"nvidia-uvm": (_UVM_MAJOR, 0), "nvidia-uvm-tools": (_UVM_MAJOR, 1)}
    return files | {f"nvidia{card.index}": (_MAJOR, card.index) for card in cards}


_DRIVER_REFUSALS: Final = {
    "not-loaded": "initialization error: nvml error: driver not loaded",
    "mismatch": "initialization error: nvml error: driver/library version mismatch",
}


def _refuse_cdi(driver: Driver, wanted: str) -> None:
    """The simulated host has no CDI specification, so no CDI device can be resolved."""
    names = [item for item in wanted.split(",") if "=" in item]
    if driver.runtime == "cdi" and not names:
        names = [f"runtime.nvidia.com/gpu={item}" for item in wanted.split(",")]
    if names:
        devices = ", ".join(names)
        raise InjectionError(
            f"{_REFUSED_BY_RUNTIME}failed to inject CDI devices: unresolvable CDI devices {devices}"
        )


def _capabilities(text: str) -> frozenset[str]:
    wanted = frozenset((text or _DEFAULT_CAPABILITIES).split(","))
    if "all" in wanted:
        return frozenset(_CAPABILITIES)
    if unknown := wanted - frozenset(_CAPABILITIES):
        names, allowed = ",".join(sorted(unknown)), ",".join(_CAPABILITIES)
        raise InjectionError(
            f"{_REFUSED_BY_HOOK}unsupported capabilities found in '{names}' (allowed '{allowed}')"
        )
    return wanted


def _cards(driver: Driver, wanted: str) -> tuple[Card, ...]:
    """Return the cards, by index whatever the order in which they are named."""
    if wanted == "none":
        return ()
    if wanted == "all":
        return driver.cards
    chosen = {_card(driver, item).index for item in wanted.split(",")}
    return tuple(card for card in driver.cards if card.index in chosen)


def _card(driver: Driver, item: str) -> Card:
    for card in driver.cards:
        if item == str(card.index) or item.lower() in (card.uuid.lower(), card.bus.lower()):
            return card
    raise InjectionError(f"{_REFUSED_BY_HOOK}device error: {item}: unknown device")


def _library_folder(root: Path) -> str:
    """Return the folder that the image's own loader searches: Debian's family has one for each platform."""
    if (root / "etc/debian_version").is_file():
        return f"/usr/lib/{platform.machine()}-linux-gnu"
    return "/usr/lib64"


def _bind_library(spec: OciSpec, files: NodeFiles, folder: str, name: str, driver: Driver) -> None:
    source = files.drivers / f"{name}.1"
    spec.bind(source, f"{folder}/{name}.1")
    spec.bind(source, f"{folder}/{name}.{driver.version}")
