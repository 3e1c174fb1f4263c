"""Removes what xbtasks made on a host, and nothing else: what bears its label, its manifest or its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks import staging
from xbtasks.backends import BACKENDS
from xbtasks.errors import CannotJudge
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xbtasks.engine import Engine
    from xbtasks.host.step import Host, Reply

__all__ = ["Removal", "clean"]


@dataclass(frozen=True, slots=True)
class Removal:
    """What was removed, and what could not be, each as a line for a person.

    ``kept`` are staged files that somebody changed: they are no longer what xbtasks made.
    """

    removed: tuple[str, ...]
    kept: tuple[str, ...]
    left: tuple[str, ...]


def clean(
    host: Host,
    engine: Engine,
    directories: Mapping[str, str],
    context_directory: str,
    deadline: int,
    *,
    everything: bool,
) -> Removal:
    """Remove the containers and unfinished files of runs; with ``everything`` all the rest too.

    The rest is images, build contexts and staged sets. ``directories`` maps backend names to staging
    directories. BuildKit's cache bears no label and stays.

    Raises:
        CannotJudge: the engine doesn't say what there is.
    """
    survey = host.run(
        Step(
            "survey",
            (
                Section("containers", engine.list_containers(), deadline),
                Section("images", engine.list_images(), deadline),
                *(
                    staging.state_section(BACKENDS[name], directory, deadline, f"staged-{name}")
                    for name, directory in directories.items()
                ),
            ),
        )
    )
    scope = "all" if everything else "unfinished"
    sections = [
        Section(f"container-{number}", engine.remove_container(name), deadline)
        for number, name in enumerate(_column(survey, "containers", 0))
    ]
    if everything:
        sections += [
            Section(f"image-{number}", engine.remove_image(name), deadline)
            for number, name in enumerate(_column(survey, "images", 1))
        ]
    sections.append(Section("contexts", program("clean_contexts", context_directory, scope), deadline))
    kept: list[str] = []
    for name, directory in directories.items():
        staged = staging.read_state(BACKENDS[name], survey[f"staged-{name}"])
        ours = [file for file in staged.files if everything and staged.put_by_us(file)]
        words = [word for file in ours for word in (file.path, file.sha256)]
        kept += [f"{directory}/{file.path}" for file in staged.changed if everything]
        argv = program("clean_staging", directory, staging.manifest_name(BACKENDS[name]), scope, *words)
        sections.append(Section(f"staging-{name}", argv, deadline))
    removed, left = _removal(Step("clean", tuple(sections)), host)
    return Removal(tuple(removed), tuple(kept), tuple(left))


def _column(reply: Reply, section: str, column: int) -> list[str]:
    answer = reply[section]
    if not answer.ok:
        raise CannotJudge(f"the engine can't list its {section}: {answer.error_text.strip()[:300]}")
    rows = [line.split("\t") for line in answer.text.splitlines() if line.strip()]
    # an untagged image is named by its id
    return [row[0] if column and row[column].startswith("<none>") else row[column] for row in rows]


def _removal(step: Step, host: Host) -> tuple[list[str], list[str]]:
    """Return what was removed, and what could not be."""
    reply = host.run(step)
    removed: list[str] = []
    left: list[str] = []
    for section, answer in zip(step.sections, reply.sections, strict=True):
        what = f"{section.name.partition('-')[0]} {section.argv[-1]}"
        program_ran = section.name.startswith(("contexts", "staging-"))
        if program_ran:
            removed += [line for line in answer.text.splitlines() if line.strip()]
            what = section.name
        elif answer.ok:
            removed.append(what)
        said = [line for line in answer.error_text.splitlines() if line.strip()]
        if not answer.ok:
            ended = "no end within its time" if answer.timed_out else f"exit status {answer.exit_status}"
            left += said or [f"{what}: {ended}"]
        elif program_ran:
            left += said
    return removed, left
