"""Files written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from xbtasks.errors import UsageError

__all__ = ["require_writable", "write_atomically"]


def require_writable(name: str) -> None:
    """Return when the file ``name`` can be expected to be written, so that no run is lost for want of that.

    Raises:
        UsageError: it can't: no name, no such folder, a folder itself, no permission.
    """
    target = Path(name)
    try:
        kind = "folder" if target.is_dir() else "file" if target.exists() else ""
        where = target if kind == "file" and not target.is_file() else target.parent
        if not name or kind == "folder":
            raise UsageError(f"{name!r} is not the name of a file")
        if not where.exists() or not os.access(where, os.W_OK):
            raise UsageError(f"{name} can't be written: {where} is not a folder that can be written")
    except (OSError, ValueError) as error:
        raise UsageError(f"{name!a} can't be written: {error}") from error


def write_atomically(name: str, text: str) -> None:
    """Write ``text`` to the file ``name`` by rename.

    Raises:
        UsageError: the file can't be written.
    """
    target = Path(name)
    try:
        if target.exists() and not target.is_file():
            target.write_text(text)  # a pipe or device, such as /dev/stdout
            return
        handle, fresh = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(handle, "w") as stream:
                stream.write(text)
            mask = os.umask(0)
            os.umask(mask)
            Path(fresh).chmod(0o666 & ~mask)
            Path(fresh).replace(target)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"{name} can't be written: {error.strerror}") from error
