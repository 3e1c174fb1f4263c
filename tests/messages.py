"""What the code can say, read from its syntax trees: templates of its messages, and the ids of its checks.

A template is the constant text of an expression with ``…`` for what is known only at run time. One with
too little text of its own (``f"{where}: {why}"``) is followed: into the parameters that callers give, the
locals that are assigned, the constants of modules, and what a function returns.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

__all__ = ["HOLE", "Function", "Message", "Program", "key", "says_something"]

HOLE: Final = "…"
_DEEPEST: Final = 12
_MOST: Final = 400
_ROOTS: Final = ("XbError", "Skipped")
_NAME: Final = re.compile(r"[a-z0-9_]+")
_SMALL_WORDS: Final = frozenset(
    {"is", "has", "not", "of", "the", "an", "in", "and", "to", "it", "no", "for", "round"}
)


def says_something(template: str) -> bool:
    """Whether a template has text of its own that a reader can look for: two words, or a long one."""
    words = set(re.findall(r"[A-Za-z][A-Za-z'-]+", template)) - _SMALL_WORDS
    return len(words) > 1 or any(len(word) > 4 for word in words)


def key(template: str) -> str:
    """Return what a page must quote of a template: its text without what stands before and behind it."""
    text = re.sub(rf"^(?:(?:through )?{HOLE}(?: round)?[:,;]? ?)+", "", template)
    return re.sub(rf"(?:[ :;,('\"-]*{HOLE}[)'\"]*)+$", "", text).strip()


def _value(text: str) -> str:
    return HOLE if _NAME.fullmatch(text) else text


def joined(parts: Iterable[str]) -> str:
    """Return the parts as one template; holes side by side are one."""
    return re.sub(rf"{HOLE}(\s*{HOLE})+", HOLE, "".join(parts))


@dataclass(frozen=True)
class Message:
    """A template, and the module and function that says it; ``kind`` is the error's class, or ``FAIL``."""

    template: str
    kind: str
    module: str
    function: str
    line: int


@dataclass(frozen=True)
class Function:
    """A function or method; ``parameters`` are without ``self``."""

    module: str
    name: str
    parameters: tuple[str, ...]
    node: ast.FunctionDef = field(repr=False, compare=False)

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr | None]]:
        """What is assigned to each local; None where it can't be told."""
        found: dict[str, list[ast.expr | None]] = {}
        for node in ast.walk(self.node):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    found.setdefault(name, []).append(value)
                case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(
                    names
                ) == len(values):
                    for target, each in zip(names, values, strict=True):
                        if isinstance(target, ast.Name):
                            found.setdefault(target.id, []).append(each)
                case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                    found.setdefault(name, []).append(value)
                case ast.NamedExpr(target=ast.Name(id=name), value=value):
                    found.setdefault(name, []).append(value)
                case ast.AugAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                    found.setdefault(name, [])
                case _:
                    pass
        return found

    @property
    def returned(self) -> list[ast.expr]:
        """What it returns, part by part where that is a tuple or yielded."""
        values = [node.value for node in ast.walk(self.node) if isinstance(node, ast.Return)]
        return [value for value in values if value is not None]


@dataclass(frozen=True)
class _Call:
    node: ast.Call
    module: str
    within: Function | None


def _bare(expression: ast.expr) -> str:
    """Return the last name of what is called or named: ``failed`` of ``rows.failed``."""
    match expression:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


class Program:
    """The modules under a package's folder."""

    def __init__(self, folder: Path) -> None:
        self.trees = {
            ".".join(path.relative_to(folder.parent).with_suffix("").parts): ast.parse(path.read_text())
            for path in sorted(folder.rglob("*.py"))
        }
        self.functions: dict[str, list[Function]] = {}
        self.calls: dict[str, list[_Call]] = {}
        self.constants: dict[tuple[str, str], ast.expr] = {}
        self._imports: dict[tuple[str, str], tuple[str, str]] = {}
        self._bases: dict[str, set[str]] = {}
        self._within: frozenset[Function] | None = None
        for module, tree in self.trees.items():
            for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
                for node in ast.walk(text):  # before Python 3.12 what stands in a text has lines of its own
                    if isinstance(node, ast.expr):
                        node.lineno = text.lineno
            self._read(module, tree, None)

    def _read(self, module: str, node: ast.AST, within: Function | None) -> None:
        for child in ast.iter_child_nodes(node):
            inner = within
            match child:
                case ast.FunctionDef(name=name, args=arguments):
                    names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
                    names = names[1:] if names[:1] in (["self"], ["cls"]) else names
                    names += [each.arg for each in arguments.kwonlyargs]
                    inner = Function(module, name, tuple(names), child)
                    self.functions.setdefault(name, []).append(inner)
                case ast.ClassDef(name=name, bases=bases):
                    self._bases.setdefault(name, set()).update(map(_bare, bases))
                case ast.Call(func=called):
                    self.calls.setdefault(_bare(called), []).append(_Call(child, module, within))
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if within is None:
                    self.constants[module, name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value) if within is None:
                    self.constants[module, name] = value
                case ast.ImportFrom(module=str(source), names=names):
                    for alias in names:
                        self._imports[module, alias.asname or alias.name] = source, alias.name
                case _:
                    pass
            self._read(module, child, inner)

    @cached_property
    def errors(self) -> frozenset[str]:
        """The names of the classes whose messages a user reads."""
        found = set(_ROOTS)
        while more := {name for name, bases in self._bases.items() if bases & found} - found:
            found |= more
        return frozenset(found)

    @cached_property
    def _own_words(self) -> frozenset[str]:
        """The errors that nobody sees (private ones), or that make their message of other arguments."""
        making = {
            name
            for tree in self.trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
            for name in [node.name]
            for call in ast.walk(node)
            if isinstance(call, ast.Call)
            and ast.unparse(call.func) == "super().__init__"
            and call.args
            and isinstance(call.args[0], ast.JoinedStr)
        }
        return frozenset(name for name in self.errors if name in making or name.startswith("_"))

    def messages(self) -> Iterator[Message]:
        """Yield what errors and rows that FAIL say."""
        for kind in sorted(self.errors - self._own_words):
            for call in self.calls.get(kind, ()):
                if call.node.args:
                    yield from self._messages(call, call.node.args[0], kind)
        for call in self._of_a_chosen_kind():
            yield from self._messages(call, call.node.args[0], _ROOTS[0])
        for call in self.calls.get("Check", ()):
            words = {each.arg: each.value for each in call.node.keywords}
            values = [*call.node.args, *(words[name] for name in ("status", "detail") if name in words)]
            if len(values) > 2 and self._may_fail(values[1], call):
                yield from self._messages(call, values[2], "FAIL")

    def _of_a_chosen_kind(self) -> Iterator[_Call]:
        """Yield what makes an error of a class that a local holds: ``kind = UsageError if … else …``."""
        for name, calls in self.calls.items():
            for call in calls:
                values = call.within.assigned.get(name, ()) if call.within and call.node.args else ()
                nodes = [node for value in values if value is not None for node in ast.walk(value)]
                if any(isinstance(node, ast.Name) and node.id in self.errors for node in nodes):
                    yield call

    def place(self, message: Message) -> str:
        """Return where the text of a message stands: not always where the error is made of it."""
        longest = max(key(message.template).split(HOLE), key=len).strip(" :;,")
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and longest in node.value:
                    return f"{module.replace('.', '/')}.py:{node.lineno}"
        return f"{message.module.replace('.', '/')}.py:{message.line}"

    def check_ids(self, module: str, name: str, *, but: Iterable[str] = ()) -> set[str]:
        """Return the last parts of the ids of all rows that a function can lead to; ``…`` isn't told.

        Calls of the names in ``but`` are not followed.
        """
        self._within = self._reachable(module, name, frozenset(but))
        try:
            found = {
                template.rpartition(".")[2]
                for call in self.calls.get("Check", ())
                if call.within in self._within and call.node.args
                for template in self.templates(call.node.args[0], call.module, call.within, whole=True)
            }
        finally:
            self._within = None
        return found

    def _reachable(self, module: str, name: str, but: frozenset[str]) -> frozenset[Function]:
        """Return the functions that one can lead to, by the names that are called and what is imported."""
        left = {function for function in self.functions[name] if function.module == module}
        found: set[Function] = set()
        while left:
            function = left.pop()
            found.add(function)
            left |= {*self._called(function, but)} - found
            if not left:
                left = self._overridden(found) - found
        return frozenset(found)

    def _called(self, function: Function, but: frozenset[str]) -> Iterator[Function]:
        for node in ast.walk(function.node):
            if isinstance(node, ast.Call) and _bare(node.func) not in but:
                call = _Call(node, function.module, function)
                for each in self.functions.get(_bare(node.func), ()):
                    if self._reaches(call, each):
                        yield each

    def _overridden(self, found: Iterable[Function]) -> set[Function]:
        """Return what abstract methods among ``found`` are in the modules that were reached."""
        modules = {function.module for function in found}
        return {
            each
            for function in found
            if any(_bare(each) == "abstractmethod" for each in function.node.decorator_list)
            for each in self.functions[function.name]
            if each.module in modules
        }

    def _may_fail(self, status: ast.expr, call: _Call) -> bool:
        match status:
            case ast.Attribute(attr=name):
                return name == "FAIL"
            case ast.Name(id=name) if call.within:
                values = [(each, call) for each in call.within.assigned.get(name, ()) if each is not None]
                if not values and name in call.within.parameters:
                    values = self._arguments(call.within, name)
                return any(
                    isinstance(node, ast.Attribute) and node.attr == "FAIL"
                    for value, *_ in values
                    for node in ast.walk(value)
                )
            case _:
                return True

    def _messages(self, call: _Call, text: ast.expr, kind: str) -> Iterator[Message]:
        where = call.within.name if call.within else ""
        passed_on = isinstance(text, ast.Attribute) and text.attr in ("message", "reason")
        for template in sorted(self.templates(text, call.module, call.within)):
            if not template or (passed_on and template == HOLE):
                continue
            yield Message(template, kind, call.module, where, call.node.lineno)

    def templates(
        self,
        value: ast.expr,
        module: str,
        within: Function | None,
        *,
        whole: bool = False,
        depth: int = 0,
    ) -> set[str]:
        """Return the templates of ``value``; ``whole`` follows every part of it that can be followed."""
        if depth > _DEEPEST:
            return {HOLE}

        def follow(part: ast.expr) -> set[str]:
            return self.templates(part, module, within, whole=whole, depth=depth + 1)

        match value:
            case ast.Constant(value=str(text)):
                return {text}
            case ast.JoinedStr(values=parts):
                return self._joined(parts, follow, whole=whole)
            case ast.FormattedValue(value=part):
                return follow(part)
            case ast.IfExp(body=one, orelse=other):
                return follow(one) | follow(other)
            case ast.BoolOp(values=parts):
                return set().union(*map(follow, parts))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._joined([left, right], follow, whole=True)
            case ast.Name():
                return self._named(value, module, within, whole=whole, depth=depth)
            case ast.Call(func=ast.Name(id=name)):
                return self._returned(name, module, whole=whole, depth=depth)
            case ast.Call(func=ast.Attribute(value=ast.Name(id="self"), attr=name)) if whole:
                return self._returned(name, module, whole=whole, depth=depth)
            case ast.Subscript(value=ast.Name(id=name)):
                return self._values(module, name, depth) or {HOLE}
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="get"), args=[_, *rest]):
                found = self._values(module, name, depth).union(*map(follow, rest))
                return found or {HOLE}
            case _:
                return {HOLE}

    def _joined(
        self, parts: list[ast.expr], follow: Callable[[ast.expr], set[str]], *, whole: bool
    ) -> set[str]:
        own = joined(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in parts)
        if not whole and says_something(own):
            return {own}
        choices = [{str(part.value)} if isinstance(part, ast.Constant) else follow(part) for part in parts]
        if not whole:  # a name is a value, not a text
            choices = [
                each
                if isinstance(part, ast.Constant)
                else {HOLE if _NAME.fullmatch(one) else one for one in each}
                for part, each in zip(parts, choices, strict=True)
            ]
        found = {joined(combination) for combination in product(*(sorted(each) for each in choices))}
        return found if len(found) <= _MOST else {own}

    def _constant(self, module: str, name: str) -> tuple[str, ast.expr] | None:
        for _ in range(3):
            if (module, name) in self.constants:
                return module, self.constants[module, name]
            if (module, name) not in self._imports:
                return None
            module, name = self._imports[module, name]
        return None

    def _values(self, module: str, name: str, depth: int) -> set[str]:
        """Return the values of a dictionary that is a module's constant."""
        known = self._constant(module, name)
        if not known or not isinstance(known[1], ast.Dict):
            return set()
        parts = (self.templates(each, known[0], None, depth=depth + 1) for each in known[1].values)
        return set().union(*parts)

    def _named(
        self, named: ast.Name, module: str, within: Function | None, *, whole: bool, depth: int
    ) -> set[str]:
        name, line = named.id, named.lineno
        if within and name in within.assigned:
            values = within.assigned[name]
            found: set[str] = set()
            for each in values:
                if each is not None and each.lineno <= line:
                    found |= self.templates(each, module, within, whole=whole, depth=depth + 1)
            return found or {HOLE}
        if within and name in within.parameters:
            return self._given(within, name, whole=whole, depth=depth)
        known = self._constant(module, name)
        return self.templates(known[1], known[0], None, whole=whole, depth=depth + 1) if known else {HOLE}

    def _given(self, function: Function, name: str, *, whole: bool, depth: int) -> set[str]:
        """Return the templates of what callers give for a parameter."""
        found: set[str] = set()
        for given, call in self._arguments(function, name):
            found |= self.templates(given, call.module, call.within, whole=whole, depth=depth + 1)
        return found or {HOLE}

    def _arguments(self, function: Function, name: str) -> list[tuple[ast.expr, _Call]]:
        """Return what callers give for a parameter, and the calls."""
        place = function.parameters.index(name)
        found = []
        for call in self.calls.get(function.name, ()):
            inside = self._within is None or call.within in self._within
            if inside and self._reaches(call, function):
                given = next((word.value for word in call.node.keywords if word.arg == name), None)
                if given is None and place < len(call.node.args):
                    given = call.node.args[place]
                if given is not None:
                    found.append((given, call))
        return found

    def _reaches(self, call: _Call, function: Function) -> bool:
        """Whether a call by that name may be of ``function``: of its own module, or imported from it."""
        if call.module == function.module:
            return True
        name = function.name
        if isinstance(call.node.func, ast.Name):
            return self._imports.get((call.module, name)) == (function.module, name)
        known = self._known(call.module)
        return function.module in known.union(*(self._inherited[module] for module in known))

    def _known(self, module: str) -> set[str]:
        """Return the modules that one imports, or imports something of."""
        found = {source for (importer, _), source in self._imports.items() if importer == module}
        return {name for source, each in found for name in (source, f"{source}.{each}") if name in self.trees}

    @cached_property
    def _inherited(self) -> dict[str, set[str]]:
        """The modules that the classes of each module inherit from."""
        found: dict[str, set[str]] = {module: set() for module in self.trees}
        for module, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    bases = {
                        name.id
                        for each in node.bases
                        for name in ast.walk(each)
                        if isinstance(name, ast.Name)
                    }
                    for name in bases:
                        source, original = self._imports.get((module, name), ("", ""))
                        found[module] |= {source, f"{source}.{original}"} & self.trees.keys()
        return found

    def _returned(self, name: str, module: str, *, whole: bool, depth: int) -> set[str]:
        source = self._imports.get((module, name), (module, name))[0]
        found: set[str] = set()
        for function in self.functions.get(name, ()):
            if function.module == source:
                for value in function.returned:
                    found |= self.templates(value, source, function, whole=whole, depth=depth + 1)
        return found or {HOLE}
