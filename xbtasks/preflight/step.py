"""The preflight step: every question to the host, in one round trip. Nothing is written on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.backends import host_modules
from xbtasks.host.step import Step
from xbtasks.hostprobe import probe

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Deadlines", "preflight_step"]

_HOST = r"""
say machine "$(uname -m)"
say kernel "$(uname -r)"
say node "$(uname -n)"
say uid "$(id -u)"
say user "$(id -un 2>/dev/null)"
say shell "${SHELL:-}"
"""

# docker info once; the rest of what must be known to tell why an engine doesn't answer, and its disk.
_ENGINE = r"""
find "$1" || exit 0
ask context "$tool" context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null
case $out in
  unix://*)
    socket=${out#unix://}
    if ! see "${socket%/*}"; then say socket hidden
    elif [ ! -e "$socket" ]; then say socket absent
    elif [ -r "$socket" ] && [ -w "$socket" ]; then say socket open
    else say socket denied; fi ;;
esac
ask version "$tool" version --format '{{json .}}' 2>/dev/null
ask info "$tool" info --format '{{json .}}'
root=$(printf '%s\n' "$out" | sed -n 's/.*"DockerRootDir":"\([^"]*\)".*/\1/p' | head -n 1)
case $root in /*) say df.root "$(df -Pk "$root" 2>/dev/null | tail -n 1)" ;; esac
say df.containerd "$(df -Pk /var/lib/containerd 2>/dev/null | tail -n 1)"
"""

_BUILDX = r"""
find "$1" || exit 0
ask version "$tool" buildx version
[ "$status" = 0 ] || exit 0
name=$2; set --
[ -z "$name" ] || set -- -- "$name"
ask inspect "$tool" buildx inspect "$@"
"""

_STAGING = r"""
path=$1 near=$1
while [ -n "$near" ] && [ ! -e "$near" ] && [ ! -L "$near" ]; do near=${near%/*}; done
near=${near:-/}
say path "$path"
say near "$near"
[ ! -d "$near" ] || say directory yes
if [ -w "$near" ] && [ -x "$near" ]; then say writable yes; fi
say df "$(df -Pk "$near" 2>/dev/null | tail -n 1)"
"""

_BINFMT = r"""
[ -r "$1/status" ] || exit 0
say visible "$(cat "$1/status")"
for file in "$1"/*; do
  case ${file##*/} in register | status) continue ;; esac
  say entry "$(tr '\n' '\t' <"$file")"
done
"""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds that each kind of question may take.

    A busy docker needs more than 10 s for docker info, and nvidia-smi as long to wake up eight GPUs.
    """

    engine: int = 30
    tool: int = 30
    look: int = 5


def preflight_step(
    engine: str,
    staging_directories: Mapping[str, str],
    *,
    builder: str | None = None,
    deadlines: Deadlines = Deadlines(),
) -> Step:
    """Return the one step that asks a host everything preflight wants to know.

    ``engine`` is the engine's command (``docker``), ``staging_directories`` maps each backend's name to
    its staging directory, ``builder`` is the buildx builder to look at, None for docker's current one.
    """
    return Step(
        "preflight",
        (
            probe("host", _HOST, deadlines.look),
            probe("engine", _ENGINE, deadlines.engine, engine),
            probe("buildx", _BUILDX, deadlines.engine, engine, builder or ""),
            *(
                probe(f"staging.{backend}", _STAGING, deadlines.look, directory)
                for backend, directory in staging_directories.items()
            ),
            probe("binfmt", _BINFMT, deadlines.look, "/proc/sys/fs/binfmt_misc"),
            *(
                section
                for module in host_modules().values()
                for section in module.sections(tool=deadlines.tool, look=deadlines.look)
            ),
        ),
    )
