"""The cases of every backend as tasks: ``nvidia.case2`` and its like, made from what the backends say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from invoke.collection import Collection

from xbtasks.backends import BACKENDS
from xbtasks.knobs.table import Group
from xbtasks.tasks.command import BUSY_OK, NO_THROTTLE, OUTPUTS, REDACT, STAGE, Call, command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from invoke.tasks import Task

    from xbtasks.backends.base import Backend, Case
    from xbtasks.errors import ExitCode

__all__ = ["collections"]


def collections() -> Iterator[Collection]:
    """Yield a collection for each backend, with a task for each case."""
    for backend in BACKENDS.values():
        found = Collection(backend.name)
        for case in backend.cases:
            found.add_task(_task(backend, case))
        yield found


def _task(backend: Backend, case: Case) -> Task[Any]:
    def body(call: Call) -> ExitCode:
        from xbtasks.tasks.running import run_case

        return run_case(call, backend.name, case.number)

    cards = {0: f"no {backend.card}", 1: f"1 {backend.card}"}.get(case.cards, f"{case.cards} {backend.card}s")
    body.__name__ = f"case{case.number}"
    body.__module__ = f"{__package__}.{backend.name}"
    body.__doc__ = f"{case.title} (needs {cards})."
    own = [group for group in Group if group.value == backend.name]
    switches = [*([NO_THROTTLE] if case.rate else []), *([BUSY_OK] if case.cards else [])]
    return command(STAGE, *switches, REDACT, *OUTPUTS, groups=(Group.HOST, Group.BUILD, *own))(body)
