"""ProxyCommand: a local command whose stdin and stdout are the connection.

paramiko's own starts it without a shell, never notices its end and never reads its stderr. Here the other
end of the command is a real socket, which has none of these faults.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile

__all__ = ["ProxyProcess"]


class ProxyProcess:
    """A running ProxyCommand. ``socket`` is what the connection goes through."""

    def __init__(self, command: str) -> None:
        self.socket, theirs = socket.socketpair()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        with theirs:
            self._process = subprocess.Popen(
                ["sh", "-c", f"exec {command}"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._stderr,
                start_new_session=True,  # a terminal's Ctrl-C is ours to handle
            )

    def failure(self) -> str:
        """Return how the command failed and the last line of its stderr; nothing if it runs or ended well."""
        try:
            status = self._process.wait(1)
        except subprocess.TimeoutExpired:
            return ""
        if status == 0:
            return ""
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").split("\n")
        words = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return f"it ended with status {status}{': ' if words else ''}{words}"

    def close(self) -> None:
        """End the command."""
        self.socket.close()
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()
