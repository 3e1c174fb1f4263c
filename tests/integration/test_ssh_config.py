"""ssh_config as it is used: aliases, jump hosts, proxy commands, keys, agents, and what is not followed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.sshd import USER, make_key
from xbtasks.errors import HostUnreachable, UsageError
from xbtasks.host.step import Section, Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.sshd import Rig

STEP = Step("look", (Section("look", ("sh", "-c", 'echo "$SSH_CONNECTION"'), 20),))


def port_reached(rig: Rig, name: str = "far") -> int:
    """Return the port of the server that runs a step for the host ``name``."""
    return int(rig.host(name).run(STEP)["look"].text.split()[3])


@pytest.fixture
def agent(rig: Rig) -> Iterator[Path]:
    """Start an ssh agent and return its socket; no variable names it."""
    path = rig.folder / "agent.sock"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(path)], stdout=subprocess.DEVNULL)
    while not path.exists():
        assert process.poll() is None
    yield path
    process.terminate()
    process.wait()


def add_to_agent(agent: Path, key: Path) -> None:
    subprocess.run(
        ["ssh-add", "-q", str(key)],
        check=True,
        env={"SSH_AUTH_SOCK": str(agent), "PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
    )


def test_the_first_value_of_a_setting_holds_and_patterns_match(rig: Rig) -> None:
    server = rig.server()
    rig.alias("far", server.port)
    more = "Host f* !father\n  Port 1\n  User nobody\nHost *\n  HostName 192.0.2.1\n"
    rig.ssh_config.write_text(rig.ssh_config.read_text() + more)
    assert port_reached(rig) == server.port


def test_included_files_hold_where_the_block_around_them_holds(rig: Rig) -> None:
    server, wrong = rig.server(), 1
    parts = rig.folder / "parts"
    parts.mkdir()
    (parts / "10.conf").write_text(f"Host far\n  Port {server.port}\nHost near\n  Port {wrong}\n")
    (parts / "20.conf").write_text(f"User {USER}\nHost *\n  IdentityFile {rig.identity}\n")
    (rig.folder / "elsewhere").write_text(f"Port {wrong}\nHost far\n  User nobody\n")
    rig.ssh_config.write_text(
        f"Host other\n  Include {rig.folder}/elsewhere\n  HostName 192.0.2.1\n"
        f"Host far\n  HostName 127.0.0.1\n  Include {parts}/*.conf {rig.folder}/absent\n"
        f"  UserKnownHostsFile {rig.known_hosts}\n"
    )
    assert port_reached(rig) == server.port


def test_files_that_include_one_another_are_refused(rig: Rig) -> None:
    rig.ssh_config.write_text(f"Include {rig.ssh_config}\n")
    with pytest.raises(UsageError, match="include one another"):
        rig.host().run(STEP)


@pytest.mark.parametrize("text", ["Host\n", "Port x\n", "Match all exec\n", "ConnectTimeout soon\n"])
def test_a_broken_ssh_config_is_a_usage_error(rig: Rig, text: str) -> None:
    rig.ssh_config.write_text(text)
    with pytest.raises(UsageError, match="ssh_config"):
        rig.host().run(STEP)


def test_an_ssh_config_that_is_named_must_be_there(rig: Rig) -> None:
    rig.ssh_config.unlink()
    with pytest.raises(UsageError, match=r"ssh_config file .* can't be read"):
        rig.host().run(STEP)


def test_jump_hosts_are_visited_in_order_each_by_its_own_settings(rig: Rig) -> None:
    target = rig.server()
    second = rig.server(f"PermitOpen 127.0.0.1:{target.port}")
    first = rig.server(f"PermitOpen 127.0.0.1:{second.port}")
    rig.alias("first", first.port)
    rig.alias("second", second.port)
    rig.alias("far", target.port, "ProxyJump first,second")
    assert port_reached(rig) == target.port
    assert all("Accepted publickey" in server.log for server in (first, second, target))


def test_a_jump_host_may_have_one_of_its_own(rig: Rig) -> None:
    target = rig.server()
    second = rig.server(f"PermitOpen 127.0.0.1:{target.port}")
    first = rig.server(f"PermitOpen 127.0.0.1:{second.port}")
    rig.alias("first", first.port)
    rig.alias("second", second.port, "ProxyJump first")
    rig.alias("far", target.port, f"ProxyJump ssh://{USER}@second")
    assert port_reached(rig) == target.port


@pytest.mark.parametrize("line", ["ProxyJump none", "ProxyCommand none"])
def test_no_way_round_where_ssh_config_says_none(rig: Rig, line: str) -> None:
    server = rig.server()
    rig.alias("far", server.port, line)
    rig.ssh_config.write_text(
        f"{rig.ssh_config.read_text()}Host *\n  ProxyJump 192.0.2.1\n  ProxyCommand false\n"
    )
    assert port_reached(rig) == server.port


def test_jump_hosts_that_lead_in_a_circle_are_refused(rig: Rig) -> None:
    rig.alias("far", 1, "ProxyJump other")
    rig.alias("other", 1, "ProxyJump far")
    with pytest.raises(UsageError, match="jump hosts"):
        rig.host().run(STEP)


def test_a_jump_host_that_no_name_server_knows_is_named(rig: Rig) -> None:
    rig.alias("far", 1, "ProxyJump no-such-host.invalid")
    with pytest.raises(HostUnreachable, match=r"^no-such-host\.invalid: unreachable"):
        rig.host().run(STEP)


def test_a_jump_host_that_is_no_host_is_refused(rig: Rig) -> None:
    rig.alias("far", 1, "ProxyJump -oProxyCommand=id")
    with pytest.raises(UsageError, match="ProxyJump"):
        rig.host().run(STEP)


def test_a_jump_host_that_may_not_forward_or_finds_nobody(rig: Rig) -> None:
    rig.alias("shut", rig.server("AllowTcpForwarding no").port)
    rig.alias("open", rig.server().port)
    rig.alias("far", 1, "ProxyJump shut")
    rig.alias("gone", 1, "ProxyJump open")
    with pytest.raises(HostUnreachable, match="far through shut: unreachable: the jump host says"):
        rig.host().run(STEP)
    with pytest.raises(HostUnreachable, match="gone through open: unreachable: the jump host says"):
        rig.host("gone").run(STEP)


PROXY = """\
import os, socket, sys, threading
print("a word on stderr", file=sys.stderr)
link = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while data := os.read(0, 65536): link.sendall(data)
    link.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := link.recv(65536): os.write(1, data)
"""


def test_a_proxy_command_carries_the_connection(rig: Rig) -> None:
    server = rig.server()
    program = rig.folder / "proxy command.py"
    program.write_text(PROXY)
    user = f'test %r = {USER} && test "%%n %n" = "%%n far" || exit 1; '
    rig.alias("far", server.port, f"ProxyCommand sh -c '{user} exec {sys.executable} \"{program}\" %h %p'")
    assert port_reached(rig) == server.port


def test_a_proxy_command_that_fails_is_quoted(rig: Rig) -> None:
    rig.alias("far", 1, "ProxyCommand sh -c 'echo no route >&2; exit 3'")
    with pytest.raises(HostUnreachable, match="no route"):
        rig.host().run(STEP)


def test_named_keys_come_before_the_many_of_an_agent(
    rig: Rig, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    for number in range(8):
        add_to_agent(agent, make_key(rig.folder / f"other-{number}"))
    server = rig.server("MaxAuthTries 3")
    rig.alias("far", server.port)
    assert port_reached(rig) == server.port
    rig.alias("unnamed", server.port, f"IdentityFile {make_key(rig.folder / 'wrong')}")
    rig.ssh_config.write_text(rig.ssh_config.read_text().replace(f"  IdentityFile {rig.identity}\n", "\n"))
    with pytest.raises(HostUnreachable, match="too many authentication failures") as caught:
        rig.host("unnamed").run(STEP)
    assert "IdentitiesOnly" in caught.value.hint
    rig.alias("only", server.port, "IdentitiesOnly yes")
    assert port_reached(rig, "only") == server.port


def test_the_agent_that_ssh_config_names_holds_a_key_whose_file_needs_a_passphrase(
    rig: Rig, agent: Path
) -> None:
    locked = make_key(rig.folder / "locked")
    add_to_agent(agent, locked)
    argv = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret words", "-f", str(locked)]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    server = rig.server()
    (server.folder / "authorized_keys").write_text(locked.with_suffix(".pub").read_text())
    lines = (f"IdentityFile {locked}", "IdentitiesOnly yes")
    rig.alias("with", server.port, *lines, f"IdentityAgent {agent}")
    rig.alias("without", server.port, *lines, "IdentityAgent none")
    assert port_reached(rig, "with") == server.port
    with pytest.raises(HostUnreachable, match=r"authentication failed.*needs a passphrase: ssh-add it"):
        rig.host("without").run(STEP)


def test_no_key_that_a_server_accepts(rig: Rig) -> None:
    server = rig.server()
    (server.folder / "authorized_keys").write_text("")
    rig.alias("far", server.port, f"IdentityFile {rig.folder}/absent", "GSSAPIAuthentication yes")
    rig.alias("wrong-user", server.port, "User nobody-here")
    with pytest.raises(HostUnreachable, match="authentication failed") as caught:
        rig.host().run(STEP)
    message = str(caught.value)
    for part in (
        f"user {USER}",
        "keys offered: 1",
        "absent is not there",
        "GSSAPIAuthentication is not supported",
    ):
        assert part in message
    with pytest.raises(HostUnreachable, match="user nobody-here"):
        rig.host("wrong-user").run(STEP)


@pytest.mark.parametrize("bad", ["dsa", "public", "garbage", "directory", "empty"])
def test_a_named_key_that_can_not_be_used_is_told_and_the_next_is_tried(rig: Rig, bad: str) -> None:
    server = rig.server()
    key = rig.folder / "odd"
    if bad == "dsa":
        make_key(key, "dsa")
    elif bad == "directory":
        key.mkdir()
    else:
        contents = {"public": rig.identity.with_suffix(".pub").read_text(), "garbage": "\0\xff", "empty": ""}
        key.write_text(contents[bad])
    rig.alias("far", server.port, f"IdentityFile {key}", "IdentitiesOnly yes")
    assert port_reached(rig) == server.port
    (server.folder / "authorized_keys").write_text("")
    with pytest.raises(
        HostUnreachable, match=r"authentication failed: .*odd (is no private key|can't be read)"
    ):
        rig.host().run(STEP)


def test_a_server_that_wants_more_than_a_key_or_only_a_password(rig: Rig) -> None:
    rig.alias("both", rig.server("AuthenticationMethods publickey,password").port)
    with pytest.raises(HostUnreachable, match="the server wants password as well, which is not supported"):
        rig.host("both").run(STEP)
    rig.alias("password", rig.server("PubkeyAuthentication no", "PasswordAuthentication yes").port)
    with pytest.raises(HostUnreachable, match="the server accepts password"):
        rig.host("password").run(STEP)


def test_a_key_with_a_certificate(rig: Rig) -> None:
    authority, key = make_key(rig.folder / "authority"), make_key(rig.folder / "certified")
    argv = ["ssh-keygen", "-q", "-s", str(authority), "-I", "me", "-n", USER, str(key.with_suffix(".pub"))]
    subprocess.run(argv, check=True)
    server = rig.server(f"TrustedUserCAKeys {authority}.pub")
    (server.folder / "authorized_keys").write_text("")
    rig.alias("far", server.port, f"IdentityFile {key}")
    assert port_reached(rig) == server.port


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_keys_of_every_kind(rig: Rig, kind: str) -> None:
    key = make_key(rig.folder / "mine", kind)
    server = rig.server()
    (server.folder / "authorized_keys").write_text(key.with_suffix(".pub").read_text())
    rig.alias("far", server.port, f"IdentityFile {key}", "IdentitiesOnly yes")
    assert port_reached(rig) == server.port


def test_settings_that_are_not_followed_are_named_once(rig: Rig) -> None:
    server = rig.server()
    rig.alias("far", server.port, "Ciphers aes256-ctr", "KexAlgorithms curve25519-sha256", "MACs none")
    host = rig.host()
    host.run(STEP)
    assert [line for line in rig.said if "not followed" in line] == [
        "ssh_config: Ciphers, KexAlgorithms, MACs is not followed for far"
    ]


def test_the_far_side_gets_no_agent_and_no_variables(
    rig: Rig, agent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", str(agent))
    rig.alias("far", rig.server("AcceptEnv *").port, "ForwardAgent yes", "SendEnv *", "RemoteCommand false")
    look = Step("look", (Section("look", ("sh", "-c", 'echo "${SSH_AUTH_SOCK-none}"'), 20),))
    assert rig.host().run(look)["look"].text == "none\n"


def test_the_user_and_port_of_the_destination_win(rig: Rig) -> None:
    server = rig.server()
    rig.alias("far", 1, "User nobody-here")
    assert port_reached(rig, f"{USER}@far:{server.port}") == server.port
