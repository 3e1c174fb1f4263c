from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from tests.elfbytes import Elf
from tests.elfkit import (
    DCMI,
    linkers,
    monitor,
    versioned_libc,
    vgpu,
    vruntime,
)
from tests.stagekit import (
    RELATIVE,
    USE_BOTH,
    Stage,
    ascend,
    image,
    linked,
    names,
    nvidia,
    strong,
)
from xbtasks.checks import Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable


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
