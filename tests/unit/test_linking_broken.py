from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.elfbytes import Elf, write_elf
from tests.elfkit import (
    DCMI,
    archive,
    compile_c,
    debug_only,
    monitor,
    versioned_libc,
    vgpu,
    vgpu_hooks,
    vruntime,
)
from tests.stagekit import (
    ABSENCE,
    EVERY,
    NVIDIA,
    NVIDIA_READ,
    PRIVATE,
    READ,
    RELATIVE,
    USE_BOTH,
    Stage,
    ascend,
    image,
    linked,
    names,
    nvidia,
    strong,
    tool,
)
from xbtasks.backends.base import Platform
from xbtasks.checks import Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

TEXTREL = '__asm__(".text\\nhere: .quad getenv\\n");'
INTERP = 'const char interp[] __attribute__((section(".interp"))) = "/lib64/ld-linux-x86-64.so.2";'

BROKEN: dict[str, tuple[Callable[[], Stage], frozenset[str]]] = {
    # the file
    "absent": (lambda: nvidia(images=image(kind="missing", data=b"")), NVIDIA),
    "a directory": (lambda: nvidia(images=image(kind="directory", data=b"")), NVIDIA),
    "a link": (lambda: nvidia(images=image(kind="symlink", data=b"", link_target="libvgpu.so.1")), NVIDIA),
    "a device": (lambda: nvidia(images=image(kind="other", data=b"")), NVIDIA),
    "not observed": (lambda: nvidia(images=image(kind="unobserved")), NVIDIA),
    "a monitor that is absent": (
        lambda: ascend(images=tool(kind="missing", data=b"")),
        EVERY | {"dcmi-weak"},
    ),
    "mode 0600": (lambda: nvidia(images=image(mode=0o600)), frozenset({"mode"})),
    "mode 0640": (lambda: nvidia(images=image(mode=0o640)), frozenset({"mode"})),
    "the linker's mode": (lambda: nvidia(images=image(mode=0o755)), frozenset({"mode"})),
    "set-uid": (lambda: nvidia(images=image(mode=0o4644)), frozenset({"mode"})),
    "sticky": (lambda: nvidia(images=image(mode=0o1644)), frozenset({"mode"})),
    "a set-uid monitor": (lambda: ascend(images=tool(mode=0o4755)), frozenset({"mode"})),
    "a monitor that can't be run": (lambda: ascend(images=tool(mode=0o644)), frozenset({"mode"})),
    "a monitor for its owner": (lambda: ascend(images=tool(mode=0o700)), frozenset({"mode"})),
    # not a whole ELF file
    "an empty file": (lambda: nvidia(b""), NVIDIA_READ | {"elf", "arch"}),
    "a linker script": (lambda: nvidia(b"/* GNU ld script */ INPUT(x)\n"), NVIDIA_READ | {"elf", "arch"}),
    "an ar archive": (lambda: nvidia(archive()), NVIDIA_READ | {"elf", "arch"}),
    "a Git LFS pointer": (
        lambda: nvidia(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"),
        NVIDIA_READ | {"elf", "arch"},
    ),
    "a web page": (lambda: nvidia(b"<!DOCTYPE html><p>Not Found"), NVIDIA_READ | {"elf", "arch"}),
    "compressed": (lambda: nvidia(gzip.compress(vgpu())), NVIDIA_READ | {"elf", "arch"}),
    "zeros": (lambda: nvidia(bytes(5000)), NVIDIA_READ | {"elf", "arch"}),
    "a script for a monitor": (
        lambda: ascend(tool=b"#!/bin/sh\necho 'Aicore Limit Quota(%)     : 20'\n"),
        READ | {"elf", "arch", "dcmi-weak"},
    ),
    "magic only": (lambda: nvidia(b"\x7fELF"), NVIDIA_READ | {"elf", "arch"}),
    "half a header": (lambda: nvidia(vgpu()[:40]), NVIDIA_READ | {"elf", "arch"}),
    "half a file": (lambda: nvidia(vgpu()[: len(vgpu()) // 2]), NVIDIA_READ | {"elf"}),
    "a byte short": (lambda: nvidia(vgpu()[:-1]), NVIDIA_READ | {"elf"}),
    "sections beyond the end": (
        lambda: nvidia(Elf(vgpu()).header(shoff=1 << 40).bytes),
        NVIDIA_READ | {"elf"},
    ),
    "too many sections": (lambda: nvidia(Elf(vgpu()).header(shnum=0xFFFF).bytes), NVIDIA_READ | {"elf"}),
    "an object file": (
        lambda: nvidia(compile_c("int cuInit(void) { return 0; }", "-c", stubs=False)),
        NVIDIA_READ | {"elf"},
    ),
    "a static monitor": (
        lambda: ascend(tool=compile_c("int main(void) { return 0; }", "-static", stubs=False)),
        READ | {"elf", "dcmi-weak"},
    ),
    "its debug information": (lambda: nvidia(debug_only(vgpu("-g"))), NVIDIA_READ | {"elf"}),
    "no dynamic table": (lambda: nvidia(Elf(vgpu()).segment(2, type=0).bytes), NVIDIA_READ | {"elf"}),
    "for FreeBSD": (lambda: nvidia(Elf(vgpu()).header(os_abi=9).bytes), NVIDIA_READ | {"elf"}),
    "no hash table": (lambda: nvidia(Elf(vgpu()).retag(0x6FFFFEF5, 21).bytes), NVIDIA_READ | {"elf"}),
    "relocations that no glibc takes": (
        lambda: nvidia(
            Elf(vgpu("-Wl,-z,pack-relative-relocs", extra="static int x; int *p[] = {&x, &x};"))
            .replace(b"GLIBC_ABI_DT_RELR", b"GLIBC_2.2.5\0\0\0\0\0\0")
            .bytes
        ),
        NVIDIA_READ | {"elf"},
    ),
    # the architecture
    "AArch64 for amd64": (lambda: nvidia(Elf(vgpu()).header(machine=183).bytes), frozenset({"arch"})),
    "amd64 for AArch64": (lambda: nvidia(platform=Platform.ARM64), frozenset({"arch"})),
    "an unknown machine": (lambda: nvidia(Elf(vgpu()).header(machine=0x1234).bytes), frozenset({"arch"})),
    "big-endian by its header": (
        lambda: nvidia(Elf(vgpu()).header(data=2).bytes),
        NVIDIA_READ | {"elf", "arch"},
    ),
    "32-bit by its header": (
        lambda: nvidia(Elf(vgpu()).header(**{"class": 1}).bytes),
        NVIDIA_READ | {"elf", "arch"},
    ),
    "a whole big-endian library": (
        lambda: nvidia(write_elf(order=">", functions=vgpu_hooks()), profile="as-needed"),
        frozenset({"arch", "soname"}),
    ),
    "a whole i386 library": (
        lambda: nvidia(write_elf(bits=32, machine=3, functions=vgpu_hooks()), profile="as-needed"),
        frozenset({"arch", "soname"}),
    ),
    "x32": (
        lambda: nvidia(write_elf(bits=32, machine=62, functions=vgpu_hooks()), profile="as-needed"),
        frozenset({"arch", "soname"}),
    ),
    # the kind of file
    "a program for a library": (lambda: nvidia(monitor()), frozenset({"type", "needed", "hooks", "soname"})),
    "a library for a monitor": (lambda: ascend(tool=vruntime()), frozenset({"type"})),
    "the artifacts swapped": (lambda: ascend(monitor(), vruntime()), frozenset({"type", "hooks"})),
    "a monitor without -pie": (lambda: ascend(tool=monitor(pie=("-no-pie",))), frozenset({"type"})),
    "a monitor for another loader": (
        lambda: ascend(tool=monitor("-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1")),
        frozenset({"type"}),
    ),
    "a static-pie monitor": (
        lambda: ascend(tool=compile_c("int main(void) { return 0; }", "-static-pie", stubs=False)),
        frozenset({"type", "needed", "dcmi-weak"}),
    ),
    "a program by its flag": (
        lambda: nvidia(Elf(vgpu("-Wl,-z,now")).dynamic(0x6FFFFFFB, 0x08000001).bytes),
        frozenset({"type"}),
    ),
    "a library that names a loader": (lambda: nvidia(vgpu(extra=INTERP)), frozenset({"type"})),
    "a core dump": (lambda: nvidia(Elf(vgpu()).header(type=4).bytes), frozenset({"type"})),
    # NEEDED
    "as-needed": (lambda: nvidia(vgpu("-Wl,--as-needed", libraries=())), frozenset({"needed"})),
    "NVML only": (lambda: nvidia(vgpu(libraries=("nvidia-ml",))), frozenset({"needed"})),
    "libcuda.so without its version": (
        lambda: nvidia(vgpu(libraries=("cudabare", "nvidia-ml"))),
        frozenset({"needed"}),
    ),
    "a name that begins the same": (
        lambda: nvidia(vgpu(libraries=("cudafake", "nvidia-ml"))),
        frozenset({"needed"}),
    ),
    "a name that a pattern matches": (
        lambda: nvidia(vgpu(libraries=("cudaregex", "nvidia-ml"))),
        frozenset({"needed"}),
    ),
    "as-needed without a libc": (
        lambda: nvidia(write_elf(needed=("libc.so",), functions=vgpu_hooks()), profile="as-needed"),
        frozenset({"needed", "soname"}),
    ),
    "a path in NEEDED": (
        lambda: nvidia(vgpu("{here}/libpath.so")),
        frozenset({"needed-forbidden"}),
    ),
    "libascendcl linked though it must not be": (
        lambda: replace(linked(), profile="acl-dlopened"),
        frozenset({"needed-forbidden"}),
    ),
    "libascendcl not linked though it must be": (
        lambda: replace(ascend(), profile="acl-linked"),
        frozenset({"needed"}),
    ),
    "libascendcl only in the monitor": (
        lambda: replace(linked(), files={**linked().files, "libvruntime.so": vruntime()}),
        frozenset({"needed"}),
    ),
    "libboundscheck for libc_sec": (
        lambda: ascend(vruntime(libraries=("boundscheck",))),
        frozenset({"needed"}),
    ),
    # undefined symbols
    "a source file left out": (
        lambda: nvidia(vgpu(extra="int helper(void); int call(void) { return helper(); }")),
        frozenset({"undefined"}),
    ),
    "a name that ends nearly like one of libc_sec": (
        lambda: ascend(vruntime(extra="int helpers(void); int f(void) { return helpers(); }")),
        frozenset({"undefined"}),
    ),
    "a name that holds a driver's prefix": (
        lambda: nvidia(vgpu(extra="int xcuInit(void); int f(void) { return xcuInit(); }")),
        frozenset({"undefined"}),
    ),
    "_dl_sym": (
        lambda: nvidia(vgpu(extra="int _dl_sym(void); int call(void) { return _dl_sym(); }")),
        frozenset({"undefined"}),
    ),
    "acl called without its library": (
        lambda: ascend(vruntime(acl=True)),
        frozenset({"undefined"}),
    ),
    # dcmi
    "strong dcmi without NEEDED": (
        lambda: ascend(vruntime(weak=DCMI[1:], strong=DCMI[:1])),
        frozenset({"dcmi-weak", "undefined"}),
    ),
    "strong dcmi with NEEDED": (
        lambda: ascend(vruntime(weak=DCMI[1:], strong=DCMI[:1], libraries=("c_sec", "dcmi"))),
        frozenset({"dcmi-weak"}),
    ),
    "a weak dcmi symbol less": (lambda: ascend(vruntime(weak=DCMI[1:])), frozenset({"dcmi-weak"})),
    "no dcmi in the monitor": (lambda: ascend(tool=monitor(weak=())), frozenset({"dcmi-weak"})),
    "a name beside the prefix": (
        lambda: ascend(vruntime(weak=(*DCMI[:3], "dcmiXinit", "dcminit", *DCMI[4:]))),
        frozenset({"dcmi-weak"}),
    ),
    "dcmi stubbed inside": (
        lambda: ascend(vruntime(extra="__attribute__((weak)) int dcmi_init(void) { return 0; }")),
        frozenset({"dcmi-weak"}),
    ),
    "weak dcmi in a source before it": (
        lambda: replace(ascend(), profile="pre-weak"),
        frozenset({"needed", "dcmi-weak"}),
    ),
    "weak and strong dcmi in a source before it": (
        lambda: replace(
            strong(),
            files={
                **strong().files,
                "libvruntime.so": vruntime(weak=DCMI[:1], strong=DCMI[1:4], libraries=("c_sec", "dcmi")),
            },
        ),
        frozenset({"dcmi-weak"}),
    ),
    "no dcmi in a source before it": (
        lambda: replace(
            strong(),
            files={
                **strong().files,
                "libvruntime.so": vruntime("-Wl,--no-as-needed", "-ldcmi", weak=()),
            },
        ),
        frozenset({"dcmi-weak"}),
    ),
    "strong dcmi in a source after it": (
        lambda: replace(strong(), profile="acl-dlopened"),
        frozenset({"dcmi-weak"}),
    ),
    # hooks
    "hidden hooks": (
        lambda: nvidia(vgpu(prefix='__attribute__((visibility("hidden")))')),
        frozenset({"hooks"}),
    ),
    "only dlsym": (lambda: nvidia(vgpu(scripts="{ global: dlsym; local: *; };")), frozenset({"hooks"})),
    "only NVML": (
        lambda: nvidia(vgpu(without=tuple(name for name in vgpu_hooks() if name.startswith("cu")))),
        frozenset({"hooks"}),
    ),
    "one hook less": (lambda: nvidia(vgpu(without=("cuMemCreate",))), frozenset({"hooks"})),
    "no v2 memory info": (
        lambda: nvidia(vgpu(without=("nvmlDeviceGetMemoryInfo_v2",))),
        frozenset({"hooks"}),
    ),
    "a hook that is data": (
        lambda: nvidia(vgpu(without=("dlsym",), extra="int dlsym = 1;")),
        frozenset({"hooks"}),
    ),
    "a hook that is only called": (
        lambda: nvidia(
            vgpu(without=("cuInit",), extra="int cuInit(void); int call(void) { return cuInit(); }")
        ),
        frozenset({"hooks"}),
    ),
    "a hook that is weak and undefined": (
        lambda: nvidia(
            vgpu(
                without=("cuInit",),
                extra="__attribute__((weak)) int cuInit(void); int c(void) { return cuInit(); }",
            )
        ),
        frozenset({"hooks"}),
    ),
    "a hook of a hidden version": (
        lambda: nvidia(
            vgpu(
                without=("cuInit",),
                extra='int old(void) { return 0; } __asm__(".symver old, cuInit@V1");',
                scripts="V1 { global: cuInit; };",
            )
        ),
        frozenset({"hooks"}),
    ),
    "hooks that no search finds": (
        lambda: nvidia(Elf(vgpu()).replace(b"\0cuMemCreate\0", b"\0cuMemCreato\0").bytes),
        frozenset({"hooks"}),
    ),
    "rtMemAlloc missing": (lambda: ascend(vruntime(without=("rtMemAlloc",))), frozenset({"hooks"})),
    "no launch hook": (lambda: ascend(vruntime(without=("rtKernelLaunch",))), frozenset({"hooks"})),
    # the rest of the dynamic table
    "another SONAME": (lambda: nvidia(vgpu(soname="libvgpu.so.1")), frozenset({"soname"})),
    "no SONAME": (lambda: nvidia(vgpu(soname="")), frozenset({"soname"})),
    "RUNPATH": (lambda: nvidia(vgpu("-Wl,-rpath,/build", "-Wl,--enable-new-dtags")), frozenset({"rpath"})),
    "RPATH": (lambda: nvidia(vgpu("-Wl,-rpath,$ORIGIN", "-Wl,--disable-new-dtags")), frozenset({"rpath"})),
    "RUNPATH in the monitor": (
        lambda: ascend(tool=monitor("-Wl,-rpath,/build", "-Wl,--enable-new-dtags")),
        frozenset({"rpath"}),
    ),
    "text relocations": (
        lambda: nvidia(vgpu("-Wl,-z,notext", extra=TEXTREL)),
        frozenset({"textrel"}),
    ),
    "text relocations by flag": (
        lambda: nvidia(Elf(vgpu("-Wl,-z,now")).dynamic(30, 0xC).bytes),
        frozenset({"textrel"}),
    ),
    # glibc
    "a private glibc symbol": (
        lambda: nvidia(vgpu(versioned_libc("GLIBC_PRIVATE"), extra=PRIVATE)),
        frozenset({"glibc-private"}),
    ),
    "a glibc newer than allowed": (
        lambda: nvidia(vgpu(versioned_libc("GLIBC_2.9", "GLIBC_2.99"), extra=USE_BOTH), max_glibc=(2, 28)),
        frozenset({"glibc"}),
    ),
    "a glibc newer than the image's": (
        lambda: nvidia(vgpu(versioned_libc("GLIBC_2.9", "GLIBC_2.99"), extra=USE_BOTH), image_glibc=(2, 36)),
        frozenset({"glibc-image"}),
    ),
    "DT_RELR for an older glibc": (
        lambda: nvidia(vgpu("-Wl,-z,pack-relative-relocs", extra=RELATIVE), max_glibc=(2, 35)),
        frozenset({"glibc"}),
    ),
    "a glibc tag without a number": (
        lambda: nvidia(vgpu(versioned_libc("GLIBC_ABI_NEW"), extra=PRIVATE), max_glibc=(2, 99)),
        frozenset({"glibc"}),
    ),
    # the staging directory
    "nothing staged": (lambda: nvidia(staged=image(kind="missing", sha256="")), frozenset({"staged"})),
    "staged as a directory": (
        lambda: nvidia(staged=image(kind="directory", sha256="")),
        frozenset({"staged"}),
    ),
    "staged not observed": (lambda: nvidia(staged=image(kind="unobserved")), frozenset({"staged"})),
    "another file staged": (lambda: nvidia(staged=image(sha256="0" * 64)), frozenset({"staged"})),
    "staged with another mode": (lambda: nvidia(staged=image(mode=0o640)), frozenset({"staged"})),
    "staged set-uid": (lambda: ascend(staged=tool(mode=0o4755)), frozenset({"staged"})),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_artifacts_fail_in_their_row(name: str) -> None:
    make, expected = BROKEN[name]
    verdict, rows = make().judge()
    assert names(rows, Status.FAIL) == expected
    assert verdict is Verdict.FAIL
    for row in rows:
        if row.status is Status.FAIL:
            assert row.expected
            assert row.observed
            assert row.detail.partition(": ")[0] in make().files


@pytest.mark.parametrize(
    "name", [name for name, (_make, rows) in BROKEN.items() if "textrel" in rows and len(rows) > 1]
)
def test_absence_is_never_passed_unread(name: str) -> None:
    make, _expected = BROKEN[name]
    _verdict, rows = make().judge()
    broken = {
        row.detail.partition(": ")[0]
        for row in rows
        if row.id.endswith((".elf", ".present")) and row.status is Status.FAIL
    }
    unread = [
        row
        for row in rows
        if row.id.rpartition(".")[2] in ABSENCE and row.detail.partition(": ")[0] in broken
    ]
    assert len(unread) == len(ABSENCE) * len(broken)
    assert {row.status for row in unread} == {Status.FAIL}
    assert all("not reached" in row.detail for row in unread)


def test_what_was_not_reached_says_what_was_in_the_way() -> None:
    _verdict, rows = nvidia(vgpu()[:-1], images=image(mode=0o600)).judge()
    assert names(rows, Status.FAIL) == NVIDIA_READ | {"elf", "mode"}
    unread = [row.detail for row in rows if row.id.rpartition(".")[2] in NVIDIA_READ]
    assert len(unread) == len(NVIDIA_READ)
    assert all(detail.startswith("libvgpu.so: not reached: truncated: ") for detail in unread)
