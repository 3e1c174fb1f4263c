"""Files over ssh: whole or not at all, whatever happens on the way, in little memory, and not twice."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.tcpproxy import Proxy
from xbtasks.errors import CannotJudge, HostUnreachable, LostReply, Refused, UsageError
from xbtasks.host.transfer import LocalFile, progress_lines, put_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sshd import Rig
    from xbtasks.host.framed import FramedHost

MIB = 1 << 20


def unseen(file: LocalFile, read: int, size: int) -> None:
    pass


def put(host: FramedHost, *files: LocalFile, deadline: int = 120) -> list[str]:
    return [file.target for file in put_files(host, files, deadline, unseen)]


@pytest.fixture
def target(rig: Rig) -> Path:
    folder = rig.folder / "it's there"
    folder.mkdir()
    return folder


@pytest.fixture
def host(rig: Rig) -> FramedHost:
    rig.alias("far", rig.server("Subsystem sftp /bin/false", "MaxSessions 1").port)
    return rig.host()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"abc",
        b"text " * 1_000_000,
        os.urandom(57 * 4096),
        os.urandom(57 * 4096 * 2 + 1),
        b"\xff" * 4096,
    ],
    ids=len,
)
def test_any_file_arrives_as_it_is_with_its_mode_and_only_once(
    rig: Rig, host: FramedHost, target: Path, content: bytes
) -> None:
    source = rig.folder / "source"
    source.write_bytes(content)
    file = LocalFile(source, f"{target}/new folder/$(touch pwned) 'x'", 0o4755)
    assert put(host, file) == [file.target]
    (there,) = (target / "new folder").iterdir()
    assert there.name == "$(touch pwned) 'x'"
    assert there.read_bytes() == content
    assert there.stat().st_mode & 0o7777 == 0o4755
    inode = there.stat().st_ino
    assert put(host, file) == []
    assert there.stat().st_ino == inode
    there.chmod(0o644)
    assert put(host, file) == [file.target]
    assert there.stat().st_mode & 0o7777 == 0o4755


def test_only_what_changed_is_sent(rig: Rig, host: FramedHost, target: Path) -> None:
    files = []
    for name in ("a", "b", "c"):
        (rig.folder / name).write_text(name)
        files.append(LocalFile(rig.folder / name, f"{target}/{name}", 0o644))
    assert put(host, *files) == [file.target for file in files]
    (rig.folder / "b").write_text("changed")
    assert put(host, *files) == [f"{target}/b"]
    assert put(host) == []


def test_the_home_directory_of_the_host(rig: Rig) -> None:
    home = rig.folder / "a home"
    home.mkdir()
    rig.alias("far", rig.server(environment={"HOME": str(home)}).port)
    (rig.folder / "source").write_text("text")
    file = LocalFile(rig.folder / "source", "~/.cache/here", 0o600)
    host = rig.host()
    assert put(host, file) == ["~/.cache/here"]
    assert (home / ".cache/here").read_text() == "text"
    assert put(host, file) == []


def test_a_local_file_that_can_not_be_read_touches_nothing(rig: Rig, host: FramedHost, target: Path) -> None:
    (target / "file").write_text("before")
    (rig.folder / "good").write_text("good")
    files = (
        LocalFile(rig.folder / "good", f"{target}/file", 0o644),
        LocalFile(rig.folder / "absent", f"{target}/other", 0o644),
    )
    with pytest.raises(UsageError, match="absent can't be read"):
        put(host, *files)
    assert [path.read_text() for path in target.iterdir()] == ["before"]


@pytest.mark.parametrize("kind", ["directory", "symlink"])
def test_something_else_at_the_target_is_not_replaced(
    rig: Rig, host: FramedHost, target: Path, kind: str
) -> None:
    (rig.folder / "source").write_text("text")
    (target / "real").write_text("real")
    there = target / "there"
    if kind == "directory":
        there.mkdir()
    else:
        there.symlink_to("real")
    with pytest.raises(Refused, match=f"is a {kind} on the host"):
        put(host, LocalFile(rig.folder / "source", str(there), 0o644))
    assert (target / "real").read_text() == "real"


def test_a_target_that_can_not_be_written(rig: Rig, host: FramedHost) -> None:
    (rig.folder / "source").write_text("text")
    with pytest.raises(CannotJudge, match="/proc/1/there: it was not put: "):
        put(host, LocalFile(rig.folder / "source", "/proc/1/there", 0o644))


def test_a_disk_that_is_full(rig: Rig, host: FramedHost) -> None:
    with (rig.folder / "source").open("wb") as file:
        file.write(os.urandom(4 * MIB))
    disk = rig.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises(CannotJudge, match=r"corrupt when it arrived: .*No space left on device"):
            put(host, LocalFile(rig.folder / "source", f"{disk}/there", 0o644))
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_changes_while_it_is_sent_replaces_nothing(
    rig: Rig, host: FramedHost, target: Path
) -> None:
    source = rig.folder / "source"
    source.write_bytes(os.urandom(4 * MIB))
    (target / "there").write_text("before")

    def spoil(file: LocalFile, read: int, size: int) -> None:
        with source.open("r+b") as changed:
            changed.seek(3 * MIB)
            changed.write(b"changed")

    with pytest.raises(CannotJudge, match="changed while it was being sent"):
        put_files(host, [LocalFile(source, f"{target}/there", 0o644)], 60, spoil)
    assert [path.read_text() for path in target.iterdir()] == ["before"]
    assert put(host, LocalFile(source, f"{target}/there", 0o644))


FLIP = """\
#!{python}
# the login shell of an account: it flips a bit of what comes in after so many bytes
import os, subprocess, sys
child = subprocess.Popen(["sh", "-c", os.environ["SSH_ORIGINAL_COMMAND"]], stdin=subprocess.PIPE)
seen, spot = 0, {spot}
while data := os.read(0, 65536):
    if seen <= spot < seen + len(data):
        at = spot - seen
        data = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
    seen += len(data)
    child.stdin.write(data)
    child.stdin.flush()
child.stdin.close()
sys.exit(child.wait())
"""


def test_a_bit_flipped_behind_ssh_is_noticed_and_nothing_replaced(rig: Rig, target: Path) -> None:
    source = rig.folder / "source"
    source.write_bytes(os.urandom(2 * MIB))
    flip = rig.folder / "flip"
    flip.write_text(FLIP.format(python=sys.executable, spot=MIB))
    flip.chmod(0o755)
    rig.alias("far", rig.server(f"ForceCommand {flip}").port)
    (target / "there").write_text("before")
    host = rig.host()
    file = LocalFile(source, f"{target}/there", 0o644)
    with pytest.raises(CannotJudge, match="there: it was corrupt when it arrived"):
        put(host, file)
    assert [path.read_text() for path in target.iterdir()] == ["before"]
    assert put(host, file) == [file.target]
    assert (target / "there").read_bytes() == source.read_bytes()


def test_a_bit_flipped_on_the_wire_ends_the_link_and_nothing_is_replaced(rig: Rig, target: Path) -> None:
    source = rig.folder / "source"
    source.write_bytes(os.urandom(2 * MIB))
    between = Proxy(rig.server().port, flip_at=MIB)
    rig.opened.callback(between.close)
    rig.alias("far", between.port)
    (target / "there").write_text("before")
    host = rig.host()
    file = LocalFile(source, f"{target}/there", 0o644)
    with pytest.raises(LostReply, match="far: link lost"):
        put(host, file)
    assert [path.read_text() for path in target.iterdir()] == ["before"]
    assert put(host, file) == [file.target]


def test_a_link_cut_at_any_point_of_a_transfer_replaces_nothing_or_all(rig: Rig, target: Path) -> None:
    old, new = os.urandom(MIB), os.urandom(MIB)
    there = target / "there"
    source = rig.folder / "source"
    server = rig.server()

    def transfer(name: str, between: Proxy) -> None:
        rig.alias(name, between.port)
        there.write_bytes(old)
        source.write_bytes(new)
        host = rig.host(name)
        put(host, LocalFile(source, str(there), 0o644))
        host.close()
        between.close()

    measured = Proxy(server.port)
    transfer("measured", measured)
    for part in range(20):
        try:
            transfer(f"cut-{part}", Proxy(server.port, cut_up=measured.up * part // 20))
        except (LostReply, HostUnreachable):
            assert there.read_bytes() == old
        else:
            assert there.read_bytes() == new
        assert [path.name for path in target.iterdir()] == ["there"]


MEMORY = """\
import sys
from pathlib import Path
from xbtasks.host.dial import Dialer
from xbtasks.host.framed import FramedHost
from xbtasks.host.ssh import SshTransport
from xbtasks.host.step import Section, Step
from xbtasks.host.transfer import LocalFile, progress_lines, put_files
from xbtasks.knobs.references import parse_host

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024

config, source, target = sys.argv[1:]
dialer = Dialer(parse_host("far"), ssh_config=Path(config), host_keys=None, timeout=20,
                timeout_is_default=False, say=print)
host = FramedHost(SshTransport("far", dialer))
host.run(Step("warm", (Section("up", ("true",), 20),)))
before = peak()
put_files(host, [LocalFile(Path(source), target, 0o644)], 300, progress_lines(print))
print("grown", peak() - before)
host.close()
"""
WATCH = """\
#!/bin/sh
# the login shell of an account: it notes the memory of all processes of its session, in KiB
session=$(ps -o sess= -p $$ | tr -d ' ')
(
  while sleep 0.05; do
    ps -o rss= -s "$session" | awk '{{ sum += $1 }} END {{ print sum }}' >>"{log}"
  done
) >/dev/null 2>&1 &
watcher=$!
trap 'kill "$watcher"' EXIT
sh -c "$SSH_ORIGINAL_COMMAND"
"""


def test_two_hundred_megabytes_take_little_memory_on_either_side(rig: Rig, target: Path) -> None:
    source = rig.folder / "big"
    with source.open("wb") as file:
        for _ in range(200):
            file.write(os.urandom(MIB))
    watch, log = rig.folder / "watch", rig.folder / "memory"
    watch.write_text(WATCH.format(log=log))
    watch.chmod(0o755)
    # keys are made anew several times on the way
    rig.alias("far", rig.server(f"ForceCommand {watch}", "RekeyLimit 30M").port)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, str(rig.ssh_config), str(source), f"{target}/big"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "  sending big: 50 % of 200 MiB" in done.stdout
    assert int(done.stdout.partition("grown ")[2]) < 64
    far = [int(line) for line in log.read_text().split()]
    assert len(far) > 10
    assert max(far) < 64 * 1024
    compared = subprocess.run(["cmp", str(source), f"{target}/big"], check=False)
    assert compared.returncode == 0


def test_progress_is_told_of_large_files_by_tenths(tmp_path: Path) -> None:
    said: list[str] = []
    told = progress_lines(said.append)
    file = LocalFile(tmp_path / "big", "/big", 0o644)
    block = 57 * 4096
    for size in (16 * MIB - 1, 40 * MIB + 3):
        for read in [*range(block, size, block), size]:
            told(file, read, size)
    assert [line.split()[2:4] for line in said] == [[f"{part}0", "%"] for part in range(1, 11)]
    assert said[-1] == "  sending big: 100 % of 40 MiB"
