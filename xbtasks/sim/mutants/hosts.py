"""Mutants of what reaches a container: preload, configuration, engine; and of the cards and their driver.

What the engine is told is changed by a program before ``docker`` on PATH: the product itself is as it is.
"""

from __future__ import annotations

from typing import Final

from xbtasks.sim.mutants.model import Kind, Variant

__all__ = ["CONFIG", "MUTANTS", "changed"]

CONFIG: Final = "*,target=/etc/enpu/vcann-rt/npu_info.config,*"
"""What a bind mount of a slice's config looks like among docker's words."""
_PRELOAD: Final = "*,target=/etc/ld.so.preload,*"


def changed(pattern: str, script: str) -> str:
    """Return the arm that mounts a file of which ``sed`` has changed a copy in place of the file itself."""
    return (
        f'{pattern}) source="${{word#*source=}}"; source="${{source%%,*}}"; '
        f'sed \'{script}\' "${{source}}" >"${{source}}.changed"; '
        'word="type=bind,source=${source}.changed,target=${word#*,target=}" ;;'
    )


def _nvidia(
    kind: Kind, name: str, what: str, rows: str, words: str, *, case: int = 2, exit_code: int = 0
) -> Variant:
    options = ("--no-throttle",) if case == 2 else ()
    return Variant(
        f"{kind}-{name}",
        kind,
        what,
        "xbuild-nvidia-cuda-12",
        case,
        tuple(rows.split()),
        exit_code=exit_code,
        options=options,
        words=words,
    )


def _ascend(kind: Kind, name: str, what: str, rows: str, words: str, *, case: int = 2) -> Variant:
    return Variant(
        f"{kind}-{name}", kind, what, "xbuild-ascend-cann-8-910b", case, tuple(rows.split()), words=words
    )


_INJECTED: Final = (
    _nvidia(
        Kind.PRELOAD,
        "vgpu-elsewhere",
        "the preload file isn't where the loader looks",
        "preload-mapped",
        f'{_PRELOAD}) word="${{word%%,target=*}},target=/etc/ld.so.preload.d,readonly" ;;',
    ),
    _nvidia(
        Kind.PRELOAD,
        "vgpu-misspelt",
        "the preload file names another path",
        "preload-mapped",
        changed(_PRELOAD, "s/libvgpu/libvgpus/"),
    ),
    _nvidia(
        Kind.PRELOAD,
        "vgpu-crlf",
        "the preload file has carriage returns",
        "preload-mapped",
        changed(_PRELOAD, "s/$/\\r/"),
    ),
    _nvidia(
        Kind.PRELOAD,
        "vgpu-missing",
        "the library isn't mounted where the preload file says",
        "preload-mapped",
        "nvidia) runtime=nvidia ;;\n"
        '*library.so,target=*) [ -z "${runtime}" ] || word="${word%%,target=*},target=/mnt/l.so,readonly" ;;',
    ),
    _nvidia(
        Kind.CONFIG,
        "vgpu-no-limit",
        "the memory limit doesn't arrive",
        "smi-total",
        'CUDA_DEVICE_MEMORY_LIMIT_0=*) word="XB_NOTHING=1" ;;',
    ),
    _nvidia(
        Kind.CONFIG,
        "vgpu-other-limit",
        "another memory limit arrives",
        "smi-total total",
        'CUDA_DEVICE_MEMORY_LIMIT_0=*) word="CUDA_DEVICE_MEMORY_LIMIT_0=4095m" ;;',
    ),
    _nvidia(
        Kind.CONFIG,
        "vgpu-unit",
        "the memory limit's unit is MiB, of which the last character counts",
        "smi-total",
        'CUDA_DEVICE_MEMORY_LIMIT_0=*) word="${word}iB" ;;',
    ),
    _nvidia(
        Kind.CONFIG,
        "vgpu-no-sm",
        "the compute limit doesn't arrive",
        "sm-limit",
        'CUDA_DEVICE_SM_LIMIT=*) word="XB_NOTHING=1" ;;',
    ),
    _nvidia(
        Kind.CONFIG,
        "vgpu-swapped",
        "the cards' limits arrive swapped",
        "smi-total",
        'CUDA_DEVICE_MEMORY_LIMIT_0=*) word="CUDA_DEVICE_MEMORY_LIMIT_1=${word#*=}" ;;\n'
        'CUDA_DEVICE_MEMORY_LIMIT_1=*) word="CUDA_DEVICE_MEMORY_LIMIT_0=${word#*=}" ;;',
        case=3,
    ),
    _nvidia(
        Kind.CONFIG,
        "vgpu-stale-cache",
        "the second round gets the cache of the first",
        "round2",
        '*/cache-limits-2,*) word="${word%%-2,*},${word#*,source=*,}" ;;\n'
        '*/cache-smi-2,*) word="${word%%-2,*},${word#*,source=*,}" ;;',
    ),
    _nvidia(
        Kind.ENGINE,
        "no-runtime",
        "the engine ignores the runtime that it is asked for",
        "",
        "nvidia) word=runc ;;",
        exit_code=4,
    ),
    _nvidia(
        Kind.ENGINE,
        "no-cards",
        "the engine brings no card in",
        "",
        'NVIDIA_VISIBLE_DEVICES=*) word="NVIDIA_VISIBLE_DEVICES=void" ;;',
        exit_code=4,
    ),
    _ascend(
        Kind.PRELOAD,
        "vcann-without",
        "the preload file doesn't name libvruntime",
        "mapped",
        changed(_PRELOAD, "/libvruntime/d"),
    ),
    _ascend(
        Kind.PRELOAD,
        "vcann-misspelt",
        "the preload file names another libvruntime",
        "mapped",
        changed(_PRELOAD, "s/libvruntime/libvruntimes/"),
    ),
    _ascend(
        Kind.PRELOAD,
        "vcann-no-dcmi",
        "the preload file doesn't name libdcmi",
        "exit modules",
        changed(_PRELOAD, "/libdcmi/d"),
    ),
    _ascend(
        Kind.PRELOAD,
        "vcann-crlf",
        "the preload file has carriage returns",
        "mapped",
        changed(_PRELOAD, "s/$/\\r/"),
    ),
    _ascend(
        Kind.PRELOAD,
        "vcann-elsewhere",
        "the preload file isn't where the loader looks",
        "mapped",
        f'{_PRELOAD}) word="${{word%%,target=*}},target=/etc/ld.so.preload.d,readonly" ;;',
        case=3,
    ),
    _ascend(
        Kind.CONFIG,
        "vcann-other-card",
        "the configuration is for another card",
        "fields exit",
        changed(CONFIG, "s/^physical-npu-id=.*/physical-npu-id=9/"),
    ),
    _ascend(
        Kind.CONFIG,
        "vcann-hexadecimal",
        "a value is hexadecimal",
        "exit fields",
        changed(CONFIG, "s/^aicore-quota=.*/aicore-quota=0x14/"),
    ),
    _ascend(
        Kind.CONFIG,
        "vcann-unit",
        "the memory quota has a unit",
        "exit fields",
        changed(CONFIG, "s/^memory-quota=.*/&MB/"),
    ),
    _ascend(
        Kind.CONFIG,
        "vcann-no-shm",
        "the configuration has no shm-id",
        "exit fields",
        changed(CONFIG, "/^shm-id/d"),
    ),
    _ascend(
        Kind.CONFIG,
        "vcann-other-quota",
        "the configuration has another memory quota",
        "fields quotas",
        changed(CONFIG, "s/^memory-quota=.*/memory-quota=1022/"),
    ),
    _ascend(
        Kind.CONFIG,
        "vcann-half-quota",
        "the configuration that is mounted has another quota",
        "oom-line floor reported-total",
        changed(CONFIG, "s/^memory-quota=.*/memory-quota=512/"),
        case=3,
    ),
)


def _cards(
    name: str,
    what: str,
    stage: str,
    case: int,
    exit_code: int,
    cards: dict[str, object],
    *options: str,
    says: str = "",
) -> Variant:
    return Variant(
        f"driver-{name}",
        Kind.DRIVER,
        what,
        stage,
        case,
        exit_code=exit_code,
        options=options,
        cards=cards,
        says=says,
    )


_CUDA: Final = "xbuild-nvidia-cuda-12"
_CANN: Final = "xbuild-ascend-cann-8-910b"
_TENANT: Final = {"pid": 4242, "name": "python3", "memory_mib": 900}

_DRIVERS: Final = (
    _cards(
        "busy",
        "somebody computes on the card",
        _CUDA,
        2,
        2,
        {"cards": [{"processes": [_TENANT]}, {}]},
        says="busy",
    ),
    _cards("none", "nvidia-smi finds no card", _CUDA, 2, 3, {"cards": []}, says="needs 1"),
    _cards("one", "there is one card for several", _CUDA, 3, 3, {"cards": [{}]}, says="needs 2"),
    _cards(
        "mismatch",
        "libraries and kernel module are of two versions",
        _CUDA,
        2,
        3,
        {"fault": "mismatch", "cards": [{}, {}]},
    ),
    _cards(
        "mig",
        "the card is split by MIG",
        _CUDA,
        2,
        3,
        {"cards": [{"model": "h200", "mig": True}, {}]},
        says="MIG",
    ),
    _cards(
        "unified",
        "the card has no memory of its own",
        _CUDA,
        2,
        3,
        {"cards": [{"model": "gb10"}, {}]},
        says="no memory of its own",
    ),
    _cards(
        "small", "the limit is more than the card has", _CUDA, 2, 2, {"cards": [{"memory_mib": 4000}, {}]}
    ),
    _cards(
        "npu-busy",
        "somebody computes on the NPU",
        _CANN,
        2,
        2,
        {"cards": [{"dies": [{"processes": [_TENANT]}]}]},
        says="busy",
    ),
    _cards(
        "npu-chip",
        "the NPU is another chip than the stage's",
        _CANN,
        2,
        3,
        {"model": "950pr", "cards": [{}]},
        says="is for 910b",
    ),
    _cards(
        "npu-unshared",
        "another container has the NPU, which isn't shared",
        _CANN,
        2,
        4,
        {"cards": [{"dies": [{"device_share": False, "processes": [_TENANT]}]}]},
        "--busy-ok",
        says="-8020",
    ),
    _cards(
        "npu-full",
        "the NPU is full before a quota counts",
        _CANN,
        3,
        4,
        {"cards": [{"dies": [{"processes": [{"pid": 4242, "name": "python3", "memory_mib": 29000}]}]}]},
        "--busy-ok",
        says="inconclusive",
    ),
)

MUTANTS: Final = (*_INJECTED, *_DRIVERS)
"""Hosts on which the injection or the driver is broken."""
