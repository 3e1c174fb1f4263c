"""Mutants of what the NVIDIA preload library tells of its limits, each broken in one way (case 2)."""

from __future__ import annotations

from typing import Final

from xbtasks.sim.mutants.model import Edit, Kind, Variant

__all__ = ["MUTANTS", "broken"]

_QUIET: Final = ("--no-throttle",)


def broken(
    name: str,
    what: str,
    rows: str,
    file: str,
    old: str,
    new: str,
    *more: Edit,
    toolkit: int = 12,
    throttle: bool = False,
) -> Variant:
    """Return a mutant with one change of ``file``, that case 2 judges; what must FAIL is one of ``rows``."""
    return Variant(
        f"nvidia-{name}",
        Kind.LIBRARY,
        what,
        f"xbuild-nvidia-cuda-{toolkit}",
        2,
        tuple(rows.split()),
        (Edit(f"external/nvidia/vgpu/{file}", old, new), *more),
        options=() if throttle else _QUIET,
    )


_TOTALS: Final = (
    broken(
        "nvml-uncapped",
        "NVML tells the card's own total",
        "smi-total nvml-v1 nvml-v2",
        "nvml.c",
        "return vgpu_memory_limit((int)index);",
        "return 0;",
    ),
    broken(
        "nvml-v2-uncapped",
        "only NVML's second memory call is left alone",
        "nvml-v2 smi-total",
        "nvml.c",
        "        memory->total = limit;\n        memory->free = limit - used;\n",
        "        memory->free = memory->total - used;\n",
    ),
    broken(
        "nvml-v1-uncapped",
        "only NVML's first memory call is left alone",
        "nvml-v1",
        "nvml.c",
        "*memory = (nvmlMemory_t){limit, limit - used, used};",
        "(void)used;",
    ),
    broken(
        "nvml-underflow",
        "NVML's free memory is negative",
        "plausible",
        "nvml.c",
        "memory->free = limit - used;",
        "memory->free = used - limit;",
    ),
    broken(
        "meminfo-uncapped",
        "cuMemGetInfo tells the card's own total",
        "total",
        "device.c",
        "    if (limit < *total)\n        *total = limit;\n",
        "",
    ),
    broken(
        "meminfo-free",
        "cuMemGetInfo tells that all is free",
        "context",
        "device.c",
        "*available = *total > used ? *total - used : 0;",
        "*available = *total;",
    ),
    broken(
        "device-total",
        "cuDeviceTotalMem tells the card's own total",
        "device-total",
        "device.c",
        "        *bytes = vgpu_memory_limit(device);",
        "        return result;",
    ),
    broken(
        "getproc",
        "cuGetProcAddress hands out the driver's functions",
        "getproc-total",
        "lookup.c",
        "    if (hook != NULL)\n        *function = hook;",
        "    (void)hook;",
    ),
    broken(
        "getproc-alloc",
        "cuGetProcAddress hands out the driver's ways to allocate",
        "getproc",
        "lookup.c",
        "hook = vgpu_hook_of_base(symbol);",
        'hook = strncmp(symbol, "cuMemAlloc", 10) == 0 ? NULL : vgpu_hook_of_base(symbol);',
    ),
    broken(
        "getproc-managed",
        "cuGetProcAddress hands out the driver's cuMemAllocManaged",
        "managed",
        "lookup.c",
        "hook = vgpu_hook_of_base(symbol);",
        'hook = strcmp(symbol, "cuMemAllocManaged") == 0 ? NULL : vgpu_hook_of_base(symbol);',
    ),
    broken(
        "getproc-none",
        "cuGetProcAddress gives out no cuMemAllocManaged",
        "managed",
        "lookup.c",
        "    if (hook != NULL)\n        *function = hook;",
        '    if (hook != NULL)\n        *function = strcmp(symbol, "cuMemAllocManaged") == 0 ? NULL : hook;',
    ),
    broken(
        "getproc-free",
        "cuGetProcAddress hands out the driver's cuMemFree",
        "getproc managed pitch",
        "lookup.c",
        "hook = vgpu_hook_of_base(symbol);",
        'hook = strcmp(symbol, "cuMemFree") == 0 ? NULL : vgpu_hook_of_base(symbol);',
    ),
    broken(
        "getproc-new-fails",
        "CUDA 12's cuGetProcAddress finds nothing, CUDA 11's does",
        "getproc-total",
        "lookup.c",
        "return hooked(CUDA(cuGetProcAddress_v2)(symbol, ",
        'return hooked(CUDA(cuGetProcAddress_v2)("none", ',
    ),
    broken(
        "getproc-old",
        "CUDA 11's cuGetProcAddress hands out the driver's functions",
        "getproc-total",
        "lookup.c",
        "return hooked(CUDA(cuGetProcAddress)(symbol, function, version, flags), symbol, function, version);",
        "return CUDA(cuGetProcAddress)(symbol, function, version, flags);",
    ),
    broken(
        "getproc-itself",
        "cuGetProcAddress hands out the driver's own cuGetProcAddress",
        "getproc-total",
        "lookup.c",
        "hook = vgpu_hook_of_base(symbol);",
        'hook = strcmp(symbol, "cuGetProcAddress") == 0 ? NULL : vgpu_hook_of_base(symbol);',
    ),
    broken(
        "getproc-device-total",
        "cuGetProcAddress hands out the driver's cuDeviceTotalMem",
        "getproc-total",
        "lookup.c",
        "hook = vgpu_hook_of_base(symbol);",
        'hook = strcmp(symbol, "cuDeviceTotalMem") == 0 ? NULL : vgpu_hook_of_base(symbol);',
    ),
    broken(
        "dlsym-nvml",
        "dlsym hooks nothing of NVML",
        "smi-total",
        "hooks.c",
        'strncmp(name, "cu", 2) == 0 || strncmp(name, "nvml", 4) == 0',
        'strncmp(name, "cu", 2) == 0',
    ),
    broken(
        "dlsym-cuda",
        "dlsym hooks nothing of CUDA",
        "total",
        "hooks.c",
        'strncmp(name, "cu", 2) == 0 || strncmp(name, "nvml", 4) == 0',
        'strncmp(name, "nvml", 4) == 0',
    ),
)

_LIMITS: Final = (
    broken(
        "next-limit",
        "a card uses the limit of the next one",
        "smi-total total",
        "limits.c",
        '"%s_%d", name, i);',
        '"%s_%d", name, i + 1);',
    ),
    broken(
        "decimal-mega",
        "m is 10^6",
        "total smi-total",
        "limits.c",
        "return 1ull << 20;",
        "return 1000000;",
    ),
    broken(
        "constant-limit",
        "the limit is always the default one",
        "round2",
        "limits.c",
        "limits[i] = read_limit(indexed, is_memory);",
        "limits[i] = is_memory && getenv(indexed) ? 4096ull << 20 : read_limit(indexed, is_memory);",
    ),
    broken(
        "limit-3000",
        "every indexed limit is 3000 MiB",
        "smi-total",
        "limits.c",
        "limits[i] = read_limit(indexed, is_memory);",
        "limits[i] = is_memory && getenv(indexed) ? 3000ull << 20 : read_limit(indexed, is_memory);",
    ),
    broken(
        "sm-always-100",
        "the compute limit is always 100",
        "sm-limit",
        "region.c",
        "known(device) ? region->limits.compute[device] : 100;",
        "known(device) ? 100 : 0;",
    ),
    broken(
        "sm-halved",
        "the log says half of the compute limit",
        "sm-limit",
        "throttle.c",
        "i, (int)devices[i].limit);",
        "i, (int)devices[i].limit / 2);",
    ),
    broken(
        "sm-silent",
        "nothing says the compute limit",
        "sm-limit",
        "throttle.c",
        '        LOG_INFO("device %d: core utilization limit = %d", i, (int)devices[i].limit);\n',
        "",
    ),
    broken(
        "getproc-launch",
        "cuGetProcAddress hands out the driver's ways to launch",
        "throttle",
        "lookup.c",
        "hook = vgpu_hook_of_base(symbol);",
        'hook = strncmp(symbol, "cuLaunchKernel", 14) == 0 ? NULL : vgpu_hook_of_base(symbol);',
        throttle=True,
    ),
    broken(
        "no-throttle",
        "the compute limit is logged, launches aren't held back",
        "throttle",
        "throttle.c",
        "if (!any || !host_pid_known || disabled())",
        "if (any || !host_pid_known || disabled())",
        throttle=True,
    ),
    broken(
        "launch-unhooked",
        "cuLaunchKernel isn't held back",
        "throttle",
        "launch.c",
        "    vgpu_throttle((uint64_t)grid_x * grid_y * grid_z);\n    return CUDA(cuLaunchKernel)(function",
        "    return CUDA(cuLaunchKernel)(function",
        throttle=True,
    ),
    broken(
        "launch-ex-unhooked",
        "cuLaunchKernelEx isn't held back",
        "throttle",
        "launch.c",
        "    vgpu_throttle(blocks(config));\n    return CUDA(cuLaunchKernelEx)(",
        "    return CUDA(cuLaunchKernelEx)(",
        throttle=True,
    ),
    broken(
        "log-on-stdout",
        "the log is on stdout",
        "stdout smi-total",
        "log.c",
        "fputs(whole, stderr);",
        "fputs(whole, stdout);",
    ),
    broken(
        "crash",
        "CUDA's start crashes",
        "exit",
        "process.c",
        'LOG_NOTICE("Initialized");',
        "__builtin_trap();",
    ),
)

MUTANTS: Final = (*_TOTALS, *_LIMITS)
"""Broken variants of the NVIDIA sample's library: totals and limits."""
