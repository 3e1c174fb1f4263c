"""What ``inv clean`` asks and removes: the programs on a real file system, the engine a stand-in."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from xbtasks.cleanup import Removal, clean
from xbtasks.engine import Engine
from xbtasks.errors import CannotJudge
from xbtasks.host.step import Host, LiveSink, Reply, SectionReply, Step
from xbtasks.staging import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ID, OTHER = "sha256:" + "1" * 64, "sha256:" + "2" * 64
RUN = "20260101-120000-abcdef"
ENGINE = """#!/bin/sh
echo "$*" >>"{folder}/log"
case "$1 $2" in
"ps --all") cat "{folder}/containers" ;;
"image ls") cat "{folder}/images" ;;
*) [ ! -e "{folder}/fails" ] || { cat "{folder}/fails" >&2; exit 1; } ;;
esac
"""


@dataclass
class Here(Host):
    """Runs each section here, as a local host does, without a frame."""

    timed_out: set[str] = field(default_factory=set)
    before: Callable[[str], object] = print

    @property
    def label(self) -> str:
        return "here"

    def close(self) -> None:
        """Nothing is held."""

    def run(self, step: Step, live: LiveSink | None = None) -> Reply:
        self.before(step.name)
        answers = []
        for section in step.sections:
            done = subprocess.run(section.argv, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
            late = section.name in self.timed_out
            status = 124 if late else done.returncode
            answers.append(
                SectionReply(
                    section.name, status, b"" if late else done.stdout, b"" if late else done.stderr, 60, late
                )
            )
        return Reply(step.name, tuple(answers))


@dataclass
class Place:
    """A host's folders, and an engine that has what a test says."""

    folder: Path
    host: Here = field(default_factory=Here)

    def __post_init__(self) -> None:
        (self.folder / "engine").write_text(ENGINE.replace("{folder}", str(self.folder)))
        (self.folder / "engine").chmod(0o755)
        for name in ("containers", "images"):
            (self.folder / name).touch()
        for path in (self.ascend, self.nvidia, self.contexts):
            path.mkdir(parents=True)

    @property
    def ascend(self) -> Path:
        return self.folder / "it's $(id)/ascend"

    @property
    def nvidia(self) -> Path:
        return self.folder / "nvidia"

    @property
    def contexts(self) -> Path:
        return self.folder / "ctx"

    def clean(self, *, everything: bool = True) -> Removal:
        directories = {"ascend": str(self.ascend), "nvidia": str(self.nvidia)}
        engine = Engine(str(self.folder / "engine"))
        return clean(self.host, engine, directories, str(self.contexts), 60, everything=everything)

    def stage(self, data: bytes = b"library") -> Path:
        """Lay a staged set down for NVIDIA, as staging leaves it."""
        library = self.nvidia / "libvgpu.so"
        library.write_bytes(data)
        digest = sha256(b"library").hexdigest()
        manifest = Manifest("s", "linux/amd64", "i", ID, RUN, (("libvgpu.so", digest),))
        (self.nvidia / ".xbtasks-nvidia.json").write_bytes(manifest.to_bytes())
        return library

    def asked(self) -> list[str]:
        log = self.folder / "log"
        return [line for line in log.read_text().splitlines() if not line.startswith(("ps", "image ls"))]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_nothing_there_is_nothing_removed(place: Place) -> None:
    assert place.clean() == Removal((), (), ())


def test_containers_of_runs_go_in_every_scope(place: Place) -> None:
    (place.folder / "containers").write_text("xbtasks-a-read\ta\nxbtasks-b-stage\tb\n")
    removal = place.clean(everything=False)
    assert removal.removed == ("container xbtasks-a-read", "container xbtasks-b-stage")
    assert place.asked() == [f"rm --force --volumes {name}" for name in ("xbtasks-a-read", "xbtasks-b-stage")]


def test_only_recorded_images_go_and_only_by_our_tags(place: Place) -> None:
    (place.contexts / ".built").mkdir()
    (place.contexts / ".built" / ID.removeprefix("sha256:")).write_text("vgpu-build:13\n")
    rows = [(ID, "vgpu-build:13"), (ID, "mine:1"), (OTHER, "derived:1"), (OTHER, "<none>:<none>")]
    (place.folder / "images").write_text("".join(f"{identity}\t{name}\n" for identity, name in rows))
    assert place.clean(everything=False).removed == ()
    removal = place.clean()
    assert removal.removed == ("image vgpu-build:13",)
    assert place.asked() == ["image rm -- vgpu-build:13"]
    assert not place.contexts.exists()


def test_an_untagged_image_of_ours_goes_by_its_id(place: Place) -> None:
    (place.contexts / ".built").mkdir()
    (place.contexts / ".built" / ID.removeprefix("sha256:")).write_text("vgpu-build:13\n")
    (place.folder / "images").write_text(f"{ID}\t<none>:<none>\n")
    assert place.clean().removed == (f"image {ID}",)


def test_what_can_not_be_removed_is_said(place: Place) -> None:
    (place.folder / "containers").write_text("xbtasks-a-read\ta\n")
    (place.folder / "fails").write_text("Error response from daemon: conflict\n")
    assert place.clean().left == ("Error response from daemon: conflict",)
    place.host.timed_out = {"container-0"}
    assert place.clean().left == ("container xbtasks-a-read: no end within its time",)
    (place.folder / "fails").write_text("")
    place.host.timed_out = set()
    assert place.clean().left == ("container xbtasks-a-read: exit status 1",)


def test_a_warning_of_a_removal_that_worked_is_nothing_left(place: Place) -> None:
    (place.folder / "containers").write_text("xbtasks-a-read\ta\n")
    engine = place.folder / "engine"
    engine.write_text(engine.read_text() + "echo 'WARNING: something' >&2\n")
    assert place.clean().left == ()


def test_an_engine_that_does_not_list_is_an_error(place: Place) -> None:
    (place.folder / "containers").unlink()
    with pytest.raises(CannotJudge, match="can't list its containers"):
        place.clean()
    (place.folder / "containers").touch()
    (place.folder / "images").unlink()
    with pytest.raises(CannotJudge, match="can't list its images"):
        place.clean()


def test_staged_files_go_if_they_are_still_ours(place: Place) -> None:
    library = place.stage()
    (place.nvidia / "theirs").touch()
    assert place.clean(everything=False) == Removal((), (), ())
    assert library.exists()
    removal = place.clean()
    assert removal.removed == (f"staged {library}", f"manifest {place.nvidia}/.xbtasks-nvidia.json")
    assert sorted(path.name for path in place.nvidia.iterdir()) == ["theirs"]


def test_a_file_that_was_changed_stays_and_is_named(place: Place) -> None:
    library = place.stage(b"changed")
    removal = place.clean()
    assert removal.kept == (str(library),)
    assert library.read_bytes() == b"changed"


def test_a_file_that_is_changed_just_now_stays(place: Place) -> None:
    library = place.stage()
    place.host.before = lambda step: library.write_bytes(b"just now") if step == "clean" else None
    removal = place.clean()
    assert library.read_bytes() == b"just now"
    assert "changed just now" in removal.left[0]


def test_a_foreign_file_is_not_spoken_of(place: Place) -> None:
    (place.nvidia / "libvgpu.so").write_bytes(b"theirs")
    assert place.clean() == Removal((), (), ())


def test_what_a_killed_run_left_goes_in_every_scope(place: Place) -> None:
    place.stage()
    for name in (f".xbtasks-incoming.{RUN}", f"test/{RUN}/source"):
        (place.nvidia / name).mkdir(parents=True)
    (place.ascend / f"test/{RUN}").mkdir(parents=True)
    (place.nvidia / "test/notes").mkdir()
    (place.contexts / ".incoming.abc").mkdir()
    removal = place.clean(everything=False)
    assert sorted(removal.removed) == sorted(
        [
            f"context {place.contexts}/.incoming.abc",
            f"unfinished {place.ascend}/test/{RUN}",
            f"unfinished {place.nvidia}/.xbtasks-incoming.{RUN}",
            f"unfinished {place.nvidia}/test/{RUN}",
        ]
    )
    assert (place.nvidia / "test/notes").is_dir()
    assert not (place.ascend / "test").exists()
    assert (place.nvidia / "libvgpu.so").exists()


def test_links_are_never_followed(place: Place) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    (outside / "precious").touch()
    (place.contexts / ("a" * 64)).symlink_to(outside)
    (place.nvidia / "test").mkdir()
    (place.nvidia / f"test/{RUN}").symlink_to(outside)
    (place.nvidia / f".xbtasks-incoming.{RUN}").symlink_to(outside)
    place.clean()
    assert (outside / "precious").exists()


def test_contexts_go_by_their_form_and_others_stay(place: Place) -> None:
    for name in ("a" * 64, "A" * 64, "a" * 63, "notes"):
        (place.contexts / name).mkdir()
    (place.contexts / ("b" * 64)).touch()
    assert place.clean(everything=False).removed == ()
    removal = place.clean()
    assert removal.removed == (f"context {place.contexts}/{'a' * 64}",)
    assert len(list(place.contexts.iterdir())) == 4


def test_a_broken_manifest_takes_nothing_with_it(place: Place) -> None:
    library = place.stage()
    (place.nvidia / ".xbtasks-nvidia.json").write_text(json.dumps({"schema": 1})[:-1])
    removal = place.clean()
    assert library.exists()
    assert removal.kept == (str(library),)
