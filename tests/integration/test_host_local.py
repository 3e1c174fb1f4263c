"""Steps in a real local shell: streams, payloads, deadlines, signals, and that nothing of a step is left."""

from __future__ import annotations

import hashlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from xbtasks.errors import CannotJudge, DeadlineExceeded, HostUnreachable, Interrupted, LostReply
from xbtasks.host import local
from xbtasks.host.framed import FramedHost
from xbtasks.host.local import LocalTransport
from xbtasks.host.step import Section, Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_odd = itertools.count(os.getpid() * 1000 + 500)


@pytest.fixture
def own_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the temporary folder that steps use, which nobody else does."""
    folder = tmp_path / "a tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def host(own_tmp: Path) -> Iterator[FramedHost]:
    with closing(FramedHost(LocalTransport())) as host:
        yield host
    assert not list(own_tmp.iterdir())


@pytest.fixture(scope="module")
def shared() -> Iterator[FramedHost]:
    with closing(FramedHost(LocalTransport())) as host:
        yield host


@pytest.mark.parametrize("jump", ["-", "+"])
def test_a_clock_that_is_set_meanwhile_changes_no_answer(
    host: FramedHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: str
) -> None:
    # an hour back or on with each look at it
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/date"
    program.write_text(
        f"""#!/bin/sh
shift_by=$(cat {tmp_path}/shift 2>/dev/null || echo 0)
echo $((shift_by {jump} 3600)) >{tmp_path}/shift
[ "$1" = +%s ] || exit 9
echo $((1800000000 + shift_by))
"""
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    sections = (section("sleep", "60", deadline=1), section("sh", "-c", "exit 124", deadline=20))
    late, own = host.run(
        Step("x", tuple(replace(each, name=n) for n, each in zip("ab", sections, strict=True)))
    ).sections
    assert (late.timed_out, own.timed_out, own.exit_status) == (True, False, 124)
    assert 0 <= own.seconds <= late.seconds < 60


def runs(seconds: str) -> bool:
    found = subprocess.run(["pgrep", "-f", f"sleep {seconds}"], capture_output=True, check=False)
    return found.returncode == 0


def section(*argv: str, deadline: int = 20, **options: bool) -> Section:
    return Section("a", argv, deadline, **options)


def step(*argv: str, deadline: int = 20, payload: bytes | None = None) -> Step:
    return Step("some", (section(*argv, deadline=deadline, payload=payload is not None),), payload or b"")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4))
def test_any_argument_reaches_its_command(shared: FramedHost, words: list[str]) -> None:
    answer = shared.run(step("printf", "%s\\0", "", *words))["a"]
    assert answer.stdout == "".join(f"{word}\0" for word in ("", *words)).encode()


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=3000), st.integers(0, 255))
def test_any_payload_streams_and_status_come_back(shared: FramedHost, data: bytes, status: int) -> None:
    script = 'c=$(mktemp); cat >"$c"; cat "$c"; cat "$c" >&2; rm "$c"; exit "$1"'
    answer = shared.run(step("sh", "-c", script, "sh", str(status), payload=data))["a"]
    assert (answer.stdout, answer.stderr, answer.exit_status) == (data, data, status)


def test_sections_run_in_order_and_a_failure_stops_none(host: FramedHost) -> None:
    sections = tuple(
        Section(f"s{number}", ("sh", "-c", f"echo {number}; exit {number}"), 20) for number in range(4)
    )
    reply = host.run(Step("some", sections))
    assert [(answer.text, answer.exit_status) for answer in reply.sections] == [
        (f"{number}\n", number) for number in range(4)
    ]
    with pytest.raises(LostReply, match="no section 'other'"):
        reply["other"]


def test_sections_share_nothing(host: FramedHost) -> None:
    first = Section("first", ("sh", "-c", "cd /; umask; exec 3<&- 2>&1; echo $0"), 20)
    second = Section("second", ("sh", "-c", 'pwd; umask; cat; echo "${M-unset}${LC_ALL}"'), 20)
    reply = host.run(Step("some", (first, second)))
    assert reply["second"].text == f"{os.getcwd()}\n0077\nunsetC\n"  # noqa: PTH109 - the child's words


def test_a_child_can_not_take_what_is_meant_for_the_next_step(host: FramedHost) -> None:
    greedy = "for fd in /proc/self/fd/*; do head -c 1 <$fd; done; cat <&3"
    assert host.run(step("sh", "-c", greedy, deadline=20))["a"].stdout == b""
    assert host.run(step("echo", "in step"))["a"].text == "in step\n"


def test_live_stderr_comes_line_by_line_and_in_the_answer(host: FramedHost) -> None:
    seen: list[bytes] = []
    script = "echo one >&2; printf two >&2; echo out; sleep 0.1; echo ' and three' >&2; printf four >&2"
    reply = host.run(Step("some", (section("sh", "-c", script, live=True),)), seen.append)
    assert reply["a"].stderr == b"one\ntwo and three\nfour"
    assert b"".join(seen) == b"one\ntwo and three\nfour\n"
    assert all(chunk.endswith(b"\n") for chunk in seen)
    assert reply["a"].stdout == b"out\n"


def test_a_command_that_is_not_there(host: FramedHost) -> None:
    assert host.run(step("/does/not/exist"))["a"].exit_status == 127
    assert host.run(step("/etc/passwd"))["a"].exit_status == 126


def test_a_command_that_is_killed(host: FramedHost) -> None:
    assert host.run(step("sh", "-c", "kill -SEGV $$"))["a"].exit_status == 139


def test_a_section_at_its_deadline_ends_with_all_its_children(host: FramedHost) -> None:
    seconds = f"{next(_odd)}.5"
    stubborn = f"trap '' TERM; sleep {seconds} & (trap '' TERM; sleep {seconds}); wait"
    for script in (f"sleep {seconds}", f"sh -c \"trap '' TERM; sleep {seconds}\"", stubborn):
        answer = host.run(step("sh", "-c", script, deadline=1))["a"]
        assert answer.timed_out
        assert answer.exit_status in (124, 137)
        assert not runs(seconds)


def test_what_a_command_leaves_behind_in_its_group_is_ended(host: FramedHost) -> None:
    seconds = f"{next(_odd)}.5"
    assert host.run(step("sh", "-c", f"sleep {seconds} & echo done"))["a"].text == "done\n"
    assert not runs(seconds)


def test_large_payloads_and_answers(host: FramedHost) -> None:
    data = os.urandom(5 << 20)
    both = 'cat >"$1/copy"; cat "$1/copy" >&2 & cat "$1/copy"; wait; rm "$1/copy"'
    answer = host.run(step("sh", "-c", both, "sh", os.environ["TMPDIR"], payload=data, deadline=60))["a"]
    assert hashlib.sha256(answer.stdout).digest() == hashlib.sha256(data).digest()
    assert answer.stderr == answer.stdout


def test_a_payload_made_piece_by_piece_and_one_that_fails(host: FramedHost) -> None:
    class Pieces:
        def __init__(self, fails: bool) -> None:
            self.fails = fails

        def chunks(self) -> Iterator[bytes]:
            yield b"one "
            yield b""
            if self.fails:
                raise CannotJudge("the file changed")
            yield b"x" * 1_000_000

    counted = section("wc", "-c", payload=True)
    assert host.run(Step("some", (counted,), Pieces(fails=False)))["a"].text == "1000004\n"
    with pytest.raises(CannotJudge, match="the file changed"):
        host.run(Step("some", (counted,), Pieces(fails=True)))
    assert host.run(step("echo", "in step"))["a"].text == "in step\n"


def hanging(own_tmp: Path) -> tuple[Step, str, Path]:
    """Return a step that hangs, the time by which its sleeper is found, and what its clean-up makes."""
    seconds = f"{next(_odd)}.5"
    removed = own_tmp.parent / "removed"
    hang = Section("hang", ("sh", "-c", f"sh -c \"trap '' TERM; sleep {seconds}\""), 600)
    return Step("hang", (hang,), on_loss=(Section("remove", ("touch", str(removed)), 20),)), seconds, removed


def test_a_step_past_the_near_deadline_is_ended_and_cleaned_up(
    host: FramedHost, own_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, seconds, removed = hanging(own_tmp)
    deadline = Step.deadline.fget  # type: ignore[attr-defined]
    monkeypatch.setattr(Step, "deadline", property(lambda it: 1 if it.name == "hang" else deadline(it)))
    with pytest.raises(DeadlineExceeded, match=r"no answer within its deadline$"):
        host.run(lost)
    assert removed.exists()
    assert not runs(seconds)
    assert not list(own_tmp.iterdir())
    assert host.left_behind == ()
    assert host.run(step("echo", "again"))["a"].ok


def test_a_clean_up_that_fails_is_told_by_name(
    host: FramedHost, own_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, _, _ = hanging(own_tmp)
    remove = (
        Section("one", ("false", "container-1"), 20),
        Section("two", ("true", "container-2"), 20),
        Section("three", ("false", "container-3"), 20),
    )
    monkeypatch.setattr(Step, "deadline", property(lambda it: 1 if it.name == "hang" else 30))
    with pytest.raises(
        DeadlineExceeded, match=r"left on the host: container-1, container-3 \(`inv clean` removes it\)$"
    ):
        host.run(Step("hang", lost.sections, on_loss=remove))


def test_a_shell_that_is_killed_is_a_lost_reply(host: FramedHost) -> None:
    seconds = f"{next(_odd)}.5"
    kill = f'sleep {seconds} & kill -KILL $(cat "$TMPDIR"/xbtasks.*/pid); sleep {seconds}'
    with pytest.raises(LostReply):
        host.run(Step("killed", (section("sh", "-c", kill, deadline=2),)))


def test_no_shell_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "LOOP", "/does/not/exist -c x")
    with closing(FramedHost(LocalTransport())) as host, pytest.raises(HostUnreachable, match="no sh can be"):
        host.run(step("true"))


def test_an_interrupt_before_there_is_a_connection_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(transport: LocalTransport, *, hurried: bool) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LocalTransport, "open", interrupted)
    host = FramedHost(LocalTransport())
    with pytest.raises(Interrupted, match=r"interrupted while connecting to local$"):
        host.run(step("true"))


PROGRAM = """\
import signal, sys
from xbtasks.errors import XbError
from xbtasks.host.framed import FramedHost
from xbtasks.host.local import LocalTransport
from xbtasks.host.step import Section, Step

def terminate(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGTERM, terminate)
create = Section("create", ("docker", "run", "--name", "xbtasks-1-a", "image"), 600)
remove = Section("remove", ("docker", "rm", "--force", "--volumes", "xbtasks-1-a"), 30)
host = FramedHost(LocalTransport())
try:
    host.run(Step("create", (create,), on_loss=(remove,)))
except XbError as error:
    print(type(error).__name__, error, int(error.exit_code))
host.close()
"""
DOCKER = """\
#!/bin/sh
echo "$*" >>"${0%/*}/log"
[ "$1" != run ] || { echo $$ >"${0%/*}/pid"; exec sleep 3600; }
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_step_and_removes_its_container_by_name(
    own_tmp: Path, tmp_path: Path, number: signal.Signals
) -> None:
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "docker").write_text(DOCKER)
    (shims / "docker").chmod(0o755)
    environment = {**os.environ, "PATH": f"{shims}:{os.environ['PATH']}", "TMPDIR": str(own_tmp)}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    while not (shims / "pid").exists() or not (shims / "pid").read_text():
        assert child.poll() is None
        time.sleep(0.02)
    # as a terminal does it: to the whole foreground group; a second one comes while it cleans up
    os.killpg(child.pid, number)
    os.killpg(child.pid, number)
    out, _ = child.communicate(timeout=60)
    assert out == b"Interrupted interrupted in step create 130\n"
    assert (shims / "log").read_text().splitlines() == [
        "run --name xbtasks-1-a image",
        "rm --force --volumes xbtasks-1-a",
    ]
    with pytest.raises(ProcessLookupError):
        os.kill(int((shims / "pid").read_text()), 0)
    assert not list(own_tmp.iterdir())


@pytest.mark.parametrize("shell", ["dash", "bash", "mksh", "busybox"])
def test_other_shells_as_sh(
    shell: str, own_tmp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shutil.which(shell)
    if not found:
        pytest.skip(f"no {shell}")
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "sh").write_text(f'#!/bin/dash\nexec {found} {"sh" if shell == "busybox" else ""} "$@"\n')
    (shims / "sh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{shims}:{os.environ['PATH']}")
    with closing(FramedHost(LocalTransport())) as host:
        for number in range(2):
            data = b"exit 1\n" * 50_000 * (number + 1)
            reply = host.run(step("cat", payload=data))
            assert (reply["a"].stdout, reply.noise) == (data, ())
        answer = host.run(step("sleep", "60", deadline=1))["a"]
        assert answer.timed_out
    assert not list(own_tmp.iterdir())


def test_a_host_with_busybox_for_every_tool(
    own_tmp: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = shutil.which("busybox")
    if not found:
        pytest.skip("no busybox")
    applets = tmp_path / "applets"
    applets.mkdir()
    subprocess.run([found, "--install", "-s", str(applets)], check=True)
    monkeypatch.setenv("PATH", str(applets))
    with closing(FramedHost(LocalTransport())) as host:
        data = os.urandom(1_000_000)
        assert host.run(step("cat", payload=data))["a"].stdout == data
        assert host.run(step("sleep", "60", deadline=1))["a"].timed_out
        assert host.run(step("echo", "in step"))["a"].text == "in step\n"
    assert not list(own_tmp.iterdir())
