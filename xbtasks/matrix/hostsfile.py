"""The hosts file of a user: which hosts a matrix may use, and what holds on each.

::

    hosts:
      - name: gpu-1              # what tables call it
        ssh: me@10.0.0.7:2222    # or an alias of ssh_config, or: local
        backends: [nvidia]       # what it is for; all where it is not said
        gpus: 0,1                # its cards: gpu, gpus, npu, chip, vnpu
        knobs:                   # any other knob, as `inv knobs` names them
          stage-dir: /data/vgpu

Checked as it is read: an error names the file, the line and what is accepted. ``schema/hosts-1.json`` tells
editors the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError
from xbtasks.knobs.files import Entry, compose, knob_name, nearest, read_bytes
from xbtasks.knobs.references import parse_host
from xbtasks.knobs.values import BadValue, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import yaml

__all__ = ["LOCAL", "NOT_A_HOSTS", "HostEntry", "read_hosts"]

LOCAL: Final = "local"
"""What a hosts file says for this machine."""
_KEYS: Final = ("name", "ssh", "backends", "gpu", "gpus", "npu", "chip", "vnpu", "knobs")
_CARDS: Final = frozenset(("gpu", "gpus", "npu", "chip", "vnpu"))
NOT_A_HOSTS: Final = {
    "mode": "ssh: is where the host is named",
    "host": "ssh: is where the host is named",
    "repo": "all hosts build from one checkout: --repo or XB_REPO",
    "dockerfile": "all hosts build from one checkout: --dockerfile or XB_DOCKERFILE",
    "yes": "--yes or XB_YES answers the one question of a matrix",
    "banner_re": "set XB_BANNER_RE",
}
"""The knobs that no host of a file sets, and what says it instead."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", re.ASCII)
_NAMES: Final = "letters, digits and ._-, at most 64, with a letter or digit first"


@dataclass(frozen=True)
class HostEntry:
    """One host of a file. ``values`` are the knobs that it sets, mode and host among them.

    ``backends`` are the names of those it is for.
    """

    name: str
    destination: str
    backends: tuple[str, ...]
    place: str
    values: Mapping[str, Entry] = field(default_factory=dict)


def read_hosts(path: Path, *, outside: Iterable[Path] = ()) -> tuple[HostEntry, ...]:
    """Return the hosts of a file, in its order.

    Raises:
        UsageError: it can't be read, lies in one of the folders ``outside``, or is no hosts file.
    """
    label = str(path) if str(path).isprintable() else shown(str(path))
    for folder in outside:
        if path.resolve().is_relative_to(folder.resolve()):
            raise UsageError(
                f"hosts file {label} lies in {folder}: hosts are never stored in a project",
                hint="keep it beside ~/.config/xbtasks.yaml",
            )
    data = read_bytes(path, label, required=True) or b""
    root = compose(data, label)
    if root is None:
        raise UsageError(f"{label}: names no host", hint="hosts: is a list of name and ssh")
    file = _File(label)
    top = file.mapping(root, "a hosts file", ("hosts",))
    if "hosts" not in top:
        raise UsageError(f"{file.place(root)}: hosts: is missing")
    found = [
        file.host(node) for node in file.sequence(top["hosts"][1], "hosts: is a list, one '- name:' a host")
    ]
    if not found:
        raise UsageError(f"{file.place(root)}: hosts: is an empty list")
    places: dict[str, str] = {}
    for entry in found:
        if entry.name in places:
            raise UsageError(
                f"{entry.place}: host {entry.name} is named twice", hint=f"first on {places[entry.name]}"
            )
        places[entry.name] = entry.place
    return tuple(found)


@dataclass(frozen=True)
class _File:
    """Reads the nodes of a file; ``label`` is how messages name it."""

    label: str

    def place(self, node: yaml.Node) -> str:
        return f"{self.label} line {node.start_mark.line + 1}"

    def mapping(
        self, node: yaml.Node, what: str, known: tuple[str, ...] = ()
    ) -> dict[str, tuple[str, yaml.Node]]:
        """Return the place and the value of each key; any key will do where none is ``known``."""
        import yaml

        if not isinstance(node, yaml.MappingNode):
            keys = f" with {', '.join(known)}" if known else ""
            raise UsageError(f"{self.place(node)}: {what} is a mapping{keys}")
        found: dict[str, tuple[str, yaml.Node]] = {}
        for key, value in node.value:
            place, name = self.place(key), self.text(key, "a key")
            if known and name not in known:
                close = nearest(name.lower(), {each: each for each in known})
                hint = f"did you mean {close}?" if close else f"{', '.join(known)} are accepted"
                raise UsageError(f"{place}: {shown(name)} is no key of {what}", hint=hint)
            if name in found:
                raise UsageError(f"{place}: {name} is set twice", hint=f"first on {found[name][0]}")
            found[name] = (place, value)
        return found

    def sequence(self, node: yaml.Node, wanted: str) -> list[yaml.Node]:
        import yaml

        if not isinstance(node, yaml.SequenceNode):
            raise UsageError(f"{self.place(node)}: {wanted}")
        return list(node.value)

    def text(self, node: yaml.Node, what: str) -> str:
        import yaml

        if not isinstance(node, yaml.ScalarNode):
            raise UsageError(f"{self.place(node)}: {what} is one plain value")
        return str(node.value)

    def host(self, node: yaml.Node) -> HostEntry:
        pairs = self.mapping(node, "a host", _KEYS)
        for key in ("name", "ssh"):
            if key not in pairs:
                raise UsageError(f"{self.place(node)}: a host needs {key}:")
        name = self.text(pairs["name"][1], "name")
        if not _NAME.match(name):
            raise UsageError(f"{pairs['name'][0]}: {shown(name)} is no name for a host; accepted: {_NAMES}")
        place, destination = pairs["ssh"][0], self.text(pairs["ssh"][1], "ssh")
        values = self._destination(destination, place)
        for key, (where, value) in pairs.items():
            if key in _CARDS:
                values[key] = Entry(self._listed(value, key), where)
        if "knobs" in pairs:
            for key, (where, value) in self.mapping(pairs["knobs"][1], "knobs").items():
                knob = self._knob(key, where, values)
                values[knob] = Entry(self._listed(value, key), where)
        backends = self._backends(*pairs["backends"]) if "backends" in pairs else _backends()
        return HostEntry(name, destination, backends, pairs["name"][0], values)

    def _destination(self, text: str, place: str) -> dict[str, Entry]:
        if text == LOCAL:
            return {"mode": Entry("local", place)}
        try:
            parse_host(text)
        except BadValue as error:
            hint = error.hint or "user@host[:port], an ssh_config alias, or local"
            raise UsageError(f"{place}: ssh: {error.message}", hint=hint) from None
        return {"mode": Entry("ssh", place), "host": Entry(text, place)}

    def _knob(self, key: str, place: str, known: Mapping[str, Entry]) -> str:
        name = knob_name(key, place)
        if name in NOT_A_HOSTS:
            raise UsageError(f"{place}: {name} is not set for one host", hint=NOT_A_HOSTS[name])
        if name in known:
            raise UsageError(f"{place}: {name} is set twice", hint=f"first on {known[name].place}")
        return name

    def _listed(self, node: yaml.Node, key: str) -> str:
        """Return a plain value, or the values of a list with commas between."""
        import yaml

        if key == "gpus" and isinstance(node, yaml.SequenceNode):
            return ",".join(self.text(each, "a card") for each in node.value)
        return self.text(node, key)

    def _backends(self, place: str, node: yaml.Node) -> tuple[str, ...]:
        import yaml

        listed = node.value if isinstance(node, yaml.SequenceNode) else [node]
        names = tuple(dict.fromkeys(self.text(each, "a backend") for each in listed))
        for name in names:
            if name not in _backends():
                close = nearest(name.lower(), {each: each for each in _backends()})
                hint = f"did you mean {close}?" if close else ""
                raise UsageError(
                    f"{place}: no backend {shown(name)}: {', '.join(_backends())} are accepted", hint=hint
                )
        if not names:
            raise UsageError(f"{place}: backends: is an empty list")
        return names


def _backends() -> tuple[str, ...]:
    from xbtasks.backends import BACKENDS

    return tuple(BACKENDS)
