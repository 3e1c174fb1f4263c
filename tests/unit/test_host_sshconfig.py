"""ssh_config: Include as ssh does it, with ssh itself as the judge, and settings as typed values."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from paramiko import SSHConfig

from xbtasks.errors import UsageError
from xbtasks.host.sshconfig import expand, read_host

TOKENS = {"%%": "%", "%h": "10.0.0.1", "%n": "far", "%p": "2222", "%r": "me", "%d": "/home/me"}
HOSTS = ["far", "near", "far-away"]

settings_lines = st.sampled_from(
    ["User one", "User two", "Port 1", "Port=2", 'HostName "a.example"', "hostname b"]
)
heads = st.sampled_from(
    [
        "Host far",
        "Host near far*",
        "Host * !near",
        "Host=*",
        "Match all",
        "Match originalhost far",
        "Match user one",
        "Match !originalhost far*",
        'Match originalhost "far,near"',
        "# a comment",
    ]
)
texts = st.lists(st.one_of(heads, settings_lines, st.just("Include sub/*.conf")), max_size=8).map("\n".join)
parts = st.lists(st.lists(st.one_of(heads, settings_lines), max_size=5).map("\n".join), max_size=2)


def looked_up(path: Path, host: str) -> dict[str, str]:
    found = SSHConfig.from_text(expand(path, required=True)).lookup(host)
    return {key: str(found[key]) for key in ("user", "port", "hostname") if key in found}


def as_ssh(path: Path, host: str) -> dict[str, str]:
    done = subprocess.run(["ssh", "-G", "-F", str(path), host], capture_output=True, text=True, check=True)
    pairs = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return {key: value for key, value in pairs if key in ("user", "port", "hostname")}


@pytest.mark.skipif(not shutil.which("ssh"), reason="no ssh to compare with")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, parts)
def test_include_gives_what_ssh_gives(tmp_path: Path, text: str, parts: list[str]) -> None:
    folder = tmp_path / "sub"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number, part in enumerate(parts):
        (folder / f"{number}.conf").write_text(part + "\n")
    main = tmp_path / "config"
    # ssh and xbtasks resolve a relative path elsewhere; both know this one
    main.write_text(text.replace("sub/", f"{folder}/") + "\n")
    for host in HOSTS:
        mine, theirs = looked_up(main, host), as_ssh(main, host)
        assert mine.get("port", "22") == theirs["port"]
        assert mine.get("hostname", host) == theirs["hostname"]
        assert mine.get("user", theirs["user"]) == theirs["user"]


def test_relative_includes_and_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh/one").write_text("User one\n")
    (tmp_path / "two file").write_text("Port 2\n")
    main = tmp_path / ".ssh/config"
    main.write_text('Include one "~/two file" absent\n')
    assert looked_up(main, "far") == {"user": "one", "port": "2", "hostname": "far"}


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert expand(tmp_path / "absent", required=False) == ""
    with pytest.raises(UsageError, match="can't be read"):
        expand(tmp_path / "absent", required=True)
    with pytest.raises(UsageError, match="can't be read"):
        expand(tmp_path, required=False)


def test_a_circle_of_includes(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"Include {tmp_path}/b\n")
    (tmp_path / "b").write_text(f"Include {tmp_path}/a\n")
    with pytest.raises(UsageError, match="include one another"):
        expand(tmp_path / "a", required=True)


@pytest.mark.parametrize(
    ("options", "jumps", "command"),
    [
        ({}, (), ""),
        ({"proxyjump": "a, me@b:22,c"}, ("a", "me@b:22", "c"), ""),
        ({"proxyjump": "none"}, (), ""),
        ({"proxyjump": "None", "proxycommand": "nc %h %p"}, (), ""),
        ({"proxycommand": "nc %h %p", "proxyjump": "a"}, (), "nc 10.0.0.1 2222"),
        ({"proxyjump": "a", "proxycommand": "nc"}, ("a",), ""),
        ({"proxycommand": None, "proxyjump": "a"}, (), ""),
        ({"proxycommand": "none"}, (), ""),
        ({"proxycommand": "sh -c 'echo %% %r %n %x'"}, (), "sh -c 'echo % me far %x'"),
        ({"proxyjump": "jump-%n"}, ("jump-far",), ""),
    ],
)
def test_the_way_to_a_host(options: dict[str, object], jumps: tuple[str, ...], command: str) -> None:
    config = read_host(options, TOKENS)
    assert (config.jumps, config.proxy_command) == (jumps, command)


def test_what_holds_where_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    config = read_host({}, TOKENS)
    assert config.user_known_hosts == (Path("/home/me/.ssh/known_hosts"), Path("/home/me/.ssh/known_hosts2"))
    assert config.global_known_hosts == (Path("/etc/ssh/ssh_known_hosts"), Path("/etc/ssh/ssh_known_hosts2"))
    assert (config.identity_files, config.identities_only, config.identity_agent) == (
        (),
        False,
        "SSH_AUTH_SOCK",
    )
    assert (config.strict, config.connect_timeout, config.revoked_keys) == ("", None, None)
    assert (config.not_followed, config.no_way_in) == ((), ())


def test_values_are_filled_in_and_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("KEYS", "/keys")
    config = read_host(
        {
            "identityfile": ["~/.ssh/id_%r", "${KEYS}/%h", "none", "/a~b"],
            "identitiesonly": "YES",
            "identityagent": "~/agent.sock",
            "userknownhostsfile": '/a "/b c" %d/x',
            "globalknownhostsfile": "none",
            "hashknownhosts": "yes",
            "hostkeyalias": "Node",
            "stricthostkeychecking": "Accept-New",
            "connecttimeout": "1m30s",
            "serveraliveinterval": "9S",
            "serveralivecountmax": "2",
            "revokedhostkeys": "/etc/ssh/revoked",
            "ciphers": "aes128-ctr",
            "gssapiauthentication": "yes",
            "hostbasedauthentication": "no",
            "knownhostscommand": "none",
        },
        TOKENS,
    )
    assert config.identity_files == ("/home/me/.ssh/id_me", "/keys/10.0.0.1", "/a~b")
    assert (config.identities_only, config.identity_agent) == (True, "/home/me/agent.sock")
    assert config.user_known_hosts == (Path("/a"), Path("/b c"), Path("/home/me/x"))
    assert (config.global_known_hosts, config.hash_known_hosts) == ((), True)
    assert (config.host_key_alias, config.strict) == ("node", "accept-new")
    assert (config.connect_timeout, config.alive_interval, config.alive_count) == (90, 9, 2)
    assert config.revoked_keys == Path("/etc/ssh/revoked")
    assert (config.not_followed, config.no_way_in) == (("Ciphers",), ("GSSAPIAuthentication",))


@pytest.mark.parametrize(
    ("value", "files"),
    [
        ('"/a b"', ["/a b"]),
        ("/a b", ["/a", "b"]),
        ('"/a b" "/c d"', ["/a b", "/c d"]),
        ('/x "/a b"', ["/x", "/a b"]),
    ],
)
def test_several_files_with_spaces_survive_paramiko(tmp_path: Path, value: str, files: list[str]) -> None:
    (tmp_path / "config").write_text(f"UserKnownHostsFile {value}\n")
    options = SSHConfig.from_text(expand(tmp_path / "config", required=True)).lookup("far")
    assert read_host(options, TOKENS).user_known_hosts == tuple(Path(name) for name in files)


@pytest.mark.parametrize(
    "options",
    [
        {"connecttimeout": "soon"},
        {"connecttimeout": ""},
        {"connecttimeout": "-1"},
        {"userknownhostsfile": "/a 'b"},
    ],
)
def test_values_that_mean_nothing(options: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="ssh_config"):
        read_host(options, TOKENS)
