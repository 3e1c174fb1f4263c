"""From a host's name to an open ssh connection: ssh_config, every hop on the way, keys, and retries.

Fabric's Connection authenticates and carries each hop; what it leaves open is closed here, for jump hosts
and target alike: the host key is checked, one set of keys is offered, agents are not forwarded.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
import random
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError, reason_of
from xbtasks.host.failures import Failure, unreachable
from xbtasks.host.handshake import Dropped, handshake
from xbtasks.host.lookup import look_up
from xbtasks.host.proxy import ProxyProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric import Connection
    from paramiko import SSHConfig

    from xbtasks.errors import HostUnreachable
    from xbtasks.host.sshconfig import HostConfig
    from xbtasks.knobs.references import HostSpec
    from xbtasks.knobs.values import HostKeys

__all__ = ["Dialer", "Route"]

_ATTEMPTS: Final = 5
_FIRST_PAUSE: Final = 0.25  # seconds; doubled each time, and up to half as much again by chance
_HURRIED_ATTEMPTS: Final = 2
_HURRIED_SECONDS: Final = 10
_MOST_HOPS: Final = 8


@dataclass(frozen=True, slots=True)
class Route:
    """An open connection: the target's, and what lies below it, nearest to the target last."""

    connection: Connection
    config: HostConfig
    below: tuple[Route | ProxyProcess, ...]

    def close(self) -> None:
        """Close the connection and everything below it."""
        self.connection.client.close()
        for part in reversed(self.below):
            part.close()

    def cut(self) -> None:
        """Close all of it without a word to a server that may not listen any more: from below."""
        for part in self.below:
            part.close() if isinstance(part, ProxyProcess) else part.cut()
        self.connection.client.close()


class Dialer:
    """Opens connections to one host, each as if it were the first.

    ``ssh_config`` is the only file that is read; None stands for the user's and the system's own.
    ``host_keys`` is None where the user left it to ssh_config and the default. ``timeout`` (seconds) holds
    for each stage of each hop. ``say`` takes lines for a person.
    """

    def __init__(
        self,
        spec: HostSpec,
        *,
        ssh_config: Path | None,
        host_keys: HostKeys | None,
        timeout: int,
        timeout_is_default: bool,
        say: Callable[[str], None],
    ) -> None:
        self._spec = spec
        self._file = ssh_config
        self._host_keys = host_keys
        self._timeout = timeout
        self._timeout_is_default = timeout_is_default
        self._say = say
        self._said: set[str] = set()
        self._hurried = False
        self._config: SSHConfig | None = None
        self._hosts: dict[str, None] = {}
        self._users: dict[str, None] = {}

    @property
    def names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The hosts (names and addresses) and the users of the hops so far, the target first."""
        return tuple(self._hosts), tuple(self._users)

    def dial(self, *, hurried: bool = False) -> Route:
        """Return an open connection; a server that drops it before the handshake is asked again.

        A ``hurried`` one is given up sooner.

        Raises:
            HostUnreachable: there is none, with the kind of failure and what to do.
            UsageError: ssh_config is wrong.
        """
        # Failures are told by kind; paramiko would log their tracebacks to the terminal.
        logging.getLogger("paramiko").setLevel(logging.CRITICAL)
        self._hurried = hurried
        attempts = _HURRIED_ATTEMPTS if hurried else _ATTEMPTS
        pause = _FIRST_PAUSE
        for attempt in itertools.count(1):
            try:
                return self._open(self._spec, None, 0)
            except Dropped as dropped:
                if attempt == attempts:
                    error = unreachable(Failure.BUSY, dropped.where, f"{attempts} attempts; {dropped}")
                    raise error from dropped
                time.sleep(pause * random.uniform(1, 1.5))  # noqa: S311 - spreads clients, no secret
                pause *= 2
        raise AssertionError

    def _open(self, spec: HostSpec, through: Route | None, depth: int) -> Route:
        """Open the way to ``spec``: its own jump hosts first, unless it is itself reached ``through`` one."""
        if depth > _MOST_HOPS:
            raise UsageError(f"ssh_config: more than {_MOST_HOPS} jump hosts on the way to {self._spec}")
        connection = self._connection(spec)
        config = self._host_config(connection, spec)
        self._hosts |= dict.fromkeys((spec.host, connection.host))
        self._users |= dict.fromkeys((connection.user,))
        where = str(spec) if through is None else f"{spec} through {through.connection.original_host}"
        with contextlib.ExitStack() as opened:
            below: list[Route | ProxyProcess] = []
            if through is None:
                for jump in config.jumps:
                    hop = self._open(_jump_spec(jump), through, depth + 1)
                    opened.callback(hop.close)
                    below.append(hop)
                    through = hop
            if through is not None:
                connection.gateway = through.connection
                where = f"{spec} through {through.connection.original_host}"
            elif config.proxy_command:
                proxy = _start_proxy(config.proxy_command, where)
                opened.callback(proxy.close)
                below.append(proxy)
                connection.connect_kwargs["sock"] = proxy.socket
            else:
                connection.connect_kwargs["sock"] = self._tcp(connection, config, where)
            try:
                handshake(
                    connection,
                    config,
                    where,
                    host_keys=self._host_keys,
                    seconds=self._seconds(config),
                    say=self._say,
                )
            except Dropped as dropped:
                raise _proxy_failure(below, where) or dropped from None
            opened.pop_all()
            return Route(connection, config, tuple(below))

    def _connection(self, spec: HostSpec) -> Connection:
        from fabric import Config, Connection
        from paramiko import ConfigParseError, CouldNotCanonicalize

        if self._config is None:
            self._config = _read_config(self._file)
        try:
            return Connection(
                spec.host,
                user=spec.user,
                port=spec.port,
                config=Config(lazy=True, ssh_config=self._config),
                gateway=False,
                forward_agent=False,
                connect_timeout=self._timeout,
                connect_kwargs={"look_for_keys": False},
            )
        except (ConfigParseError, CouldNotCanonicalize, ValueError) as error:
            raise UsageError(f"ssh_config can't be used for {spec}: {error}") from error

    def _host_config(self, connection: Connection, spec: HostSpec) -> HostConfig:
        from xbtasks.host.sshconfig import read_host

        local = socket.gethostname()
        config = read_host(
            connection.ssh_config,
            {
                "%%": "%",
                "%d": str(Path.home()),
                "%h": connection.host,
                "%i": str(os.getuid()),
                "%k": str(connection.ssh_config.get("hostkeyalias", connection.host)),
                "%L": local.partition(".")[0],
                "%l": local,
                "%n": spec.host,
                "%p": str(connection.port),
                "%r": connection.user,
                "%u": str(connection.config.user),
            },
        )
        if config.not_followed:
            self._once(f"ssh_config: {', '.join(config.not_followed)} is not followed for {spec.host}")
        return config

    def _tcp(self, connection: Connection, config: HostConfig, where: str) -> socket.socket:
        families = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}
        failure: OSError | None = None
        try:
            family = families.get(config.address_family, socket.AF_UNSPEC)
            found = look_up(connection.host, connection.port, family, self._seconds(config))
        except TimeoutError as error:
            raise unreachable(Failure.UNREACHABLE, where, f"{connection.host}: {error}") from error
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "no name that can be looked up"
            raise unreachable(Failure.UNREACHABLE, where, f"{connection.host}: {reason}") from error
        for family, kind, protocol, _, address in found:
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(self._seconds(config))
                if config.bind_address:
                    sock.bind((config.bind_address, 0))
                sock.connect(address)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                sock.close()
                failure = error
            else:
                self._hosts[str(address[0])] = None
                return sock
        place = f"{connection.host} port {connection.port}"
        if isinstance(failure, ConnectionRefusedError):
            raise unreachable(Failure.REFUSED, where, place) from failure
        if isinstance(failure, TimeoutError):
            detail = f"{place} doesn't answer within {self._seconds(config)} s"
        else:
            detail = f"{place}: {failure.strerror if failure else 'no address'}"
        raise unreachable(Failure.UNREACHABLE, where, detail) from failure

    def _seconds(self, config: HostConfig) -> int:
        seconds = self._timeout
        if self._timeout_is_default and config.connect_timeout:
            seconds = config.connect_timeout
        return min(seconds, _HURRIED_SECONDS) if self._hurried else seconds

    def _once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(text)


def _read_config(file: Path | None) -> SSHConfig:
    """Return ssh_config ready for lookups; ``file`` alone, or the user's and then the system's.

    Raises:
        UsageError: it can't be read or is no ssh_config.
    """
    from paramiko import ConfigParseError, SSHConfig

    from xbtasks.host.sshconfig import SYSTEM_FILE, expand

    if file is not None:
        text = expand(file, required=True)
    else:
        user = expand(Path.home() / ".ssh/config", required=False)
        text = f"{user}Match all\n{expand(SYSTEM_FILE, required=False)}"
    config = SSHConfig()
    # Other settings are filled in later, with the user and port that were given on top of ssh_config.
    config.TOKENS_BY_CONFIG_KEY = {
        key: SSHConfig.TOKENS_BY_CONFIG_KEY[key] for key in ("hostname", "match-exec")
    }
    try:
        config.parse(io.StringIO(text))
    except ConfigParseError as error:
        raise UsageError(f"ssh_config: {error}") from error
    return config


def _jump_spec(text: str) -> HostSpec:
    """Return the jump host of ``[ssh://][user@]host[:port]``.

    Raises:
        UsageError: it is none.
    """
    from xbtasks.knobs.references import parse_host
    from xbtasks.knobs.values import BadValue

    try:
        return parse_host(text.removeprefix("ssh://").rstrip("/"))
    except BadValue as error:
        raise UsageError(f"ssh_config: ProxyJump {text!r}: {error}") from error


def _proxy_failure(below: list[Route | ProxyProcess], where: str) -> HostUnreachable | None:
    """Return the error that a ProxyCommand's own end is, if there is one and it ended badly."""
    for part in below:
        if isinstance(part, ProxyProcess) and (said := part.failure()):
            return unreachable(Failure.UNREACHABLE, where, f"ProxyCommand: {said}")
    return None


def _start_proxy(command: str, where: str) -> ProxyProcess:
    try:
        return ProxyProcess(command)
    except OSError as error:
        raise unreachable(
            Failure.UNREACHABLE, where, f"ProxyCommand can't be started: {reason_of(error)}"
        ) from error
