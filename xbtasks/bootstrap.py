"""Makes ``.venv`` from a lock file, once. Standard library only: it runs before anything is installed.

Where Debian's python3 comes without ensurepip, pip is taken out of the python3-pip-whl package, which is
unpacked, not installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.errors import CannotJudge, UsageError, disk_error

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ROOT", "ensure"]

ROOT = Path(__file__).resolve().parent.parent
"""The folder that the package lies in."""
_WHEELS = Path("/usr/share/python-wheels")


def ensure(kind: str) -> Path:
    """Return the Python of ``.venv`` with everything of ``requirements/<kind>.lock`` (``run``, ``dev``).

    Raises:
        UsageError: the folder can't be written, or pip can't be had on this machine.
        CannotJudge: the packages can't be had now (network, disk).
    """
    venv = ROOT / ".venv"
    python = venv / "bin/python"
    lock = ROOT / "requirements" / f"{kind}.lock"
    wanted = _wanted(lock)
    stamp = venv / f".xbtasks-{kind}"
    if _stamped(stamp, wanted) and python.exists():
        return python
    with _alone():
        if _stamped(stamp, wanted) and python.exists():
            return python  # another xb made it while we waited
        print(f"xb: preparing .venv from {lock.relative_to(ROOT)} (once, about 15 s)", file=sys.stderr)
        try:
            pip = _make(venv, python)
            _install(pip, lock)
            site = next((venv / "lib").glob("python*/site-packages"))
            (site / "xbtasks.pth").write_text(f"{ROOT}\n")
            if kind == "dev":
                (venv / ".xbtasks-run").write_text(_wanted(lock.with_stem("run")))
            stamp.write_text(wanted)
        except OSError as error:
            raise disk_error(f"{venv} can't be made", error, hint="xb needs to write there") from error
    return python


def _wanted(lock: Path) -> str:
    """Return what the stamp says of an environment that was made from ``lock`` as it is now."""
    try:
        digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError(f"{lock} can't be read: {error.strerror}") from error
    return f"{sys.version_info[0]}.{sys.version_info[1]} {digest}\n"


def _stamped(stamp: Path, wanted: str) -> bool:
    try:
        return stamp.read_text() == wanted
    except OSError:
        return False


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Keep other launchers of this folder waiting."""
    handle = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _make(venv: Path, python: Path) -> list[str]:
    """Make the environment if it is missing or of another Python; return the command that runs its pip."""
    own = [str(python), "-m", "pip"]
    if python.exists() and _works([*own, "--version"]):
        return own
    if _works([sys.executable, "-c", "import ensurepip, venv"]):
        _require([sys.executable, "-m", "venv", "--clear", str(venv)], "the environment can't be made")
        return own
    _require([sys.executable, "-m", "venv", "--clear", "--without-pip", str(venv)], "no venv module")
    return [str(python), f"{_pip_wheel(venv)}/pip"]


def _pip_wheel(venv: Path) -> Path:
    """Return Debian's wheel of pip: the installed one, else one out of its package."""
    found = sorted(_WHEELS.glob("pip-*.whl"))
    if not found:
        found = _fetch_pip_wheel(venv / "pip-whl")
    if not found:
        raise UsageError("this Python has no pip", hint="install python3-venv, or python3-pip")
    return found[-1]


def _fetch_pip_wheel(into: Path) -> list[Path]:
    """Unpack Debian's python3-pip-whl into a folder and return the wheels of pip in it."""
    import platform
    import shutil

    from xbtasks.sim.apt import PrivateApt, unpack

    if not shutil.which("apt-get"):
        return []
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
    asked = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True)
    architecture = asked.stdout.strip()
    with tempfile.TemporaryDirectory(prefix="xb-apt.") as name:
        folder = Path(name)
        apt = PrivateApt(folder / "apt", (release,), release, architecture, folder / "apt.log")
        apt.download(["python3-pip-whl"], folder / "packages")
        unpack(sorted((folder / "packages").glob("*.deb")), into)
    return sorted(into.glob("usr/share/python-wheels/pip-*.whl"))


def _install(pip: list[str], lock: Path) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--require-hashes"]
    _require([*pip, "install", *options, "--requirement", str(lock)], "the packages can't be installed")


def _works(argv: list[str]) -> bool:
    with tempfile.TemporaryFile() as sink:
        try:
            done = subprocess.run(argv, check=False, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
        except OSError:
            return False
    return done.returncode == 0


def _require(argv: list[str], problem: str) -> None:
    done = subprocess.run(
        argv,
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        raise CannotJudge(f"{problem}: {lines[-1].strip() if lines else f'exit {done.returncode}'}")
