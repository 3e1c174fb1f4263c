from __future__ import annotations

import io
import platform
import struct
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection

from tests.elfbytes import Elf, write_elf
from tests.elfkit import DCMI, compile_c, cross_compiler, linkers, monitor, versioned_libc, vgpu, vgpu_hooks
from xbtasks.elf.facts import (
    BadElf,
    ElfFacts,
    NotElf,
    VersionNeed,
    glibc_version,
    libc_version,
    read_elf,
    read_header,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DT_HASH, DT_GNU_HASH = 4, 0x6FFFFEF5
PLAIN = ("-shared", "-fPIC")


def many(count: int, *flags: str) -> bytes:
    """A library with ``count`` functions."""
    lines = [f".globl f{n}\\n.type f{n},@function\\nf{n}: ret\\n" for n in range(count)]
    body = "\n".join(f'"{line}"' for line in lines)
    return compile_c(f"__asm__({body});\n", *PLAIN, "-nostdlib", *flags)


def reason(data: bytes) -> str:
    with pytest.raises(BadElf) as caught:
        read_elf(data)
    return caught.value.reason


# against an independent reader of the section headers


@pytest.mark.parametrize("style", ["sysv", "gnu", "both"])
@pytest.mark.parametrize("linker", linkers())
@pytest.mark.parametrize("make", [vgpu, monitor])
def test_the_same_as_pyelftools_says(make: Callable[..., bytes], linker: str, style: str) -> None:
    data = make(f"-fuse-ld={linker}", f"-Wl,--hash-style={style}")
    facts = read_elf(data)
    other = ELFFile(io.BytesIO(data))
    dynamic = other.get_section_by_name(".dynamic")
    symbols = other.get_section_by_name(".dynsym")
    versions = other.get_section_by_name(".gnu.version_r")
    assert isinstance(dynamic, DynamicSection)
    assert isinstance(symbols, SymbolTableSection)
    assert isinstance(versions, GNUVerNeedSection)
    assert facts.needed == tuple(tag.needed for tag in dynamic.iter_tags("DT_NEEDED"))
    assert facts.header.machine_name == "x86-64"
    ours = [(s.name, s.defined, s.binding) for s in facts.symbols]
    theirs = [
        (s.name, s["st_shndx"] != "SHN_UNDEF", s["st_info"]["bind"].removeprefix("STB_"))
        for s in symbols.iter_symbols()
    ][1:]
    assert ours == theirs
    needs = {(library.name, aux.name) for library, auxes in versions.iter_versions() for aux in auxes}
    assert {(need.library, need.version) for need in facts.version_needs} == needs


def test_the_facts_of_a_library() -> None:
    facts = read_elf(vgpu())
    assert facts.needed == ("libcuda.so.1", "libnvidia-ml.so.1", "libc.so.6")
    assert facts.soname == "libvgpu.so"
    assert (facts.rpath, facts.runpath, facts.interp) == (None, None, None)
    flags = (facts.pie, facts.textrel, facts.symbolic, facts.bind_now, facts.relr)
    assert not any(flags)
    assert set(vgpu_hooks()) < facts.exported
    assert facts.version_needs == (VersionNeed("libc.so.6", "GLIBC_2.2.5"),)
    assert facts.users_of("GLIBC_2.2.5") == ("__cxa_finalize", "getenv")
    assert facts.glibc_need == (2, 2, 5)
    assert facts.glibc_tags == ()


def test_the_facts_of_a_program() -> None:
    facts = read_elf(monitor("-Wl,-z,now", "-Wl,-rpath,/somewhere", "-Wl,--enable-new-dtags"))
    assert facts.pie
    assert facts.bind_now
    assert facts.interp == "/lib64/ld-linux-x86-64.so.2"
    assert facts.runpath == "/somewhere"
    assert facts.exported == frozenset()
    weak = {s.name for s in facts.undefined if s.binding == "WEAK" and s.name.startswith("dcmi")}
    assert weak == set(DCMI)


def test_flags_of_the_dynamic_table() -> None:
    facts = read_elf(vgpu("-Wl,-rpath,/old", "-Wl,--disable-new-dtags", "-Wl,-Bsymbolic"))
    assert (facts.rpath, facts.runpath) == ("/old", None)
    assert facts.symbolic


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("gnu", [False, True])
def test_any_class_and_byte_order(bits: int, order: str, gnu: bool) -> None:
    functions = ("one", "two", "three")
    facts = read_elf(write_elf(bits=bits, order=order, machine=21, functions=functions, gnu=gnu))
    assert facts.header.bits == bits
    assert facts.header.little_endian == (order == "<")
    assert str(facts.header) == f"PPC64, {bits}-bit {'little' if order == '<' else 'big'}-endian"
    assert facts.exported == set(functions)
    assert facts.needed == ("libc.so.6",)


def test_a_library_for_aarch64() -> None:
    if cross_compiler():
        data = compile_c("int hook(void) { return 0; }", *PLAIN, compiler=cross_compiler(), stubs=False)
    else:
        data = Elf(vgpu(extra="int hook(void) { return 0; }")).header(machine=183).bytes
    facts = read_elf(data)
    assert facts.header.machine_name == "AArch64"
    assert "hook" in facts.exported


def test_an_unknown_machine_is_a_number() -> None:
    assert str(read_header(Elf(vgpu()).header(machine=0x1234).bytes)) == "0x1234, 64-bit little-endian"


# symbols: what the loader would find


def test_symbols_without_section_headers() -> None:
    bare = Elf(vgpu()).header(shoff=0, shnum=0).bytes
    assert read_elf(bare).symbols == read_elf(vgpu()).symbols


def test_symbols_are_read_where_sections_lie() -> None:
    data = vgpu()
    section = ELFFile(io.BytesIO(data)).get_section_by_name(".dynsym")
    assert section is not None
    elf = Elf(data)
    elf.put(elf.get("shoff") + 64 * ELFFile(io.BytesIO(data)).get_section_index(".dynsym") + 32, "Q", 24)
    assert read_elf(elf.bytes).symbols == read_elf(data).symbols


@pytest.mark.parametrize("style", ["sysv", "gnu"])
@pytest.mark.parametrize("linker", linkers())
def test_a_program_that_exports_nothing_keeps_its_undefined_symbols(linker: str, style: str) -> None:
    """GNU ld's DT_GNU_HASH is empty there and says nothing of the undefined ones."""
    data = monitor(f"-fuse-ld={linker}", f"-Wl,--hash-style={style}", "-Wl,--no-export-dynamic")
    assert set(DCMI) <= {symbol.name for symbol in read_elf(data).undefined}


@pytest.mark.parametrize("style", ["sysv", "gnu", "both"])
def test_a_hundred_thousand_symbols(style: str) -> None:
    facts = read_elf(many(100_000, f"-Wl,--hash-style={style}"))
    assert len(facts.exported) == 100_000


@pytest.mark.parametrize("style", ["sysv", "gnu"])
def test_a_symbol_that_a_search_does_not_come_to_is_not_exported(style: str) -> None:
    data = vgpu(f"-Wl,--hash-style={style}")
    tag = DT_HASH if style == "sysv" else DT_GNU_HASH
    elf = Elf(data)
    at = elf.offset_of(tag)
    if style == "sysv":
        buckets = struct.unpack_from("<I", data, at)[0]
        elf.put(at + 8, f"{buckets}I", *[0] * buckets)
        assert read_elf(elf.bytes).exported == frozenset()
    else:
        words = struct.unpack_from("<I", data, at + 8)[0]
        elf.put(at + 16, f"{words}Q", *[0] * words)
        assert read_elf(elf.bytes).exported == frozenset()
    assert read_elf(data).exported


def test_hashes_of_another_name_are_not_exported() -> None:
    data = vgpu()
    renamed = Elf(data).replace(b"\0cuInit\0", b"\0cuTini\0").bytes
    assert not {"cuInit", "cuTini"} & read_elf(renamed).exported
    assert "cuTini" in {symbol.name for symbol in read_elf(renamed).symbols}


@pytest.mark.parametrize(
    ("prefix", "scripts"),
    [
        ('__attribute__((visibility("hidden")))', ""),
        ("static", ""),
        ("", "{ local: *; };"),
    ],
)
def test_hidden_functions_are_not_exported(prefix: str, scripts: str) -> None:
    assert "cuInit" not in read_elf(vgpu(prefix=prefix, scripts=scripts)).exported


@pytest.mark.parametrize("prefix", ['__attribute__((visibility("protected")))', "__attribute__((weak))"])
def test_protected_and_weak_functions_are_exported(prefix: str) -> None:
    assert set(vgpu_hooks()) <= read_elf(vgpu(prefix=prefix)).exported


def test_a_resolver_is_a_function_and_data_is_none() -> None:
    extra = "static int impl(void) { return 1; } static void *pick(void) { return impl; }"
    extra += 'int fast(void) __attribute__((ifunc("pick"))); int data = 3;'
    facts = read_elf(vgpu(extra=extra))
    assert "fast" in facts.exported
    assert "data" not in facts.exported
    assert {s.type for s in facts.symbols if s.name == "data"} == {"OBJECT"}


def test_a_function_of_a_hidden_version_is_not_exported() -> None:
    source = 'int old(void) { return 0; } __asm__(".symver old, kept@V1"); int fresh(void) { return 0; }'
    facts = read_elf(compile_c(source, *PLAIN, scripts="V1 { global: kept; fresh; local: *; };"))
    assert "fresh" in facts.exported
    assert "kept" not in facts.exported
    assert facts.version_definitions == ("V1",)
    assert {s.version for s in facts.symbols if s.name == "fresh"} == {"V1"}


# versions


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("GLIBC_2.28", (2, 28)),
        ("GLIBC_2.2.5", (2, 2, 5)),
        ("GLIBC_2.9", (2, 9)),
        ("GLIBC_3", (3,)),
        ("GLIBC_PRIVATE", None),
        ("GLIBC_ABI_DT_RELR", None),
        ("GLIBC_", None),
        ("GLIBC_2.", None),
        ("GLIBC_2.\u0662", None),
        ("GLIBC_2.28x", None),
        ("XGLIBC_2.28", None),
        ("GCC_3.0", None),
    ],
)
def test_glibc_versions(text: str, number: tuple[int, ...] | None) -> None:
    assert glibc_version(text) == number


def needs(*versions: str) -> ElfFacts:
    """A library that needs ``versions`` of a libc.so.6 of our own."""
    calls = "".join(f"int f{n}(void); int use{n}(void) {{ return f{n}(); }}\n" for n in range(len(versions)))
    return read_elf(compile_c(calls, *PLAIN, "-nostdlib", versioned_libc(*versions)))


def test_the_need_is_a_number_not_a_text() -> None:
    facts = needs("GLIBC_2.9", "GLIBC_2.28", "GLIBC_2.3.4", "GLIBC_PRIVATE")
    assert facts.glibc_need == (2, 28)
    assert facts.glibc_tags == ("GLIBC_PRIVATE",)
    assert facts.users_of("GLIBC_2.28") == ("f1",)


def test_no_need_at_all() -> None:
    facts = read_elf(compile_c("int f(void) { return 0; }", *PLAIN, "-nostdlib"))
    assert facts.glibc_need is None
    assert facts.version_needs == ()


def test_the_version_of_a_libc() -> None:
    scripts = "GLIBC_2.9 { global: a; }; GLIBC_2.36 { global: b; }; GLIBC_PRIVATE { global: c; };"
    source = "int a(void) { return 0; } int b(void) { return 0; } int c(void) { return 0; }"
    libc = compile_c(source, *PLAIN, "-Wl,-soname,libc.so.6", scripts=scripts)
    assert libc_version(libc) == (2, 36)
    assert libc_version(vgpu()) is None
    other = compile_c(source, *PLAIN, "-Wl,-soname,libother.so", scripts=scripts)
    assert libc_version(other) is None
    with pytest.raises(NotElf):
        libc_version(b"")


def test_the_version_of_the_libc_of_this_machine() -> None:
    done = subprocess.run(("gcc", "-print-file-name=libc.so.6"), capture_output=True, text=True, check=True)
    libc = Path(done.stdout.strip()).read_bytes()
    assert libc_version(libc) == tuple(map(int, platform.libc_ver()[1].split(".")))


def test_relative_relocations() -> None:
    source = (
        '#include <stdlib.h>\nstatic int x; int *p[] = {&x, &x, &x}; char *f(void) { return getenv("A"); }'
    )
    data = compile_c(source, *PLAIN, "-Wl,-z,pack-relative-relocs")
    facts = read_elf(data)
    assert facts.relr
    assert facts.glibc_tags == ("GLIBC_ABI_DT_RELR",)
    untold = Elf(data).replace(b"GLIBC_ABI_DT_RELR", b"GLIBC_2.2.5\0\0\0\0\0\0").bytes
    assert "DT_RELR" in reason(untold)
