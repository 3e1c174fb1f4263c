from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.elfbytes import Elf
from tests.elfkit import (
    DCMI,
    cross_compiler,
    monitor,
    rt_hooks,
    same_version_libc,
    versioned_libc,
    vgpu,
    vgpu_hooks,
    vruntime,
)
from tests.stagekit import (
    EVERY,
    NVIDIA,
    PRIVATE,
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
from xbtasks.backends import BACKENDS
from xbtasks.backends.base import Platform
from xbtasks.backends.linking import accepted_by_profile, judge_linking
from xbtasks.backends.profiles import profile_for
from xbtasks.checks import Check, Status, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable


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
