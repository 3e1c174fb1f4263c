"""Recorded runs that later versions must still judge alike: ``nox -s recordings`` makes them anew.

They are what ``inv bundle`` makes of a user's runs on the simulated host, so they name no machine. A step's
question is part of a recording, so a change of what is asked needs new ones, and makes those of users
unreadable: docs/stability.md says when that may be.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from tests.workplace import SAMPLE, make_checkout
from xbtasks.sim.mutants.catalogue import chosen
from xbtasks.sim.mutants.trial import apply_edits

__all__ = ["RUNS", "unpack"]

_ARCHIVE: Final = Path(__file__).parent / "samples/runs.tar.xz"
_CUDA, _CANN = "xbuild-nvidia-cuda-13", "xbuild-ascend-cann-8-910b"

_TEXT: Final = f"FROM scratch AS {_CUDA}\nCOPY pack/gpustack-operator/external/text /out/libvgpu.so\n"

RUNS: Final[dict[str, tuple[str, tuple[str, ...], int]]] = {
    # the recording's name: what is changed in the sample, what is typed, how it ends
    "build-no-elf": ("", ("verify", _CUDA, "--cases", "1"), 1),
    "nvidia-case2": ("", ("nvidia.case2", _CUDA), 0),
    "nvidia-case3": ("", ("nvidia.case3", _CUDA), 0),
    "nvidia-case2-own-limit": ("nvidia-own-limit", ("nvidia.case2", _CUDA), 1),
    "ascend-case2": ("", ("ascend.case2", _CANN), 0),
    "ascend-case3": ("", ("ascend.case3", _CANN), 0),
    "ascend-case2-monitor-constants": ("ascend-monitor-constants", ("ascend.case2", _CANN), 1),
}


def _checkout(folder: Path, name: str, variant: str) -> Path:
    if name == "build-no-elf":
        return make_checkout(folder, _TEXT, {"pack/gpustack-operator/external/text": "no library\n"})
    shutil.copytree(SAMPLE, folder)
    for each in chosen(variant) if variant else ():
        apply_edits(folder, each.edits)
    return folder


def unpack(folder: Path) -> None:
    """Put the evidence of every recorded run into a folder of its name in ``folder``."""
    with tarfile.open(_ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for path in folder.rglob("steps/*/std*"):
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def _pack(folder: Path) -> None:
    """Pack what lies in ``folder``, streams as they are: what several recordings share is packed once."""
    for path in folder.rglob("steps/*/std*.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    with tarfile.open(_ARCHIVE, "w:xz", preset=9) as archive:
        for name in sorted(RUNS):
            archive.add(folder / name, name, filter=_nobodys)


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> int:
    """Record every run, on a simulated host of its own."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "recorded").mkdir()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("XB_")}
        environment["XDG_STATE_HOME"] = str(folder / "state")

        def xbtasks(*words: str, code: int = 0) -> str:
            argv = [sys.executable, "-m", "xbtasks", *words]
            done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, text=True, check=False)
            if done.returncode != code:
                raise SystemExit(f"{' '.join(words)}: exit code {done.returncode}, not {code}")
            return done.stdout

        xbtasks("sim.up")
        try:
            environment |= json.loads(xbtasks("sim.status", "--json"))["environment"]
            for name, (variant, words, code) in RUNS.items():
                environment["XB_REPO"] = str(_checkout(folder / "checkouts" / name, name, variant))
                if words[0] != "verify":
                    xbtasks("build", words[1])
                run = json.loads(xbtasks(*words, "--yes", "--json", code=code))
                bundle = folder / f"{name}.tar.gz"
                xbtasks("bundle", run["evidence"], "--output", str(bundle))
                with tarfile.open(bundle) as archive:
                    archive.extractall(folder / "bundles" / name, filter="data")
                (evidence,) = (folder / "bundles" / name).iterdir()
                evidence.rename(folder / "recorded" / name)
        finally:
            xbtasks("sim.down")
        _pack(folder / "recorded")
    return 0


if __name__ == "__main__":
    sys.exit(main())
