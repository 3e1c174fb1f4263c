"""A fresh checkout: the launcher makes its environment once, and a run writes nothing else into it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

from tests.workplace import PROJECT

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", ".nox", "*.egg-info"
)


def test_a_fresh_checkout_needs_only_python(tmp_path: Path) -> None:
    fresh = tmp_path / 'it\'s a "checkout"'
    shutil.copytree(PROJECT, fresh, ignore=LEFT_OUT, symlinks=True)
    home = tmp_path / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XB_", "VIRTUAL_ENV"))}
    environment = {**kept, "HOME": str(home), "XDG_STATE_HOME": str(home / "state")}
    environment.setdefault("PIP_CACHE_DIR", str(Path.home() / ".cache/pip"))  # nothing is downloaded twice

    def xb(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [fresh / "xb", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    before = {str(path.relative_to(fresh)) for path in fresh.rglob("*")}
    first = xb("--list")
    assert first.returncode == 0, first.stderr
    assert "verify" in first.stdout
    assert first.stderr.count("xb: ") == 1
    second = xb("verify")
    assert second.returncode == 2
    assert "xb: " not in second.stderr
    assert f"`{shlex.quote(str(fresh / 'xb'))} demo`" in second.stderr
    after = {
        str(path.relative_to(fresh))
        for path in fresh.rglob("*")
        if ".venv" not in path.relative_to(fresh).parts
    }
    assert after == before
    assert not (home / "state").exists()
