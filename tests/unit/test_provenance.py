from __future__ import annotations

import json
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from xbtasks.errors import CannotJudge, LostReply
from xbtasks.host.programs import program
from xbtasks.host.step import Section, SectionReply
from xbtasks.provenance import familiar, read_record, recorded_section, removal_section

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
INPUTS = "a" * 64
ENGINE = """#!/bin/sh
# an engine that knows images by their ids, files that hold what inspect prints; "image" is what any tag names
here=${0%/*}
for last; do :; done
echo "$@" >>"$here/log"
case $1 in
image)
  [ "$2" = rm ] && { [ "$4" != used:1 ]; exit; }
  case $last in sha256:*) ;; *) last=image ;; esac
  cat "$here/$last" 2>/dev/null ;;
build) shift; sh -c "$1" build "$here" "$3" ;;
esac
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "engine"
    path.write_text(ENGINE)
    path.chmod(0o755)
    return path


def makes(identity: str, inputs: str = INPUTS, *, told: str = "") -> str:
    """Return a build that loads an image, and tells the id of ``told`` or its own."""
    document = json.dumps({"containerimage.config.digest": told or identity})
    made = f'echo \'{identity} {inputs}\' >"$1/{identity}"; cp "$1/{identity}" "$1/image"'
    return f"{made}; echo '{document}' >\"$2\""


def build_argv(engine: Path, base: str, tag: str, script: str) -> tuple[str, ...]:
    return program("build", base, str(engine), tag, INPUTS, str(engine), "build", script)


def build(engine: Path, base: str, tag: str, script: str) -> subprocess.CompletedProcess[bytes]:
    argv = build_argv(engine, base, tag, script)
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)


def recorded(base: str) -> dict[str, frozenset[str]]:
    return dict(read_record(call(recorded_section(base, 60))))


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


def test_what_was_built_is_recorded_and_read_back(tmp_path: Path, engine: Path) -> None:
    base = str(tmp_path / "it's $(id)/ctx")
    assert recorded(base) == {}
    for identity, tag in ((ONE, "a:1"), (ONE, "b:latest"), (ONE, "a:1"), (TWO, "a:1")):
        done = build(engine, base, tag, makes(identity))
        assert (done.returncode, json.loads(done.stdout)) == (0, {"containerimage.config.digest": identity})
    assert recorded(base) == {ONE: {"a:1", "b:latest"}, TWO: {"a:1"}}


@pytest.mark.parametrize(
    ("there", "script", "code", "kept"),
    [
        ("", "exit 3", 3, set()),
        (f"{ONE} {INPUTS}", "exit 3", 3, set()),  # as it was before, and no build said it
        (f"{ONE} {INPUTS}", makes(ONE), 0, {ONE}),  # all of it came out of the cache
        (f"{ONE} {INPUTS}", makes(TWO), 0, {TWO}),
        ("", makes(ONE, "b" * 64), 0, set()),
        ("", makes(ONE) + f"; echo '{TWO} {INPUTS}' >\"$1/image\"", 0, {ONE}),  # another build moved the tag
        ("", makes(ONE) + '; rm "$1/image"', 0, {ONE}),
        ("", makes(ONE, ""), 0, set()),
        (f"{ONE} {INPUTS}", makes(ONE, told=TWO), 0, set()),
        ("", makes(ONE) + "; exit 1", 1, {ONE}),  # the image is there all the same
        ("", f"echo '{ONE} {INPUTS}' >\"$1/image\"; kill -9 $$", 137, {ONE}),  # before it could say so
        # somebody tagged an image that inherits our labels meanwhile
        ("", makes(ONE, told=TWO), 0, set()),
        (f"{TWO} {INPUTS}", makes(ONE, told=TWO), 0, set()),
        ("", f"echo '{ONE} {INPUTS}' >\"$1/image\"; exit 1", 1, set()),
        (f"{TWO} {INPUTS}", f"echo '{ONE} {INPUTS}' >\"$1/image\"; exit 1", 1, set()),
    ],
)
def test_only_what_this_build_made_is_recorded(
    tmp_path: Path, engine: Path, there: str, script: str, code: int, kept: set[str]
) -> None:
    if there:
        (tmp_path / "image").write_text(there + "\n")
    assert build(engine, str(tmp_path / "ctx"), "a:1", script).returncode == code
    assert recorded(str(tmp_path / "ctx")).keys() == kept


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_image_that_a_stopped_build_had_loaded_is_recorded(
    tmp_path: Path, engine: Path, number: int
) -> None:
    base = str(tmp_path / "ctx")
    script = f"echo '{ONE} {INPUTS}' >\"$1/image\"; exec sleep 60"
    child = subprocess.Popen(build_argv(engine, base, "a:1", script), stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not (tmp_path / "image").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    child.send_signal(number)
    assert child.wait(timeout=30) == 143
    assert recorded(base) == {ONE: {"a:1"}}


def test_a_place_that_can_not_be_written_fails_no_build(tmp_path: Path, engine: Path) -> None:
    done = build(engine, "/proc/1/ctx", "a:1", makes(ONE))
    assert (done.returncode, b"/proc/1/ctx" in done.stderr) == (0, True)
    assert b"ERROR: " not in done.stderr


def test_a_record_goes_with_its_image(tmp_path: Path, engine: Path) -> None:
    base = str(tmp_path / "ctx")
    for identity in (ONE, TWO):
        build(engine, base, "x:1", makes(identity))
    (tmp_path / "log").unlink()
    gone = call(removal_section("i", base, str(engine), ONE, ("x:1", "y:1"), 60))
    stays = call(removal_section("i", base, str(engine), TWO, ("x:1", "used:1"), 60))
    assert (gone.ok, gone.text) == (True, "image x:1\nimage y:1\n")
    assert (stays.ok, stays.text) == (False, "image x:1\n")
    assert recorded(base).keys() == {TWO}
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
