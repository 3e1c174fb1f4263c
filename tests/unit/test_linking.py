from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.elfkit import (
    DCMI,
    Elf,
    archive,
    compile_c,
    cross_compiler,
    debug_only,
    linkers,
    monitor,
    rt_hooks,
    same_version_libc,
    versioned_libc,
    vgpu,
    vgpu_hooks,
    vruntime,
    write_elf,
)
from xbtasks.backends import BACKENDS
from xbtasks.backends.base import Platform
from xbtasks.backends.linking import ImageFile, StagedFile, accepted_by_profile, judge_linking
from xbtasks.backends.profiles import profile_for
from xbtasks.checks import Check, Status, Verdict, judge

if TYPE_CHECKING:
    from collections.abc import Callable

EVERY = frozenset(("present", "mode", "elf", "arch", "type", "needed", "needed-forbidden", "undefined"))
EVERY |= frozenset(("rpath", "textrel", "glibc-private", "staged"))
NVIDIA = EVERY | {"hooks", "soname"}
ASCEND = EVERY | {"hooks", "dcmi-weak"}
READ = frozenset(("type", "needed", "needed-forbidden", "undefined", "rpath", "textrel", "glibc-private"))
"""What is read from the dynamic table, or hangs on its having been read."""
NVIDIA_READ = READ | {"hooks", "soname"}
ASCEND_READ = READ | {"hooks", "dcmi-weak"}
ABSENCE = frozenset(("needed-forbidden", "undefined", "rpath", "textrel", "glibc-private"))
"""Rows that PASS because something isn't there."""


@dataclass(frozen=True)
class Stage:
    """What one stage left behind, by artifact name, and how it is judged; a good one unless changed."""

    backend: str
    files: dict[str, bytes]
    profile: str = ""
    pin: str = ""
    platform: Platform = Platform.AMD64
    images: dict[str, dict[str, object]] = field(default_factory=dict)
    staged: dict[str, dict[str, object]] = field(default_factory=dict)
    max_glibc: tuple[int, ...] | None = None
    image_glibc: tuple[int, ...] | None = None
    foreign: bool = False

    def judge(self) -> tuple[Verdict, tuple[Check, ...]]:
        backend = BACKENDS[self.backend]
        images, staged = [], []
        for artifact in backend.artifacts:
            data = self.files[artifact.name]
            digest = hashlib.sha256(data).hexdigest()
            image = ImageFile(artifact.image_path, "file", artifact.mode, data)
            there = StagedFile(artifact.staged_path, "file", artifact.mode, digest)
            images.append(replace(image, **self.images.get(artifact.name, {})))  # type: ignore[arg-type]
            staged.append(replace(there, **self.staged.get(artifact.name, {})))  # type: ignore[arg-type]
        required, rows = judge_linking(
            backend,
            [image for image in images if image.kind != "unobserved"],
            [there for there in staged if there.kind != "unobserved"],
            platform=self.platform,
            profile=profile_for(self.backend, self.pin, self.profile),
            pin=self.pin,
            max_glibc=self.max_glibc,
            image_glibc=self.image_glibc,
            foreign=self.foreign,
        )
        return judge(required, rows)


def names(rows: tuple[Check, ...], status: Status) -> frozenset[str]:
    return frozenset(row.id.rpartition(".")[2] for row in rows if row.status is status)


def nvidia(data: bytes | None = None, **changes: object) -> Stage:
    return replace(Stage("nvidia", {"libvgpu.so": vgpu() if data is None else data}), **changes)  # type: ignore[arg-type]


def ascend(library: bytes | None = None, tool: bytes | None = None, **changes: object) -> Stage:
    files = {
        "libvruntime.so": vruntime() if library is None else library,
        "enpu-monitor": monitor() if tool is None else tool,
    }
    return replace(Stage("ascend", files, "acl-dlopened"), **changes)  # type: ignore[arg-type]


def linked(**changes: object) -> Stage:
    """A stage of the acl-linked profile."""
    libraries = ("c_sec", "ascendcl")
    return ascend(
        vruntime(acl=True, libraries=libraries),
        monitor(acl=True, libraries=libraries),
        profile="acl-linked",
        **changes,
    )


def strong(**changes: object) -> Stage:
    """A stage of the pre-weak profile."""
    kit = {"weak": (), "strong": DCMI[:4], "libraries": ("c_sec", "dcmi")}
    return ascend(vruntime(**kit), monitor(**kit), profile="pre-weak", **changes)  # type: ignore[arg-type]


def image(**fields: object) -> dict[str, dict[str, object]]:
    return {"libvgpu.so": fields}


def tool(**fields: object) -> dict[str, dict[str, object]]:
    return {"enpu-monitor": fields}


TEXTREL = '__asm__(".text\\nhere: .quad getenv\\n");'
INTERP = 'const char interp[] __attribute__((section(".interp"))) = "/lib64/ld-linux-x86-64.so.2";'
PRIVATE = "int f0(void); int use(void) { return f0(); }"

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

USE_BOTH = "int f0(void); int f1(void); int use(void) { return f0() + f1(); }"
RELATIVE = "static int x; int *p[] = {&x, &x, &x};"


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


GOOD: dict[str, tuple[Callable[[], Stage], frozenset[str]]] = {
    # a stage, and the rows that WARN
    "libvgpu": (nvidia, frozenset()),
    "libvruntime and enpu-monitor": (ascend, frozenset()),
    "acl-linked": (linked, frozenset()),
    "pre-weak": (strong, frozenset()),
    "by pin": (lambda: ascend(profile="", pin="9f8c779685edeb0939a681922bb56f09128f3445"), frozenset()),
    "with debug information": (lambda: nvidia(vgpu("-g3")), frozenset()),
    "stripped": (lambda: nvidia(vgpu("-s")), frozenset()),
    "no section headers": (lambda: nvidia(Elf(vgpu()).header(shoff=0, shnum=0).bytes), frozenset()),
    "DT_RELR": (
        lambda: nvidia(vgpu("-Wl,-z,pack-relative-relocs", extra=RELATIVE), max_glibc=(2, 36)),
        frozenset(),
    ),
    "a .bss larger than the file": (
        lambda: nvidia(vgpu(extra="char large[1 << 24]; char *use_large(void) { return large; }")),
        frozenset(),
    ),
    "sections counted as none": (lambda: nvidia(Elf(vgpu()).header(shnum=0).bytes), frozenset()),
    "DT_HASH only": (lambda: nvidia(vgpu("-Wl,--hash-style=sysv")), frozenset()),
    "DT_GNU_HASH only": (lambda: nvidia(vgpu("-Wl,--hash-style=gnu")), frozenset()),
    "a monitor with DT_HASH only": (lambda: ascend(tool=monitor("-Wl,--hash-style=sysv", "-s")), frozenset()),
    "a stripped monitor": (
        lambda: ascend(tool=Elf(monitor("-s")).header(shoff=0, shnum=0).bytes),
        frozenset(),
    ),
    "libm, libdl and libpthread": (
        lambda: nvidia(vgpu("-lm", "-ldl", "-lpthread", "-lrt", "-lgcc_s")),
        frozenset(),
    ),
    "an extra library": (lambda: nvidia(vgpu("-lextra")), frozenset({"needed-extra"})),
    "an extra library that is used": (
        lambda: nvidia(vgpu("-lextra", extra="int extra(void); int use(void) { return extra(); }")),
        frozenset({"needed-extra"}),
    ),
    "libdcmi kept by a linker without --as-needed": (
        lambda: ascend(vruntime("-Wl,--no-as-needed", "-ldcmi")),
        frozenset({"needed-extra"}),
    ),
    "protected hooks": (lambda: nvidia(vgpu(prefix='__attribute__((visibility("protected")))')), frozenset()),
    "weak hooks": (lambda: nvidia(vgpu(prefix="__attribute__((weak))")), frozenset()),
    "more weak dcmi symbols": (lambda: ascend(vruntime(weak=(*DCMI, "dcmiv2_new"))), frozenset()),
    "RELRO and BIND_NOW": (lambda: nvidia(vgpu("-Wl,-z,relro,-z,now,-z,noexecstack")), frozenset()),
    "-Bsymbolic": (lambda: nvidia(vgpu("-Wl,-Bsymbolic")), frozenset()),
    "link-time optimisation": (lambda: nvidia(vgpu("-flto")), frozenset()),
    "a sha256 in capitals": (
        lambda: nvidia(staged=image(sha256=hashlib.sha256(vgpu()).hexdigest().upper())),
        frozenset(),
    ),
    "a glibc need within the limits": (
        lambda: nvidia(
            vgpu(versioned_libc("GLIBC_2.9", "GLIBC_2.28"), extra=USE_BOTH),
            max_glibc=(2, 28),
            image_glibc=(2, 36),
        ),
        frozenset(),
    ),
    "the GNU OS ABI": (lambda: nvidia(Elf(vgpu()).header(os_abi=3).bytes), frozenset()),
    "as-needed accepted": (
        lambda: nvidia(vgpu("-Wl,--as-needed", libraries=()), profile="as-needed"),
        frozenset(),
    ),
    "as-needed with both": (lambda: nvidia(profile="as-needed"), frozenset()),
    "an unknown HAMi-core pin": (lambda: nvidia(pin="0123456789ab"), frozenset()),
}
GOOD |= {
    f"linked by {linker}": (lambda linker=linker: nvidia(vgpu(f"-fuse-ld={linker}")), frozenset())  # type: ignore[misc]
    for linker in linkers()
}
GOOD |= {
    f"a monitor linked by {linker}": (
        lambda linker=linker: ascend(tool=monitor(f"-fuse-ld={linker}")),
        frozenset(),
    )  # type: ignore[misc]
    for linker in linkers()
}


@pytest.mark.parametrize("name", GOOD)
def test_good_artifacts_pass(name: str) -> None:
    make, warns = GOOD[name]
    verdict, rows = make().judge()
    assert [row for row in rows if row.status is Status.FAIL] == []
    assert names(rows, Status.WARN) == warns
    assert verdict is Verdict.PASS


def test_a_hundred_thousand_symbols_pass() -> None:
    body = "\n".join(f'".globl f{n}\\n.type f{n},@function\\nf{n}: ret\\n"' for n in range(100_000))
    verdict, rows = nvidia(vgpu(extra=f"__asm__({body});\n")).judge()
    assert verdict is Verdict.PASS
    assert next(row for row in rows if row.id == "nvidia.case1.hook-count").detail.startswith(
        "libvgpu.so: exports 1000"
    )


# another architecture


def arm64(data: bytes) -> bytes:
    """``data`` as if built for AArch64: good enough where nothing is run."""
    elf = Elf(data).header(machine=183)
    old, new = b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-linux-aarch64.so.1\0"
    return elf.replace(old, new).bytes if old in data else elf.bytes


def arm64_stage() -> Stage:
    if cross_compiler():
        tools = ascend(
            vruntime(compiler=cross_compiler()),
            monitor(compiler=cross_compiler()),
            platform=Platform.ARM64,
            foreign=True,
        )
    else:
        tools = ascend(arm64(vruntime()), arm64(monitor()), platform=Platform.ARM64, foreign=True)
    return tools


@pytest.mark.parametrize(
    "make",
    [arm64_stage, lambda: ascend(arm64(vruntime()), arm64(monitor()), platform=Platform.ARM64, foreign=True)],
)
def test_a_foreign_architecture_is_judged_and_the_row_says_so(make: Callable[[], Stage]) -> None:
    verdict, rows = make().judge()
    assert verdict is Verdict.PASS
    arch = [row for row in rows if row.id == "ascend.case1.arch"]
    assert len(arch) == 2
    for row in arch:
        assert "AArch64, 64-bit little-endian" in row.detail
        assert "nothing of it was run on this host" in row.detail


def test_a_native_row_does_not_say_so() -> None:
    _verdict, rows = nvidia().judge()
    assert "was run" not in next(row.detail for row in rows if row.id == "nvidia.case1.arch")


def test_the_loader_of_the_other_architecture_fails() -> None:
    verdict, rows = ascend(
        arm64(vruntime()), Elf(monitor()).header(machine=183).bytes, platform=Platform.ARM64
    ).judge()
    assert verdict is Verdict.FAIL
    assert names(rows, Status.FAIL) == {"type"}


# what rows say


def row_of(stage: Stage, name: str, artifact: str = "") -> Check:
    _verdict, rows = stage.judge()
    return next(row for row in rows if row.id.endswith(f".{name}") and row.detail.startswith(artifact))


def test_modes_are_four_octal_digits() -> None:
    row = row_of(nvidia(images=image(mode=0o4755)), "mode")
    assert (row.expected, row.observed) == ("0644", "4755")
    row = row_of(nvidia(images=image(mode=0o40)), "mode")
    assert row.observed == "0040"


def test_big_endian_is_named() -> None:
    row = row_of(nvidia(Elf(vgpu()).header(data=2).bytes), "arch")
    assert "big-endian" in row.observed
    assert row.expected == "x86-64, 64-bit little-endian (linux/amd64)"
    assert "0x1234" in row_of(nvidia(Elf(vgpu()).header(machine=0x1234).bytes), "arch").observed


def test_an_absent_libcuda_names_its_likely_cause() -> None:
    row = row_of(nvidia(vgpu("-Wl,--as-needed", libraries=())), "needed")
    assert "--as-needed" in row.detail
    assert "profile as-needed" in row.detail
    assert row.expected == "libc.so.6, libcuda.so.1, libnvidia-ml.so.1"
    assert row.observed == "libc.so.6"


def test_what_the_profile_accepted_is_said() -> None:
    _verdict, rows = nvidia(vgpu("-Wl,--as-needed", libraries=()), profile="as-needed").judge()
    assert accepted_by_profile(rows) == (
        "libvgpu.so: the profile accepts no NEEDED of libcuda.so.1, libnvidia-ml.so.1"
    )
    _verdict, rows = nvidia(profile="as-needed").judge()
    assert accepted_by_profile(rows) == ""
    _verdict, rows = nvidia().judge()
    assert accepted_by_profile(rows) == ""


@pytest.mark.parametrize(
    ("make", "name", "says"),
    [
        (lambda: ascend(tool=monitor(pie=("-no-pie",))), "type", "a position-dependent executable"),
        (lambda: nvidia(monitor()), "type", "an executable for /lib64/ld-linux-x86-64.so.2"),
        (lambda: nvidia(Elf(vgpu()).header(type=4).bytes), "type", "ELF type CORE"),
        (lambda: replace(linked(), profile="acl-dlopened"), "needed-forbidden", "does the profile fit"),
        (
            lambda: nvidia(vgpu(extra="int _dl_sym(void); int f(void) { return _dl_sym(); }")),
            "undefined",
            "70fdbc1",
        ),
        (
            lambda: nvidia(vgpu(extra="int gone(void); int f(void) { return gone(); }")),
            "undefined",
            "left out",
        ),
        (lambda: nvidia(vgpu(without=("dlsym",))), "hooks", "nvidia-smi"),
        (
            lambda: nvidia(vgpu(without=("dlsym",), extra="int dlsym = 1;")),
            "hooks",
            "dlsym not a function (OBJECT)",
        ),
        (
            lambda: nvidia(
                vgpu(without=("cuInit",), extra="int cuInit(void); int f(void) { return cuInit(); }")
            ),
            "hooks",
            "cuInit undefined",
        ),
        (lambda: nvidia(Elf(vgpu()).replace(b"\0cuInit\0", b"\0cuInir\0").bytes), "hooks", "cuInit absent"),
        (lambda: ascend(vruntime(weak=DCMI[1:], strong=DCMI[:1])), "dcmi-weak", f"strong: {DCMI[0]}"),
        (lambda: ascend(vruntime(weak=DCMI[1:])), "dcmi-weak", f"absent: {DCMI[0]}"),
        (lambda: nvidia(vgpu("-Wl,-rpath,/build")), "rpath", "/build"),
        (lambda: nvidia(images=image(mode=0o4644)), "mode", "set-uid"),
        (lambda: nvidia(images=image(mode=0o640)), "mode", "can't read it"),
        (lambda: nvidia(images=image(mode=0o755)), "mode", "install -m"),
        (lambda: nvidia(vgpu("-lextra")), "needed-extra", "libextra.so.7: where it is absent"),
        (lambda: ascend(vruntime("-Wl,--no-as-needed", "-ldcmi")), "needed-extra", "--as-needed"),
    ],
)
def test_rows_say_what_is_wrong(make: Callable[[], Stage], name: str, says: str) -> None:
    _verdict, rows = make().judge()
    row = next(
        row for row in rows if row.id.endswith(f".{name}") and row.status in (Status.FAIL, Status.WARN)
    )
    assert (
        says.replace("an executable", "a position-independent executable")
        in f"{row.detail} <> {row.observed}"
    )


@pytest.mark.parametrize(
    ("count", "says"), [(3, "for f0, f1, f2"), (4, "for f0, f1, f2 and 1 more"), (2, "for f0, f1")]
)
def test_many_users_of_a_version_are_counted(count: int, says: str) -> None:
    names = range(count)
    extra = (
        "".join(f"int f{n}(void);" for n in names)
        + f"int use(void) {{ return {'+'.join(f'f{n}()' for n in names)}; }}"
    )
    row = row_of(nvidia(vgpu(same_version_libc(count, "GLIBC_2.30"), extra=extra)), "glibc")
    assert row.detail == f"libvgpu.so: needs GLIBC_2.30 {says}"


def test_a_release_build_is_named() -> None:
    row = row_of(nvidia(vgpu(scripts="{ global: dlsym; local: *; };")), "hooks")
    assert "Release build" in row.detail
    assert "cuMemAlloc_v2" in row.detail
    assert row.observed.startswith(f"1 of {len(vgpu_hooks())}; ")


def test_one_missing_hook_is_not_called_a_release_build() -> None:
    row = row_of(nvidia(vgpu(without=("cuMemCreate",))), "hooks")
    assert "Release" not in row.detail
    assert "cuMemCreate absent" in row.observed


def test_the_symbol_that_needs_a_glibc_is_named() -> None:
    stage = nvidia(vgpu(versioned_libc("GLIBC_2.9", "GLIBC_2.28"), extra=USE_BOTH))
    row = row_of(stage, "glibc")
    assert row.status is Status.INFO
    assert "needs GLIBC_2.28 for f1" in row.detail
    row = row_of(replace(stage, max_glibc=(2, 17)), "glibc")
    assert (row.expected, row.observed) == ("at most GLIBC_2.17", "GLIBC_2.28")
    assert "for f1" in row.detail


def test_the_tag_of_relative_relocations_counts_as_its_glibc() -> None:
    row = row_of(
        nvidia(vgpu("-Wl,-z,pack-relative-relocs", extra=RELATIVE), image_glibc=(2, 31)), "glibc-image"
    )
    assert row.status is Status.FAIL
    assert "GLIBC_ABI_DT_RELR (glibc 2.36)" in row.detail


def test_the_private_symbol_is_named() -> None:
    row = row_of(nvidia(vgpu(versioned_libc("GLIBC_PRIVATE"), extra=PRIVATE)), "glibc-private")
    assert row.observed == "f0"


def test_hooks_are_counted() -> None:
    detail = row_of(
        ascend(vruntime(extra="int rtsNew(void) { return 0; }")), "hook-count", "libvruntime"
    ).detail
    assert f"{len(rt_hooks()) + 1} rt*, 1 rts*" in detail
    assert "0 rt*" in row_of(ascend(), "hook-count", "enpu-monitor").detail


def test_a_link_says_where_it_points() -> None:
    row = row_of(nvidia(images=image(kind="symlink", data=b"", link_target="libvgpu.so.1")), "present")
    assert row.observed == "a symbolic link to libvgpu.so.1"


def test_libboundscheck_is_named() -> None:
    _verdict, rows = ascend(vruntime(libraries=("boundscheck",))).judge()
    assert any("libboundscheck" in row.detail for row in rows if row.id.endswith("needed-extra"))


# a pin that no profile knows


def test_an_unknown_pin_is_not_guessed() -> None:
    verdict, rows = ascend(profile="", pin="0123456789abcdef").judge()
    assert verdict is Verdict.PASS
    assert names(rows, Status.WARN) == {"profile", "needed", "needed-forbidden", "dcmi-weak"}
    assert "0123456789abcdef" in next(row.detail for row in rows if row.id == "ascend.case1.profile")
    assert names(rows, Status.PASS) >= {"hooks", "undefined", "rpath", "textrel", "glibc-private", "staged"}


@pytest.mark.parametrize("make", [ascend, linked, strong])
def test_any_profile_passes_under_an_unknown_pin(make: Callable[[], Stage]) -> None:
    verdict, rows = replace(make(), profile="", pin="").judge()
    assert verdict is Verdict.PASS
    assert names(rows, Status.FAIL) == frozenset()


def test_what_holds_for_every_pin_is_judged_under_an_unknown_one() -> None:
    stage = ascend(vruntime(libraries=("boundscheck",), without=("rtMalloc",)), profile="", pin="main")
    verdict, rows = stage.judge()
    assert verdict is Verdict.FAIL
    assert names(rows, Status.FAIL) == {"needed", "hooks"}


# the shape of the answer


@pytest.mark.parametrize(
    "stage", [nvidia(), ascend(), linked(), strong()], ids=["nvidia", "ascend", "linked", "strong"]
)
def test_every_required_check_has_a_row_for_each_artifact_that_it_is_for(stage: Stage) -> None:
    backend = BACKENDS[stage.backend]
    _verdict, rows = stage.judge()
    per_artifact = {"hooks", "soname", "dcmi-weak"}
    for name in EVERY:
        found = [row for row in rows if row.id == f"{stage.backend}.case1.{name}"]
        assert len(found) == len(backend.artifacts), name
    for name in per_artifact:
        assert len([row for row in rows if row.id == f"{stage.backend}.case1.{name}"]) <= len(
            backend.artifacts
        )


def test_required_checks_are_declared_whatever_was_found() -> None:
    backend = BACKENDS["nvidia"]
    profile = profile_for("nvidia", "")
    required, _rows = judge_linking(backend, [], [], platform=Platform.AMD64, profile=profile)
    assert {check_id.rpartition(".")[2] for check_id in required} == NVIDIA
    required, _rows = judge_linking(
        backend, [], [], platform=Platform.AMD64, profile=profile, max_glibc=(2, 28), image_glibc=(2, 28)
    )
    assert {check_id.rpartition(".")[2] for check_id in required} == NVIDIA | {"glibc", "glibc-image"}


@given(st.integers(0, 8000), st.binary(min_size=1, max_size=8))
@settings(deadline=None, max_examples=200)
def test_no_bytes_make_the_judge_raise(at: int, change: bytes) -> None:
    data = bytearray(vruntime("-s"))
    at %= len(data) - 8
    data[at : at + len(change)] = change
    verdict, rows = ascend(bytes(data)).judge()
    unread = any(row.status is Status.FAIL and row.id == "ascend.case1.elf" for row in rows)
    assert not (unread and verdict is Verdict.PASS)
