"""The simulated accelerator host: a private container engine and a sample checkout."""

from __future__ import annotations

from xbtasks.errors import ExitCode
from xbtasks.tasks.command import Call, Option, command

__all__ = ["down", "status", "up"]


_YES = Option("yes", "for scripts that say so everywhere; the simulated host never asks", switch=True)


@command(_YES, json=False)
def up(call: Call) -> ExitCode:
    """Start the private engine; fetches it on the first run. Nothing is installed."""
    from xbtasks.sim import daemon

    status = daemon.up(call.console.say)
    call.console.say(f"the simulated host is up: engine {status.engine_version} (SIMULATED)")
    call.console.say('  to point xbtasks at it: eval "$(./xb sim.status --env)"')
    return ExitCode.PASSED


@command(_YES, Option("all", "the download cache and all state too", switch=True), json=False)
def down(call: Call) -> ExitCode:
    """Stop the private engine and remove what it made, but for the download cache."""
    from xbtasks.sim import daemon

    daemon.down(call.console.say, everything=call.switch("all"))
    return ExitCode.PASSED


@command(Option("env", "print export lines that point xbtasks at the simulated host", switch=True))
def status(call: Call) -> ExitCode:
    """Say whether the private engine runs, and where."""
    from xbtasks.reporting.listing import show_sim
    from xbtasks.sim import daemon

    found = daemon.status()
    call.document({"schema": 1, "running": found.running, "environment": found.environment()})
    show_sim(found, call.console, env=call.switch("env"))
    return ExitCode.PASSED if found.running else ExitCode.CANNOT_JUDGE
