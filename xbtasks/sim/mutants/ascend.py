"""Mutants of vcann-rt's library and monitor, each broken in one way (cases 2 and 3)."""

from __future__ import annotations

from typing import Final

from xbtasks.sim.mutants.model import Edit, Kind, Variant

__all__ = ["MUTANTS"]

_OVER: Final = "if (total > vnpu->memory_quota) {"
_DONE: Final = 'LOG_INFO("Successfully to initialize all module.");'
_LINE: Final = (
    'LOG_ERROR("Out of memory! Request:%zu B, used:%zu B, quota:%zu B.", (size_t)requested, used,\n'
    "                  vnpu->memory_quota);\n"
)
_REFUSE: Final = "vnpu->memory_quota);\n        return 0;\n    }\n    return 1;"
_LOADED: Final = 'LOG_INFO("Success to load config: %s, value: %s", line, value);'


def _variant(kind: Kind, case: int, name: str, what: str, rows: str, *edits: tuple[str, str, str]) -> Variant:
    return Variant(
        f"ascend-{name}",
        kind,
        what,
        "xbuild-ascend-cann-8-910b",
        case,
        tuple(rows.split()),
        tuple(Edit(f"external/ascend/vcann-rt/{file}", old, new) for file, old, new in edits),
    )


_QUOTA: Final = (
    _variant(
        Kind.LIBRARY,
        3,
        "unchecked",
        "the quota is never checked",
        "ceiling",
        ("quota.c", "if (!within_quota(requested)) {", "if (requested == 0 && !within_quota(requested)) {"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "line-at-start",
        "one Out of memory! line at the start, nothing is enforced",
        "ceiling",
        ("quota.c", "if (!within_quota(requested)) {", "if (requested == 0 && !within_quota(requested)) {"),
        (
            "slice.c",
            _DONE,
            _DONE
            + '\n    LOG_ERROR("Out of memory! Request:%zu B, used:%zu B, quota:%zu B.", vnpu.memory_quota, '
            + "vnpu.memory_quota, vnpu.memory_quota);",
        ),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "logged-only",
        "out of memory is logged, the memory is given",
        "ceiling",
        ("quota.c", _REFUSE, "vnpu->memory_quota);\n    }\n    return 1;"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "silent",
        "the quota is enforced without a word",
        "oom-line",
        (
            "quota.c",
            _LINE,
            "",
        ),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "denies-all",
        "every request is refused",
        "floor oom-line",
        ("quota.c", _OVER, "if (total >= requested) {"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "half",
        "half of the quota is enforced",
        "floor oom-line",
        ("quota.c", _OVER, "if (total > vnpu->memory_quota / 2) {"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "double",
        "the log is right, double of the quota is given",
        "ceiling",
        ("quota.c", _OVER, "if (total > 2 * vnpu->memory_quota) {"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "log-half",
        "the log says half of the quota",
        "oom-line",
        ("quota.c", _REFUSE, "vnpu->memory_quota / 2);\n        return 0;\n    }\n    return 1;"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "chunk-late",
        "what is asked for isn't counted",
        "oom-line ceiling",
        ("quota.c", _OVER, "if (used > vnpu->memory_quota) {"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "decimal-mega",
        "MB is 10^6",
        "reported-total oom-line",
        ("vnpu.h", "VNPU_MEBIBYTE = 1 << 20", "VNPU_MEBIBYTE = 1000000"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "giga",
        "the quota is in GB",
        "reported-total ceiling",
        ("vnpu.h", "VNPU_MEBIBYTE = 1 << 20", "VNPU_MEBIBYTE = 1 << 30"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "one-process",
        "only one process counts",
        "shared",
        ("dcmi.c", "for (int i = 0; i < count; i++)", "for (int i = 0; i < count && i < 1; i++)"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "card-full-code",
        "a refusal has the code of a full card",
        "code",
        ("quota.c", "return ACL_ERROR_STORAGE_OVER_LIMIT;", "return 207001;"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "total-of-card",
        "a program is told the card's own size",
        "reported-total",
        ("memory.c", "*total = vnpu->memory_quota;", "*total = (size_t)30 << 30;"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "constant-quota",
        "the quota is always the default one",
        "ceiling oom-line reported-total",
        ("vnpu.c", "(size_t)vnpu->config.memory_quota * VNPU_MEBIBYTE;", "(size_t)1024 * VNPU_MEBIBYTE;"),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "physical-unchecked",
        "rtMallocPhysical isn't checked",
        "families",
        (
            "memory.c",
            "return WITHIN_QUOTA(size, rtMallocPhysical, handle, size, properties, flags);",
            "return RUNTIME(rtMallocPhysical)(handle, size, properties, flags);",
        ),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "configured-unchecked",
        "rtMemAlloc isn't checked",
        "families",
        (
            "memory.c",
            "return WITHIN_QUOTA(size, rtMemAlloc, pointer, size, policy, advise, config);",
            "return RUNTIME(rtMemAlloc)(pointer, size, policy, advise, config);",
        ),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "cached-other-code",
        "rtMallocCached is refused with the code of a full card",
        "families",
        (
            "memory.c",
            "return WITHIN_QUOTA(size, rtMallocCached, pointer, size, type, module);",
            "return WITHIN_QUOTA(size, rtMallocCached, pointer, size, type, module) ? 207001 : 0;",
        ),
    ),
    _variant(
        Kind.LIBRARY,
        3,
        "crash",
        "setting a device crashes",
        "probe",
        ("slice.c", "static void start(void)\n{\n", "static void start(void)\n{\n    __builtin_trap();\n"),
    ),
)

_INJECTION: Final = (
    _variant(
        Kind.LIBRARY,
        2,
        "fails-open",
        "without a configuration a device can be set",
        "no-config",
        ("slice.c", "return ACL_ERROR_UNINITIALIZE;", "return 0;"),
    ),
    _variant(
        Kind.LIBRARY,
        2,
        "starts-anyhow",
        "all modules are started whatever the configuration",
        "no-config",
        ("slice.c", "    if (start_all() != 0)\n        return;\n", "    (void)start_all();\n"),
    ),
    _variant(
        Kind.LIBRARY,
        2,
        "all-modules-never",
        "nothing says that all modules are initialised",
        "modules",
        ("slice.c", '    LOG_INFO("Successfully to initialize all module.");\n', ""),
    ),
    _variant(
        Kind.LIBRARY,
        2,
        "shm-constant",
        "the slices of all cards share one memory",
        "shm-mapped",
        ("schedule.c", "shared_open(vnpu->config.shm_id)", 'shared_open("fixed")'),
    ),
    _variant(
        Kind.LIBRARY,
        2,
        "field-missing",
        "one field isn't told to be loaded",
        "fields",
        (
            "config.c",
            _LOADED,
            f'{{\n        if (strcmp(line, "shm-id") != 0)\n            {_LOADED}\n    }}',
        ),
    ),
    _variant(
        Kind.LIBRARY,
        2,
        "field-six-times",
        "one field is told six times",
        "fields",
        ("config.c", _LOADED, 'LOG_INFO("Success to load config: %s, value: %s", "aicore-quota", value);'),
    ),
    _variant(
        Kind.LIBRARY,
        2,
        "values-zero",
        "all values are told to be 0",
        "fields",
        ("config.c", _LOADED, 'LOG_INFO("Success to load config: %s, value: %s", line, "0");'),
    ),
    _variant(
        Kind.MONITOR,
        2,
        "monitor-constants",
        "the monitor prints the default quotas",
        "quotas",
        ("monitor.c", ": config->aicore_quota);", ": 20);"),
        (
            "monitor.c",
            ' : %zu\\n", vnpu->memory_quota / VNPU_MEBIBYTE);',
            ' : %zu\\n", (size_t)1024);',
        ),
    ),
    _variant(
        Kind.MONITOR,
        2,
        "monitor-swapped",
        "the monitor swaps the two quotas",
        "quotas",
        ("monitor.c", ": config->aicore_quota);", ": config->memory_quota);"),
        (
            "monitor.c",
            ' : %zu\\n", vnpu->memory_quota / VNPU_MEBIBYTE);',
            ' : %zu\\n", (size_t)config->aicore_quota);',
        ),
    ),
    *(
        _variant(
            Kind.MONITOR,
            2,
            f"monitor-usage-{name}",
            f"the monitor's memory in use is {what}",
            "usage",
            ("monitor.c", "used / VNPU_MEBIBYTE);", new),
        )
        for name, what, new in (
            ("none", "always 0", "(size_t)0 * used);"),
            ("free", "what is free", "(vnpu->memory_quota - used) / VNPU_MEBIBYTE);"),
            ("decimal", "in 10^6 bytes", "used / 1000000);"),
            ("card", "that of the whole card", "used / VNPU_MEBIBYTE + 3000);"),
        )
    ),
    _variant(
        Kind.LIBRARY,
        2,
        "free-unused",
        "a program is told that the whole quota is free",
        "usage",
        ("memory.c", "*available = vnpu->memory_quota - used;", "*available = vnpu->memory_quota;"),
    ),
    _variant(
        Kind.LIBRARY,
        2,
        "last-process",
        "only the last process counts, for library and monitor alike",
        "usage",
        ("dcmi.c", "*bytes += processes[i].proc_mem_usage;", "*bytes = processes[i].proc_mem_usage;"),
    ),
    _variant(
        Kind.MONITOR,
        2,
        "monitor-exit",
        "the monitor ends with 1 after good output",
        "exit",
        ("monitor.c", "return EXIT_SUCCESS;", "return EXIT_FAILURE;"),
    ),
    _variant(
        Kind.MONITOR,
        2,
        "monitor-crash",
        "the monitor crashes after good output",
        "exit",
        ("monitor.c", "return EXIT_SUCCESS;", "fflush(stderr);\n    __builtin_trap();"),
    ),
    _variant(
        Kind.MONITOR,
        2,
        "monitor-open",
        "the monitor ends with 0 without a configuration",
        "no-config",
        (
            "monitor.c",
            "vnpu_configure(&vnpu) != 0)\n        return EXIT_FAILURE;",
            "vnpu_configure(&vnpu) != 0)\n        return 0;",
        ),
    ),
)

MUTANTS: Final = (*_QUOTA, *_INJECTION)
"""Broken variants of the Ascend sample's library."""
