"""What a branch touches, as a command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from xbtasks.history.touched import Touched
    from xbtasks.tasks.command import Call

__all__ = ["install_hook", "show_changed", "touched_by", "uninstall_hook"]


def show_changed(call: Call) -> ExitCode:
    """Print which stages the branch touches; 1 with ``--exit-code`` where there is one to verify."""
    from xbtasks.reporting.changes import show_commands, show_touched, touched_document

    touched = touched_by(call)
    call.document(touched_document(touched))
    show = show_commands if call.switch("commands") else show_touched
    show(touched, call.console)
    return ExitCode.FAILED if touched.stages and call.switch("exit_code") else ExitCode.PASSED


def touched_by(call: Call) -> Touched:
    """Return what the branch of the checkout touches that the knobs name, against ``--base``."""
    from xbtasks.history.touched import find_touched

    tip = call.text("commit")
    return find_touched(_checkout(call), str(call.settings.dockerfile), call.text("base"), tip)


def install_hook(call: Call) -> ExitCode:
    """Put the pre-push hook into the repository of the checkout, and say so."""
    from xbtasks.history.git import Git
    from xbtasks.history.hooks import find_hook, hook_text, own_command
    from xbtasks.knobs.table import knob

    git = Git(_checkout(call), as_configured=True)
    command = [*own_command(), "changed", "--commands", "--exit-code"]
    dockerfile = str(call.settings.dockerfile)
    if dockerfile != knob("dockerfile").default:
        command.append(f"--dockerfile={dockerfile}")
    if call.text("base"):
        from xbtasks.history.divergence import choose_base

        choose_base(git, call.text("base"))
        command.append(f"--base={call.text('base')}")
    block = call.switch("block")
    hook = find_hook(git)
    done = hook.install(
        hook_text(command, hook.prefix, block=block), f"{shlex.join(command)} --commit=HEAD >&2"
    )
    call.console.say(f"{hook.path} {done}")
    call.console.say(
        "  a push that touches a stage is held back (git push --no-verify does it all the same)"
        if block
        else "  it tells which stages a push touches and holds nothing back (--block does)"
    )
    return ExitCode.PASSED


def uninstall_hook(call: Call) -> ExitCode:
    """Remove the pre-push hook, and say so."""
    from xbtasks.history.git import Git
    from xbtasks.history.hooks import find_hook

    hook = find_hook(Git(_checkout(call), as_configured=True))
    call.console.say(f"removed {hook.path}" if hook.uninstall() else f"nothing to remove: no {hook.path}")
    return ExitCode.PASSED


def _checkout(call: Call) -> Path:
    from xbtasks.checkout.tree import find_repo

    repo = str(call.settings.repo) if call.settings.repo else None
    return find_repo(repo, str(call.settings.dockerfile), Path.cwd())
