from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from xbtasks.errors import CannotJudge, LostReply
from xbtasks.host.step import Section, SectionReply
from xbtasks.provenance import familiar, read_record, record_section, recorded_section, removal_section

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64


def call(section: Section) -> SectionReply:
    done = subprocess.run(section.argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
    return SectionReply(section.name, done.returncode, done.stdout, done.stderr, 0, False)


@pytest.mark.parametrize(
    ("reference", "listed"),
    [
        ("vgpu-build:13", "vgpu-build:13"),
        ("vgpu-build", "vgpu-build:latest"),
        ("docker.io/library/vgpu-build:13", "vgpu-build:13"),
        ("index.docker.io/library/x", "x:latest"),
        ("docker.io/me/x:1", "me/x:1"),
        ("registry.example:5000/x", "registry.example:5000/x:latest"),
        ("registry.example:5000/x:1", "registry.example:5000/x:1"),
    ],
)
def test_references_are_spelt_as_docker_lists_them(reference: str, listed: str) -> None:
    assert familiar(reference) == listed


def test_what_was_recorded_is_read_back(tmp_path: Path) -> None:
    base = str(tmp_path / "it's $(id)/ctx")
    assert read_record(call(recorded_section(base, 60))) == {}
    for identity, tag in ((ONE, "a:1"), (ONE, "docker.io/library/b"), (ONE, "a:1"), (TWO, "a:1")):
        assert call(record_section(base, identity, tag, 60)).ok
    recorded = read_record(call(recorded_section(base, 60)))
    assert recorded == {ONE: {"a:1", "b:latest"}, TWO: {"a:1"}}


def test_a_record_goes_with_its_image(tmp_path: Path) -> None:
    engine = tmp_path / "engine"
    engine.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/log\n[ "$4" != used:1 ]\n')
    engine.chmod(0o755)
    base = str(tmp_path / "ctx")
    for identity in (ONE, TWO):
        call(record_section(base, identity, "x:1", 60))
    gone = call(removal_section("i", base, str(engine), ONE, ("x:1", "y:1"), 60))
    stays = call(removal_section("i", base, str(engine), TWO, ("x:1", "used:1"), 60))
    assert (gone.ok, gone.text) == (True, "image x:1\nimage y:1\n")
    assert (stays.ok, stays.text) == (False, "image x:1\n")
    assert read_record(call(recorded_section(base, 60))).keys() == {TWO}
    assert set((tmp_path / "log").read_text().splitlines()) == {
        f"image rm -- {n}:1" for n in ("x", "y", "used")
    }


@pytest.mark.parametrize("text", [b"garbage\n", b"sha1:1 x\n", b"sha256:1 x\nError\n"])
def test_another_answer_is_lost(text: bytes) -> None:
    with pytest.raises(LostReply):
        read_record(SectionReply("recorded", 0, text, b"", 0, False))


def test_a_record_that_can_not_be_read_is_no_verdict() -> None:
    with pytest.raises(CannotJudge, match="record"):
        read_record(SectionReply("recorded", 66, b"", b"Permission denied", 0, False))
