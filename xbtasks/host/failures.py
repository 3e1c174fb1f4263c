"""How a connection to a host fails, by kind, and what a user can do about each."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from xbtasks.errors import HostUnreachable

__all__ = ["Failure", "unreachable"]


class Failure(StrEnum):
    """A kind of failure, in the words that a user reads."""

    UNREACHABLE = "unreachable"
    REFUSED = "connection refused"
    BUSY = "connection dropped before the ssh handshake"
    PROTOCOL = "no common ssh protocol"
    AUTHENTICATION = "authentication failed"
    TOO_MANY_KEYS = "too many authentication failures"
    KEY_UNKNOWN = "host key unknown"
    KEY_CHANGED = "host key changed"
    KEY_REVOKED = "host key revoked"
    TOO_MANY_SESSIONS = "too many sessions"
    LINK_LOST = "link lost"
    SHELL = "remote shell unusable"


_HINTS: Final = {
    Failure.UNREACHABLE: "check the name and the network, or give the way with ProxyJump in ssh_config",
    Failure.REFUSED: "check that sshd runs there and the port",
    Failure.BUSY: "the server may be busy (MaxStartups) or bar this address; try again later",
    Failure.PROTOCOL: "the server offers only algorithms that are too old or too new",
    Failure.AUTHENTICATION: "check the user name; give a key with IdentityFile in ssh_config, or ssh-add one",
    Failure.TOO_MANY_KEYS: "name the key with IdentityFile and set IdentitiesOnly yes in ssh_config",
    Failure.KEY_UNKNOWN: "compare its fingerprint and record it with ssh, or set XB_HOST_KEYS=accept-new",
    Failure.KEY_CHANGED: "nothing was run; find out why it changed before you remove the old line",
    Failure.KEY_REVOKED: "nothing was run; this key must not be used any more",
    Failure.TOO_MANY_SESSIONS: "the server allows no session more (MaxSessions); close others",
    Failure.LINK_LOST: "run the command again",
    Failure.SHELL: "the account needs a login shell that runs commands, and a POSIX sh",
}


def unreachable(kind: Failure, where: str, detail: str = "") -> HostUnreachable:
    """Return the error of ``kind`` at the host or hop ``where``."""
    return HostUnreachable(f"{where}: {kind}{f': {detail}' if detail else ''}", hint=_HINTS[kind])
