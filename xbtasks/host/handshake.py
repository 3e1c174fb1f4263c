"""One hop's ssh handshake: host key, keys offered, algorithms; and what its failure means."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from xbtasks.errors import HostUnreachable, reason_of
from xbtasks.host.failures import Failure, unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric import Connection

    from xbtasks.host.authentication import KeysRefused
    from xbtasks.host.sshconfig import HostConfig
    from xbtasks.knobs.values import HostKeys

__all__ = ["Dropped", "handshake"]


class Dropped(Exception):
    """The server closed the connection before it was one: it may be asked again."""

    def __init__(self, where: str, detail: str) -> None:
        super().__init__(detail)
        self.where = where


def handshake(
    connection: Connection,
    config: HostConfig,
    where: str,
    *,
    host_keys: HostKeys | None,
    seconds: int,
    say: Callable[[str], None],
) -> None:
    """Open ``connection`` over what its gateway or its ``sock`` is; ``seconds`` hold for each stage.

    Raises:
        HostUnreachable: it can't be opened, with the kind of failure at the hop ``where``.
        Dropped: it was closed before it was open.
    """
    from paramiko import AuthenticationException, ChannelException, SSHException
    from paramiko.ssh_exception import IncompatiblePeer

    from xbtasks.host.authentication import KeyAuthentication, KeysRefused
    from xbtasks.host.verification import HostKeyCheck, TransportFactory

    check = HostKeyCheck(connection.host, connection.port, config, host_keys, where, say)
    factory = TransportFactory(check.key_types())
    connection.client.set_missing_host_key_policy(check)
    connection.connect_timeout = seconds
    connection.connect_kwargs.update(
        transport_factory=factory,
        banner_timeout=seconds,
        auth_timeout=seconds,
        channel_timeout=seconds,
        compress=config.compression,
    )
    connection.config.authentication.strategy_class = lambda **given: KeyAuthentication(
        given["username"], config
    )
    begun = time.monotonic()
    try:
        connection.open()
    except HostUnreachable:
        raise
    except KeysRefused as error:
        raise _refused(error, factory.disconnected, connection.user, config, where) from error
    except AuthenticationException as error:
        raise unreachable(Failure.AUTHENTICATION, where, str(error)) from error
    except ChannelException as error:
        # only a jump host opens a channel here
        raise unreachable(Failure.UNREACHABLE, where, f"the jump host says: {error.text}") from error
    except IncompatiblePeer as error:
        raise unreachable(Failure.PROTOCOL, where, str(error)) from error
    except (SSHException, EOFError, OSError) as error:
        if time.monotonic() - begun >= seconds:
            detail = f"no ssh server answered within {seconds} s"
            raise unreachable(Failure.UNREACHABLE, where, detail) from error
        raise Dropped(where, reason_of(error) or type(error).__name__) from error
    finally:
        if not connection.is_connected:
            connection.client.close()
            if "sock" in connection.connect_kwargs:
                connection.connect_kwargs["sock"].close()


def _refused(
    error: KeysRefused, said: str, user: str, config: HostConfig, where: str
) -> HostUnreachable | Dropped:
    """Return what it means that no key was accepted and the server ``said`` this at the end, if anything."""
    if "too many auth" in said.lower():
        return unreachable(Failure.TOO_MANY_KEYS, where, str(error))
    if error.link_ended and not said:
        return Dropped(where, "ended during authentication")
    unsupported = [f"{name} is not supported" for name in config.no_way_in]
    notes = (f"user {user}", str(error), *unsupported, said)
    return unreachable(Failure.AUTHENTICATION, where, "; ".join(note for note in notes if note))
