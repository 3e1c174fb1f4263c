"""Public names are public on purpose, and each says what it is."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.workplace import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = PROJECT / "xbtasks"
MODULES = {
    str(path.relative_to(PROJECT)): path.read_text()
    for path in sorted(PACKAGE.rglob("*.py"))
    if "operator" not in path.relative_to(PACKAGE).parts
}


def exported(tree: ast.Module) -> list[str] | None:
    """Return ``__all__`` of a module, or None where it has none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return list(ast.literal_eval(node.value))
    return None


def empty(tree: ast.Module) -> bool:
    """Return whether a module says only what it is, and perhaps its version."""
    rest = tree.body[1:] if ast.get_docstring(tree) else tree.body
    return all(
        isinstance(node, ast.Assign) and ast.unparse(node).startswith("__version__ =") for node in rest
    )


def defined(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yield the names that a module itself defines, and whether what it is stands there.

    That is a docstring, or for a constant a text or a comment beside it.
    """
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, bool(ast.get_docstring(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            told = (
                isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            )
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    yield target.id, told


def complaints(text: str) -> list[str]:
    """Return what is wrong with the public names of a module."""
    tree = ast.parse(text)
    found = [] if ast.get_docstring(tree) else ["no docstring"]
    if empty(tree):
        return found
    names = exported(tree)
    if names is None:
        return [*found, "no __all__"]
    if sorted(set(names)) != sorted(names):
        found.append("__all__ names something twice")
    known = dict(defined(tree))
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for name in names:
        if name in known and not known[name]:
            found.append(f"{name} says not what it is")
        elif name not in known and name not in imported:
            found.append(f"{name} is not there")
    return found


@pytest.mark.parametrize("name", MODULES)
def test_public_names_are_exported_and_explained(name: str) -> None:
    assert complaints(MODULES[name]) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", ["no docstring", "no __all__"]),
        ('"""M."""\nx = 1', ["no __all__"]),
        ('"""M."""\n__all__ = ["f"]\ndef f(): pass', ["f says not what it is"]),
        ('"""M."""\n__all__ = ["X"]\nX = 1', ["X says not what it is"]),
        ('"""M."""\n__all__ = ["X"]\nX: int = 1\n"""What."""', []),
        (
            '"""M."""\n__all__ = ["g"]\ndef f():\n  """F."""',
            ["g is not there"],
        ),
        ('"""M."""\n__all__ = ["f", "f"]\nfrom x import f', ["__all__ names something twice"]),
        ('"""M."""\n__version__ = "1"', []),
    ],
)
def test_each_complaint_can_be_made(text: str, said: list[str]) -> None:
    assert complaints(text) == said


def test_modules_import_only_public_names_of_each_other() -> None:
    public = {}
    for name, text in MODULES.items():
        module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        public[module] = {*(exported(ast.parse(text)) or ()), "__version__"}
    private = [
        f"{name}: {alias.name} of {node.module}"
        for name, text in MODULES.items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module in public
        for alias in node.names
        if alias.name not in public[node.module] and f"{node.module}.{alias.name}" not in public
    ]
    assert not private


def test_the_pages_tell_public_names_and_no_others(tmp_path: Path) -> None:
    session = re.search(r'"-m", "pdoc", (.*), folder, "xbtasks"\)', (PROJECT / "noxfile.py").read_text())
    assert session
    options = re.findall('"(.*?)"', session[1])
    words = [sys.executable, "-m", "pdoc", *options, str(tmp_path), "xbtasks.checks", "xbtasks.errors"]
    done = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    page = (tmp_path / "xbtasks/errors.html").read_text()
    assert set(re.findall(r'<section id="(\w+)">', page)) == set(
        exported(ast.parse(MODULES["xbtasks/errors.py"])) or ()
    )
