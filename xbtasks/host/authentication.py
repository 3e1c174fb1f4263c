"""Which keys a server is offered, and in what order: as ssh does it, with the named key first.

Fabric's own strategy is marked experimental: it ignores IdentitiesOnly and IdentityAgent, stops at the
first key that it can't read, and asks for a password where nobody can answer.
"""

from __future__ import annotations

import os
import socket
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.exceptions import UnsupportedAlgorithm
from paramiko import AgentKey, BadAuthenticationType, PasswordRequiredException, PKey, SSHException
from paramiko.agent import AgentSSH
from paramiko.auth_strategy import (
    AuthResult,
    AuthStrategy,
    InMemoryPrivateKey,
    NoneAuth,
    OnDiskPrivateKey,
    SourceResult,
)
from paramiko.pkey import UnknownKeyType
from paramiko.ssh_exception import AuthenticationException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from paramiko.auth_strategy import AuthSource
    from paramiko.transport import Transport

    from xbtasks.host.sshconfig import HostConfig

from xbtasks.errors import reason_of

__all__ = ["KeyAuthentication", "KeysRefused"]

_DEFAULT_KEYS: Final = ("id_rsa", "id_ecdsa", "id_ed25519")


class KeysRefused(AuthenticationException):
    """No key was accepted; ``link_ended`` says whether the server ended the connection over it."""

    def __init__(self, offered: int, notes: tuple[str, ...], *, link_ended: bool) -> None:
        self.link_ended = link_ended
        keys = "no key was offered" if not offered else f"keys offered: {offered}"
        super().__init__("; ".join((keys, *notes)))


class KeyAuthentication(AuthStrategy):
    """Offers keys of one user to one server; never asks anybody anything."""

    def __init__(self, username: str, config: HostConfig) -> None:
        super().__init__(ssh_config=None)  # type: ignore[arg-type]
        self._username = username
        self._config = config
        self._notes: list[str] = []
        self._agent = _Agent()

    def authenticate(self, transport: Transport) -> AuthResult:
        """Offer one key after another.

        Raises:
            KeysRefused: none was accepted, or the server ended the conversation.
            AuthenticationException: the server didn't answer in time.
        """
        result = AuthResult(strategy=self)
        offered = 0
        try:
            self._agent.open(self._config.identity_agent, self._notes)
            for source in self.get_sources():
                try:
                    rest = source.authenticate(transport)
                except SSHException as error:
                    if "timeout" in str(error).lower():
                        raise  # the server is silent, another key would wait as long
                    self._note(error)
                else:
                    if not rest:
                        result.append(SourceResult(source, rest))
                        return result
                    self._notes.append(
                        f"the server wants {' and '.join(rest)} as well, which is not supported"
                    )
                offered += not isinstance(source, NoneAuth)
                if not transport.is_active():
                    break
        finally:
            self._agent.close()
        raise KeysRefused(offered, tuple(dict.fromkeys(self._notes)), link_ended=not transport.is_active())

    def get_sources(self) -> Iterator[AuthSource]:
        """Yield what to try: the keys that ssh_config names, the agent's others, the default files."""
        held = {key.asbytes(): key for key in self._agent.get_keys()}
        named = self._config.identity_files
        for name in named:
            yield from self._identity(Path(name), held)
        if not self._config.identities_only:
            for key in held.values():
                yield InMemoryPrivateKey(self._username, key)
        if not named:
            for name in _DEFAULT_KEYS:
                path = Path.home() / ".ssh" / name
                if path.exists():
                    yield from self._identity(path, held)
        yield NoneAuth(self._username)

    def _identity(self, path: Path, held: dict[bytes, AgentKey]) -> Iterator[AuthSource]:
        """Yield the key at ``path``, from the agent if that holds it: the file may need a passphrase."""
        public = _public_blob(path.with_name(f"{path.name}.pub")) or _public_blob(path)
        if public in held:
            yield InMemoryPrivateKey(self._username, held.pop(public))
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of kinds of keys that are on their way out
                key = PKey.from_path(path)
        except FileNotFoundError:
            if self._config.identity_files:
                self._notes.append(f"{path} is not there")
        except OSError as error:
            self._notes.append(f"{path} can't be read: {error.strerror}")
        except (PasswordRequiredException, TypeError):
            self._notes.append(f"{path} needs a passphrase: ssh-add it first")
        except (SSHException, UnknownKeyType, UnsupportedAlgorithm, ValueError) as error:
            self._notes.append(f"{path} is no private key that can be used: {error}")
        else:
            held.pop(key.asbytes(), None)
            yield OnDiskPrivateKey(self._username, "ssh-config", path, key)

    def _note(self, error: SSHException) -> None:
        if isinstance(error, BadAuthenticationType):
            self._notes.append(f"the server accepts {', '.join(error.allowed_types)}")
        elif not isinstance(error, AuthenticationException):
            self._notes.append(str(error))


class _Agent(AgentSSH):
    """The ssh agent that IdentityAgent names; paramiko's own knows only ``SSH_AUTH_SOCK``."""

    if TYPE_CHECKING:

        def _connect(self, conn: socket.socket) -> None: ...
        def _close(self) -> None: ...

    def open(self, identity_agent: str, notes: list[str]) -> None:
        if identity_agent == "SSH_AUTH_SOCK":
            path = os.environ.get("SSH_AUTH_SOCK", "")
        elif identity_agent.startswith("$"):
            path = os.environ.get(identity_agent[1:].strip("{}"), "")
        else:
            path = "" if identity_agent.lower() == "none" else identity_agent
        if not path:
            return
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(10)
        try:
            connection.connect(path)
            self._connect(connection)
        except (OSError, SSHException) as error:
            connection.close()
            notes.append(f"the ssh agent at {path} doesn't answer: {reason_of(error)}")

    def close(self) -> None:
        self._close()


def _public_blob(path: Path) -> bytes:
    """Return the public key of a ``.pub`` file, or nothing."""
    import base64

    try:
        words = path.read_bytes().split()
        return base64.b64decode(words[1], validate=True) if len(words) > 1 else b""
    except (OSError, ValueError):
        return b""
