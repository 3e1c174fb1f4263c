"""A build context over ssh: whole or not at all, whatever happens on the way, and in little memory."""

from __future__ import annotations

import os
import subprocess
import sys
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from tests.tcpproxy import Proxy
from xbtasks.context import archive, send_step
from xbtasks.errors import CannotJudge, HostUnreachable, LostReply
from xbtasks.host.transfer import StreamPayload, progress_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sshd import Rig
    from xbtasks.host.framed import FramedHost
    from xbtasks.host.step import SectionReply

MIB = 1 << 20
DIGEST = "d" * 64


def put(host: FramedHost, source: Path, directory: Path, deadline: int = 120) -> SectionReply:
    """Send a context of one file, ``source``, to be unpacked as ``directory``."""
    with archive([("file", source)], print) as payload:
        return host.run(send_step(str(directory), payload, deadline))["put-context"]


@pytest.fixture
def source(rig: Rig) -> Path:
    path = rig.folder / "source"
    path.write_bytes(os.urandom(2 * MIB))
    return path


@pytest.fixture
def target(rig: Rig) -> Path:
    return rig.folder / "it's $(there)" / DIGEST


@pytest.fixture
def host(rig: Rig) -> FramedHost:
    rig.alias("far", rig.server("Subsystem sftp /bin/false", "MaxSessions 1").port)
    return rig.host()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0",
        b"text " * 1_000_000,
        os.urandom(57 * 4096),
        os.urandom(57 * 4096 * 2 + 1),
        b"\xff" * 4096,
    ],
    ids=len,
)
def test_any_context_arrives_as_it_is(host: FramedHost, source: Path, target: Path, content: bytes) -> None:
    source.write_bytes(content)
    answer = put(host, source, target)
    assert answer.ok, answer.error_text
    assert [path.name for path in target.parent.iterdir()] == [DIGEST]
    assert (target / "file").read_bytes() == content


def test_a_disk_that_is_full(rig: Rig, host: FramedHost, source: Path) -> None:
    disk = rig.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        answer = put(host, source, disk / DIGEST)
        assert not answer.ok
        assert "No space left on device" in answer.error_text
        assert not list(disk.iterdir())
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_what_can_not_be_read_any_more_ends_the_step_and_nothing_is_there(
    host: FramedHost, source: Path, target: Path
) -> None:
    class Spoilt(BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > MIB:
                raise OSError(5, "Input/output error")
            return super().read(size)

    payload = StreamPayload(Spoilt(os.urandom(2 * MIB)), 2 * MIB, "0" * 64, lambda read, size: None)
    with pytest.raises(CannotJudge, match="can't be read any more: Input/output error"):
        host.run(send_step(str(target), payload, 60))
    assert not list(target.parent.glob("*"))
    assert put(host, source, target).ok


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


def test_a_bit_flipped_behind_ssh_is_noticed_and_nothing_is_there(
    rig: Rig, source: Path, target: Path
) -> None:
    flip = rig.folder / "flip"
    flip.write_text(FLIP.format(python=sys.executable, spot=MIB))
    flip.chmod(0o755)
    rig.alias("far", rig.server(f"ForceCommand {flip}").port)
    host = rig.host()
    answer = put(host, source, target)
    assert not answer.ok
    assert "it was corrupt when it arrived" in answer.error_text
    assert not list(target.parent.glob("*"))
    assert put(host, source, target).ok
    assert (target / "file").read_bytes() == source.read_bytes()


def test_a_bit_flipped_on_the_wire_ends_the_link_and_nothing_is_there(
    rig: Rig, source: Path, target: Path
) -> None:
    between = Proxy(rig.server().port, flip_at=MIB)
    rig.opened.callback(between.close)
    rig.alias("far", between.port)
    host = rig.host()
    with pytest.raises(LostReply, match="far: link lost"):
        put(host, source, target)
    assert not list(target.parent.glob("*"))
    assert put(host, source, target).ok


def test_a_link_cut_at_any_point_of_a_transfer_leaves_nothing_or_all(
    rig: Rig, source: Path, target: Path
) -> None:
    source.write_bytes(os.urandom(MIB))
    server = rig.server()

    def transfer(name: str, between: Proxy) -> None:
        rig.alias(name, between.port)
        host = rig.host(name)
        try:
            put(host, source, target)
        finally:
            host.close()
            between.close()

    measured = Proxy(server.port)
    transfer("measured", measured)
    assert measured.up > MIB
    outcomes = []
    for part in range(20):
        if target.exists():
            (target / "file").unlink()
            target.rmdir()
        try:
            transfer(f"cut-{part}", Proxy(server.port, cut_up=measured.up * part // 20))
        except (LostReply, HostUnreachable):
            outcomes.append("lost")
        else:
            outcomes.append("sent")
        found = [path.name for path in target.parent.glob("*")]
        assert found in ([], [DIGEST])
        if found:
            assert (target / "file").read_bytes() == source.read_bytes()
    assert outcomes.count("lost") > 15, outcomes


MEMORY = """\
import sys
from pathlib import Path
from xbtasks.context import archive, send_step
from xbtasks.host.dial import Dialer
from xbtasks.host.framed import FramedHost
from xbtasks.host.ssh import SshTransport
from xbtasks.host.step import Section, Step
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
with archive([("file", Path(source))], print) as payload:
    answer = host.run(send_step(target, payload, 300))["put-context"]
assert answer.ok, answer
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
        [sys.executable, "-c", MEMORY, str(rig.ssh_config), str(source), str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "  sending the build context: 50 % of 200 MiB" in done.stdout
    assert int(done.stdout.partition("grown ")[2]) < 64
    far = [int(line) for line in log.read_text().split()]
    assert len(far) > 10
    assert max(far) < 64 * 1024
    compared = subprocess.run(["cmp", str(source), str(target / "file")], check=False)
    assert compared.returncode == 0


def test_progress_is_told_of_what_is_large_by_tenths() -> None:
    said: list[str] = []
    told = progress_lines("the build context", said.append)
    block = 57 * 4096
    for size in (16 * MIB - 1, 40 * MIB + 3):
        for read in [*range(block, size, block), size]:
            told(read, size)
    assert [line.split()[4:6] for line in said] == [[f"{part}0", "%"] for part in range(1, 11)]
    assert said[-1] == "  sending the build context: 100 % of 40 MiB"
