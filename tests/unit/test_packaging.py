from __future__ import annotations

import tomllib
from pathlib import PurePath

from tests.workplace import PROJECT

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
