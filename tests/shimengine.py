"""A stand-in for a container engine that costs next to nothing: a ``docker`` in ``sh``, answering from files.

For tests of many hosts at once, where what is tested is this side. A build takes as long as it is told, and
gives one image; what is in it is a tar. Everything else of a run is real: ssh, programs, staging, judging.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["ShimEngine"]

_SAMPLES: Final = Path(__file__).parent / "samples/docker"

_DOCKER: Final = r"""#!/bin/sh
state=__STATE__
value() { # FLAG WORDS...: print the word behind FLAG
  flag=$1; shift
  while [ $# -gt 1 ]; do [ "$1" = "$flag" ] && { printf %s "$2"; return; }; shift; done
}
labels() {
  while [ $# -gt 1 ]; do
    [ "$1" = --label ] && printf '"%s": "%s", ' "${2%%=*}" "${2#*=}"
    shift
  done
  printf '"x": "x"'
}
case "$1 $2" in
"context inspect") echo unix:///nowhere/docker.sock ;;
"version --format") cat "$state/version.json" ;;
"info --format") cat "$state/info.json" ;;
"buildx version") cat "$state/buildx-version.txt" ;;
"buildx inspect") cat "$state/inspect.txt" ;;
"buildx build")
  echo "$*" >>"$state/builds"
  echo "#1 [stage 1/1] RUN make" >&2
  if [ -e "$state/fails" ]; then
    echo 'ERROR: failed to solve: process "/bin/sh -c make" did not complete successfully: exit code: 2' >&2
    exit 1
  fi
  seconds=$(cat "$state/seconds")
  if [ -e "$state/waits" ]; then
    while [ -e "$state/waits" ]; do sleep 0.1; done
    echo "#1 DONE 0.1s" >&2
  fi
  sleep "$seconds" || exit 1
  id=sha256:$(printf %s "$*" | sha256sum | cut -c 1-64)
  tag=$(value --tag "$@" | tr / _)
  printf '[{"Id": "%s", "Os": "linux", "Architecture": "amd64", "Config": {"Labels": {%s}}}]\n' \
    "$id" "$(labels "$@")" >"$state/image.$tag"
  cp "$state/image.$tag" "$state/image.$id"
  printf '%s\n' "$id" >"$state/id.$tag"
  printf '{"containerimage.config.digest": "%s"}' "$id" >"$(value --metadata-file "$@")" ;;
"image inspect")
  for tag; do :; done
  file=$state/image.$(printf %s "$tag" | sed 's,^docker.io/library/,,' | tr / _)
  [ -e "$file" ] || { echo "Error response from daemon: No such image: $tag" >&2; exit 1; }
  case $3 in
  --format) printf '%s %s\n' "$(sed 's/.*"Id": "\([^"]*\)".*/\1/' "$file")" \
    "$(sed 's/.*"xbtasks.inputs": "\([^"]*\)".*/\1/' "$file")" ;;
  *) cat "$file" ;;
  esac ;;
"create "*) echo 0000 ;;
"cp "*)
  shift
  [ "$1" = -L ] && shift
  path=${1#*:}
  file=$state/tars/${path##*/}.tar
  [ -e "$file" ] || { echo "Error: Could not find the file $path in container x" >&2; exit 1; }
  case $2 in
  -) cat "$file" ;;
  *) tar -xOf "$file" >"$2" ;;
  esac ;;
"rm "*) : ;;
"ps "* | "image ls") : ;;
*) echo "no such command here: $*" >&2; exit 125 ;;
esac
"""


@dataclass(frozen=True)
class ShimEngine:
    """The engine of one host, in ``folder``; ``environment`` is what its account has."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, artifacts: dict[str, bytes], *, seconds: float = 0) -> ShimEngine:
        """Make an engine whose one build takes ``seconds`` and gives an image with ``artifacts`` by path."""
        state = folder / "engine"
        (state / "tars").mkdir(parents=True)
        for name, sample in (
            ("version.json", "version-26.1.json"),
            ("info.json", "info-26.1-both-runtimes.json"),
            ("buildx-version.txt", "buildx-version-debian.txt"),
            ("inspect.txt", "inspect-docker.txt"),
        ):
            (state / name).write_bytes((_SAMPLES / sample).read_bytes())
        info = json.loads((state / "info.json").read_bytes())
        (state / "info.json").write_text(json.dumps({**info, "ID": f"engine in {folder}"}))
        (state / "seconds").write_text(str(seconds))
        for path, data in artifacts.items():
            name = path.rpartition("/")[2]
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            with tarfile.open(state / f"tars/{name}.tar", "w") as archive:
                archive.addfile(member, io.BytesIO(data))
        for place in ("bin", "tmp", "home"):
            (folder / place).mkdir()
        program = folder / "bin/docker"
        program.write_text(_DOCKER.replace("__STATE__", str(state)))
        program.chmod(0o755)
        return cls(folder)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of the account."""
        return {
            "PATH": f"{self.folder / 'bin'}{os.pathsep}/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
        }

    @property
    def staging(self) -> Path:
        """A staging directory of the host's own."""
        return self.folder / "stage"

    @property
    def builds(self) -> int:
        """How many builds were begun."""
        noted = self.folder / "engine/builds"
        return len(noted.read_text().splitlines()) if noted.exists() else 0

    def fail(self) -> None:
        """Make every build fail from now on."""
        (self.folder / "engine/fails").touch()

    def mend(self) -> None:
        """Let builds succeed again."""
        (self.folder / "engine/fails").unlink()
