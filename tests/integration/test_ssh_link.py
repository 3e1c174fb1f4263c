"""Links that fail: refused, dropped, busy, cut, silent; what is said, and that nothing of a step is left."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.sshd import free_port
from tests.tcpproxy import Proxy
from xbtasks.errors import DeadlineExceeded, HostUnreachable, Interrupted, LostReply
from xbtasks.host import ssh
from xbtasks.host.dial import Dialer
from xbtasks.host.step import Section, Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.sshd import Rig, Server
    from xbtasks.host.dial import Route

STEP = Step("look", (Section("look", ("echo", "reached"), 20),))
_odd = itertools.count(os.getpid() * 1000)


def proxy(rig: Rig, port: int, **options: float) -> Proxy:
    made = Proxy(port, **options)  # type: ignore[arg-type]
    rig.opened.callback(made.close)
    return made


def eventually(condition: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not condition() and time.monotonic() < until:
        time.sleep(0.05)
    return condition()


class Sleeper:
    """A step that hangs in a child of a child, and notices of it by which it can be found."""

    def __init__(self, rig: Rig, deadline: int = 600) -> None:
        self.seconds = f"{next(_odd)}.5"
        self.removed = rig.folder / f"removed-{self.seconds}"
        self.started = rig.folder / f"started-{self.seconds}"
        script = f': >"$1"; sh -c "trap \'\' TERM; sleep {self.seconds}; :"; echo never'
        self.step = Step(
            "hang",
            (Section("hang", ("sh", "-c", script, "hang", str(self.started)), deadline),),
            on_loss=(Section("remove", ("touch", str(self.removed)), 20),),
        )

    def runs(self) -> bool:
        found = subprocess.run(["pgrep", "-f", f"sleep {self.seconds}"], capture_output=True, check=False)
        return found.returncode == 0


def server_with_own_tmp(rig: Rig, *lines: str) -> Server:
    """Start a server whose steps have a temporary folder of their own."""
    return rig.server(*lines, environment={"TMPDIR": str(temporary(rig))})


def temporary(rig: Rig) -> Path:
    folder = rig.folder / "far side's tmp"
    folder.mkdir(exist_ok=True)
    return folder


def left(rig: Rig) -> list[str]:
    """Return what lies in the temporary folder of the far side."""
    return sorted(path.name for path in temporary(rig).iterdir())


def test_a_port_that_nobody_listens_on(rig: Rig) -> None:
    rig.alias("far", free_port())
    with pytest.raises(HostUnreachable, match=r"far: connection refused: 127\.0\.0\.1 port .*; check"):
        rig.host().run(STEP)


def test_a_server_that_accepts_and_says_nothing(rig: Rig) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        rig.alias("far", silent.getsockname()[1])
        with pytest.raises(HostUnreachable, match="unreachable: no ssh server answered within 1 s"):
            rig.host(timeout=1).run(STEP)


def test_a_first_connection_that_is_dropped_is_made_again(rig: Rig) -> None:
    between = proxy(rig, rig.server().port, drop_first=2)
    rig.alias("far", between.port)
    assert rig.host().run(STEP)["look"].ok
    assert between.connections == 3


def test_a_server_with_all_startups_taken(rig: Rig) -> None:
    server = rig.server("MaxStartups 2:100:2", "LoginGraceTime 60")
    rig.alias("far", server.port)
    with ExitStack() as held:
        while "past MaxStartups" not in server.log:
            held.enter_context(socket.create_connection(("127.0.0.1", server.port)))
            time.sleep(0.05)
        with pytest.raises(HostUnreachable, match=r"before the ssh handshake: 5 attempts.*MaxStartups"):
            rig.host().run(STEP)
    assert eventually(lambda: not server.sessions())
    assert rig.host().run(STEP)["look"].ok


def test_a_server_that_allows_no_session(rig: Rig) -> None:
    rig.alias("far", rig.server("MaxSessions 0").port)
    with pytest.raises(HostUnreachable, match=r"far: too many sessions.*MaxSessions"):
        rig.host().run(STEP)


@pytest.mark.parametrize(
    ("shell", "noise", "said"),
    [
        ("", "echo This account is not available; exit 1", "status 1: This account is not available"),
        ("/bin/true", "", "status 0"),
        ("/does/not/exist", "", "status 127: .*/does/not/exist"),
    ],
)
def test_an_account_without_a_usable_shell(rig: Rig, shell: str, noise: str, said: str) -> None:
    rig.alias("far", rig.server(shell=shell, noise=noise).port)
    with pytest.raises(HostUnreachable, match=f"far: remote shell unusable: it ended with {said}"):
        rig.host().run(STEP)


def test_a_step_at_its_own_deadline_is_a_whole_answer(rig: Rig) -> None:
    rig.alias("far", rig.server("MaxSessions 1").port)
    host = rig.host()
    sleeper = Sleeper(rig, deadline=1)
    answer = host.run(sleeper.step)["hang"]
    assert answer.timed_out
    assert not sleeper.runs()
    assert host.run(STEP)["look"].ok


def test_a_step_past_the_near_deadline_is_ended_over_a_new_connection(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = server_with_own_tmp(rig, "MaxSessions 1")
    rig.alias("far", server.port)
    host = rig.host()
    sleeper = Sleeper(rig)
    deadline = Step.deadline.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Step, "deadline", property(lambda step: 2 if step.name == "hang" else deadline(step)))
    with pytest.raises(DeadlineExceeded):
        host.run(sleeper.step)
    assert sleeper.started.exists()
    assert sleeper.removed.exists()
    assert not sleeper.runs()
    assert not left(rig)
    assert host.run(STEP)["look"].ok


def test_an_interrupted_step_is_ended_and_cleaned_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.alias("far", server_with_own_tmp(rig, "MaxSessions 1").port)
    host = rig.host()
    sleeper = Sleeper(rig)
    whole = ssh._ChannelWire.receive

    def interrupted(wire: ssh._ChannelWire, seconds: float) -> tuple[bytes, bytes] | None:
        if sleeper.started.exists() and not sleeper.removed.exists() and wire is first[0]:
            raise KeyboardInterrupt
        return whole(wire, min(seconds, 0.1))

    first: list[ssh._ChannelWire] = []
    started = ssh._ChannelWire.__init__

    def noted(wire: ssh._ChannelWire, *arguments: object) -> None:
        first.append(wire)
        started(wire, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ssh._ChannelWire, "__init__", noted)
    monkeypatch.setattr(ssh._ChannelWire, "receive", interrupted)
    with pytest.raises(Interrupted, match=r"interrupted in step hang$"):
        host.run(sleeper.step)
    assert sleeper.removed.exists()
    assert not sleeper.runs()
    assert not left(rig)


def test_a_link_that_is_cut_ends_the_step_and_its_children(rig: Rig) -> None:
    between = proxy(rig, server_with_own_tmp(rig).port)
    rig.alias("far", between.port)
    host = rig.host()
    sleeper = Sleeper(rig)

    def cut(chunk: bytes) -> None:
        del chunk
        between.cut()

    script = f"echo up >&2; sh -c \"trap '' TERM; sleep {sleeper.seconds}\""
    step = Step(
        "hang", (Section("hang", ("sh", "-c", script), 600, live=True),), on_loss=sleeper.step.on_loss
    )
    with pytest.raises(LostReply, match="far: link lost"):
        host.run(step, cut)
    assert sleeper.removed.exists()
    assert not sleeper.runs()
    assert not left(rig)


def test_a_host_that_is_gone_for_good_is_told_what_is_left(rig: Rig) -> None:
    between = proxy(rig, rig.server().port)
    rig.alias("far", between.port)
    host = rig.host()
    sleeper = Sleeper(rig)

    def cut(chunk: bytes) -> None:
        del chunk
        between.close()

    script = f"echo up >&2; sleep {sleeper.seconds}"
    step = Step(
        "hang", (Section("hang", ("sh", "-c", script), 600, live=True),), on_loss=sleeper.step.on_loss
    )
    with pytest.raises(LostReply, match="link lost") as caught:
        host.run(step, cut)
    assert f"may be left on the host: step hang, which may run on, {sleeper.removed}" in caught.value.hint
    assert "inv clean" in caught.value.hint
    # nobody could end it but the host itself, which has noticed
    assert eventually(lambda: not sleeper.runs())
    with pytest.raises(HostUnreachable, match="connection refused"):
        host.run(STEP)


def test_a_server_that_stops_answering_is_a_lost_link(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    server = rig.server()
    rig.alias("far", server.port, "ServerAliveInterval 1", "ServerAliveCountMax 2")
    host = rig.host(timeout=2)
    assert host.run(STEP)["look"].ok
    (pid,) = server.sessions()
    stopped = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    pids = [pid, *(int(word) for word in stopped.stdout.split())]
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(LostReply, match="link lost: no sign of life for 2 s"):
            host.run(STEP)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert pids


def test_a_server_that_hangs_before_the_first_step(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    server = rig.server()
    rig.alias("far", server.port)
    dial = Dialer.dial
    stopped: list[int] = []

    def dial_and_stop(dialer: Dialer, *, hurried: bool = False) -> Route:
        line = dial(dialer, hurried=hurried)
        (pid,) = server.sessions()
        os.kill(pid, signal.SIGSTOP)
        stopped.append(pid)
        return line

    monkeypatch.setattr(Dialer, "dial", dial_and_stop)
    try:
        with pytest.raises(HostUnreachable, match="far: link lost: no "):
            rig.host(timeout=1).run(STEP)
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)


def job(host_step: Callable[[Step], object]) -> list[object]:
    """Three steps with output, payload and a live section; returns what they answered."""
    blob = bytes(range(256)) * 2000
    zeros = "head -c 300000 /dev/zero; echo e >&2"
    return [
        host_step(Step("one", (Section("a", ("echo", "one"), 20), Section("b", ("false",), 20)))),
        host_step(Step("two", (Section("sum", ("sha256sum",), 20, payload=True),), payload=blob)),
        host_step(Step("three", (Section("a", ("sh", "-c", zeros), 20, live=True),))),
    ]


def test_a_link_cut_at_any_point_gives_no_wrong_answer(rig: Rig) -> None:
    server = server_with_own_tmp(rig)
    measured = proxy(rig, server.port)
    rig.alias("measured", measured.port)
    host = rig.host("measured")

    def answers(host_name: str) -> list[object]:
        host = rig.host(host_name)

        def run(step: Step) -> object:
            reply = host.run(step)
            return [(s.name, s.exit_status, s.stdout, s.stderr) for s in reply.sections]

        try:
            return job(run)
        finally:
            host.close()

    right = answers("measured")
    host.close()
    for way, total in (("cut_up", measured.up), ("cut_down", measured.down)):
        for part in range(10):
            between = proxy(rig, server.port, **{way: total * part // 10})
            name = f"{way}-{part}"
            rig.alias(name, between.port)
            try:
                found = answers(name)
            except (LostReply, HostUnreachable):
                found = right
            assert found == right
            between.close()
    assert eventually(lambda: not left(rig))


SILENT = """\
import sys, subprocess
mounted = subprocess.run(["mount", "--bind", sys.argv[1], "/etc/resolv.conf"])
assert mounted.returncode == 0
from xbtasks.errors import HostUnreachable
from xbtasks.host.dial import Dialer
from xbtasks.knobs.references import parse_host
from pathlib import Path
dialer = Dialer(parse_host("gpu.example.com"), ssh_config=Path("/dev/null"), host_keys=None, timeout=1,
                timeout_is_default=False, say=print)
try:
    dialer.dial()
except HostUnreachable as error:
    print(error.message)
"""


def test_a_name_server_that_never_answers_is_given_up_in_time(tmp_path: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.153", 53))
        (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.153\noptions timeout:30 attempts:5\n")
        done = subprocess.run(
            ["unshare", "-m", sys.executable, "-c", SILENT, str(tmp_path / "resolv.conf")],
            capture_output=True,
            text=True,
            timeout=20,  # the resolver's own patience is 150 s
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "gpu.example.com: unreachable: gpu.example.com: not looked up within 1 s\n"
