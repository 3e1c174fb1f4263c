"""What every case and check means: data files beside the code that they explain, as values.

``checks.toml`` of :mod:`xbtasks.backends` has what all backends share, that of a backend's folder its
own checks and rows of preflight, that of :mod:`xbtasks.preflight` the other rows about a host. Where two
files explain the same check of a backend, its own counts.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from xbtasks.backends import BACKENDS
from xbtasks.errors import UsageError
from xbtasks.nearest import nearest

if TYPE_CHECKING:
    from xbtasks.backends.base import Backend, Case

__all__ = ["Explanation", "Topic", "advice", "explanation", "named", "topic", "topics"]


PREFLIGHT: Final = "preflight"


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


@cache
def topics() -> tuple[Topic, ...]:
    """Return preflight and the cases of all backends, in the order of the backends."""
    host, shared = _read("xbtasks.preflight"), _read("xbtasks.backends")
    own = {name: _read(f"xbtasks.backends.{name}") for name in BACKENDS}
    rows = [*host["check"], *(row for each in own.values() for row in each.get(PREFLIGHT, []))]
    found = [_topic(PREFLIGHT, "What the host can do", host[PREFLIGHT], rows)]
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
    """Return in one line what to do about a check's red row: a short advice, and where more of it stands."""
    found = explanation(check_id)
    more = f"`inv explain {check_id}` tells more"
    return f"{found.next}; {more}" if found else more


def _read(package: str) -> dict[str, Any]:
    try:
        text = files(package).joinpath("checks.toml").read_text("utf-8")
    except FileNotFoundError:  # a backend without checks of its own
        return {}
    return tomllib.loads(text)


def _case(backend: Backend, case: Case, shared: dict[str, Any], own: dict[str, Any]) -> Topic:
    number = str(case.number)
    about = own.get("case", {}).get(number) or shared.get("case", {}).get(number, {})
    mine = [check for check in own.get("check", []) if case.number in check["cases"]]
    names = {check["name"] for check in mine}
    common = [
        check
        for check in shared["check"]
        if case.number in check["cases"]
        and backend.name in check.get("backends", [backend.name])
        and check["name"] not in names
    ]
    return _topic(f"{backend.name}.case{number}", case.title, about, [*common, *mine])


def _topic(name: str, title: str, about: dict[str, str], checks: list[dict[str, Any]]) -> Topic:
    told = {key: about.get(key, "not told") for key in ("runs", "needs", "proves", "changes", "takes")}
    return Topic(name, title, **told, checks=tuple(_explanation(name, check) for check in checks))


def _explanation(prefix: str, check: dict[str, Any]) -> Explanation:
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
