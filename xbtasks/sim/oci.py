"""An OCI bundle's ``config.json``, as far as a runtime that injects drivers reads and changes it.

Contract: OCI Runtime Specification, config.md and config-linux.md.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["OciSpec"]

Object: TypeAlias = dict[str, object]


class OciSpec:
    """The configuration of one container, in ``bundle``. Changes are kept by :meth:`save`."""

    def __init__(self, bundle: Path) -> None:
        self.bundle = bundle
        self._file = bundle / "config.json"
        self._document: Object = json.loads(self._file.read_text())

    @property
    def root(self) -> Path:
        """The root file system, as this process reaches it."""
        return self.bundle / str(_object(self._document, "root").get("path", "rootfs"))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of the container's process; of two entries with one name the later counts."""
        entries = _list(_object(self._document, "process"), "env")
        pairs = (str(entry).partition("=") for entry in entries)
        return {name: value for name, _, value in pairs}

    def set_environment(self, name: str, value: str) -> None:
        """Add a variable to the environment of the container's process."""
        _list(_object(self._document, "process"), "env").append(f"{name}={value}")

    def bind(self, source: Path, target: str, *options: str) -> None:
        """Mount ``source`` at ``target``, read-only unless ``options`` say otherwise."""
        access = options or ("ro",)
        mount: Object = {
            "destination": target,
            "type": "bind",
            "source": str(source),
            "options": ["bind", "nosuid", "nodev", *access],
        }
        _list(self._document, "mounts").append(mount)

    def device(self, path: str, major: int, minor: int) -> None:
        """Make a character device that everybody in the container may read and write."""
        linux = _object(self._document, "linux")
        numbers: Object = {"type": "c", "major": major, "minor": minor}
        _list(linux, "devices").append({"path": path, **numbers, "fileMode": 0o666, "uid": 0, "gid": 0})
        rules = _list(_object(linux, "resources"), "devices")
        rules.append({"allow": True, **numbers, "access": "rwm"})

    def save(self) -> None:
        """Write the changed configuration."""
        self._file.write_text(json.dumps(self._document))


def _object(parent: Object, key: str) -> Object:
    value = parent.get(key)
    if not isinstance(value, dict):
        value = parent[key] = {}
    return cast("Object", value)


def _list(parent: Object, key: str) -> list[object]:
    value = parent.get(key)
    if not isinstance(value, list):
        value = parent[key] = []
    return cast("list[object]", value)
