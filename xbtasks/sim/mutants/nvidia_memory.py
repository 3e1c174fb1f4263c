"""Mutants of how the NVIDIA preload library holds memory to its limits, on one card and on several."""

from __future__ import annotations

from typing import Final

from xbtasks.sim.mutants.model import Edit, Kind, Variant
from xbtasks.sim.mutants.nvidia import broken

__all__ = ["MUTANTS"]

_BOOK: Final = "    if (!vgpu_book(device, size))\n        return CUDA_ERROR_OUT_OF_MEMORY;\n"
_FREELY: Final = "    vgpu_book_context(device, size);\n"
_FITS: Final = "fits = limit == 0 || wanted <= limit;"


def _case3(name: str, what: str, rows: str, file: str, old: str, new: str) -> Variant:
    return Variant(
        f"nvidia-{name}",
        Kind.LIBRARY,
        what,
        "xbuild-nvidia-cuda-12",
        3,
        tuple(rows.split()),
        (Edit(f"external/nvidia/vgpu/{file}", old, new),),
    )


_ALLOCATIONS: Final = (
    broken(
        "unchecked",
        "the limit is never checked",
        "alloc-over",
        "region.c",
        "uint64_t limit = vgpu_memory_limit(device), wanted;",
        "uint64_t limit = 0, wanted;",
    ),
    broken(
        "logged-only",
        "out of memory is logged, the memory is granted",
        "alloc-over",
        "region.c",
        _FITS,
        "fits = 1;",
    ),
    broken(
        "loose-tenth",
        "a tenth more than the limit is granted",
        "alloc-over",
        "region.c",
        _FITS,
        "fits = limit == 0 || wanted <= limit + limit / 10;",
    ),
    broken(
        "loose-hundredth",
        "a hundredth more than the limit is granted",
        "alloc-over",
        "region.c",
        _FITS,
        "fits = limit == 0 || wanted <= limit + limit / 100;",
    ),
    broken("refuses-all", "every allocation is refused", "alloc-under", "region.c", _FITS, "fits = 0;"),
    broken(
        "refuses-early",
        "a tenth less than the limit is granted",
        "alloc-under",
        "region.c",
        _FITS,
        "fits = limit == 0 || wanted <= limit - limit / 10;",
    ),
    broken(
        "other-code",
        "a refusal is -1, not out of memory",
        "alloc-over",
        "memory.c",
        "        return CUDA_ERROR_OUT_OF_MEMORY;\n    result = CUDA(cuMemAlloc_v2)",
        "        return (CUresult)-1;\n    result = CUDA(cuMemAlloc_v2)",
    ),
    broken(
        "own-limit",
        "each process has the whole limit",
        "shared",
        "region.c",
        "total += place->used[device];",
        "total += place == own ? place->used[device] : 0;",
    ),
    broken(
        "own-cache",
        "each process has a cache of its own",
        "shared",
        "region.c",
        '    if (path == NULL)\n        path = "/tmp/cudevshr.cache";',
        "    char ours[64];\n\n    if (path != NULL)\n"
        '        snprintf(ours, sizeof ours, "/tmp/cudevshr.%d", (int)getpid());\n    path = ours;',
    ),
    broken(
        "context-free",
        "a context doesn't count",
        "context",
        "context.c",
        "vgpu_book_context(device, context_size);",
        "vgpu_book_context(device, 0);",
    ),
    broken(
        "no-credit",
        "what is freed isn't credited",
        "free-credit",
        "allocations.c",
        "    vgpu_unbook(found->device, found->size);\n",
        "",
    ),
    broken(
        "managed",
        "cuMemAllocManaged isn't checked",
        "managed",
        "memory.c",
        f"{_BOOK}    result = CUDA(cuMemAllocManaged)",
        f"{_FREELY}    result = CUDA(cuMemAllocManaged)",
    ),
    broken(
        "pitch",
        "cuMemAllocPitch isn't checked",
        "pitch",
        "memory.c",
        f"{_BOOK}    result = CUDA(cuMemAllocPitch_v2)",
        f"{_FREELY}    result = CUDA(cuMemAllocPitch_v2)",
    ),
    broken(
        "create",
        "cuMemCreate isn't checked",
        "vmm",
        "virtual.c",
        f"{_BOOK}    result = CUDA(cuMemCreate)",
        f"{_FREELY}    result = CUDA(cuMemCreate)",
    ),
    broken(
        "async",
        "cuMemAllocAsync isn't checked",
        "async",
        "pool.c",
        f"{_BOOK}    return settle(CUDA(cuMemAllocAsync)(",
        f"{_FREELY}    return settle(CUDA(cuMemAllocAsync)(",
    ),
    broken(
        "pool",
        "cuMemAllocFromPoolAsync isn't checked",
        "pool",
        "pool.c",
        f"{_BOOK}    return settle(CUDA(cuMemAllocFromPoolAsync)(",
        f"{_FREELY}    return settle(CUDA(cuMemAllocFromPoolAsync)(",
        toolkit=13,
    ),
    broken(
        "async-no-credit",
        "what cuMemFreeAsync frees isn't credited",
        "async",
        "pool.c",
        "CUDA(cuMemFreeAsync)(pointer, stream);\n\n    if (result == CUDA_SUCCESS)",
        "CUDA(cuMemFreeAsync)(pointer, stream);\n\n    if (result != CUDA_SUCCESS)",
    ),
    broken(
        "release-no-credit",
        "what cuMemRelease frees isn't credited",
        "vmm",
        "virtual.c",
        "CUDA(cuMemRelease)(handle);\n\n    if (result == CUDA_SUCCESS)",
        "CUDA(cuMemRelease)(handle);\n\n    if (result != CUDA_SUCCESS)",
    ),
)

_CARDS: Final = (
    _case3(
        "all-first-limit",
        "every card uses the first limit",
        "smi-total",
        "limits.c",
        '"%s_%d", name, i);',
        '"%s_%d", name, 0 * i);',
    ),
    _case3(
        "nvml-swapped",
        "NVML's cards are swapped",
        "smi-total",
        "nvml.c",
        "return vgpu_memory_limit((int)index);",
        "return vgpu_memory_limit((int)index ^ 1);",
    ),
    _case3(
        "first-card-only",
        "only the first card's limit is enforced",
        "alloc-over",
        "region.c",
        "uint64_t limit = vgpu_memory_limit(device), wanted;",
        "uint64_t limit = device == 0 ? vgpu_memory_limit(device) : 0, wanted;",
    ),
    _case3(
        "one-account",
        "all cards' memory counts against each",
        "isolated",
        "region.c",
        "total += place->used[device];",
        "total += place->used[0] + place->used[1];",
    ),
    _case3(
        "nvml-first-use",
        "NVML tells the first card's use for all",
        "isolated",
        "nvml.c",
        "*used = vgpu_used((int)index);",
        "*used = vgpu_used(0);",
    ),
    _case3(
        "one-sm-limit",
        "only the first card has a compute limit",
        "sm-limit",
        "throttle.c",
        "device_count = count < VGPU_DEVICES ? (int)count : VGPU_DEVICES;",
        "device_count = count > 0;",
    ),
)

MUTANTS: Final = (*_ALLOCATIONS, *_CARDS)
"""Broken variants of the NVIDIA sample's library: allocations and cards."""
