"""What the tasks that touch a host share: choosing stages, running a plan, printing what came of it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.errors import ExitCode, UsageError, XbError
from xbtasks.planning import case_knobs, discover_stages, make_plan, of_backend
from xbtasks.reporting.table import show_result
from xbtasks.reporting.watching import followed
from xbtasks.session import run
from xbtasks.typed import command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.checkout.stages import Discovery, Stage
    from xbtasks.result import Result
    from xbtasks.tasks.command import Call

__all__ = [
    "bundle_directory",
    "case_numbers",
    "clean_host",
    "finish",
    "named_stages",
    "redacted",
    "replay_directory",
    "run_case",
    "run_demo",
    "run_plan",
]


def run_plan(
    call: Call,
    name: str,
    stages: Sequence[Stage],
    *,
    cases: Sequence[int] = (),
    build: bool = False,
    choose: bool = False,
) -> ExitCode:
    """Run a command on the host and print its result; returns its exit code."""
    if stages:
        call.require_backends(dict.fromkeys(stage.backend.name for stage in stages))
    settings = call.settings
    discovery = discover_stages(settings) if stages else None
    plan = make_plan(
        settings,
        name,
        discovery,
        stages,
        cases=cases,
        build=build,
        choose=choose,
        knobs=case_knobs(settings, throttle=not call.switch("no_throttle"), busy_ok=call.switch("busy_ok")),
        rebuild=call.switch("rebuild"),
        adopt=call.switch("adopt"),
    )
    with followed(call.console, plan) as console:
        result = run(settings, plan, discovery, console)
    return finish(call, redacted(result) if call.switch("redact") else result)


def redacted(result: Result) -> Result:
    """Return the result that the redacted evidence gives; what keeps it from being redacted is an error."""
    from xbtasks.sharing import redact_in_place

    try:
        return redact_in_place(Path(result.evidence))
    except XbError as error:
        return replace(result, errors=(*result.errors, (error.exit_code, f"not redacted: {error}")))


def run_case(call: Call, backend: str, number: int) -> ExitCode:
    """Run one case of ``backend`` on the stage that was named, else on the one that suits the host."""
    discovery = discover_stages(call.settings)
    name = call.text("stage")
    if not name:
        candidates = of_backend(discovery, backend)
        if not candidates:
            raise UsageError(f"the Dockerfile has no {backend} stage")
        return run_plan(call, f"{backend}.case{number}", candidates, cases=[number], choose=True)
    from xbtasks.checkout.stages import find_stage

    stage = find_stage(discovery, name)
    if stage.backend.name != backend:
        raise UsageError(f"{name} is a stage of {stage.backend.name}, not of {backend}")
    return run_plan(call, f"{backend}.case{number}", [stage], cases=[number])


def run_demo(call: Call) -> ExitCode:
    """Bring the simulated host up and verify every stage of its sample checkout there."""
    from xbtasks.knobs.resolve import resolve
    from xbtasks.sim import daemon

    cases = case_numbers(call, usual="1")
    status = daemon.up(call.console.say)
    # The demo is about the sample and nothing else: no knob of the user's points it elsewhere.
    environment = status.environment()
    os.environ.update(environment)
    knobs = {name: value for name, value in environment.items() if name.startswith("XB_")}
    settings = resolve({}, knobs, user_file=None, explicit_user_file=False, project_file=None)
    discovery = discover_stages(settings)
    plan = make_plan(
        settings,
        "demo",
        discovery,
        discovery.stages,
        cases=cases,
        build=True,
        rebuild=call.switch("rebuild"),
    )
    with followed(call.console, plan) as console:
        result = run(settings, plan, discovery, console)
    code = finish(call, result)
    if code is ExitCode.PASSED:
        call.console.say("Next:")
        for typed, what in _next_steps()[max(cases) > 1 :]:
            call.console.say(f"  {typed:32}  {what}")
    return code


def _next_steps() -> tuple[tuple[str, str], ...]:
    return (
        (command("demo --cases 1,2,3"), "tries the limits too, on simulated cards (two minutes)"),
        (f'eval "$({command("sim.status --env")})"', "points any command at the simulated host"),
        (f"XB_REPO=… {command('stages')}", "lists the stages of an operator checkout of yours"),
        (command("sim.down"), "stops the simulated host"),
    )


def replay_directory(call: Call) -> ExitCode:
    """Judge the evidence of a directory again and print its result."""
    from xbtasks.matrix.folder import replay_folder

    return finish(call, replay_folder(_evidence(call), call.console))


def bundle_directory(call: Call) -> ExitCode:
    """Pack the redacted evidence of a directory and say what was replaced."""
    from xbtasks.sharing import bundle

    directory = _evidence(call)
    file = Path(call.text("output") or f"xbtasks-{directory.name}.tar.gz")
    names = bundle(directory, file)
    call.console.say(f"{file}: the evidence of {directory.name}, {file.stat().st_size / 1024:.0f} KiB")
    call.console.say(f"  replaced: {', '.join(names) or 'nothing, it names nobody'}")
    call.console.say("  it replays to the same rows and verdict; look through it before you send it")
    return ExitCode.PASSED


def _evidence(call: Call) -> Path:
    """Return the folder of the run that was named."""
    from xbtasks.evidence import runs_directory
    from xbtasks.runs import find_folder

    name = call.text("directory")
    if not name:
        raise UsageError("no run is named", hint="last names the newest; `inv report` lists them")
    return find_folder(name, runs_directory())


def named_stages(call: Call) -> list[Stage]:
    """Return the stages to work on: the one that was named, else those that the user picks on a terminal."""
    from xbtasks.checkout.stages import find_stage

    discovery = discover_stages(call.settings)
    name = call.text("stage")
    if name:
        return [find_stage(discovery, name)]
    if not call.console.can_ask:
        names = ", ".join(stage.name for stage in discovery.stages)
        raise UsageError("no stage is named", hint=f"the Dockerfile has {names}")
    return _ask_stages(call, discovery)


def clean_host(call: Call) -> ExitCode:
    """Remove what xbtasks made on the host and say what that was."""
    from xbtasks.session import clean_run

    removal = clean_run(call.settings, call.console, everything=call.switch("all"))
    for line in removal.removed:
        call.console.say(f"removed {line}")
    for line in removal.kept:
        call.console.say(f"kept {line}: it was changed since xbtasks put it there")
    for line in removal.left:
        call.console.say(f"not removed: {line}")
    if not removal.removed and not removal.left:
        call.console.say("nothing to remove")
    return ExitCode.CANNOT_JUDGE if removal.left else ExitCode.PASSED


def case_numbers(call: Call, usual: str = "1,2,3") -> list[int]:
    """Return the case numbers of ``--cases``, and those of ``usual`` where it is not given.

    Raises:
        UsageError: it is not a list of case numbers.
    """
    text = call.text("cases") or usual
    words = [word.strip() for word in text.split(",")]
    if not all(word in ("1", "2", "3") for word in words):
        raise UsageError(f"--cases {text!r}: a comma list of 1, 2 and 3 is accepted")
    return sorted({int(word) for word in words})


def _ask_stages(call: Call, discovery: Discovery) -> list[Stage]:
    for number, stage in enumerate(discovery.stages, 1):
        call.console.say(f"  {number:2}  {stage.name}")
    answer = call.console.ask("Which stages? Numbers, such as 1 or 1,3; all; empty to stop:")
    words = answer.replace(",", " ").split()
    if words == ["all"]:
        return list(discovery.stages)
    chosen = [int(word) for word in words if word.isascii() and word.isdigit()]
    if not chosen or len(chosen) != len(words) or not all(0 < n <= len(discovery.stages) for n in chosen):
        raise UsageError(f"no stage was chosen: {answer!r}")
    return [discovery.stages[number - 1] for number in dict.fromkeys(chosen)]


def finish(call: Call, result: Result, *, summary: bool = True) -> ExitCode:
    """Print ``result``, write it in every form that was asked for, and return the exit code of the call."""
    show_result(result, call.console)
    call.console.announce(result)
    return call.publish(result, summary=summary)
