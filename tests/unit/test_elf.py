from __future__ import annotations

import io
import platform
import struct
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection
from elftools.elf.sections import SymbolTableSection
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.elfkit import (
    DCMI,
    Elf,
    compile_c,
    cross_compiler,
    linkers,
    monitor,
    versioned_libc,
    vgpu,
    vgpu_hooks,
    write_elf,
)
from xbtasks.elf import (
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

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
DT_NULL, DT_NEEDED, DT_PLTRELSZ, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELASZ = 0, 1, 2, 4, 5, 6, 8
DT_STRSZ, DT_SYMENT, DT_SONAME, DT_DEBUG, DT_GNU_HASH = 10, 11, 14, 21, 0x6FFFFEF5
DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF
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


# what isn't ELF, and what isn't whole


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "an empty file"),
        (b"/* GNU ld script */\nGROUP ( libc.so.6 AS_NEEDED ( ld-linux.so.2 ) )\n", "a linker script"),
        (b"INPUT(libvgpu.so.1)\n", "a linker script"),
        (b"!<arch>\n", "an ar archive"),
        (b"!<thin>\n", "a thin ar archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n", "a Git LFS pointer"),
        (b"#!/bin/sh\nexit 0\n", "a script"),
        (b"<!DOCTYPE html><html></html>", "an HTML page"),
        (b"404: Not Found\n", "a text file"),
        (b"\x1f\x8b\x08\x00", "gzip data"),
        (b"PK\x03\x04", "a zip archive"),
        (b"MZ\x90", "a Windows program"),
        (b"\xcf\xfa\xed\xfe", "a macOS program"),
        (bytes(64), "64 zero bytes"),
        (b"\x01\x02\x03\x04\x05", "begins with 01 02 03 04"),
        ("é".encode(), "begins with c3 a9"),
    ],
)
def test_not_elf(data: bytes, says: str) -> None:
    with pytest.raises(NotElf) as caught:
        read_elf(data)
    assert says in caught.value.reason
    assert caught.value.header is None


def test_every_truncation_is_seen() -> None:
    data = vgpu("-s")
    for size in range(0, len(data), 37):
        assert reason(data[:size])
    assert "truncated" in reason(data[:-1])


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda e: e.header(**{"class": 3}), "class 3"),
        (lambda e: e.header(data=0), "data encoding 0"),
        (lambda e: e.header(data=2), ""),
        (lambda e: e.header(**{"class": 1}), ""),
        (lambda e: e.header(ident_version=2), "ELF version 2/1"),
        (lambda e: e.header(version=0), "ELF version 1/0"),
        (lambda e: e.header(os_abi=9), "OS ABI 9"),
        (lambda e: e.header(abi_version=1), "OS ABI 0, version 1"),
        (lambda e: e.put(12, "B", 1), "OS ABI"),
        (lambda e: e.header(phnum=0), "no program headers"),
        (lambda e: e.header(phnum=0xFFFF), "truncated: the program headers"),
        (lambda e: e.header(phoff=1 << 40), "truncated: the program headers"),
        (lambda e: e.header(phentsize=55), "program headers of 55 bytes"),
        (lambda e: e.header(shoff=1 << 60), "truncated: the section headers"),
        (lambda e: e.header(shnum=0xFFFF), "truncated: the section headers"),
        (lambda e: e.header(shentsize=7), "section headers of 7 bytes"),
        (lambda e: e.put(e.get("shoff") + 64 + 32, "Q", 1 << 40), "truncated: a section"),
        (lambda e: e.segment(PT_LOAD, filesz=1 << 40, memsz=1 << 41), "truncated: a segment"),
        (lambda e: e.segment(PT_LOAD, memsz=1), "bytes of memory"),
        (lambda e: e.segment(PT_LOAD, 1, align=3), "aligned"),
        (lambda e: e.segment(PT_LOAD, 1, vaddr=1), "aligned"),
        (lambda e: e.segment(PT_LOAD, 1, vaddr=0, offset=0), "overlap"),
        (lambda e: e.segment(PT_DYNAMIC, type=0), "no dynamic table"),
        (lambda e: e.segment(PT_DYNAMIC, filesz=16), "no end mark"),
        (lambda e: e.segment(PT_DYNAMIC, filesz=0), "empty dynamic table"),
        (lambda e: e.segment(PT_DYNAMIC, vaddr=1 << 40), "isn't in any loaded segment"),
        (lambda e: e.segment(PT_DYNAMIC, offset=0), "name different bytes"),
        (lambda e: e.segment(0x6474E550, type=PT_DYNAMIC), "2 dynamic tables"),
        (lambda e: e.dynamic(DT_STRTAB, 1 << 40), "the dynamic string table at"),
        (lambda e: e.dynamic(DT_STRSZ, 1), "outside the dynamic string table"),
        (lambda e: e.dynamic(DT_STRSZ, 1 << 60), "the dynamic string table at"),
        (lambda e: e.retag(DT_STRSZ, DT_DEBUG), "no string table"),
        (lambda e: e.retag(DT_SYMTAB, DT_DEBUG), "no symbol table"),
        (lambda e: e.dynamic(DT_NEEDED, 1 << 20), "outside the dynamic string table"),
        (lambda e: e.dynamic(DT_SONAME, 1 << 20), "outside the dynamic string table"),
        (lambda e: e.dynamic(DT_SYMTAB, 1 << 40), "the dynamic symbol table at"),
        (lambda e: e.dynamic(DT_SYMENT, 16), "dynamic symbols of 16 bytes"),
        (lambda e: e.put(e.offset_of(DT_SYMTAB) + 24, "I", 1 << 30), "outside the dynamic string table"),
        (lambda e: e.retag(DT_GNU_HASH, DT_DEBUG), "neither DT_HASH nor DT_GNU_HASH"),
        (lambda e: e.dynamic(DT_GNU_HASH, 1 << 40), "the GNU symbol hash table at"),
        (lambda e: e.put(e.offset_of(DT_GNU_HASH), "I", 0), "0 buckets"),
        (lambda e: e.put(e.offset_of(DT_GNU_HASH), "I", 0xFFFFFFFF), "isn't in any loaded segment"),
        (lambda e: e.put(e.offset_of(DT_GNU_HASH) + 8, "I", 3), "3 filter words"),
        (lambda e: e.put(e.offset_of(DT_GNU_HASH) + 4, "I", 1 << 20), "before its first"),
        (lambda e: e.dynamic(DT_VERSYM, 1 << 40), "the symbol versions at"),
        (lambda e: e.put(e.offset_of(DT_VERSYM) + 2, "H", 77), "version 77"),
        (lambda e: e.dynamic(DT_VERNEED, 1 << 40), "the version needs at"),
        (lambda e: e.put(e.offset_of(DT_VERNEED) + 12, "I", 1), "version needs overlap"),
        (lambda e: e.put(e.offset_of(DT_VERNEED) + 4, "I", 1 << 20), "outside the dynamic string table"),
    ],
)
def test_bad_elf(break_it: Callable[[Elf], Elf], says: str) -> None:
    assert says in reason(break_it(Elf(vgpu())).bytes)


def test_a_classic_hash_table_that_runs_in_circles() -> None:
    elf = Elf(vgpu("-Wl,--hash-style=sysv"))
    at = elf.offset_of(DT_HASH)
    buckets, symbols = struct.unpack_from("<2I", elf.bytes, at)
    elf.put(at + 8 + 4 * buckets, f"{symbols}I", *[5] * symbols)
    assert "in circles" in reason(elf.bytes)


@pytest.mark.parametrize("start", [1, None])
def test_gnu_hash_chains_that_overlap_or_begin_too_early(start: int | None) -> None:
    elf = Elf(vgpu())
    at = elf.offset_of(DT_GNU_HASH)
    buckets, first, words = struct.unpack_from("<3I", elf.bytes, at)
    assert first > 1
    elf.put(at + 16 + 8 * words, f"{buckets}I", *[start or first] * (buckets - 1), first)
    assert "chains that overlap or begin before" in reason(elf.bytes)


def test_a_classic_hash_table_that_points_beyond_its_end() -> None:
    elf = Elf(vgpu("-Wl,--hash-style=sysv"))
    assert "past its end" in reason(elf.put(elf.offset_of(DT_HASH) + 8, "I", 1 << 20).bytes)


def test_hash_tables_that_disagree() -> None:
    elf = Elf(vgpu("-Wl,--hash-style=both"))
    assert "DT_GNU_HASH covers" in reason(elf.put(elf.offset_of(DT_HASH) + 4, "I", 3).bytes)


def test_an_object_file_and_a_static_program() -> None:
    assert "no program headers: REL" in reason(compile_c("int f(void) { return 0; }", "-c", stubs=False))
    assert "no dynamic table" in reason(compile_c("int main(void) { return 0; }", "-static", stubs=False))


def test_the_header_survives_what_is_broken_behind_it() -> None:
    with pytest.raises(BadElf) as caught:
        read_elf(Elf(vgpu()).header(data=2).bytes)
    header = caught.value.header
    assert header is not None
    assert not header.little_endian
    assert header.machine_name == "0x3e00"
    with pytest.raises(BadElf) as caught:
        read_elf(vgpu()[:-1])
    assert str(caught.value.header) == "x86-64, 64-bit little-endian"


def test_names_that_would_break_a_table_are_escaped() -> None:
    facts = read_elf(Elf(vgpu()).replace(b"libvgpu.so", b"lib\n\xffgp|so").bytes)
    assert facts.soname == "lib\\n\\xffgp|so"
    assert facts.soname.isprintable()


# hostile bytes


def survives(data: bytes) -> None:
    """Read ``data``: facts or `BadElf`, nothing else."""
    with suppress(BadElf):
        assert read_elf(data).size == len(data)


@pytest.mark.parametrize("value", [0x00, 0x7F, 0x80, 0xFF])
@pytest.mark.parametrize(
    "make", [lambda: vgpu("-s"), lambda: write_elf(bits=32, order=">", functions=("a", "b"))]
)
def test_any_byte_of_the_tables_may_be_wrong(make: Callable[[], bytes], value: int) -> None:
    data = make()
    for at in [*range(min(0xC00, len(data))), *range(max(0, len(data) - 64 * 30), len(data))]:
        survives(data[:at] + bytes((value,)) + data[at + 1 :])


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_wrong_words_anywhere(data: st.DataObject) -> None:
    image = bytearray(data.draw(st.sampled_from((vgpu("-s"), monitor("-s"), write_elf(gnu=True)))))
    words = st.tuples(st.integers(0, (len(image) - 8) // 4).map(lambda n: 4 * n), st.integers(0, 2**64 - 1))
    near = st.integers(-64, len(image) + 64).map(lambda n: n % 2**64)
    places = st.one_of(words, st.tuples(st.integers(0, 0x300).map(lambda n: 4 * n), near))
    for at, value in data.draw(st.lists(places, min_size=1, max_size=6)):
        image[at : at + 8] = struct.pack("<Q", value)
    survives(bytes(image))


@given(st.binary(max_size=400), st.sampled_from([b"", b"\x7fELF\x02\x01\x01", b"\x7fELF\x01\x02\x01"]))
@settings(deadline=None)
def test_any_bytes_at_all(tail: bytes, head: bytes) -> None:
    survives(head + tail)


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=255))
@settings(deadline=None)
def test_bytes_behind_the_end_change_nothing(size: int, value: int) -> None:
    data = vgpu("-s")
    facts = read_elf(data + bytes((value,)) * (size % 5000))
    assert facts.symbols == read_elf(data).symbols


def test_counts_beyond_the_file_cost_nothing() -> None:
    """Each count of a hostile file is checked against the file's size before anything is made of it."""
    elf = Elf(vgpu())
    for offset in (0, 4, 8, 12):
        survives(Elf(elf.bytes).put(elf.offset_of(DT_GNU_HASH) + offset, "I", 0xFFFFFFFF).bytes)
    for tag in (DT_PLTRELSZ, DT_RELASZ, DT_STRSZ, DT_VERNEEDNUM):
        survives(Elf(elf.bytes).dynamic(tag, 2**64 - 1).bytes)


def test_long_lists_that_point_at_one_place() -> None:
    """Many libraries whose version lists are one long list would take the square of the file's size."""
    count = 4000
    library = Elf(vgpu())
    at, end = len(library.bytes), b""
    for n in range(count):
        end += struct.pack("<HHIII", 1, 1, 1, 16 * (count - n), 16 if n < count - 1 else 0)
    for n in range(count):
        end += struct.pack("<IHHII", 0, 0, 2, 1, 16 if n < count - 1 else 0)
    address = 1 << 20
    pad = -at % 4096
    elf = Elf(library.bytes + bytes(pad) + end)
    elf.segment(
        0x6474E551, type=PT_LOAD, offset=at + pad, vaddr=address, filesz=len(end), memsz=len(end), align=4096
    )
    assert "in circles" in reason(elf.dynamic(DT_VERNEED, address).bytes)
