"""The wheel of this project, built as a user builds it, and installed beside nothing but its dependencies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.workplace import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Installed", "build", "copy_files", "install", "tracked_files"]


def tracked_files() -> tuple[Path, ...]:
    """Return the files of this checkout, relative to it, as git lists them, new ones too."""
    listed = subprocess.run(
        [
            "git",
            "-c",
            f"safe.directory={PROJECT}",
            "ls-files",
            "-z",
            "-co",
            "--exclude-standard",
            "--deduplicate",
        ],
        cwd=PROJECT,
        check=True,
        capture_output=True,
    )
    names = (Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name)
    return tuple(name for name in names if (PROJECT / name).is_file())


def copy_files(files: Iterable[Path], folder: Path) -> None:
    """Copy ``files`` of this checkout to a clean one in ``folder``."""
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, folder / name)


def build(files: Iterable[Path], folder: Path) -> Path:
    """Copy ``files`` to a clean checkout in ``folder``, and return the wheel built of its sdist, offline."""
    source, target = folder / "source", folder / "dist"
    copy_files(files, source)
    run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target)], source)
    assert len(list(target.glob("*.tar.gz"))) == 1
    (wheel,) = target.glob("*.whl")
    return wheel


@dataclass(frozen=True)
class Installed:
    """A wheel in a virtual environment at ``folder``; the rest comes from that of the tests."""

    folder: Path
    site: Path

    def run(
        self, *words: str, cwd: Path, code: int = 0, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, with a home of its own, and insist on its exit status."""
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "LANG": "C.UTF-8",
        }
        program = str(self.folder / "bin" / words[0])
        return run([program, *words[1:]], cwd, code, {**environment, **(variables or {})})


def install(wheel: Path, folder: Path) -> Installed:
    """Install ``wheel`` with pip into a new environment, offline."""
    run([sys.executable, "-m", "virtualenv", "--quiet", "--no-download", str(folder)], folder.parent)
    python = str(folder / "bin/python")
    words = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--compile"]
    run([python, "-m", "pip", "install", *words, str(wheel)], folder.parent)
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(run([python, "-c", code], folder.parent).stdout.strip())
    # What a .pth file names comes last, and the .pth files in there, one of which names PROJECT, aren't read.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    for name in ("inv", "nox"):  # what pipx and uv can link from the dependencies
        program = folder / "bin" / name
        module = {"inv": "invoke.main:program.run", "nox": "nox.__main__:main"}[name]
        imported, _, called = module.partition(":")
        first = called.partition(".")[0]
        program.write_text(f"#!{python}\nimport sys\nfrom {imported} import {first}\nsys.exit({called}())\n")
        program.chmod(0o755)
    return Installed(folder, site)


def run(
    argv: list[str], cwd: Path, code: int = 0, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run ``argv`` and insist on its exit status."""
    done = subprocess.run(
        argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{argv}: {done.returncode}\n{done.stdout}{done.stderr}"[-4000:]
    return done
