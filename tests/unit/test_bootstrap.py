"""The launcher's environment, with stand-ins for pip and venv: what is made, when, and what is said."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from xbtasks import bootstrap
from xbtasks.errors import CannotJudge, UsageError


class World:
    """A project folder and a record of the commands that would have run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[list[str]] = []
        self.fails: dict[str, str] = {}
        self.has_ensurepip = True
        (root / "requirements").mkdir()
        for kind in ("run", "dev"):
            (root / f"requirements/{kind}.lock").write_text(f"{kind}==1 --hash=sha256:0\n")

    @property
    def python(self) -> Path:
        return self.root / ".venv/bin/python"

    def run(self, argv: list[str], **_options: object) -> subprocess.CompletedProcess[str]:
        """Stand in for subprocess.run."""
        self.calls.append(argv)
        said = next((text for word, text in self.fails.items() if word in argv), None)
        if said is not None:
            return subprocess.CompletedProcess(argv, 1, said, "")
        if "ensurepip, venv" in " ".join(argv):
            return subprocess.CompletedProcess(argv, int(not self.has_ensurepip), "", "")
        if "venv" in argv:
            self.python.parent.mkdir(parents=True, exist_ok=True)
            self.python.touch()
            (self.root / ".venv/lib/python3.11/site-packages").mkdir(parents=True, exist_ok=True)
        if argv[-1] == "--version" and not self.python.exists():
            return subprocess.CompletedProcess(argv, 1, "", "")
        return subprocess.CompletedProcess(argv, 0, "", "")

    def installed(self) -> list[str]:
        """Return the locks that were installed from."""
        return [Path(argv[-1]).name for argv in self.calls if "install" in argv]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap.subprocess, "run", world.run)
    return world


def test_the_environment_is_made_once(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert bootstrap.ensure("run") == world.python
    assert world.installed() == ["run.lock"]
    assert "once" in capsys.readouterr().err
    world.calls.clear()
    assert bootstrap.ensure("run") == world.python
    assert world.calls == []
    assert capsys.readouterr().err == ""


def test_only_locked_and_hashed_packages_are_installed(world: World) -> None:
    bootstrap.ensure("run")
    (install,) = (argv for argv in world.calls if "install" in argv)
    assert {"--require-hashes", "--no-input", "--requirement"} <= set(install)
    assert not [
        word for word in install if word.startswith(("--index", "--extra-index", "--trusted", "http"))
    ]


def test_a_changed_lock_is_installed_again(world: World) -> None:
    bootstrap.ensure("run")
    (world.root / "requirements/run.lock").write_text("run==2 --hash=sha256:0\n")
    bootstrap.ensure("run")
    assert world.installed() == ["run.lock", "run.lock"]


def test_the_developers_packages_hold_those_of_a_run(world: World) -> None:
    bootstrap.ensure("dev")
    bootstrap.ensure("run")
    assert world.installed() == ["dev.lock"]


def test_a_python_that_went_away_is_made_anew(world: World) -> None:
    bootstrap.ensure("run")
    world.python.unlink()
    bootstrap.ensure("run")
    assert world.installed() == ["run.lock", "run.lock"]


def test_what_was_cut_off_is_begun_again(world: World) -> None:
    world.fails["install"] = "ERROR: No matching distribution\n\nERROR: connection reset\n"
    with pytest.raises(CannotJudge, match=r"can't be installed: ERROR: connection reset"):
        bootstrap.ensure("run")
    world.fails.clear()
    bootstrap.ensure("run")
    assert world.installed() == ["run.lock", "run.lock"]


def test_a_missing_lock_is_said(world: World) -> None:
    (world.root / "requirements/run.lock").unlink()
    with pytest.raises(UsageError, match=r"run\.lock can't be read"):
        bootstrap.ensure("run")


def test_a_folder_that_can_not_be_written_is_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *_arguments: object, **_options: object) -> int:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "write_text", refuse)
    with pytest.raises(UsageError, match="xb needs to write there"):
        bootstrap.ensure("run")


def test_without_ensurepip_the_pip_of_debians_wheel_is_used(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world.has_ensurepip = False
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "pip-23.0.1-py3-none-any.whl").touch()
    monkeypatch.setattr(bootstrap, "_WHEELS", wheels)
    bootstrap.ensure("run")
    made = next(argv for argv in world.calls if "venv" in argv)
    assert "--without-pip" in made
    (install,) = (argv for argv in world.calls if "install" in argv)
    assert install[1] == f"{wheels}/pip-23.0.1-py3-none-any.whl/pip"


def test_without_pip_and_apt_the_user_is_told_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    world.has_ensurepip = False
    monkeypatch.setattr(bootstrap, "_WHEELS", tmp_path / "none")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="python3-venv"):
        bootstrap.ensure("run")


def test_two_launchers_make_it_once(world: World) -> None:
    threads = [threading.Thread(target=bootstrap.ensure, args=("run",)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert world.installed() == ["run.lock"]


def test_the_launcher_needs_nothing_that_must_be_installed() -> None:
    """Import what the launcher imports in a Python without any package."""
    root = bootstrap.ROOT
    code = f"import sys; sys.path.insert(0, {str(root)!r}); import xbtasks.bootstrap, xbtasks.sim.apt"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (root / "xb").stat().st_mode & stat.S_IXUSR
