"""known_hosts files: read as ssh-keygen reads them, and judged so that a changed key never passes."""

from __future__ import annotations

import base64
import itertools
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.errors import UsageError
from xbtasks.host.keys import HostKey, KnownHosts, Trust, host_name, read_lines, read_revoked, record

if TYPE_CHECKING:
    from pathlib import Path

ED, ED2 = (
    HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519one"),
    HostKey("ssh-ed25519", b"\0\0\0\x0bssh-ed25519two"),
)
RSA = HostKey("ssh-rsa", b"\0\0\0\x07ssh-rsathree")
DSA = HostKey("ssh-dss", b"\0\0\0\x07ssh-dssfour")
NAME = "[far.example]:2222"


def line(names: str, key: HostKey, mark: str = "") -> str:
    return f"{mark} {names} {key.type} {base64.b64encode(key.blob).decode()} a comment".strip() + "\n"


def known(*lines: str) -> KnownHosts:
    return KnownHosts(read_lines("".join(lines), "file"))


@pytest.mark.parametrize(
    ("lines", "trust", "where"),
    [
        ([], Trust.UNKNOWN, ""),
        ([line(NAME, ED)], Trust.KNOWN, "file:1"),
        ([line(NAME, ED2)], Trust.CHANGED, "file:1"),
        ([line(NAME, RSA)], Trust.CHANGED, "file:1"),
        ([line(NAME, RSA), line(NAME, ED2)], Trust.CHANGED, "file:2"),
        ([line(NAME, ED2), line(NAME, ED)], Trust.KNOWN, "file:2"),
        # a type that nobody negotiates any more says nothing of the others
        ([line(NAME, DSA)], Trust.UNKNOWN, ""),
        ([line("other", ED), line("far.example", ED2)], Trust.UNKNOWN, ""),
        # known by its name alone, as ssh finds it when the port's own line is missing
        ([line("far.example", ED)], Trust.KNOWN, "file:1"),
        ([line(NAME, ED2), line("far.example", ED)], Trust.CHANGED, "file:1"),
        ([line(NAME, ED), line("*", ED, "@revoked")], Trust.REVOKED, "file:2"),
        ([line(NAME, ED), line("far.*", ED, "@revoked")], Trust.REVOKED, "file:2"),
        ([line(NAME, ED), line("*", ED2, "@revoked")], Trust.KNOWN, "file:1"),
        ([line(NAME, ED), line("elsewhere", ED, "@revoked")], Trust.KNOWN, "file:1"),
        ([line("*", ED, "@cert-authority")], Trust.UNKNOWN, ""),
        ([line("*", ED2, "@cert-authority"), line(NAME, ED)], Trust.KNOWN, "file:2"),
        ([line("*", ED, "@some-mark")], Trust.UNKNOWN, ""),
        ([line("*.example", ED), line(NAME, ED2)], Trust.CHANGED, "file:2"),
        ([line("[*.example]:2222,!" + NAME, ED)], Trust.UNKNOWN, ""),
        ([line("[f?r.*]:2222", ED)], Trust.KNOWN, "file:1"),
        ([line("[FAR.Example]:2222", ED)], Trust.KNOWN, "file:1"),
    ],
)
def test_what_is_known_of_a_key(lines: list[str], trust: Trust, where: str) -> None:
    assert known(*lines).trust(NAME, ED) == (trust, where)


def test_the_types_that_a_server_is_asked_for() -> None:
    assert known(line(NAME, RSA), line(NAME, ED), line(NAME, ED2)).types(NAME) == ("ssh-rsa", "ssh-ed25519")
    assert known(line("far.example", RSA)).types(NAME) == ("ssh-rsa",)
    assert known(line("far.example", RSA), line(NAME, ED)).types(NAME) == ("ssh-ed25519",)
    assert known(line("*", ED, "@cert-authority")).types(NAME) == ()
    assert known(line("*", ED, "@cert-authority")).has_authority(NAME)


@pytest.mark.parametrize(
    ("host", "port", "name"),
    [
        ("Far", 22, "far"),
        ("far", 23, "[far]:23"),
        ("fe80::1%eth0", 22, "fe80::1%eth0"),
        ("::1", 9, "[::1]:9"),
    ],
)
def test_the_name_of_a_server(host: str, port: int, name: str) -> None:
    assert host_name(host, port) == name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_is_too_odd_to_be_read(text: str) -> None:
    hosts = KnownHosts(read_lines(text, "file"))
    assert hosts.trust(NAME, ED) == (Trust.UNKNOWN, "")


@given(
    st.lists(
        st.sampled_from(
            [
                line(NAME, ED),
                line(NAME, ED2),
                line("x", RSA),
                "# a comment\n",
                "@cert-authority\n",
                "|1|x| y z\n",
                "\n",
            ]
        )
    ),
    st.text(max_size=20),
)
def test_odd_lines_don_t_hide_the_others(lines: list[str], odd: str) -> None:
    odd = odd.replace("\n", " ").replace("\r", " ")
    plain = known(*lines).trust(NAME, ED)[0]
    mixed = "".join(itertools.chain.from_iterable((f"#{odd}\n", entry) for entry in lines))
    assert KnownHosts(read_lines(mixed, "file")).trust(NAME, ED)[0] is plain


def test_hashed_names_are_found_as_ssh_keygen_hashes_them(tmp_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    kind, blob = (tmp_path / "key.pub").read_text().split()[:2]
    mine = HostKey(kind, base64.b64decode(blob))
    file = tmp_path / "known_hosts"
    file.write_text("".join(f"{name} {kind} {blob}\n" for name in ("far", "[far]:2222", "::1")))
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    hosts = KnownHosts.load([tmp_path / "absent", file])
    assert [hosts.trust(name, mine)[0] for name in ("far", "[far]:2222", "::1", "fa", "[far]:22")] == [
        *([Trust.KNOWN] * 3),
        Trust.UNKNOWN,
        Trust.KNOWN,
    ]
    shown = subprocess.run(["ssh-keygen", "-l", "-f", str(key)], check=True, capture_output=True, text=True)
    assert mine.fingerprint == shown.stdout.split()[1]
    assert str(mine) == f"ed25519 {mine.fingerprint}"


@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("before", [None, "", "# no newline", "# newline\n"])
def test_what_is_recorded_is_known_afterwards(tmp_path: Path, before: str | None, hashed: bool) -> None:
    file = tmp_path / "new folder" / "known_hosts"
    if before is not None:
        file.parent.mkdir()
        file.write_text(before)
    record(file, NAME, ED, hashed=hashed)
    record(file, NAME, ED, hashed=hashed)
    text = file.read_text()
    assert text.startswith(before or "")
    assert len([entry for entry in text.splitlines() if not entry.startswith("#")]) == 1
    assert ("far" in text) is not hashed
    assert KnownHosts.load([file]).trust(NAME, ED)[0] is Trust.KNOWN
    assert oct(file.stat().st_mode & 0o777) == (
        "0o600" if before is None else oct(file.stat().st_mode & 0o777)
    )


def test_two_runs_that_record_at_once_lose_nothing(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    names = [f"host-{number % 10}" for number in range(40)]
    threads = [
        threading.Thread(target=record, args=(file, name, ED), kwargs={"hashed": False}) for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.split()[0] for entry in file.read_text().splitlines()) == sorted(set(names))


def test_a_file_of_revoked_keys(tmp_path: Path) -> None:
    file = tmp_path / "revoked"
    file.write_text(f"# comment\n{RSA.type} {base64.b64encode(RSA.blob).decode()} someone\n\nnonsense\n")
    assert read_revoked(file) == {RSA}
    file.write_bytes(b"SSHKRL\n\0\0\0\0\1")
    with pytest.raises(UsageError, match="is a KRL"):
        read_revoked(file)
    with pytest.raises(UsageError, match="can't be read"):
        read_revoked(tmp_path / "absent")
