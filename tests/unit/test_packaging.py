from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path, PurePath

from tests.workplace import PROJECT
from xbtasks.source import SOURCE, find_source

PACKAGE = PROJECT / "xbtasks"
IGNORED = {".py", ".pyc"}


def fits(path: str, pattern: str) -> bool:
    """Return whether setuptools takes ``path`` by ``pattern``, in which ``**`` stands for any folders."""
    deep = pattern.replace("**/", "")
    return PurePath(path).match(pattern) or ("**/" in pattern and PurePath(path).match(deep))


def test_every_file_that_the_package_reads_is_shipped() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["xbtasks"]
    files = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix not in IGNORED
    ]
    folders = [pattern.removesuffix("/**/*") + "/" for pattern in patterns if pattern.endswith("/**/*")]
    assert files
    assert not [
        name
        for name in files
        if not name.startswith(tuple(folders)) and not any(fits(name, pattern) for pattern in patterns)
    ]


def test_dependencies_are_locked_with_hashes_and_without_addresses() -> None:
    for lock in (PROJECT / "requirements").glob("*.lock"):
        lines = lock.read_text().splitlines()
        assert not [line for line in lines if "://" in line or line.startswith(("-i", "--index", "--extra"))]
        assert "--hash=sha256:" in lock.read_text()


def test_the_source_checkout_is_known_by_what_only_it_has(tmp_path: Path) -> None:
    assert SOURCE == PROJECT
    for foreign in ("tests", "config", "requirements"):
        (tmp_path / foreign).mkdir()
    (tmp_path / "xb").touch()
    assert find_source(tmp_path / "xbtasks") is None
    (tmp_path / "requirements/run.lock").touch()
    assert find_source(tmp_path / "xbtasks") == tmp_path


def test_the_launcher_imports_nothing_of_the_current_directory(tmp_path: Path) -> None:
    for name in ("xbtasks", "invoke", "yaml"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('imported')\n")
    done = subprocess.run([PROJECT / "xb", "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not list(tmp_path.rglob("__pycache__"))
