"""What a branch touches, as a command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from xbtasks.history.touched import Touched
    from xbtasks.tasks.command import Call

__all__ = ["show_changed", "touched_by"]


def show_changed(call: Call) -> ExitCode:
    """Print which stages the branch touches; 1 with ``--exit-code`` where there is one to verify."""
    from xbtasks.reporting.changes import show_touched, touched_document

    touched = touched_by(call)
    call.document(touched_document(touched))
    show_touched(touched, call.console)
    return ExitCode.FAILED if touched.stages and call.switch("exit_code") else ExitCode.PASSED


def touched_by(call: Call) -> Touched:
    """Return what the branch of the checkout touches that the knobs name, against ``--base``."""
    from xbtasks.checkout.tree import find_repo
    from xbtasks.history.touched import find_touched

    settings = call.settings
    dockerfile = str(settings.dockerfile)
    repo = find_repo(str(settings.repo) if settings.repo else None, dockerfile, Path.cwd())
    return find_touched(repo, dockerfile, call.text("base"))
