"""The ``sh`` programs that set a case up, run a container to its end, and hold cards."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from xbtasks.backends.nvidia.probe.operations import sources
from xbtasks.context import archive
from xbtasks.host.programs import program

PROBE_FILES = {name for name, _ in sources()}


def run(
    *argv: str, stdin: bytes = b"", path: Path | None = None, **changes: str
) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, **changes}
    if path is not None:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    return subprocess.run(argv, input=stdin, capture_output=True, env=environment, timeout=60)


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def sent_sources() -> bytes:
    with archive(sources(), print) as payload:
        return b"".join(payload.chunks())


def prepare(directory: Path, library: Path, *, cut: int = 0) -> subprocess.CompletedProcess[bytes]:
    """Make a test directory with ``library`` as the container's; ``cut`` bytes of the rest are lost."""
    engine = library.parent / "engine"
    engine.write_text('#!/bin/sh\n[ "$1" = cp ] || exit 9\nexec cp -p -- "${2#c:}" "$3"\n')
    engine.chmod(0o755)
    copied = (str(engine), "c", str(library), "0644")
    argv = program("prepare_test", str(directory), *copied, "/usr/local/vgpu/libvgpu.so", "bin", "cache-x")
    sources = sent_sources()
    return run(*argv, stdin=sources[: len(sources) - cut])


def test_the_test_directory_has_a_copy_of_the_library(tmp_path: Path) -> None:
    library = tmp_path / "stage dir/libvgpu.so"
    library.parent.mkdir()
    library.write_bytes(b"library")
    library.chmod(0o640)
    directory = library.parent / "test/run-1"
    done = prepare(directory, library)
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode() == f"644 {hashlib.sha256(b'library').hexdigest()}\n"
    assert (directory / "library.so").stat().st_mode & 0o7777 == 0o644
    assert (directory / "ld.so.preload").read_text() == "/usr/local/vgpu/libvgpu.so\n"
    assert {path.name for path in (directory / "source").iterdir()} == PROBE_FILES
    for name in ("bin", "cache-x"):
        assert (directory / name).stat().st_mode & 0o7777 == 0o777
    assert prepare(directory, library).returncode != 0, "two runs never share one"

    removed = run(*program("remove_test", str(directory)))
    assert (removed.returncode, removed.stdout) == (0, b"")
    assert not directory.parent.exists()
    assert library.exists()
    again = run(*program("remove_test", str(directory)))
    assert (again.returncode, again.stdout) == (0, b"gone\n")


def test_a_missing_library_makes_no_test_directory_usable(tmp_path: Path) -> None:
    done = prepare(tmp_path / "test/run-1", tmp_path / "libvgpu.so")
    assert done.returncode != 0
    assert b"libvgpu.so" in done.stderr


def test_sources_that_did_not_arrive_whole_are_not_unpacked(tmp_path: Path) -> None:
    library = tmp_path / "libvgpu.so"
    library.write_bytes(b"library")
    done = prepare(tmp_path / "test/run-1", library, cut=401)
    assert done.returncode == 65
    assert not list((tmp_path / "test/run-1/source").iterdir())


def test_the_directories_of_other_runs_stay(tmp_path: Path) -> None:
    (tmp_path / "test/other").mkdir(parents=True)
    (tmp_path / "test/mine").mkdir()
    assert run(*program("remove_test", str(tmp_path / "test/mine"))).returncode == 0
    assert (tmp_path / "test/other").is_dir()


def held(wait: str, *words: str) -> tuple[str, ...]:
    return program("hold", wait, *words)


def test_a_command_runs_under_its_locks_and_its_exit_status_is_kept(tmp_path: Path) -> None:
    locks = [str(tmp_path / name) for name in ("a b", "c")]
    command = ("sh", "-c", 'stat -c %a "$1" "$2"; printf "%s\n" "$@"; exit 7', "x", *locks, "--", "a  b")
    done = run(*held("1", *locks, "--", *command))
    assert done.returncode == 7
    assert done.stdout.decode().splitlines() == ["666", "666", *locks, "--", "a  b"]
    assert list(tmp_path.iterdir()) == [], "a lock goes when nobody holds it"
    assert run(*held("1", "--", "true")).returncode == 0


def test_a_lock_goes_when_its_command_is_ended_and_not_before(tmp_path: Path) -> None:
    lock, ready, cleaned = (tmp_path / name for name in ("lock", "ready", "cleaned"))
    script = 'trap "sleep 0.3; ls \\"$1\\" >\\"$3\\"; exit 143" TERM; : >"$2"; sleep 60 & wait'
    command = ("sh", "-c", script, "x", str(lock), str(ready), str(cleaned))
    child = subprocess.Popen(
        ["timeout", "60", *held("1", str(tmp_path / "another"), str(lock), "--", *command)]
    )
    wait_for(ready)
    child.send_signal(signal.SIGTERM)
    assert child.wait(30) in (124, 143)
    assert cleaned.read_text() == f"{lock}\n"  # it was held to the end
    assert {path.name for path in tmp_path.iterdir()} == {"ready", "cleaned"}


def test_a_lock_that_can_not_be_made_is_said(tmp_path: Path) -> None:
    done = run(*held("1", str(tmp_path / "no/lock"), "--", "echo", "ran"))
    assert (done.returncode, done.stdout) == (75, b"")
    assert b"no/lock: can't be made" in done.stderr


def test_nobody_runs_beside_the_holder_although_the_lock_comes_and_goes(tmp_path: Path) -> None:
    count, lock = tmp_path / "count", str(tmp_path / "lock")
    count.write_text("0")
    add = 'read -r n <"$0"; echo "$((n + 1))" >"$0"'
    many = [subprocess.Popen(held("60", lock, "--", "sh", "-c", add, str(count))) for _ in range(40)]
    assert [process.wait() for process in many] == [0] * 40
    assert count.read_text() == "40\n"


def test_a_lock_that_another_holds_is_waited_for_and_then_given_up(tmp_path: Path) -> None:
    lock, started = str(tmp_path / "lock"), tmp_path / "started"
    command = held("1", lock, "--", "sh", "-c", ': >"$0"; sleep 60', str(started))
    holder = subprocess.Popen(command, start_new_session=True)
    try:
        wait_for(started)
        done = run(*held("0", str(tmp_path / "free"), lock, "--", "echo", "ran"))
        assert (done.returncode, done.stdout) == (75, b"")
        assert b"another run holds it" in done.stderr
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait()


FAKE_ENGINE = """#!/bin/sh
echo "$*" >>"$LOG"
case $1 in
rm) exit "${RM_STATUS:-0}" ;;
run) eval "$RUN" ;;
esac
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    path = tmp_path / "fake-engine"
    path.write_text(FAKE_ENGINE)
    path.chmod(0o755)
    return path


def contained(engine: Path, seconds: int) -> tuple[str, ...]:
    return program("contained", str(engine), "name-1", str(seconds), str(engine), "run", "x")


def test_a_container_ends_with_its_commands_status(engine: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = run(*contained(engine, 30), LOG=str(log), RUN="echo out; echo err >&2; exit 3")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")
    assert log.read_text() == "run x\n"


def test_a_container_that_outlives_its_time_is_removed(engine: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = run(*contained(engine, 1), LOG=str(log), RUN="echo out; sleep 60")
    assert (done.returncode, done.stdout) == (124, b"out\n")
    assert log.read_text() == "run x\nrm --force --volumes name-1\n"


def test_a_container_that_can_not_be_removed_is_said(engine: Path, tmp_path: Path) -> None:
    done = run(*contained(engine, 1), LOG=str(tmp_path / "log"), RUN="sleep 60", RM_STATUS="1")
    assert done.returncode == 124
    assert b"container name-1 may be left" in done.stderr


def test_whoever_is_ended_takes_the_container_along(engine: Path, tmp_path: Path) -> None:
    log, started = tmp_path / "log", tmp_path / "started"
    environment = {**os.environ, "LOG": str(log), "RUN": f": >{started}; sleep 60"}
    process = subprocess.Popen(contained(engine, 60), env=environment)
    wait_for(started)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    assert log.read_text().splitlines()[-1] == "rm --force --volumes name-1"


def test_the_probe_is_compiled_with_the_compiler_that_is_there(tmp_path: Path) -> None:
    source, library = tmp_path / "source", tmp_path / "lib.so"
    source.mkdir()
    (source / "main.c").write_text("int main(void) { return 0; }\n")
    library.write_bytes(b"library")
    argv = program("compile_probe", str(source), str(tmp_path / "probe"), str(library))
    done = run(*argv)
    assert (done.returncode, done.stdout.decode().strip()) == (0, hashlib.sha256(b"library").hexdigest())
    assert run(str(tmp_path / "probe")).returncode == 0
    (source / "main.c").write_text("int main(void) { return nothing; }\n")
    done = run(*argv)
    assert done.returncode == 1
    assert b"nothing" in done.stderr


def test_an_image_without_a_compiler_is_told_apart(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("sh", "sha256sum", "chmod"):
        (bare / tool).symlink_to(f"/bin/{tool}" if Path(f"/bin/{tool}").exists() else f"/usr/bin/{tool}")
    done = run(*program("compile_probe", "/s", "/o", "/l"), PATH=str(bare))
    assert done.returncode == 96
    assert b"neither cc" in done.stderr
