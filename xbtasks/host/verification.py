"""What a server must show before it is trusted, and what is not negotiated with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from paramiko import MissingHostKeyPolicy, Transport

from xbtasks.host.failures import Failure, unreachable
from xbtasks.host.keys import NEGOTIABLE, HostKey, KnownHosts, Trust, host_name, read_revoked, record
from xbtasks.knobs.values import HostKeys

if TYPE_CHECKING:
    from collections.abc import Callable

    from paramiko import Message, PKey, SSHClient

    from xbtasks.host.sshconfig import HostConfig

__all__ = ["HostKeyCheck", "TransportFactory"]

_WEAK_CIPHERS: Final = ("3des-cbc", "aes128-cbc", "aes192-cbc", "aes256-cbc")
_WEAK_MACS: Final = ("hmac-md5", "hmac-md5-96", "hmac-sha1-96")


class HostKeyCheck(MissingHostKeyPolicy):
    """Judges the key of one server. paramiko knows no keys of its own, so that it asks about every one."""

    def __init__(
        self,
        host: str,
        port: int,
        config: HostConfig,
        chosen: HostKeys | None,
        where: str,
        say: Callable[[str], None],
    ) -> None:
        self._name = config.host_key_alias or host_name(host, port)
        self._config = config
        self._policy = chosen or _policy_of(config.strict)
        self._where = where
        self._say = say
        self._known = KnownHosts.load((*config.user_known_hosts, *config.global_known_hosts))

    def key_types(self) -> tuple[str, ...]:
        """Return the types of host keys to ask for; those that are known come first."""
        known = tuple(name for name in self._known.types(self._name) if name in NEGOTIABLE)
        return (*known, *(name for name in NEGOTIABLE if name not in known))

    def missing_host_key(self, client: SSHClient, hostname: str, key: PKey) -> None:
        """Return when ``key`` may be trusted.

        Raises:
            HostUnreachable: it may not, and nothing was run.
        """
        del client, hostname
        shown = HostKey(key.get_name(), key.asbytes())
        trust, place = self._known.trust(self._name, shown)
        if trust is Trust.REVOKED or self._revoked(shown):
            raise unreachable(
                Failure.KEY_REVOKED, self._where, f"{shown} ({place or self._config.revoked_keys})"
            )
        if trust is Trust.CHANGED:
            detail = f"the server shows {shown}, {place} holds another key for {self._name}"
            raise unreachable(Failure.KEY_CHANGED, self._where, detail)
        if trust is Trust.KNOWN:
            return
        if self._policy is HostKeys.STRICT:
            detail = f"the server shows {shown}, no known_hosts file holds a key for {self._name}"
            if self._known.has_authority(self._name):
                detail += " (host certificates can't be checked)"
            raise unreachable(Failure.KEY_UNKNOWN, self._where, detail)
        self._record(shown)

    def _record(self, shown: HostKey) -> None:
        files = self._config.user_known_hosts
        what = f"{self._where}: new host key {shown}"
        if not files:
            self._say(f"{what}, accepted and not recorded (UserKnownHostsFile is none)")
            return
        try:
            record(files[0], self._name, shown, hashed=self._config.hash_known_hosts)
        except OSError as error:
            self._say(f"{what}, accepted, but {files[0]} can't be written: {error.strerror}")
        else:
            self._say(f"{what}, recorded in {files[0]}")

    def _revoked(self, shown: HostKey) -> bool:
        path = self._config.revoked_keys
        return path is not None and shown in read_revoked(path)


class TransportFactory:
    """Makes paramiko's transport; ``disconnected`` is what the server said when it ended the connection."""

    def __init__(self, key_types: tuple[str, ...]) -> None:
        self._key_types = key_types
        self.disconnected = ""

    def __call__(self, *arguments: object, **options: object) -> Transport:
        """Make a transport with paramiko's own arguments."""
        transport = _Transport(*arguments, **options)  # type: ignore[arg-type]
        transport.factory = self
        security = transport.get_security_options()
        # An RSA key signs with SHA-2; the type of the key itself is not a way to sign any more.
        wanted = [
            name
            for key_type in self._key_types
            for name in (("rsa-sha2-512", "rsa-sha2-256") if key_type == "ssh-rsa" else (key_type,))
        ]
        security.key_types = [name for name in wanted if name in security.key_types]
        security.ciphers = [name for name in security.ciphers if name not in _WEAK_CIPHERS]
        security.digests = [name for name in security.digests if name not in _WEAK_MACS]
        return transport


class _Transport(Transport):
    factory: TransportFactory

    def _parse_disconnect(self, message: Message) -> None:
        code, text = message.get_int(), message.get_text()
        self.factory.disconnected = text or f"code {code}"


def _policy_of(strict: str) -> HostKeys:
    """Return what ssh_config's StrictHostKeyChecking asks for; "ask" can't be answered, so it is strict.

    A changed key is refused even under "no".
    """
    return HostKeys.STRICT if strict in ("yes", "true", "ask") else HostKeys.ACCEPT_NEW
