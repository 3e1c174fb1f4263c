"""Commands in messages: written in one form, and typed as the reader types where they are read."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workplace import PROJECT, program
from xbtasks import typed
from xbtasks.source import SOURCE
from xbtasks.tasks import ns

TREES = {path: ast.parse(path.read_text()) for path in sorted((PROJECT / "xbtasks").rglob("*.py"))}
OTHERS = [
    path
    for kind in ("toml", "json", "sh", "css")
    for path in sorted((PROJECT / "xbtasks").rglob(f"*.{kind}"))
]
PAGE = PROJECT / "xbtasks/reporting/html.py"
"""A page that is kept: its one command is an element of its own, and nobody's."""
NAMED = re.compile(r"(`?)\b(?:inv|xb|\./xb) ([a-z][\w.]*)[^`]*?(`|$)")


def texts(tree: ast.AST) -> list[tuple[int, str]]:
    """Return the texts of a module that are no docstrings, each with its line; what is formatted is ``…``."""
    documenting = {
        id(body[0].value)
        for node in ast.walk(tree)
        if (body := getattr(node, "body", None)) and isinstance(body, list) and isinstance(body[0], ast.Expr)
    } | {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    within = {id(part) for node in joined for part in ast.walk(node) if part is not node}
    found = [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in within | documenting
    ]
    for node in joined:
        parts = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
        found.append((node.lineno, "".join(parts)))
    return found


def misnamed(text: str) -> list[str]:
    """Return the commands in a text that a reader would get as they stand there."""
    found = [
        match[0]
        for match in NAMED.finditer(text)
        if match[2] in ns.task_names or match[2].partition(".")[0] in ns.collections
    ]
    return [each for each in found if not re.fullmatch(r"`inv [^`]+`", each)]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("try inv demo", True),
        ("./xb demo", True),
        ("`xb demo` shows it", True),
        ("`inv demo` shows it", False),
        ("an inventory, inv or xb", False),
    ],
)
def test_the_look_for_commands_finds_them(text: str, wrong: bool) -> None:
    assert bool(misnamed(text)) is wrong


def test_every_command_in_a_message_is_named_in_the_one_form() -> None:
    wrong = [
        f"{path.relative_to(PROJECT)}:{line}: {each}"
        for path, tree in TREES.items()
        if path != PAGE
        for line, text in texts(tree)
        for each in misnamed(text)
    ]
    wrong += [
        f"{path.relative_to(PROJECT)}:{number}: {each}"
        for path in OTHERS
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if not line.startswith("#") and path.parent.name != "schema"
        for each in misnamed(line)
    ]
    assert wrong == []


def test_every_command_that_is_named_is_one() -> None:
    for path, tree in TREES.items():
        for line, text in texts(tree):
            for task in re.findall(r"`inv ([a-z][\w.]*)", text):
                assert task in ns.task_names or task in ns.collections, f"{path}:{line}"


def test_what_is_printed_past_the_console_is_typed_first() -> None:
    wrong = [
        f"{path.relative_to(PROJECT)}:{node.lineno}"
        for path, tree in TREES.items()
        if "sim" not in path.relative_to(PROJECT).parts  # its programs are not the user's
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
        for text in map(ast.unparse, node.args)
        if re.search(r"`inv |\b(?:message|hint|warning)\b|\berror\b(?!:)", text) and "as_typed(" not in text
    ]
    assert wrong == []


class TestCommand:
    @pytest.fixture(autouse=True)
    def _alone(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(typed, "_flags", {})
        monkeypatch.setattr(typed, "_options", [])

    def started(self, monkeypatch: pytest.MonkeyPatch, argv0: str) -> None:
        monkeypatch.setattr(sys, "argv", [argv0])

    @pytest.mark.parametrize("argv0", ["./xb", "../it's/xb", ".venv/bin/inv", "bin/invoke"])
    def test_a_path_stays_as_it_was_typed(self, monkeypatch: pytest.MonkeyPatch, argv0: str) -> None:
        self.started(monkeypatch, argv0)
        words = shlex.split(typed.command("knobs"))
        assert words[1:] == ["knobs"]
        assert Path(words[0]) == Path(argv0)
        assert "/" in words[0]

    def test_what_the_shell_found_goes_by_its_name(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        for folder in ("first", "second"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "xb").touch(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/second")
        self.started(monkeypatch, f"{tmp_path}/first/xb")
        assert typed.command("knobs") == "xb knobs"
        self.started(monkeypatch, f"{tmp_path}/second/xb")
        assert typed.command("knobs") == f"{tmp_path}/second/xb knobs"

    @pytest.mark.parametrize("argv0", ["/usr/bin/nox", "/x/site-packages/xbtasks/__main__.py", "-c"])
    def test_what_something_else_started_goes_by_its_own_name(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argv0: str
    ) -> None:
        self.started(monkeypatch, argv0)
        monkeypatch.setenv("PATH", "/nonexistent")
        monkeypatch.chdir(tmp_path)
        assert typed.command("knobs") == f"{SOURCE}/xb knobs"
        monkeypatch.chdir(str(SOURCE))
        assert typed.command("knobs") == "./xb knobs"

    def test_an_installed_package_without_a_program(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        self.started(monkeypatch, "/usr/bin/nox")
        monkeypatch.setattr(typed, "SOURCE", None)
        monkeypatch.setattr(sys, "executable", f"{tmp_path}/python")
        assert typed.command("knobs") == f"{tmp_path}/python -P -m xbtasks knobs"

    def test_where_this_call_works_is_where_the_command_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started(monkeypatch, "./xb")
        typed.note_call({"--repo": "/a b", "--host": "me@far"})
        assert typed.command("verify x") == "./xb verify x --repo='/a b' --host=me@far"
        assert typed.command("changed") == "./xb changed --repo='/a b'"
        assert typed.command("report") == "./xb report"
        typed.note_options(["-f", "a b"])
        assert typed.command("report") == "./xb -f 'a b' report"

    @pytest.mark.parametrize("argv0", ["./xb", "./inv"])
    def test_a_second_time_changes_nothing(self, monkeypatch: pytest.MonkeyPatch, argv0: str) -> None:
        self.started(monkeypatch, argv0)
        monkeypatch.setattr(typed, "_short", lambda path: Path(path).name)
        typed.note_call({"--repo": "/here"})
        text = "first `inv build x` and `inv stages`, but inv alone"
        once = typed.as_typed(text)
        name = argv0[2:]
        assert once == f"first `{name} build x --repo=/here` and `{name} stages --repo=/here`, but inv alone"
        assert typed.as_typed(once) == once


@pytest.mark.parametrize("start", ["xb", "inv", "python -m invoke", "inv -r"])
@pytest.mark.parametrize(
    "words", ["replay", "explain zzz", "sim.status", "verify", "report.diff x y", "--list"]
)
def test_what_a_message_names_can_be_typed_where_it_is_read(start: str, words: str, tmp_path: Path) -> None:
    """Each command that is shown is typed again, with --help, in the same directory."""
    inv = shlex.quote(str(program("inv")))
    first, folder = {
        "xb": (f"{shlex.quote(str(PROJECT))}/xb", tmp_path),
        "inv": (inv, PROJECT),
        "python -m invoke": (f"{shlex.quote(sys.executable)} -m invoke", PROJECT),
        "inv -r": (f"{inv} -r {shlex.quote(str(PROJECT))}", tmp_path),
    }[start]

    def type_it(line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", line],
            cwd=folder,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )

    done = type_it(f"{first} {words}")
    said = done.stdout + done.stderr
    shown = re.findall(r"`([^`]+ [a-z][^`]*)`", said)
    if words == "--list":
        shown = [said.splitlines()[-1].partition(" TASK")[0] + " knobs"]
    assert shown, said
    for command in shown:
        again = type_it(f"{command} --help")
        assert again.returncode == 0, command + again.stderr
