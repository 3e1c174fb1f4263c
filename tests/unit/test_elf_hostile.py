from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.elfbytes import Elf, write_elf
from tests.elfkit import compile_c, monitor, vgpu
from xbtasks.elf.facts import (
    BadElf,
    NotElf,
    read_elf,
)

if TYPE_CHECKING:
    from collections.abc import Callable

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NULL, DT_NEEDED, DT_PLTRELSZ, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELASZ = 0, 1, 2, 4, 5, 6, 8
DT_STRSZ, DT_SYMENT, DT_SONAME, DT_DEBUG, DT_GNU_HASH = 10, 11, 14, 21, 0x6FFFFEF5
DT_VERSYM, DT_VERNEED, DT_VERNEEDNUM = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFF


def reason(data: bytes) -> str:
    with pytest.raises(BadElf) as caught:
        read_elf(data)
    return caught.value.reason


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
