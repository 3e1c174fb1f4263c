"""The simulated accelerator host: a private container engine and a sample checkout."""

from __future__ import annotations

import sys

from xbtasks.errors import ExitCode
from xbtasks.tasks.command import Call, Option, command
from xbtasks.typed import as_typed
from xbtasks.typed import command as typed

__all__ = ["down", "mutants", "status", "up"]


_YES = Option("yes", "for scripts that say so everywhere; the simulated host never asks", switch=True)


@command(_YES, json=False)
def up(call: Call) -> ExitCode:
    """Start the simulated host; nothing is installed.

    Its engine is fetched on the first run.
    """
    from xbtasks.sim import daemon

    status = daemon.up(call.console.say)
    call.console.say(f"the simulated host is up: engine {status.engine_version} (SIMULATED)")
    call.console.say(f'  to point xbtasks at it: eval "$({typed("sim.status --env")})"')
    return ExitCode.PASSED


@command(_YES, Option("all", "the download cache too; past runs stay", switch=True), json=False)
def down(call: Call) -> ExitCode:
    """Stop the simulated host and remove what it made.

    The download cache stays, but for --all.
    """
    from xbtasks.sim import daemon

    daemon.down(call.console.say, everything=call.switch("all"))
    return ExitCode.PASSED


@command(Option("env", "print export lines that point xbtasks at the simulated host", switch=True))
def status(call: Call) -> ExitCode:
    """Say whether the simulated host runs, and where.

    It ends with 3 where none runs.
    """
    from xbtasks.reporting.listing import show_sim
    from xbtasks.sim import daemon

    found = daemon.status()
    call.document({"schema": 1, "running": found.running, "environment": found.environment()})
    show_sim(found, call.console, env=call.switch("env"))
    if call.switch("env") and not found.running:
        print(as_typed("warning: not running; `inv sim.up` starts it"), file=sys.stderr)
    return ExitCode.PASSED if found.running else ExitCode.SKIPPED


@command(
    _YES,
    Option("only", "the variants whose names fit these shell patterns, with commas between them"),
    Option("list", "name the variants and what must notice each, and run nothing", switch=True),
)
def mutants(call: Call) -> ExitCode:
    """Try broken variants of the sample, which must fail.

    Each must fail in the row that names its fault, and the good ones must pass.
    """
    from xbtasks.sim.mutants.catalogue import chosen

    variants = chosen(call.text("only"))
    if call.switch("list"):
        call.document({"schema": 1, "variants": [variant.document() for variant in variants]})
        for variant in variants:
            call.console.say(f"{variant.name:28} {variant.judged_by}: {variant.what}")
        return ExitCode.PASSED
    from xbtasks.sim import daemon
    from xbtasks.sim.mutants.running import run_variants, summary
    from xbtasks.sim.paths import SimPaths

    status = daemon.up(call.console.say)
    trials = run_variants(variants, SimPaths.from_environment(), status.environment(), call.console.say)
    call.document({"schema": 1, "summary": summary(trials), "trials": [trial.document() for trial in trials]})
    for trial in trials:
        if not trial.right:
            call.console.say(f"  {trial.line}")
    call.console.say(summary(trials))
    return ExitCode.PASSED if all(trial.right for trial in trials) else ExitCode.FAILED
