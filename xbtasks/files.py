"""Files written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from xbtasks.errors import UsageError, disk_error

__all__ = ["require_writable", "write_atomically"]


def require_writable(name: str) -> None:
    """Return when the file ``name`` can be expected to be written, so that no run is lost for want of that.

    Raises:
        UsageError: it can't: no name, no such folder, a folder itself, no permission, a read-only mount.
        CannotJudge: the disk is full or broken.
    """
    target = Path(name)
    if not name or "\0" in name or target.is_dir():
        raise UsageError(f"{name!a} is not the name of a file")
    device = target.exists() and not target.is_file()
    if not device and not target.parent.is_dir():
        raise UsageError(f"{name} can't be written: there is no folder {target.parent}")
    if device and not os.access(target, os.W_OK):
        raise UsageError(f"{name} can't be written: {os.strerror(errno.EACCES)}")
    try:
        if not device:
            tempfile.TemporaryFile(dir=target.parent).close()  # it never has a name
    except OSError as error:
        raise disk_error(f"{name} can't be written", error) from error


def write_atomically(name: str, text: str) -> None:
    """Write ``text`` as UTF-8 to the file ``name`` by rename; what UTF-8 can't hold becomes ``?``.

    Raises:
        UsageError: the file can't be written there.
        CannotJudge: the disk is full or broken.
    """
    target = Path(name)
    data = text.encode("utf-8", "replace")
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)  # a pipe or device, such as /dev/stdout
            return
        handle, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            mask = os.umask(0)
            os.umask(mask)
            Path(fresh).chmod(0o666 & ~mask)
            Path(fresh).replace(target)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise disk_error(f"{name} can't be written", error) from error
