"""Steps over real sshd servers: any login shell, any noise around it, any bytes, odd homes, strict limits."""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

import pytest

from xbtasks.errors import HostUnreachable
from xbtasks.host.step import Section, Step

if TYPE_CHECKING:
    from tests.sshd import Rig

SHELLS = ["/bin/bash", "/bin/dash", "/usr/bin/tcsh", "/usr/bin/fish", "/bin/mksh"]
NOISE = """\
echo "Welcome to host"; echo "FAIL | nvidia.case1.mode | from the motd"; echo FAILS=0
echo "xb-0123456789abcdef01234567.1 begin 1"
echo "xb-0123456789abcdef01234567.1 end 1 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
echo "a word on stderr" >&2
printf 'no newline at the end'
"""


def echo(name: str = "words", *words: str) -> Step:
    return Step("echo", (Section(name, ("printf", "%s|", *words), 20),))


@pytest.mark.parametrize("shell", SHELLS)
def test_any_login_shell_gives_the_same_reply_whatever_it_prints(rig: Rig, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    rig.alias("far", rig.server("MaxSessions 1", shell=shell, noise=NOISE).port)
    host = rig.host()
    words = (
        "it's",
        '"',
        "$HOME",
        "`id`",
        "\\",
        "!1",
        "*",
        "a\nb",
        "",
        "é\udc80".encode("utf-8", "replace").decode(),
    )
    first = host.run(echo("words", *words))
    assert first["words"].text == "".join(f"{word}|" for word in words)
    assert first["words"].ok
    assert len(first.noise) == 7
    second = host.run(echo("words", "again"))
    assert (second["words"].text, second.noise) == ("again|", ())


@pytest.mark.parametrize("shell", SHELLS)
def test_a_payload_reaches_its_section_and_nothing_else(rig: Rig, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    rig.alias("far", rig.server(shell=shell).port)
    host = rig.host()
    # lines that a shell would run if it read ahead
    data = b"exit 1\nrm -rf nothing\n\0\xff'\"$(exit 2)\n" * 40_000 + b"no newline"
    before, digest, after = (
        Section("before", ("cat",), 20),
        Section("digest", ("sha256sum",), 20, payload=True),
        Section("after", ("cat",), 20),
    )
    for _ in range(2):
        reply = host.run(Step("payload", (before, digest, after), payload=data))
        assert reply["digest"].text.split()[0] == hashlib.sha256(data).hexdigest()
        assert (reply["before"].stdout, reply["after"].stdout) == (b"", b"")
    assert host.run(echo("words", "still in step"))["words"].text == "still in step|"


def test_a_payload_that_its_section_does_not_read_is_not_taken_for_the_next_step(rig: Rig) -> None:
    rig.alias("far", rig.server().port)
    host = rig.host()
    data = b"exit 1\n" * 500_000
    for argv in (
        ("true",),
        ("head", "-c", "100000"),
        ("sh", "-c", "exec <&-; sleep 0.2"),
        ("/does/not/exist",),
    ):
        reply = host.run(Step("payload", (Section("some", argv, 20, payload=True),), payload=data))
        assert reply["some"].exit_status == (127 if argv[0].startswith("/") else 0)
    assert host.run(echo("words", "still in step"))["words"].text == "still in step|"


def test_five_mebibytes_on_both_streams_of_bytes_that_are_no_text(rig: Rig) -> None:
    rig.alias("far", rig.server("Subsystem sftp /bin/false").port)
    half = 'head -c 5242880 /dev/zero | tr "\\0" "\\377"'
    argv = ("sh", "-c", f"({half} >&2) & {half}; wait")
    reply = rig.host().run(Step("big", (Section("big", argv, 60), Section("live", argv, 60, live=True))))
    for section in ("big", "live"):
        assert reply[section].stdout == reply[section].stderr == b"\xff" * 5242880
    assert "\N{REPLACEMENT CHARACTER}" in reply["big"].text


def test_a_home_with_spaces_and_a_home_that_is_read_only(rig: Rig) -> None:
    home = rig.folder / "a home  of one's own"
    home.mkdir()
    rig.alias("spaces", rig.server(environment={"HOME": str(home)}).port)
    look = Step("home", (Section("home", ("sh", "-c", 'cd "$HOME" && pwd && touch here'), 20),))
    assert rig.host("spaces").run(look)["home"].text == f"{home}\n"
    assert (home / "here").exists()
    home.joinpath("here").unlink()
    rig.alias("readonly", rig.server(environment={"HOME": "/proc/1"}).port)
    reply = rig.host("readonly").run(look)
    assert reply["home"].exit_status != 0
    assert not reply.noise


def test_a_host_without_a_tool_that_every_step_needs_says_which(rig: Rig) -> None:
    folder = rig.folder / "few tools"
    folder.mkdir()
    for tool in ("sh", "dd", "date", "mkfifo", "mktemp", "sed", "sleep", "tee", "timeout", "wc", "rm"):
        (folder / tool).symlink_to(shutil.which(tool) or "/")
    rig.alias("far", rig.server(shell="/bin/sh", environment={"PATH": str(folder)}).port)
    host = rig.host()
    for _ in range(2):
        with pytest.raises(HostUnreachable, match="step echo: the host's shell lacks base64"):
            host.run(echo("words", "x"))
    full = Step("echo", (Section("words", ("cat",), 5, payload=True),), payload=b"exit 1\n" * 100_000)
    with pytest.raises(HostUnreachable, match="lacks base64"):
        host.run(full)


def test_a_host_without_room_for_temporary_files_says_so(rig: Rig) -> None:
    rig.alias("far", rig.server(environment={"TMPDIR": "/proc/1"}).port)
    with pytest.raises(HostUnreachable, match="no temporary directory can be made on the host"):
        rig.host().run(echo("words", "x"))
