"""Real sshd servers on loopback with throw-away keys, and clients that know only these.

Nothing of the system is changed: keys, configuration and known_hosts lie in the test's folder. What an
account's login shell would do is done by a ForceCommand: it prints noise and runs the command in any shell.
"""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xbtasks.host.dial import Dialer
from xbtasks.host.framed import FramedHost
from xbtasks.host.recording import Evidence
from xbtasks.host.ssh import SshTransport
from xbtasks.knobs.references import parse_host

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from xbtasks.knobs.values import HostKeys

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
USER = "root" if os.geteuid() == 0 else os.environ.get("USER", "nobody")


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key pair at ``path`` and return it."""
    argv = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", path.name, "-f", str(path)]
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path


def free_port() -> int:
    """Return a port on loopback that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@dataclass
class Server:
    """A running sshd."""

    port: int
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        """What it has logged so far."""
        return (self.folder / "log").read_text(errors="replace")

    def sessions(self) -> list[int]:
        """Return the ids of the processes that serve connections."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        return [int(word) for word in found.stdout.split()]

    def stop(self) -> None:
        """End the server and the connections that it serves."""
        children = self.sessions()
        self.process.terminate()
        self.process.wait(10)
        for pid in children:
            subprocess.run(["kill", str(pid)], check=False, stderr=subprocess.DEVNULL)


@dataclass
class Rig:
    """Servers and what a client needs for them, in one folder."""

    folder: Path
    opened: ExitStack
    said: list[str] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.identity = make_key(self.folder / "id")
        self.known_hosts = self.folder / "known_hosts"
        self.ssh_config = self.folder / "ssh_config"
        self.ssh_config.write_text("")

    def server(
        self,
        *lines: str,
        shell: str = "",
        noise: str = "",
        environment: Mapping[str, str] | None = None,
        host_keys: Sequence[Path] = (),
        port: int = 0,
    ) -> Server:
        """Start a server with ``lines`` of sshd_config.

        ``noise`` is printed before the command is run by ``shell`` with ``environment`` on top of its own.
        """
        self.count += 1
        folder = self.folder / f"server-{self.count}"
        folder.mkdir()
        keys = list(host_keys) or [make_key(folder / "host_key")]
        port = port or free_port()
        (folder / "authorized_keys").write_text((self.folder / "id.pub").read_text())
        config = [
            *(f"Port {port}", "ListenAddress 127.0.0.1", "UsePAM no", "StrictModes no", "PidFile none"),
            *(f"AuthorizedKeysFile {folder}/authorized_keys", "LogLevel VERBOSE"),
            *("AllowTcpForwarding yes", "PermitRootLogin yes", "PrintMotd no", "UseDNS no"),
            *(f"HostKey {key}" for key in keys),
        ]
        if shell or noise or environment:
            command = folder / "login"
            exports = [f"export {name}={shlex.quote(value)}" for name, value in (environment or {}).items()]
            run = f'exec {shell or "/bin/sh"} -c "$SSH_ORIGINAL_COMMAND"'
            command.write_text("\n".join(("#!/bin/sh", *exports, noise, run)) + "\n")
            command.chmod(0o755)
            config.append(f"ForceCommand {command}")
        # the first value of a setting holds
        (folder / "sshd_config").write_text("\n".join((*lines, *config)) + "\n")
        Path("/run/sshd").mkdir(exist_ok=True)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(folder / "sshd_config")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        server = Server(port, folder, process)
        self.opened.callback(server.stop)
        _wait_for(port, process, folder / "log")
        return server

    def alias(self, name: str, port: int, *lines: str) -> None:
        """Add a host to the client's ssh_config."""
        block = [
            f"Host {name}",
            "HostName 127.0.0.1",
            f"Port {port}",
            f"User {USER}",
            f"IdentityFile {self.identity}",
            f"UserKnownHostsFile {self.known_hosts}",
        ]
        # the first value of a setting holds
        text = "\n  ".join((block[0], *lines, *block[1:])) + "\n"
        self.ssh_config.write_text(self.ssh_config.read_text() + text)

    def dialer(self, name: str = "far", *, host_keys: HostKeys | None = None, timeout: int = 20) -> Dialer:
        """Return what dials the host ``name`` of the client's ssh_config."""
        return Dialer(
            parse_host(name),
            ssh_config=self.ssh_config,
            host_keys=host_keys,
            timeout=timeout,
            timeout_is_default=False,
            say=self.said.append,
        )

    def host(
        self,
        name: str = "far",
        *,
        evidence: Path | None = None,
        host_keys: HostKeys | None = None,
        timeout: int = 20,
    ) -> FramedHost:
        """Return the host ``name`` of the client's ssh_config; it is closed with the rig."""
        dialer = self.dialer(name, host_keys=host_keys, timeout=timeout)
        host = FramedHost(SshTransport(name, dialer), Evidence(evidence) if evidence else None)
        self.opened.callback(host.close)
        return host


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    """Return a rig whose client has no agent."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with ExitStack() as opened:
        yield Rig(tmp_path, opened)


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError(log.read_text())
