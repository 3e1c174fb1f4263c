"""Host keys: known_hosts files as OpenSSH keeps them, and the policy that every hop is held to.

paramiko's own reader gives up a whole file for one line that it doesn't know, takes ``@revoked`` and
``@cert-authority`` for host names, and knows no patterns. This one follows sshd(8), SSH_KNOWN_HOSTS FILE
FORMAT, in all but one thing: host certificates can't be checked, since paramiko asks no server for one.
"""

from __future__ import annotations

import base64
import fcntl
import hashlib
import hmac
import os
import re
import secrets
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

__all__ = [
    "NEGOTIABLE",
    "HostKey",
    "KnownHosts",
    "KnownLine",
    "Trust",
    "host_name",
    "read_lines",
    "read_revoked",
    "record",
]

NEGOTIABLE: Final = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
)
"""Types of host keys that a connection can be made with."""

_SSH_PORT = 22


class Trust(Enum):
    """What the known_hosts files say of a key that a server showed."""

    KNOWN = "known"
    UNKNOWN = "unknown"
    CHANGED = "changed"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class HostKey:
    """A public host key: its type and its wire form."""

    type: str
    blob: bytes

    @property
    def fingerprint(self) -> str:
        """The fingerprint as ssh-keygen prints it: ``SHA256:`` and unpadded base64."""
        return "SHA256:" + base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")

    def __str__(self) -> str:
        return f"{self.type.removeprefix('ssh-')} {self.fingerprint}"


@dataclass(frozen=True, slots=True)
class KnownLine:
    """A line of a known_hosts file. ``mark`` is "", "revoked" or "cert-authority", ``where`` is file:line."""

    mark: str
    patterns: tuple[str, ...]
    key: HostKey
    where: str

    def names(self, host: str) -> bool:
        """Return whether the line speaks of ``host`` (see :func:`host_name`)."""
        found = False
        for pattern in self.patterns:
            if pattern.startswith("!"):
                if _matches(pattern[1:], host):
                    return False
            elif _matches(pattern, host):
                found = True
        return found


class KnownHosts:
    """The lines of all known_hosts files that hold for a host."""

    def __init__(self, lines: Iterable[KnownLine]) -> None:
        self._lines = tuple(lines)

    @classmethod
    def load(cls, files: Iterable[Path]) -> KnownHosts:
        """Read ``files``; one that is absent or can't be read says nothing, as with ssh."""
        return cls(line for path in files for line in _read(path))

    def trust(self, host: str, key: HostKey) -> tuple[Trust, str]:
        """Return what is known of ``key`` for ``host``, and the file and line that say it."""
        bare = _without_port(host)
        for line in self._lines:
            if line.mark == "revoked" and line.key == key and (line.names(host) or line.names(bare)):
                return Trust.REVOKED, line.where
        plain = [line for line in self._lines if not line.mark and line.names(host)]
        for line in plain:
            if line.key == key:
                return Trust.KNOWN, line.where
        # A type that can't be negotiated may still be right; the server was never asked to show it.
        changed = [line for line in plain if line.key.type in NEGOTIABLE]
        if changed:
            same = [line for line in changed if line.key.type == key.type]
            return Trust.CHANGED, (same or changed)[0].where
        for line in self._lines:
            if not line.mark and line.key == key and line.names(bare):
                return Trust.KNOWN, line.where
        return Trust.UNKNOWN, ""

    def types(self, host: str) -> tuple[str, ...]:
        """Return the types of the keys known for ``host``: a server is to show one of these."""
        bare = _without_port(host)
        lines = [line for line in self._lines if not line.mark and line.names(host)]
        lines = lines or [line for line in self._lines if not line.mark and line.names(bare)]
        return tuple(dict.fromkeys(line.key.type for line in lines))

    def has_authority(self, host: str) -> bool:
        """Return whether an ``@cert-authority`` line speaks of ``host``."""
        return any(line.mark == "cert-authority" and line.names(host) for line in self._lines)


def host_name(host: str, port: int) -> str:
    """Return the name that known_hosts files have for a server: ``host``, or ``[host]:port``."""
    name = host.lower()
    return name if port == _SSH_PORT else f"[{name}]:{port}"


def read_lines(text: str, origin: str) -> Iterator[KnownLine]:
    """Return what can be understood of a known_hosts file; comments, options and broken lines are passed."""
    for number, raw in enumerate(text.splitlines(), 1):
        words = raw.split()
        mark = ""
        if words and words[0] in ("@revoked", "@cert-authority"):
            mark = words.pop(0)[1:]
        if len(words) < 3 or words[0].startswith(("#", "@")):
            continue
        try:
            blob = base64.b64decode(words[2], validate=True)
        except ValueError:
            continue
        yield KnownLine(mark, tuple(words[0].split(",")), HostKey(words[1], blob), f"{origin}:{number}")


def read_revoked(path: Path) -> frozenset[HostKey]:
    """Return the keys of a RevokedHostKeys file: public keys, one a line.

    Raises:
        UsageError: it can't be read or is a binary KRL. ssh trusts no host at all then.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"RevokedHostKeys file {path} can't be read: {error.strerror}") from error
    if data.startswith(b"SSHKRL\n\0"):
        raise UsageError(f"RevokedHostKeys file {path} is a KRL, which can't be read here", hint="list keys")
    text = "".join(f"* {line}\n" for line in data.decode(errors="replace").splitlines())
    return frozenset(line.key for line in read_lines(text, str(path)))


def record(path: Path, host: str, key: HostKey, *, hashed: bool) -> None:
    """Add ``key`` of ``host`` to a known_hosts file, which is made if it is missing.

    Raises:
        OSError: the file can't be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = _hashed(host, secrets.token_bytes(20)) if hashed else host
    line = f"{name} {key.type} {base64.b64encode(key.blob).decode()}\n"
    handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "r+b") as file:
        # Two runs that meet the same new host write its key once.
        fcntl.flock(file, fcntl.LOCK_EX)
        there = file.read()
        known = KnownHosts(read_lines(there.decode(errors="replace"), str(path)))
        if known.trust(host, key)[0] is not Trust.KNOWN:
            file.write((b"\n" if there and not there.endswith(b"\n") else b"") + line.encode())


def _read(path: Path) -> Iterator[KnownLine]:
    try:
        text = path.read_text(errors="replace")
    except OSError:
        return iter(())
    return read_lines(text, str(path))


def _matches(pattern: str, host: str) -> bool:
    if pattern.startswith("|"):
        parts = pattern.split("|")
        if len(parts) != 4 or parts[1] != "1":
            return False
        try:
            salt = base64.b64decode(parts[2], validate=True)
        except ValueError:
            return False
        return hmac.compare_digest(_hashed(host, salt).encode(), pattern.encode())
    glob = "".join({"*": ".*", "?": "."}.get(char, re.escape(char)) for char in pattern.lower())
    return re.fullmatch(glob, host) is not None


def _hashed(host: str, salt: bytes) -> str:
    digest = hmac.new(salt, host.encode(), hashlib.sha1).digest()
    return f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()}"


def _without_port(host: str) -> str:
    return host[1:].partition("]")[0] if host.startswith("[") else host
