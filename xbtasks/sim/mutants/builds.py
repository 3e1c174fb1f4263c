"""Mutants of what a build leaves: files, modes, linking (case 1), and the workload's runtime (case 3)."""

from __future__ import annotations

from typing import Final

from xbtasks.sim.mutants.model import Edit, Kind, Variant

__all__ = ["MUTANTS"]

_VGPU: Final = "external/nvidia/build-vgpu.sh"
_VCANN: Final = "external/ascend/build-vcann-rt.sh"
_INSTALL_VGPU: Final = 'install -m 0644 "${work}/libvgpu.so" "${out}/libvgpu.so"'
_INSTALL_LIBRARY: Final = 'install -m 0644 "${work}/libvruntime.so" "${out}/lib/libvruntime.so"'
_INSTALL_MONITOR: Final = 'install -m 0755 "${work}/enpu-monitor" "${out}/tools/enpu-monitor"'
_LINK_LIBRARY: Final = '"${source}/slice.c" \\\n    ${libraries}'
_LS_VGPU: Final = Edit(_VGPU, 'ls -l "${out}/libvgpu.so"', 'ls -l "${out}"')
_LS_VCANN: Final = Edit(_VCANN, 'ls -l "${out}/lib/libvruntime.so" "${out}/tools/enpu-monitor"', "")
_DEFS: Final = Edit(_VGPU, " -Wl,-z,defs", "")


def _nvidia(name: str, what: str, rows: str, *edits: Edit) -> Variant:
    return Variant(
        f"build-vgpu-{name}", Kind.IMAGE, what, "xbuild-nvidia-cuda-12", 1, tuple(rows.split()), edits
    )


def _ascend(
    name: str, what: str, rows: str, *edits: Edit, stage: str = "xbuild-ascend-cann-8-910b"
) -> Variant:
    return Variant(f"build-vcann-{name}", Kind.IMAGE, what, stage, 1, tuple(rows.split()), edits)


_NVIDIA: Final = (
    _nvidia(
        "mode-0600",
        "only its owner can read the library",
        "mode",
        Edit(_VGPU, _INSTALL_VGPU, _INSTALL_VGPU.replace("0644", "0600")),
    ),
    _nvidia(
        "mode-0755",
        "the mode is the linker's",
        "mode",
        Edit(_VGPU, _INSTALL_VGPU, _INSTALL_VGPU.replace("0644", "0755")),
    ),
    _nvidia(
        "mode-4644",
        "the library is set-uid",
        "mode",
        Edit(_VGPU, _INSTALL_VGPU, _INSTALL_VGPU.replace("0644", "4644")),
    ),
    _nvidia(
        "absent",
        "the library has another name",
        "present",
        Edit(_VGPU, _INSTALL_VGPU, _INSTALL_VGPU.replace("${out}/libvgpu", "${out}/libvgpu2")),
        _LS_VGPU,
    ),
    _nvidia(
        "link",
        "the library is a symbolic link",
        "present",
        Edit(_VGPU, _INSTALL_VGPU, 'cp "${work}/libvgpu.so" /usr/l.so; ln -s /usr/l.so "${out}/libvgpu.so"'),
    ),
    _nvidia(
        "script",
        "the library is a shell script",
        "elf",
        Edit(
            _VGPU,
            _INSTALL_VGPU,
            _INSTALL_VGPU.replace("${work}/libvgpu.so", "${source}/../build-vgpu.sh").replace(
                '"${source}/../', '"/'
            ),
        ),
    ),
    _nvidia(
        "cut",
        "the library is cut off",
        "elf",
        Edit(_VGPU, _INSTALL_VGPU, f'truncate -s 9000 "${{work}}/libvgpu.so"\n{_INSTALL_VGPU}'),
    ),
    _nvidia(
        "as-needed",
        "the linker drops the driver from NEEDED",
        "needed",
        Edit(_VGPU, "-Wl,--no-as-needed", "-Wl,--as-needed"),
    ),
    _nvidia("no-nvml", "NVML isn't NEEDED", "needed", Edit(_VGPU, " -lnvidia-ml\n", "\n")),
    _nvidia(
        "needed-path",
        "NEEDED has a path",
        "needed-forbidden needed",
        Edit(_VGPU, "-Wl,-soname,libcuda.so.1 ", ""),
        Edit(
            _VGPU,
            '-L"${work}" -Wl,--no-as-needed -lcuda',
            '-Wl,--no-as-needed "${work}/libcuda.so" -L"${work}"',
        ),
    ),
    _nvidia(
        "rpath",
        "libraries are searched where it was built",
        "rpath",
        Edit(_VGPU, " -Wl,-z,defs", " -Wl,-z,defs -Wl,-rpath,/usr/local/cuda/lib64"),
    ),
    _nvidia(
        "soname", "it is another library", "soname", Edit(_VGPU, "soname,libvgpu.so", "soname,libhami.so")
    ),
    _nvidia(
        "other-arch",
        "the compilers are mixed up",
        "arch",
        Edit("external/toolchain.sh", "triplet=x86_64-linux-gnu", "triplet=mixed"),
        Edit("external/toolchain.sh", "triplet=aarch64-linux-gnu", "triplet=x86_64-linux-gnu"),
        Edit(
            "external/toolchain.sh",
            "\nesac",
            '\nesac\n[ "${triplet}" != mixed ] || triplet=aarch64-linux-gnu',
        ),
    ),
    _nvidia(
        "release",
        "all hooks but dlsym are hidden, as in an upstream Release build",
        "hooks",
        Edit(
            _VGPU,
            'work="$(mktemp -d)"',
            'work="$(mktemp -d)"\nprintf \'{ global: dlsym; local: *; };\' >"${work}/map"',
        ),
        Edit(_VGPU, "-Wl,-z,defs", '-Wl,-z,defs -Wl,--version-script="${work}/map"'),
    ),
    _nvidia(
        "hook-hidden",
        "cuMemAllocManaged isn't exported",
        "hooks",
        Edit(
            "external/nvidia/vgpu/memory.c",
            "VGPU_HOOK CUresult cuMemAllocManaged(",
            "CUresult cuMemAllocManaged(",
        ),
    ),
    _nvidia(
        "no-dlsym",
        "dlsym isn't exported",
        "hooks",
        Edit("external/nvidia/vgpu/hooks.c", "VGPU_HOOK void *dlsym(", "void *dlsym("),
    ),
    _nvidia(
        "left-out",
        "a source file was left out",
        "undefined",
        _DEFS,
        Edit(_VGPU, '"${source}"/*.c', '$(ls "${source}"/*.c | grep -v limits)'),
    ),
    _nvidia(
        "dl-sym",
        "it calls _dl_sym, which glibc no longer exports",
        "undefined",
        _DEFS,
        Edit(
            "external/nvidia/vgpu/hooks.c",
            "    return vgpu_libc_dlsym(handle, name);",
            (
                "    extern void *_dl_sym(void *, const char *, void *);\n\n"
                "    return _dl_sym(handle, name, (void *)dlsym);"
            ),
        ),
    ),
    _nvidia(
        "textrel",
        "it has text relocations",
        "textrel",
        Edit(_VGPU, " -Wl,-z,defs", " -Wl,-z,defs -Wl,-z,notext"),
        Edit(
            "external/nvidia/vgpu/log.c",
            "static int chosen = 2;",
            (
                "static int chosen = 2;\n"
                '__asm__(".pushsection .text\\n.balign 8\\n.quad vgpu_log_start\\n.popsection");'
            ),
        ),
    ),
)

_ASCEND: Final = (
    _ascend(
        "mode-0600",
        "only its owner can read the library",
        "mode",
        Edit(_VCANN, _INSTALL_LIBRARY, _INSTALL_LIBRARY.replace("0644", "0600")),
    ),
    _ascend(
        "monitor-0644",
        "nobody can run the monitor",
        "mode",
        Edit(_VCANN, _INSTALL_MONITOR, _INSTALL_MONITOR.replace("0755", "0644")),
    ),
    _ascend("no-monitor", "there is no monitor", "present", Edit(_VCANN, _INSTALL_MONITOR, ""), _LS_VCANN),
    _ascend(
        "monitor-script",
        "the monitor is a shell script",
        "elf",
        Edit(_VCANN, _INSTALL_MONITOR, 'install -m 0755 /build-vcann-rt.sh "${out}/tools/enpu-monitor"'),
    ),
    _ascend(
        "monitor-fixed",
        "the monitor isn't position-independent",
        "type",
        Edit(_VCANN, "build -pie", "build -no-pie"),
    ),
    _ascend(
        "no-c-sec",
        "libc_sec isn't NEEDED",
        "needed",
        Edit(
            _VCANN,
            _LINK_LIBRARY,
            _LINK_LIBRARY.replace("${libraries}", '-L"${work}" -Wl,--as-needed -lascendcl'),
        ),
    ),
    _ascend(
        "acl-opened", "ACL is opened, which this source links", "needed", Edit(_VCANN, '"-DACL_LINKED"', '""')
    ),
    _ascend(
        "acl-linked",
        "ACL is linked, which this source opens",
        "needed-forbidden",
        Edit(_VCANN, '*) acl=""', '*) acl="-DACL_LINKED"'),
        stage="xbuild-ascend-cann-9-950",
    ),
    _ascend(
        "dcmi-strong",
        "a dcmi function isn't weak",
        "dcmi-weak",
        Edit("external/ascend/vcann-rt/dcmi.c", "#pragma weak dcmi_init\n", ""),
        Edit(
            _VCANN,
            _LINK_LIBRARY,
            _LINK_LIBRARY.replace("${libraries}", "${libraries} -Wl,--allow-shlib-undefined"),
        ),
    ),
    _ascend(
        "dcmi-inside",
        "dcmi's stand-in is linked in",
        "dcmi-weak",
        Edit(_VCANN, '"${source}/slice.c" \\\n', '"${source}/slice.c" "${source}/stubs/dcmi.c" \\\n'),
    ),
    _ascend(
        "hook-hidden",
        "rtMemAlloc isn't exported",
        "hooks",
        Edit(
            "external/ascend/vcann-rt/memory.c", "RUNTIME_HOOK rtError_t rtMemAlloc(", "rtError_t rtMemAlloc("
        ),
    ),
    _ascend(
        "launch-unhooked",
        "rtKernelLaunch isn't hooked",
        "hooks",
        Edit("external/ascend/vcann-rt/work_hooks.def", "COMPUTE_HOOK(rtKernelLaunch)\n", ""),
    ),
    _ascend(
        "runpath",
        "libraries are searched where it was built",
        "rpath",
        Edit(_VCANN, "-Wl,-soname,libvruntime.so", "-Wl,-soname,libvruntime.so -Wl,-rpath,/usr/local/Ascend"),
    ),
    Variant(
        "image-merged-runtime",
        Kind.IMAGE,
        "the workload's runtime is bound to itself, as in CANN 9.2",
        "xbuild-ascend-cann-8-910b",
        3,
        ("runtime",),
        (Edit("Dockerfile", "xbtasks-sim/cann:1", "xbtasks-sim/cann:merged"),),
    ),
)

MUTANTS: Final = (*_NVIDIA, *_ASCEND)
"""Broken variants of the builds."""
