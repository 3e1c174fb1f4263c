"""What every case and check means: data files beside the code that they explain, as values.

``checks.toml`` of :mod:`xbtasks.backends` has what all backends share, that of a backend's folder its
own checks and rows of preflight, that of :mod:`xbtasks.preflight` the other rows about a host. Where two
files explain the same check of a backend, its own counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final, TypedDict

from xbtasks import datafile
from xbtasks.backends import BACKENDS
from xbtasks.errors import UsageError
from xbtasks.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.backends.base import Backend, Case

__all__ = ["Explanation", "Topic", "advice", "explanation", "named", "topic", "topics"]


PREFLIGHT: Final = "preflight"
_FILE: Final = "checks.toml"
_UNTOLD: Final = "not told"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One check: what it means in a line, why it matters, what often causes a red row, what to do next.

    ``see`` is a file of the documentation with a heading's anchor, from the project's folder.
    """

    id: str
    means: str
    why: str
    causes: tuple[str, ...]
    next: str
    see: str

    def document(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "id": self.id,
            "means": self.means,
            "why": self.why,
            "causes": list(self.causes),
            "next": self.next,
            "see": self.see,
        }


@dataclass(frozen=True, slots=True)
class Topic:
    """A case, or preflight: what it runs, needs, proves and changes on the host, how long, and its checks."""

    id: str
    title: str
    runs: str
    needs: str
    proves: str
    changes: str
    takes: str
    checks: tuple[Explanation, ...]

    def document(self) -> dict[str, object]:
        """Return it as JSON values."""
        return {
            "id": self.id,
            "title": self.title,
            "runs": self.runs,
            "needs": self.needs,
            "proves": self.proves,
            "changes": self.changes,
            "takes": self.takes,
            "checks": [check.document() for check in self.checks],
        }


class _About(TypedDict, total=False):
    runs: str
    needs: str
    proves: str
    changes: str
    takes: str


class _Row(TypedDict):
    name: str
    means: str
    why: str
    causes: list[str]
    next: str
    see: str


class _CaseRow(_Row):
    cases: list[int]


class _SharedRow(_CaseRow, total=False):
    backends: list[str]


class _HostData(TypedDict):
    preflight: _About
    check: list[_Row]


class _SharedData(TypedDict):
    case: dict[str, _About]
    check: list[_SharedRow]


class _OwnData(TypedDict, total=False):
    preflight: list[_Row]
    case: dict[str, _About]
    check: list[_CaseRow]


@cache
def topics() -> tuple[Topic, ...]:
    """Return preflight and the cases of all backends, in the order of the backends.

    Raises:
        UsageError: a file has another form.
    """
    host = datafile.read("xbtasks.preflight", _FILE, _HostData)
    shared = datafile.read("xbtasks.backends", _FILE, _SharedData)
    own = {backend.name: _own(backend) for backend in BACKENDS.values()}
    rows = [*host["check"], *(row for each in own.values() for row in each.get("preflight", []))]
    found = [_topic(PREFLIGHT, "What the host can do", host["preflight"], rows)]
    for backend in BACKENDS.values():
        found += [_case(backend, case, shared, own[backend.name]) for case in backend.cases]
    return tuple(found)


def topic(name: str) -> Topic | None:
    """Return the topic called ``name``, or None."""
    return next((each for each in topics() if each.id == name), None)


def explanation(name: str) -> Explanation | None:
    """Return the explanation of the check called ``name``, or None."""
    return next((check for each in topics() for check in each.checks if check.id == name), None)


def named(name: str) -> Topic | Explanation | tuple[Topic, ...]:
    """Return what ``name`` stands for: a topic, a check, or a backend's topics.

    Raises:
        UsageError: it stands for nothing.
    """
    found = topic(name) or explanation(name)
    if found:
        return found
    if name in BACKENDS:
        return tuple(each for each in topics() if each.id.startswith(f"{name}."))
    known = [*BACKENDS, *(each.id for each in topics())]
    known += [check.id for each in topics() for check in each.checks]
    near = nearest(name, known)
    hint = f"did you mean {' or '.join(near)}?" if near else "`inv explain` alone lists what there is"
    raise UsageError(f"nothing is called {name!r}", hint=hint)


def advice(check_id: str) -> str:
    """Return in one line what to do about a check's red row: a short advice, and where more of it stands.

    Where it isn't explained, or the explanations can't be read, the line says that: the verdict stands.
    """
    try:
        found = explanation(check_id)
    except UsageError as error:
        return error.message
    return f"{found.next}; `inv explain {check_id}` tells more" if found else f"no {_FILE} explains it"


def _own(backend: Backend) -> _OwnData:
    """Return what the backend's own file says; nothing where it has none.

    Raises:
        UsageError: it has another form, or is about a case that the backend doesn't have.
    """
    package = f"xbtasks.backends.{backend.name}"
    if not files(package).joinpath(_FILE).is_file():
        return {}
    own = datafile.read(package, _FILE, _OwnData)
    numbers = {str(case.number) for case in backend.cases}
    told = {number for row in own.get("check", []) for number in map(str, row["cases"])}
    for number in sorted({*own.get("case", {}), *told} - numbers):
        where = f"xbtasks/backends/{backend.name}/{_FILE}"
        raise UsageError(f"{where} explains case {number}, which {backend.name} doesn't have")
    return own


def _case(backend: Backend, case: Case, shared: _SharedData, own: _OwnData) -> Topic:
    number = str(case.number)
    about = own.get("case", {}).get(number) or shared["case"].get(number, {})
    mine = [check for check in own.get("check", []) if case.number in check["cases"]]
    names = {check["name"] for check in mine}
    common = [
        check
        for check in shared["check"]
        if case.number in check["cases"]
        and backend.name in check.get("backends", [backend.name])
        and check["name"] not in names
    ]
    return _topic(f"{backend.name}.case{case.number}", case.title, about, [*common, *mine])


def _topic(name: str, title: str, about: _About, checks: Sequence[_Row]) -> Topic:
    return Topic(
        id=name,
        title=title,
        runs=about.get("runs", _UNTOLD),
        needs=about.get("needs", _UNTOLD),
        proves=about.get("proves", _UNTOLD),
        changes=about.get("changes", _UNTOLD),
        takes=about.get("takes", _UNTOLD),
        checks=tuple(_explanation(name, check) for check in checks),
    )


def _explanation(prefix: str, check: _Row) -> Explanation:
    path = check["see"]
    see = path.removeprefix("../") if path.startswith("../") else f"references/{path}"
    return Explanation(
        id=f"{prefix}.{check['name']}",
        means=check["means"],
        why=check["why"],
        causes=tuple(check["causes"]),
        next=check["next"],
        see=f"docs/{see}",
    )
