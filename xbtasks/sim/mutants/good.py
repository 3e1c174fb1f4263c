"""Good variants: they differ from the sample and are right, so every case must pass them."""

from __future__ import annotations

from typing import Final

from xbtasks.sim.mutants.hosts import CONFIG, changed
from xbtasks.sim.mutants.model import Edit, Kind, Variant

__all__ = ["GOOD"]

_VGPU: Final = "external/nvidia/build-vgpu.sh"
_VCANN: Final = "external/ascend/build-vcann-rt.sh"
_SOURCE: Final = "external/ascend/vcann-rt"
_CUDA12: Final = "xbuild-nvidia-cuda-12"
_CUDA13: Final = "xbuild-nvidia-cuda-13"
_CANN8: Final = "xbuild-ascend-cann-8-910b"
_CANN9: Final = "xbuild-ascend-cann-9-910b"
_QUIET: Final = ("--no-throttle",)
_UNTOLD: Final[dict[str, object]] = {
    "cards": [{"process_utilization": False}, {"process_utilization": False}]
}


def _build(name: str, what: str, stage: str, *edits: Edit, options: tuple[str, ...] = ()) -> Variant:
    return Variant(f"good-{name}", Kind.IMAGE, what, stage, 1, edits=edits, options=options)


def _run(
    name: str,
    what: str,
    stage: str,
    case: int,
    *edits: Edit,
    options: tuple[str, ...] = (),
    cards: dict[str, object] | None = None,
    words: str = "",
    says: str = "",
) -> Variant:
    return Variant(
        f"good-{name}",
        Kind.LIBRARY if edits else Kind.DRIVER if cards is not None else Kind.CONFIG,
        what,
        stage,
        case,
        edits=edits,
        options=options,
        cards=cards,
        words=words,
        says=says,
    )


_BUILDS: Final = (
    _build("cuda-12", "the sample as it is", _CUDA12),
    _build("cuda-13", "a later source pin", _CUDA13),
    _build("vgpu-arm64", "built for the other platform", _CUDA12, options=("--platform", "linux/arm64")),
    _build("vgpu-debug", "with debug information", _CUDA12, Edit("external/toolchain.sh", "-g0", "-g")),
    _build("vgpu-libm", "NEEDED has libm too", _CUDA12, Edit(_VGPU, "-lnvidia-ml", "-lnvidia-ml -lm")),
    _build(
        "vgpu-relr",
        "relative relocations are packed",
        _CUDA12,
        Edit(_VGPU, "-Wl,-z,defs", "-Wl,-z,defs -Wl,-z,pack-relative-relocs"),
    ),
    _build(
        "vgpu-as-needed",
        "the profile accepts what the linker drops",
        _CUDA12,
        Edit(_VGPU, "-Wl,--no-as-needed", "-Wl,--as-needed"),
        options=("--profile", "as-needed"),
    ),
    _build(
        "vgpu-sysv-hash",
        "the other kind of hash table",
        _CUDA12,
        Edit(_VGPU, "-Wl,-z,defs", "-Wl,-z,defs -Wl,--hash-style=sysv"),
    ),
    _build(
        "vgpu-unknown-pin",
        "a source pin that nobody knows",
        _CUDA12,
        Edit(
            "Dockerfile",
            "0831874bce5af56cefca7093dfb2f9f95d1970aa",
            "0123456789abcdef0123456789abcdef01234567",
        ),
    ),
    _build("cann-8-910b", "the sample as it is", _CANN8),
    _build("cann-9-910c", "another chip", "xbuild-ascend-cann-9-910c"),
    _build("cann-9-950", "a pin that opens ACL", "xbuild-ascend-cann-9-950"),
    _build("vcann-arm64", "built for the other platform", _CANN8, options=("--platform", "linux/arm64")),
    _build(
        "vcann-unstripped",
        "not stripped",
        _CANN8,
        Edit(_VCANN, '${STRIP} "${work}/libvruntime.so" "${work}/enpu-monitor"\n', ""),
    ),
)

_NVIDIA: Final = (
    _run("gpu-throttle", "the sample as it is, compute measured", _CUDA12, 2),
    _run("gpu-13", "a later source pin", _CUDA13, 2, options=_QUIET),
    _run("gpu-odd", "odd limits", _CUDA12, 2, options=("--mem", "3001", "--sm", "37", "--no-throttle")),
    _run(
        "gpu-no-throttle", "compute isn't asked for", _CUDA12, 2, options=_QUIET, says="compute not measured"
    ),
    _run(
        "gpu-wording",
        "the earlier wording of the compute limit",
        _CUDA12,
        2,
        Edit(
            "external/nvidia/vgpu/throttle.c",
            '"device %d: core utilization limit = %d", i, (int)',
            '"set core utilization limit to %d", (int)',
        ),
        options=_QUIET,
    ),
    _run(
        "gpu-newer-call",
        "the device tells a process's utilization by NVML's newer call alone",
        _CUDA12,
        2,
        cards=_UNTOLD,
    ),
    _run(
        "gpu-unmeasured",
        "the device tells no process's utilization, so nothing is held back",
        _CUDA12,
        2,
        Edit("external/nvidia/vgpu/throttle.c", "if (!any ||", "if (any ||"),
        cards=_UNTOLD,
        says="compute not measured",
    ),
    _run("gpu-h200", "a large card", _CUDA12, 2, options=_QUIET, cards={"cards": [{"model": "h200"}]}),
    _run(
        "gpu-display",
        "a display has the card",
        _CUDA12,
        2,
        options=_QUIET,
        cards={"cards": [{"processes": [{"pid": 99, "name": "Xorg", "memory_mib": 120, "type": "G"}]}]},
    ),
    _run("gpus", "the sample as it is", _CUDA12, 3),
    _run("gpus-reversed", "the cards are named the other way round", _CUDA12, 3, options=("--gpus", "1,0")),
    _run(
        "gpus-three",
        "three cards of several kinds",
        _CUDA12,
        3,
        options=("--gpus", "2,0,1", "--mem", "2048"),
        cards={"cards": [{}, {"model": "h200"}, {"model": "a100"}]},
    ),
)

_ASCEND: Final = (
    _run("npu", "the sample as it is", _CANN8, 2),
    _run("npu-quota", "the sample as it is", _CANN8, 3),
    _run("npu-second", "the second NPU, another slice", _CANN9, 2, options=("--vnpu", "3")),
    _run(
        "npu-narrow",
        "a quota below what a context costs",
        _CANN8,
        2,
        options=("--mem", "300"),
        cards={"cards": [{"dies": [{"context_mib": 1100}]}]},
    ),
    _run("npu-odd", "odd quotas", _CANN8, 3, options=("--mem", "1777", "--aicore", "33")),
    _run(
        "npu-crlf",
        "the configuration has carriage returns",
        _CANN8,
        2,
        words=changed(CONFIG, "s/$/\\r/"),
    ),
    _run(
        "npu-silent-monitor",
        "the monitor logs nothing, as newer sources",
        _CANN8,
        2,
        Edit(f"{_SOURCE}/monitor.c", "    if (log_open() != 0)\n        return EXIT_FAILURE;\n", ""),
        Edit(
            f"{_SOURCE}/log.c",
            '        fprintf(stderr, "[eNPU] Log module not initialized, cannot print log.\\n");\n',
            "",
        ),
    ),
    _run(
        "npu-dies",
        "a card of two dies",
        "xbuild-ascend-cann-9-910c",
        2,
        options=("--npu", "1", "--chip", "1"),
        cards={"model": "910_93", "cards": [{}, {}]},
    ),
    _run(
        "npu-dies-quota",
        "a card of two dies",
        "xbuild-ascend-cann-9-910c",
        3,
        options=("--chip", "1"),
        cards={"model": "910_93", "cards": [{}, {}]},
    ),
    _run("npu-950", "a 950", "xbuild-ascend-cann-9-950", 2, cards={"model": "950pr", "cards": [{}]}),
    _run("npu-950-quota", "a 950", "xbuild-ascend-cann-9-950", 3, cards={"model": "950pr", "cards": [{}]}),
    _run(
        "npu-310p",
        "310Ps, whose numbers have gaps",
        "xbuild-ascend-cann-9-310p",
        2,
        Edit("Dockerfile", "AS xbuild-ascend-cann-9-910b\n", "AS xbuild-ascend-cann-9-310p\n"),
        cards={"model": "310p3", "cards": [{"npu_id": 4}, {"npu_id": 64}]},
        options=("--npu", "64"),
    ),
    _run(
        "npu-unshared",
        "the NPU isn't shared, and nobody else has it",
        _CANN8,
        2,
        cards={"cards": [{"dies": [{"device_share": False}]}]},
    ),
    _run("npu-large", "a larger 910B", _CANN8, 3, cards={"model": "910b1", "cards": [{}]}),
)

GOOD: Final = (*_BUILDS, *_NVIDIA, *_ASCEND)
"""Unusual variants that are right: each must pass."""
