"""The staging directory on a real file system: the program under sh, its container engine a stand-in.

The stand-in copies out of a folder instead of a container, so that a test can stop, cheat or delay it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xbtasks import staging
from xbtasks.backends import BACKENDS
from xbtasks.backends.linking import ImageFile
from xbtasks.engine import Engine
from xbtasks.errors import CannotJudge, Refused
from xbtasks.host.step import Reply, Section, SectionReply, Step
from xbtasks.plan import StagePlan
from xbtasks.staging import Manifest, StagedSet

if TYPE_CHECKING:
    from collections.abc import Callable

ASCEND = BACKENDS["ascend"]
LIB, TOOL = "lib/libvruntime.so", "tools/enpu-monitor"
COPIES = """#!/bin/sh
# docker cp CONTAINER:PATH TARGET, out of $IMAGE_FOLDER
[ "$1" = cp ] || exit 64
path=${2#*:}
cp -a "$IMAGE_FOLDER$path" "$3" || exit 1
[ ! -e "$IMAGE_FOLDER/then" ] || . "$IMAGE_FOLDER/then"
"""


@dataclass
class Stage:
    """A staging directory, and images to stage in it."""

    folder: Path
    directory: Path
    run: int = 0

    def image(self, name: str, lib: bytes = b"lib", tool: bytes = b"tool") -> Path:
        """Make an image; what it holds differs by ``name``."""
        root = self.folder / name
        for artifact, data in zip(ASCEND.artifacts, (lib, tool), strict=True):
            target = root / artifact.image_path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data + name.encode())
        return root

    def look(self) -> StagedSet:
        section = staging.state_section(ASCEND, str(self.directory), 60)
        return staging.read_state(ASCEND, call(section, b"", {}))

    def plan(self, image: Path) -> StagePlan:
        return StagePlan(f"xbuild-ascend-cann-{image.name}", "ascend", "x", "x", str(self.directory), ())

    def step(self, image: Path, seen: StagedSet, *, adopt: bool = False) -> Step:
        self.run += 1
        paths = [image / artifact.image_path.lstrip("/") for artifact in ASCEND.artifacts]
        manifest = Manifest(
            stage=self.plan(image).stage,
            platform="linux/amd64",
            inputs="a" * 64,
            image=image.name,
            run=f"run{self.run}",
            files=tuple((a.staged_path, sha256(p)) for a, p in zip(ASCEND.artifacts, paths, strict=True)),
        )
        files = tuple(
            ImageFile(a.image_path, "file", a.mode, p.read_bytes())
            for a, p in zip(ASCEND.artifacts, paths, strict=True)
        )
        engine = self.folder / "engine"
        engine.write_text(COPIES)
        engine.chmod(0o755)
        return staging.stage_step(
            Engine(str(engine)),
            self.plan(image),
            manifest,
            files,
            seen,
            "container",
            Section("create", ("true",), 60),
            adopt=adopt,
            deadline=60,
        )

    def put(self, image: Path, *, adopt: bool = False) -> StagedSet | None:
        """Stage an image as a run does, and return what lay there then."""
        step = self.step(image, self.look(), adopt=adopt)
        return staging.staged_set(ASCEND, reply(call(step.sections[1], step.payload, environment(image))))

    def content(self) -> dict[str, bytes]:
        """Return every file of the directory but our own notes, by path."""
        return {
            str(path.relative_to(self.directory)): path.read_bytes()
            for path in sorted(self.directory.rglob("*"))
            if path.is_file() and not path.name.startswith(".xbtasks")
        }

    def notes(self) -> list[str]:
        return sorted(path.name for path in self.directory.glob(".xbtasks*"))


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def environment(image: Path) -> dict[str, str]:
    return {"IMAGE_FOLDER": str(image)}


def call(section: Section, payload: bytes, extra: dict[str, str]) -> SectionReply:
    done = subprocess.run(
        section.argv,
        input=payload,
        capture_output=True,
        env={**os.environ, "LC_ALL": "C", **extra},
        timeout=90,
    )
    return SectionReply(section.name, done.returncode, done.stdout, done.stderr, 0, False)


def reply(answer: SectionReply) -> Reply:
    return Reply("stage", (SectionReply("create", 0, b"", b"", 0, False), answer))


@pytest.fixture(params=["plain", 'it\'s a "dir" $(id) `id`; * \\ \u00e9'])
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    return Stage(tmp_path, tmp_path / request.param / "stage")


@pytest.fixture
def plain(tmp_path: Path) -> Stage:
    return Stage(tmp_path, tmp_path / "stage")


def test_a_set_is_put_with_its_modes_and_its_manifest(stage: Stage) -> None:
    image = stage.image("one")
    found = stage.put(image)
    assert found == stage.look()
    assert found is not None
    assert found.why_stage(stage.plan(image), "one") == ""
    modes = {path: (stage.directory / path).stat().st_mode & 0o7777 for path in (LIB, TOOL)}
    assert modes == {LIB: 0o644, TOOL: 0o755}
    assert stage.content() == {LIB: b"libone", TOOL: b"toolone"}
    assert stage.notes() == [".xbtasks-ascend.json", ".xbtasks.lock"]
    assert (stage.directory / "lib").stat().st_mode & 0o777 == 0o755


def test_the_umask_of_the_host_changes_nothing(plain: Stage) -> None:
    before = os.umask(0o077)
    try:
        assert plain.put(plain.image("one")) is not None
    finally:
        os.umask(before)
    found = plain.look()
    assert [file.mode for file in found.files] == [0o644, 0o755]
    assert plain.directory.stat().st_mode & 0o777 == 0o755


def test_a_file_is_replaced_by_rename_so_that_who_has_it_mapped_keeps_it(plain: Stage) -> None:
    plain.put(plain.image("one"))
    with (plain.directory / LIB).open("rb") as mapped:
        inode = os.fstat(mapped.fileno()).st_ino
        plain.put(plain.image("two"))
        assert mapped.read() == b"libone"
    assert (plain.directory / LIB).stat().st_ino != inode
    assert plain.content() == {LIB: b"libtwo", TOOL: b"tooltwo"}


# files of others


def test_a_foreign_file_is_refused_and_untouched(stage: Stage) -> None:
    (stage.directory / "lib").mkdir(parents=True)
    (stage.directory / LIB).write_bytes(b"somebody's")
    with pytest.raises(Refused, match="not put there by xbtasks"):
        stage.put(stage.image("one"))
    assert stage.content() == {LIB: b"somebody's"}
    assert stage.notes() == []


@pytest.mark.parametrize("kind", ["file", "directory", "symlink", "dangling", "fifo"])
def test_adopt_keeps_what_was_there_beside(plain: Stage, kind: str) -> None:
    (plain.directory / "lib").mkdir(parents=True)
    there = plain.directory / LIB
    elsewhere = plain.folder / "elsewhere"
    elsewhere.write_bytes(b"elsewhere")
    makes: dict[str, Callable[[], object]] = {
        "file": lambda: there.write_bytes(b"somebody's"),
        "directory": lambda: (there / "deep").mkdir(parents=True),
        "symlink": lambda: there.symlink_to(elsewhere),
        "dangling": lambda: there.symlink_to("/nowhere/at/all"),
        "fifo": lambda: os.mkfifo(there),
    }
    makes[kind]()
    with pytest.raises(Refused):
        plain.put(plain.image("one"))
    assert plain.put(plain.image("one"), adopt=True) is not None
    kept = Path(f"{there}.kept-run2")
    assert (there.is_file(), there.is_symlink(), os.path.lexists(kept)) == (True, False, True)
    assert {
        "file": kept.is_file() and kept.read_bytes() == b"somebody's",
        "directory": (kept / "deep").is_dir(),
        "symlink": kept.is_symlink() and kept.resolve() == elsewhere,
        "dangling": kept.is_symlink(),
        "fifo": kept.is_fifo(),
    }[kind]
    assert elsewhere.read_bytes() == b"elsewhere"


def test_what_came_there_since_we_looked_is_not_replaced(plain: Stage) -> None:
    image = plain.image("one")
    step = plain.step(image, plain.look())
    (plain.directory / "lib").mkdir(parents=True)
    (plain.directory / LIB).write_bytes(b"just now")
    answer = call(step.sections[1], step.payload, environment(image))
    assert answer.exit_status == 76
    assert staging.staged_set(ASCEND, reply(answer)) is None
    assert plain.content() == {LIB: b"just now"}


# torn sets


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)


TEARS: dict[str, Callable[[Path], object]] = {
    "a byte flipped": lambda where: flip(where / LIB),
    "a file deleted": lambda where: (where / TOOL).unlink(),
    "a file emptied": lambda where: (where / LIB).write_bytes(b""),
    "the manifest broken": lambda where: (where / ".xbtasks-ascend.json").write_text('{"schema": 1,'),
    "the manifest emptied": lambda where: (where / ".xbtasks-ascend.json").write_text("\n"),
    "a directory in the way": lambda where: ((where / LIB).unlink(), (where / LIB).mkdir()),
}


@pytest.mark.parametrize("tear", TEARS)
def test_a_torn_set_is_staged_again_and_nothing_is_lost(plain: Stage, tear: str) -> None:
    image = plain.image("one")
    plain.put(image)
    TEARS[tear](plain.directory)
    before = set(plain.content().values())
    assert plain.look().why_stage(plain.plan(image), "one")
    found = plain.put(image)
    assert found is not None
    assert found.why_stage(plain.plan(image), "one") == ""
    assert before <= set(plain.content().values())
    assert plain.content()[LIB] == b"libone"


def test_a_mode_that_was_changed_is_put_right_without_a_copy_beside(plain: Stage) -> None:
    plain.put(plain.image("one"))
    (plain.directory / LIB).chmod(0o600)
    assert "don't match" in plain.look().why_stage(plain.plan(plain.folder / "one"), "one")
    plain.put(plain.image("one"))
    assert (plain.directory / LIB).stat().st_mode & 0o7777 == 0o644
    assert plain.content().keys() == {LIB, TOOL}


# interrupted, cheated, crowded


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize("blow", ["TERM", "KILL"])
def test_a_set_whose_staging_was_cut_off_is_ours_and_is_put_to_its_end(
    plain: Stage, blow: str, existing: bool
) -> None:
    if existing:
        plain.put(plain.image("one"))
    image = plain.image("two")
    step = plain.step(image, plain.look())
    # The blow falls after the first file was put: mv is replaced by one that deals it.
    tools = plain.folder / "tools"
    tools.mkdir()
    (tools / "mv").write_text(
        f'#!/bin/sh\n/bin/mv "$@"\ncase $* in *{LIB}) kill -{blow} $PPID; sleep 1 ;; esac\n'
    )
    (tools / "mv").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    answer = call(step.sections[1], step.payload, {**environment(image), "PATH": path})
    assert answer.exit_status != 0
    assert (plain.directory / LIB).read_bytes() == b"libtwo"
    torn = plain.look()
    assert torn.why_stage(plain.plan(image), "two") == "staging was interrupted"
    if blow == "TERM":
        assert not list(plain.directory.glob(".xbtasks-incoming*"))
    found = plain.put(image)
    assert found is not None
    assert found.why_stage(plain.plan(image), "two") == ""
    assert plain.content() == {LIB: b"libtwo", TOOL: b"tooltwo"}


def test_a_container_that_gives_other_bytes_than_were_judged_stages_nothing(plain: Stage) -> None:
    plain.put(plain.image("one"))
    image = plain.image("two")
    step = plain.step(image, plain.look())
    (image / "out/tools/enpu-monitor").write_bytes(b"swapped")
    answer = call(step.sections[1], step.payload, environment(image))
    with pytest.raises(CannotJudge, match="the image changed"):
        staging.staged_set(ASCEND, reply(answer))
    assert plain.content() == {LIB: b"libone", TOOL: b"toolone"}
    assert plain.look().why_stage(plain.plan(plain.folder / "one"), "one") == ""


def test_a_copy_that_fails_half_way_stages_nothing(plain: Stage) -> None:
    plain.put(plain.image("one"))
    image = plain.image("two")
    step = plain.step(image, plain.look())
    (image / "out/tools/enpu-monitor").unlink()
    answer = call(step.sections[1], step.payload, environment(image))
    with pytest.raises(CannotJudge, match="staging failed"):
        staging.staged_set(ASCEND, reply(answer))
    assert plain.content() == {LIB: b"libone", TOOL: b"toolone"}
    assert plain.notes() == [".xbtasks-ascend.json", ".xbtasks.lock"]


def test_a_file_where_a_folder_must_be_stages_nothing(plain: Stage) -> None:
    plain.directory.mkdir()
    (plain.directory / "tools").write_bytes(b"no folder")
    with pytest.raises(CannotJudge, match="tools"):
        plain.put(plain.image("one"))
    assert plain.content() == {"tools": b"no folder"}


def test_a_run_waits_for_the_one_that_holds_the_directory(plain: Stage) -> None:
    first, second = plain.image("one"), plain.image("two")
    (first / "then").write_text(
        f'touch "{plain.folder}/begun"; while [ -e "{plain.folder}/hold" ]; do sleep 0.05; done\n'
    )
    (plain.folder / "hold").touch()
    steps = [plain.step(image, plain.look()) for image in (first, second)]
    answers: dict[str, SectionReply] = {}

    def go(name: str, step: Step, image: Path) -> None:
        answers[name] = call(step.sections[1], step.payload, environment(image))

    threads = [threading.Thread(target=go, args=("one", steps[0], first))]
    threads[0].start()
    wait_for(plain.folder / "begun")
    threads.append(threading.Thread(target=go, args=("two", steps[1], second)))
    threads[1].start()
    threads[1].join(0.5)
    assert "two" not in answers
    (plain.folder / "hold").unlink()
    for thread in threads:
        thread.join()
    # The first got its set whole; the second saw that the ground had moved, and touched nothing.
    found = staging.staged_set(ASCEND, reply(answers["one"]))
    assert found is not None
    assert found.why_stage(plain.plan(first), "one") == ""
    assert staging.staged_set(ASCEND, reply(answers["two"])) is None
    assert plain.content() == {LIB: b"libone", TOOL: b"toolone"}


def test_the_lock_holds_even_where_its_file_was_removed_meanwhile(plain: Stage) -> None:
    image = plain.image("one")
    plain.directory.mkdir()
    lock = plain.directory / ".xbtasks.lock"
    step = plain.step(image, plain.look())
    with lock.open("a") as held:
        import fcntl

        fcntl.flock(held, fcntl.LOCK_EX)
        answers: list[SectionReply] = []
        thread = threading.Thread(
            target=lambda: answers.append(call(step.sections[1], step.payload, environment(image)))
        )
        thread.start()
        wait_for_waiter(lock)
        lock.unlink()
        plain.directory.rmdir()
    thread.join()
    assert answers[0].ok, answers[0].error_text
    assert plain.content() == {LIB: b"libone", TOOL: b"toolone"}
    assert lock.exists()


def wait_for(path: Path) -> None:
    for _ in range(200):
        if path.exists():
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} never came")


def wait_for_waiter(lock: Path) -> None:
    """Return when a process waits for ``lock``; the kernel lists waiters behind an arrow."""
    inode = f":{lock.stat().st_ino} "
    for _ in range(200):
        if any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines()):
            return
        time.sleep(0.05)
    raise AssertionError("nobody waits")
