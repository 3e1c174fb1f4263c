"""A run: its host, the questions it asks, and back from its evidence in a replay."""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from xbtasks.errors import Refused, UsageError, reason_of
from xbtasks.evidence import (
    OWN_SIDE,
    RUN_FOLDER,
    SCHEMA,
    evidence_kept,
    keep_evidence,
    new_run_id,
    note_names,
    run_directory,
    runs_directory,
)
from xbtasks.pipeline import Tools, perform
from xbtasks.plan import RunPlan, StagePlan
from xbtasks.planning import stage_plan
from xbtasks.result import Result
from xbtasks.turns import unshared

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from xbtasks.checkout.stages import Discovery, Stage
    from xbtasks.cleanup import Removal
    from xbtasks.host.framed import Transport
    from xbtasks.host.transfer import StreamPayload
    from xbtasks.knobs.settings import Settings
    from xbtasks.ownside import OwnSide
    from xbtasks.pipeline import Permission
    from xbtasks.reporting.console import Console
    from xbtasks.turns import Turn

__all__ = ["Place", "built_states", "clean_run", "replay", "run", "transport_to", "with_host"]


@dataclass(frozen=True, slots=True)
class Place:
    """What a run is given where it is one of several: its evidence directory, its way to the host, the answer
    to its questions, and its turns at what it shares with others on that host.
    """

    directory: Path
    transport: Transport
    permission: Permission
    turn: Turn = unshared


def built_states(
    settings: Settings, discovery: Discovery, stages: Sequence[Stage], console: Console
) -> tuple[str, ...]:
    """Return for each stage ``yes``, ``stale`` or ``no``, or ``unknown`` where the engine can't be asked."""
    from xbtasks.build import is_built
    from xbtasks.engine import Engine
    from xbtasks.errors import CannotJudge
    from xbtasks.host.framed import FramedHost
    from xbtasks.host.step import Section, Step
    from xbtasks.images import read_image

    engine, deadline = Engine(settings.engine), int(settings.timeout)
    plans = [stage_plan(settings, discovery, stage) for stage in stages]
    step = Step("images", tuple(Section(p.stage, engine.inspect_image(p.image), deadline) for p in plans))
    try:
        host = FramedHost(transport_to(settings, console))
        try:
            reply = host.run(step)
            return tuple(is_built(plan, read_image(reply[plan.stage])) for plan in plans)
        finally:
            host.close()
    except CannotJudge:
        return ("unknown",) * len(plans)


def run(
    settings: Settings,
    plan: RunPlan,
    discovery: Discovery | None,
    console: Console,
    place: Place | None = None,
) -> Result:
    """Run ``plan`` on the host that the knobs name, keep the evidence, and return what was found.

    ``place`` is where it is done, if the knobs alone don't say.
    """
    from xbtasks.context import pack
    from xbtasks.host.framed import FramedHost
    from xbtasks.ownside import OwnSide

    run_id = new_run_id()
    if place is None:
        transport = transport_to(settings, console)
        permission = _permission(settings, transport.label, plan, console)
        place = Place(run_directory(run_id), transport, permission)
        if os.environ.get(RUN_FOLDER):
            plan, place = _one_of_several(plan, place)
    transport = place.transport
    evidence = keep_evidence(place.directory, plan, run_id, transport.label)
    own = OwnSide(keep=lambda noted: evidence.write(OWN_SIDE, noted))

    def context_of(stage: StagePlan) -> StreamPayload:
        if discovery is None:
            raise UsageError("there is no checkout to build from")
        return pack(discovery, stage, console.say)

    host = FramedHost(transport, evidence)
    tools = Tools(
        run_id,
        host,
        contexts=lambda stage: own.call(f"context of {stage.stage}", lambda: context_of(stage)),
        permission=lambda what, *, accelerator=False: own.call(
            f"permission to {what}", lambda: place.permission(what, accelerator=accelerator)
        ),
        keep=evidence.keep,
        reporter=console,
        turn=lambda machine, *name: _noted(own, place, machine, *name),
    )
    empty = Result(run_id, plan.command, transport.label, str(evidence.directory))
    try:
        with evidence_kept(place.directory):
            result = perform(plan, tools, empty)
            evidence.write("result.json", result.to_json())
            note_names(evidence, transport)
    finally:
        host.close()
    return result


def clean_run(settings: Settings, console: Console, *, everything: bool) -> Removal:
    """Remove what xbtasks made on the host that the knobs name."""
    from xbtasks.backends import BACKENDS
    from xbtasks.cleanup import clean
    from xbtasks.engine import Engine
    from xbtasks.host.framed import FramedHost
    from xbtasks.knobs.settings import staging_directory

    host = FramedHost(transport_to(settings, console))
    directories = {backend.name: staging_directory(settings, backend) for backend in BACKENDS.values()}
    try:
        return clean(
            host,
            Engine(settings.engine),
            directories,
            settings.remote_ctx,
            int(settings.timeout),
            everything=everything,
        )
    finally:
        host.close()


def replay(directory: Path, console: Console) -> Result:
    """Judge recorded evidence again, with no host.

    Raises:
        UsageError: ``directory`` holds no evidence of this version.
    """
    from xbtasks.context import archive
    from xbtasks.host.recording import RecordedHost
    from xbtasks.ownside import OwnSide, read_notes

    noted = directory / OWN_SIDE
    try:
        note = json.loads((directory / "run.json").read_bytes())
        schema, run_id, label = note["schema"], str(note["run"]), str(note["host"])
        own = OwnSide(read_notes(noted.read_bytes()) if noted.exists() else {})
    except (KeyError, OSError, RecursionError, TypeError, ValueError) as error:
        why = "it has no run.json" if isinstance(error, FileNotFoundError) else reason_of(error)
        raise UsageError(f"{directory} holds no evidence of a run: {why}") from error
    if schema != SCHEMA:
        raise UsageError(f"{directory} was recorded in form {schema}, this version reads {SCHEMA}")
    plan = RunPlan.from_json(note["plan"])
    host = RecordedHost(directory, label)

    def permission(what: str, *, accelerator: bool = False) -> None:
        del accelerator
        own.call(f"permission to {what}", lambda: None)

    tools = Tools(
        run_id,
        host,
        contexts=lambda stage: own.call(f"context of {stage.stage}", lambda: archive((), console.say)),
        permission=permission,
        keep=lambda name, _: str(directory / name),
        reporter=console,
        turn=lambda _machine, *name: own.call(_turn_at(*name), nullcontext),
    )
    return perform(plan, tools, Result(run_id, plan.command, label, str(directory)))


@contextmanager
def _noted(own: OwnSide, place: Place, machine: str, *name: str) -> Iterator[None]:
    """Hold the place's turn; that it was waited for in vain is kept for a replay."""
    with ExitStack() as held:
        own.call(_turn_at(*name), lambda: held.enter_context(place.turn(machine, *name)))
        yield


def _turn_at(*name: str) -> str:
    return f"turn at the {' '.join(name)}"


def _one_of_several(plan: RunPlan, place: Place) -> tuple[RunPlan, Place]:
    """Return plan and place of a run beside which other processes may use what it uses on its host."""
    from xbtasks.turns import turn_of_processes

    folder, label = runs_directory().parent / "turns", place.transport.label

    def turn(machine: str, *name: str) -> AbstractContextManager[None]:
        return turn_of_processes(folder, machine or label, *name)

    return replace(plan, shared=True), replace(place, turn=turn)


def with_host(settings: Settings, console: Console) -> Settings:
    """Return settings that name a host; on a terminal the user is asked for one that is missing.

    Raises:
        UsageError: nobody can be asked.
    """
    if not settings.needs_host:
        return settings
    if not console.can_ask:
        raise UsageError("XB_MODE is ssh and no host is named", hint="set XB_HOST or give --host")
    return settings.with_host(console.ask("Host (user@host[:port] or an ssh_config alias):"))


def transport_to(settings: Settings, console: Console, label: str = "") -> Transport:
    """Return the way to the host that the knobs name; a connection is made with the first step.

    ``label`` is what a person calls the host, if that isn't its ssh destination.

    Raises:
        UsageError: ssh was asked for and no host is known.
    """
    from xbtasks.host.local import LocalTransport
    from xbtasks.knobs.values import Mode

    settings = with_host(settings, console)
    if settings.mode is Mode.LOCAL:
        return LocalTransport(label or "local")
    from xbtasks.host.dial import Dialer
    from xbtasks.host.ssh import SshTransport
    from xbtasks.knobs.settings import Source
    from xbtasks.knobs.table import KNOBS

    assert settings.host is not None  # noqa: S101 - asked for above
    defaults = {knob.name: str(Path(knob.default).expanduser()) for knob in KNOBS}

    def chosen(name: str) -> bool:
        """Whether somebody decided; the project's file lists every default and decides by another value."""
        decided = settings.origin_of(name).source < Source.PROJECT_FILE
        return decided or str(getattr(settings, name)) != defaults[name]

    dialer = Dialer(
        settings.host,
        ssh_config=settings.ssh_config if chosen("ssh_config") else None,
        host_keys=settings.host_keys if chosen("host_keys") else None,
        timeout=settings.connect_timeout,
        timeout_is_default=not chosen("connect_timeout"),
        say=lambda text: print(text, file=sys.stderr),
    )
    return SshTransport(label or str(settings.host), dialer)


def _permission(settings: Settings, host: str, plan: RunPlan, console: Console) -> Permission:
    """Return what asks before a remote build and before a container on an accelerator (SPEC 7.2), once a run.

    A build on the local host needs no question.
    """
    answers: list[bool] = [True] if settings.yes else []

    def ask(what: str, *, accelerator: bool = False) -> None:
        if host == "local" and not accelerator:
            return
        if not answers and not console.can_ask:
            raise Refused(f"not confirmed: {what} on {host}", hint="--yes or XB_YES=1 confirms")
        if not answers:
            for line in (f"To {what} on {host} needs your word.", *_consequences(host, plan)):
                console.say(line)
            answers.append(console.ask("Go on? [y/N]").lower() in ("y", "yes"))
        if not answers[0]:
            raise Refused(f"not confirmed: {what} on {host}")

    return ask


def _consequences(host: str, plan: RunPlan) -> list[str]:
    """Return what a run does to ``host``, as lines for the person who is asked."""
    directories = dict.fromkeys(stage.staging_directory for stage in plan.stages)
    numbers = ", ".join(str(number) for number in plan.cases if number > 1)
    cards = [f"Containers run on the cards that the knobs name, for case {numbers}."] if numbers else []
    if not plan.build:
        return cards
    return [
        *cards,
        f"This run builds on {host} what is out of date of:",
        *(f"  {stage.stage} as image {stage.image}" for stage in plan.stages),
        f"A build may take up to {plan.build_deadline} s. Left there: the images, the builder's cache,",
        f"build contexts in {plan.context_directory}, artifacts in {', '.join(directories)}.",
        "`inv clean --all` removes all of it but the builder's cache.",
    ]
