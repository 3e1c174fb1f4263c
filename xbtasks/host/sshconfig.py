"""ssh_config: the text that Fabric looks hosts up in, and what a lookup says beyond what Fabric reads of it.

Fabric and paramiko read Host, Match and the usual settings. ``Include`` is put in here, as ssh does it: an
included file's blocks hold only where the block around the directive holds.
"""

from __future__ import annotations

import glob
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["SYSTEM_FILE", "HostConfig", "expand", "read_host"]

SYSTEM_FILE: Final = Path("/etc/ssh/ssh_config")
"""The machine's own configuration of ssh clients."""
_DEEPEST = 16
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LISTS = ("userknownhostsfile", "globalknownhostsfile")
_SETTING = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.*\S)")
_USER_KNOWN: Final = "~/.ssh/known_hosts ~/.ssh/known_hosts2"
_GLOBAL_KNOWN: Final = "/etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2"
_NOT_FOLLOWED: Final = {
    "BindInterface": "",
    "CASignatureAlgorithms": "",
    "Ciphers": "",
    "HostKeyAlgorithms": "",
    "KexAlgorithms": "",
    "KnownHostsCommand": "none",
    "MACs": "",
    "PubkeyAcceptedAlgorithms": "",
    "RequiredRSASize": "",
    "VerifyHostKeyDNS": "no",
}
"""Settings that would make a connection stricter or possible and are not followed, each with the value that
changes nothing. A user is told of them."""

_NO_WAY_IN: Final = {
    "CertificateFile": "",
    "GSSAPIAuthentication": "no",
    "HostbasedAuthentication": "no",
    "PKCS11Provider": "none",
    "SecurityKeyProvider": "",
}
"""Ways to authenticate that are not supported. A user is told of them when no other way was found."""


@dataclass(frozen=True, slots=True)
class HostConfig:
    """What ssh_config says of one host, beside the address, user, port and keys that Fabric takes from it.

    ``jumps`` are visited in order. ``strict`` is the word of StrictHostKeyChecking, or empty.
    ``alive_interval`` is in seconds. ``not_followed`` and ``no_way_in`` name settings that are there and have
    no effect here: the first make a connection stricter or possible, the second are ways to authenticate.
    """

    jumps: tuple[str, ...]
    proxy_command: str
    identity_files: tuple[str, ...]
    identities_only: bool
    identity_agent: str
    user_known_hosts: tuple[Path, ...]
    global_known_hosts: tuple[Path, ...]
    hash_known_hosts: bool
    host_key_alias: str
    strict: str
    connect_timeout: int | None
    alive_interval: int
    alive_count: int
    revoked_keys: Path | None
    bind_address: str
    address_family: str
    compression: bool
    not_followed: tuple[str, ...]
    no_way_in: tuple[str, ...]


def expand(path: Path, *, required: bool) -> str:
    """Return the text of an ssh_config file with all its Include directives replaced by what they name.

    Raises:
        UsageError: the file is required and can't be read, or files include each other without end.
    """
    try:
        text = path.read_text(errors="replace")
    except OSError as error:
        if not required and isinstance(error, FileNotFoundError):
            return ""
        raise UsageError(f"ssh_config file {path} can't be read: {error.strerror}") from error
    base = Path("/etc/ssh") if path.is_relative_to("/etc/ssh") else Path.home() / ".ssh"
    return "\n".join(_expanded(text, base, (), 0)) + "\n"


def read_host(options: Mapping[str, object], tokens: Mapping[str, str]) -> HostConfig:
    """Return what the looked-up ``options`` of a host say; ``tokens`` are ssh_config's, such as ``%h``.

    Raises:
        UsageError: a value is not what ssh_config allows.
    """

    def text(key: str, default: str = "") -> str:
        value = options.get(key)
        return default if value is None else str(value)

    def paths(key: str, default: str) -> tuple[Path, ...]:
        words = _words(text(key, default))
        return () if words == ["none"] else tuple(Path(_filled(word, tokens)) for word in words)

    identities = options.get("identityfile")
    files = [str(item) for item in identities] if isinstance(identities, list) else []

    def present(settings: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(
            name for name, inert in settings.items() if text(name.lower(), inert).lower() not in ("", inert)
        )

    revoked = paths("revokedhostkeys", "none")
    jump, command = text("proxyjump"), text("proxycommand")
    # Whichever of the two stands first holds, "none" too.
    order = [key for key in options if key in ("proxyjump", "proxycommand")]
    if order[:1] == ["proxycommand"] or jump.lower() == "none":
        jump = ""
    if order[:1] == ["proxyjump"] or command.lower() == "none":
        command = ""
    return HostConfig(
        jumps=tuple(_filled(part.strip(), tokens) for part in jump.split(",") if part.strip()),
        proxy_command=_filled(command, tokens),
        identity_files=tuple(_filled(name, tokens) for name in files if name.lower() != "none"),
        identities_only=text("identitiesonly", "no").lower() == "yes",
        identity_agent=_filled(text("identityagent", "SSH_AUTH_SOCK").strip('"'), tokens),
        user_known_hosts=paths("userknownhostsfile", _USER_KNOWN),
        global_known_hosts=paths("globalknownhostsfile", _GLOBAL_KNOWN),
        hash_known_hosts=text("hashknownhosts", "no").lower() == "yes",
        host_key_alias=text("hostkeyalias").lower(),
        strict=text("stricthostkeychecking").lower(),
        connect_timeout=_number(options, "connecttimeout", None),
        alive_interval=_number(options, "serveraliveinterval", 0) or 0,
        alive_count=_number(options, "serveralivecountmax", 3) or 1,
        revoked_keys=revoked[0] if revoked else None,
        bind_address=text("bindaddress"),
        address_family=text("addressfamily", "any").lower(),
        compression=text("compression", "no").lower() == "yes",
        not_followed=present(_NOT_FOLLOWED),
        no_way_in=present(_NO_WAY_IN),
    )


def _expanded(text: str, base: Path, around: tuple[str, ...], depth: int) -> Iterator[str]:
    """Yield the lines of a file whose blocks hold only where the criteria ``around`` hold too."""
    if depth > _DEEPEST:
        raise UsageError(f"ssh_config: more than {_DEEPEST} files include one another")
    block = around
    for line in text.splitlines():
        found = _SETTING.match(line)
        key, value = (found[1].lower(), found[2]) if found else ("", "")
        if key in ("host", "match"):
            block = (*around, *_criteria(key, value))
            yield _match_line(block) if around else line
        elif key == "include":
            for path in _included(value, base):
                yield from _expanded(_text(path), base, block, depth + 1)
                # the included file's last block must not go on here
                yield _match_line(block)
        elif key in _LISTS:
            # paramiko takes double quotes off a value that begins and ends with one, whatever is between
            yield f"{key} {shlex.join(_words(value))}"
        else:
            yield line


def _criteria(key: str, value: str) -> tuple[str, ...]:
    """Return the words of a Match line that hold where this Host or Match line holds."""
    words = _words(value)
    if key == "host":
        return ("originalhost", ",".join(words))
    return tuple(word for word in words if word.lower() != "all")


def _match_line(criteria: tuple[str, ...]) -> str:
    return f"Match {shlex.join(criteria)}" if criteria else "Match all"


def _included(value: str, base: Path) -> list[Path]:
    found: list[Path] = []
    for word in _words(value):
        pattern = str(Path(word).expanduser())
        full = pattern if pattern.startswith("/") else str(base / pattern)
        found += [Path(name) for name in sorted(glob.glob(full))]  # noqa: PTH207 - full may be absolute
    return found


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        raise UsageError(f"ssh_config file {path} can't be read: {error.strerror}") from error


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise UsageError(f"ssh_config: {value!r}: {error}") from error


def _filled(value: str, tokens: Mapping[str, str]) -> str:
    filled = re.sub(r"%(.)", lambda match: tokens.get(match[0], match[0]), value)
    filled = re.sub(r"\$\{(\w+)\}", lambda match: os.environ.get(match[1], match[0]), filled)
    return str(Path(filled).expanduser()) if filled.startswith("~") else filled


def _number(options: Mapping[str, object], key: str, default: int | None) -> int | None:
    value = options.get(key)
    if value is None or str(value).lower() == "none":
        return default
    try:
        return sum(int(number) * _UNITS[unit] for number, unit in _times(str(value).lower()))
    except ValueError as error:
        raise UsageError(f"ssh_config: {key} is no number: {value!r}") from error


def _times(text: str) -> list[tuple[str, str]]:
    """Return the parts of ssh's time format: ``90``, ``1m30s``."""
    if not re.fullmatch(r"(\d+[smhdw]?)+", text):
        raise ValueError(text)
    return re.findall(r"(\d+)([smhdw]?)", text)
