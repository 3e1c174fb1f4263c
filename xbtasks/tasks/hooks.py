"""A git hook in the operator checkout that says what to verify before a push."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.knobs.table import Group
from xbtasks.tasks.command import Call, Option, command

if TYPE_CHECKING:
    from xbtasks.errors import ExitCode

__all__ = ["install", "uninstall"]


@command(
    Option("base", "the branch that a push is compared with (default: as the task changed chooses)"),
    Option("block", "hold back a push that touches a stage, not only tell", switch=True),
    groups=(Group.CHECKOUT,),
    json=False,
)
def install(call: Call) -> ExitCode:
    """Say before each push which stages to verify.

    Adds a pre-push hook to the repository of the operator checkout.
    """
    from xbtasks.tasks.changes import install_hook

    return install_hook(call)


@command(groups=(Group.CHECKOUT,), json=False)
def uninstall(call: Call) -> ExitCode:
    """Remove the hook that hooks.install added."""
    from xbtasks.tasks.changes import uninstall_hook

    return uninstall_hook(call)
