"""Host keys on real servers: new, known, changed, revoked, hashed, and all of it on jump hosts too."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.sshd import make_key
from xbtasks.errors import HostUnreachable, UsageError
from xbtasks.host.step import Section, Step
from xbtasks.knobs.values import HostKeys

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sshd import Rig

STEP = Step("look", (Section("look", ("echo", "reached"), 20),))


def public(key: Path) -> str:
    return " ".join(key.with_name(f"{key.name}.pub").read_text().split()[:2])


def fingerprint(key: Path) -> str:
    shown = subprocess.run(["ssh-keygen", "-l", "-f", str(key)], check=True, capture_output=True, text=True)
    return shown.stdout.split()[1]


def reached(rig: Rig, name: str = "far", **options: HostKeys) -> bool:
    return rig.host(name, **options).run(STEP)["look"].text == "reached\n"


def test_a_new_key_is_recorded_once_and_its_fingerprint_shown(rig: Rig) -> None:
    key = make_key(rig.folder / "hk")
    server = rig.server(host_keys=[key])
    rig.alias("far", server.port)
    rig.known_hosts.write_text("# a last line without an end")
    assert reached(rig)
    assert reached(rig)
    assert rig.known_hosts.read_text() == (
        f"# a last line without an end\n[127.0.0.1]:{server.port} {public(key)}\n"
    )
    (line,) = rig.said
    assert fingerprint(key) in line
    assert str(rig.known_hosts) in line
    # what was written is what ssh reads
    found = subprocess.run(
        ["ssh-keygen", "-F", f"[127.0.0.1]:{server.port}", "-f", str(rig.known_hosts)], check=False
    )
    assert found.returncode == 0


def test_strict_refuses_a_new_key_and_records_nothing(rig: Rig) -> None:
    key = make_key(rig.folder / "hk")
    server = rig.server(host_keys=[key])
    rig.alias("far", server.port)
    with pytest.raises(HostUnreachable, match="host key unknown") as caught:
        reached(rig, host_keys=HostKeys.STRICT)
    assert fingerprint(key) in str(caught.value)
    assert "accept-new" in caught.value.hint
    assert not rig.known_hosts.exists()
    assert "Accepted" not in server.log


@pytest.mark.parametrize("setting", ["yes", "ask"])
def test_ssh_config_may_ask_for_strictness_and_the_knob_overrules_it(rig: Rig, setting: str) -> None:
    rig.alias("far", rig.server().port, f"StrictHostKeyChecking {setting}")
    with pytest.raises(HostUnreachable, match="host key unknown"):
        reached(rig)
    assert reached(rig, host_keys=HostKeys.ACCEPT_NEW)


@pytest.mark.parametrize("policy", list(HostKeys))
@pytest.mark.parametrize("other", ["ed25519", "ecdsa", "rsa"])
def test_a_changed_key_is_refused_before_anything_runs(rig: Rig, policy: HostKeys, other: str) -> None:
    old, new = make_key(rig.folder / "old", other), make_key(rig.folder / "new")
    server = rig.server(host_keys=[new])
    rig.alias("far", server.port, "StrictHostKeyChecking no")
    rig.known_hosts.write_text(f"\n[127.0.0.1]:{server.port} {public(old)}\n")
    before = rig.known_hosts.read_bytes()
    with pytest.raises(HostUnreachable, match="host key changed") as caught:
        reached(rig, host_keys=policy)
    assert f"{rig.known_hosts}:2" in str(caught.value)
    assert fingerprint(new) in str(caught.value)
    assert rig.known_hosts.read_bytes() == before
    assert "Accepted" not in server.log
    assert "userauth" not in server.log.lower()


@pytest.mark.parametrize("known", ["ed25519", "ecdsa", "rsa"])
def test_a_server_with_several_keys_is_asked_for_the_one_that_is_known(rig: Rig, known: str) -> None:
    keys = {kind: make_key(rig.folder / kind, kind) for kind in ("ed25519", "ecdsa", "rsa")}
    server = rig.server(host_keys=list(keys.values()))
    rig.alias("far", server.port)
    rig.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public(keys[known])}\n")
    assert reached(rig, host_keys=HostKeys.STRICT)
    assert not rig.said


@pytest.mark.parametrize("policy", list(HostKeys))
def test_a_revoked_key_is_refused_even_if_it_is_known(rig: Rig, policy: HostKeys) -> None:
    key = make_key(rig.folder / "hk")
    server = rig.server(host_keys=[key])
    rig.alias("far", server.port)
    name = f"[127.0.0.1]:{server.port}"
    rig.known_hosts.write_text(f"{name} {public(key)}\n@revoked * {public(key)}\n")
    with pytest.raises(HostUnreachable, match="host key revoked"):
        reached(rig, host_keys=policy)
    assert "Accepted" not in server.log


def test_a_file_of_revoked_keys_is_read(rig: Rig) -> None:
    key = make_key(rig.folder / "hk")
    revoked = rig.folder / "revoked"
    revoked.write_text(f"{public(make_key(rig.folder / 'other'))} a comment\n{public(key)}\n")
    server = rig.server(host_keys=[key])
    rig.alias("far", server.port, f"RevokedHostKeys {revoked}")
    with pytest.raises(HostUnreachable, match="host key revoked"):
        reached(rig)
    revoked.write_bytes(b"SSHKRL\n\0 and so on")
    with pytest.raises(UsageError, match="KRL"):
        reached(rig)
    revoked.unlink()
    with pytest.raises(UsageError, match="can't be read"):
        reached(rig)


def test_odd_lines_and_several_files_survive(rig: Rig) -> None:
    key, authority = make_key(rig.folder / "hk"), make_key(rig.folder / "authority")
    server = rig.server(host_keys=[key])
    first, second = rig.folder / "first file", rig.folder / "second"
    first.write_text(
        f"@cert-authority *.example.org,127.* {public(authority)}\n"
        "|1|broken ssh-ed25519 AAAA\n"
        "short line\n"
        "@new-mark x y z\n"
        f"somewhere.else ssh-ed25519 not-base64!\n"
        "\xff\xfe binary\n",
        encoding="latin-1",
    )
    second.write_text(f"[127.0.0.1]:{server.port} {public(key)}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(second)], check=True, capture_output=True)
    assert second.read_text().startswith("|1|")
    rig.alias("far", server.port, f'UserKnownHostsFile "{first}" {rig.folder}/absent {second}')
    assert reached(rig, host_keys=HostKeys.STRICT)
    rig.alias("global", server.port, "UserKnownHostsFile none", f"GlobalKnownHostsFile {second}")
    assert reached(rig, "global", host_keys=HostKeys.STRICT)


def test_a_host_that_only_an_authority_vouches_for_is_named_so(rig: Rig) -> None:
    server = rig.server()
    rig.alias("far", server.port)
    authority = make_key(rig.folder / "authority")
    rig.known_hosts.write_text(f"@cert-authority [127.0.0.1]:* {public(authority)}\n")
    with pytest.raises(HostUnreachable, match="host certificates can't be checked"):
        reached(rig, host_keys=HostKeys.STRICT)


def test_hashed_names_where_ssh_config_asks_for_them(rig: Rig) -> None:
    server = rig.server()
    rig.alias("far", server.port, "HashKnownHosts yes")
    assert reached(rig)
    assert rig.known_hosts.read_text().startswith("|1|")
    assert reached(rig, host_keys=HostKeys.STRICT)
    name = f"[127.0.0.1]:{server.port}"
    found = subprocess.run(
        ["ssh-keygen", "-F", name, "-f", str(rig.known_hosts)], capture_output=True, check=True
    )
    assert found.stdout


def test_an_alias_of_the_host_key(rig: Rig) -> None:
    rig.alias("far", rig.server().port, "HostKeyAlias Node-7")
    assert reached(rig)
    assert rig.known_hosts.read_text().startswith("node-7 ssh-ed25519 ")
    assert reached(rig, host_keys=HostKeys.STRICT)


def test_a_known_hosts_file_that_can_not_be_written_is_said_and_no_obstacle(rig: Rig) -> None:
    rig.alias("far", rig.server().port, "UserKnownHostsFile /proc/1/known_hosts")
    assert reached(rig)
    assert "can't be written" in rig.said[0]
    rig.alias("none", rig.server().port, "UserKnownHostsFile none")
    assert reached(rig, "none")
    assert "not recorded" in rig.said[1]


@pytest.mark.parametrize("bad", ["first", "second", "target"])
@pytest.mark.parametrize("problem", ["changed", "unknown", "revoked"])
def test_every_hop_is_held_to_the_same_rules(rig: Rig, bad: str, problem: str) -> None:
    ports, keys = {}, {}
    for name in ("first", "second", "target"):
        keys[name] = make_key(rig.folder / f"hk-{name}")
        ports[name] = rig.server(host_keys=[keys[name]]).port
        rig.alias(name, ports[name], *(("ProxyJump first,second",) if name == "target" else ()))
    other = make_key(rig.folder / "other")
    lines = [
        f"[127.0.0.1]:{ports[name]} {public(other if (name, problem) == (bad, 'changed') else keys[name])}"
        for name in ports
        if (name, problem) != (bad, "unknown")
    ]
    if problem == "revoked":
        lines.append(f"@revoked * {public(keys[bad])}")
    rig.known_hosts.write_text("\n".join(lines) + "\n")
    with pytest.raises(HostUnreachable, match=f"^{bad}.*: host key {problem}"):
        reached(rig, "target", host_keys=HostKeys.STRICT)
