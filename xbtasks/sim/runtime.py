"""The injecting OCI runtimes of the simulated host: runc, with a vendor's drivers brought in first.

Dockerd runs one for each vendor, through a small program that :func:`install` writes. On ``create`` it
changes the bundle's ``config.json`` and then becomes runc; every other command is runc's alone. A refusal
goes into the file that ``--log`` names, as a line of JSON with an RFC 3339 time: else the docker client never
gets it.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import xbtasks
from xbtasks.sim.drivers.injection import NodeFiles
from xbtasks.sim.folders import write_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.sim.drivers.injection import Injection
    from xbtasks.sim.paths import SimPaths

__all__ = ["RUNTIMES", "install", "main", "settings"]

RUNTIMES: Final = ("nvidia", "ascend")
"""The names under which the runtimes are registered: the vendors'."""


def settings(paths: SimPaths) -> dict[str, object]:
    """Return dockerd's setting ``runtimes``."""
    return {name: {"path": str(_program(paths, name))} for name in RUNTIMES}


def install(paths: SimPaths) -> None:
    """Write the programs that dockerd runs, unless they are there."""
    for name in RUNTIMES:
        command = shlex.join((sys.executable, "-S", "-P", "-m", "xbtasks.sim.runtime", name))
        runc = paths.programs / "sbin/runc"
        places = shlex.join(map(str, (paths.drivers, paths.node, paths.inventory, runc)))
        code = shlex.quote(str(Path(xbtasks.__file__).parents[1]))
        write_program(_program(paths, name), f'exec env PYTHONPATH={code} {command} {places} "$@"')


def _program(paths: SimPaths, name: str) -> Path:
    return paths.state / "runtimes" / name


def _injection(name: str) -> Injection:
    match name:
        case "nvidia":
            from xbtasks.sim.drivers.nvidia.injection import inject

            return inject
        case "ascend":
            from xbtasks.sim.drivers.ascend.injection import inject

            return inject
        case _:
            raise ValueError(name)


def _value(arguments: Sequence[str], option: str) -> str | None:
    """Return what stands after ``option`` or its ``=``; None where it isn't given."""
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == option:
            return value if equals else next(iter(arguments[place + 1 :]), None)
    return None


def _inject(name: str, files: NodeFiles, arguments: Sequence[str]) -> str:
    """Change the bundle; return why the container can't be made, or an empty string."""
    from xbtasks.errors import XbError
    from xbtasks.sim.drivers.injection import InjectionError
    from xbtasks.sim.oci import OciSpec

    try:
        spec = OciSpec(Path(_value(arguments, "--bundle") or _value(arguments, "-b") or "."))
        _injection(name)(spec, files)
        spec.save()
    except (InjectionError, XbError, OSError, ValueError) as error:
        return str(error)
    return ""


def _report(arguments: Sequence[str], message: str) -> None:
    import json
    from datetime import UTC, datetime

    print(message, file=sys.stderr)
    log = _value(arguments, "--log")
    if log is not None:
        line = {"level": "error", "msg": message, "time": datetime.now(UTC).isoformat(timespec="seconds")}
        with Path(log).open("a") as file:
            file.write(json.dumps(line) + "\n")


def main() -> NoReturn:
    """Run ``NAME DRIVERS NODE INVENTORY RUNC ARGUMENTS…``; ends with 1 where no container can be made."""
    name, drivers, node, inventory, runc, *arguments = sys.argv[1:]
    if "create" in arguments:
        files = NodeFiles(Path(drivers) / name, Path(node), Path(inventory))
        refusal = _inject(name, files, arguments)
        if refusal:
            _report(arguments, refusal)
            sys.exit(1)
    os.execv(runc, (runc, *arguments))  # noqa: S606 - the purpose of this file


if __name__ == "__main__":
    main()
