"""Removes what xbtasks made on a host, and nothing else: what bears its label, its manifest or its name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks import provenance, staging
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
                provenance.recorded_section(context_directory, deadline),
                *(
                    staging.state_section(BACKENDS[name], directory, deadline, f"staged-{name}")
                    for name, directory in directories.items()
                ),
            ),
        )
    )
    scope = "all" if everything else "unfinished"
    # The test directories go before the containers: by that a run that is at work notices.
    kept: list[str] = []
    sections: list[Section] = []
    for name, directory in directories.items():
        staged = staging.read_state(BACKENDS[name], survey[f"staged-{name}"])
        ours = [file for file in staged.files if everything and staged.put_by_us(file)]
        words = [word for file in ours for word in (file.path, file.sha256)]
        kept += [f"{directory}/{file.path}" for file in staged.changed if everything]
        argv = program("clean_staging", directory, staging.manifest_name(BACKENDS[name]), scope, *words)
        sections.append(Section(f"staging-{name}", argv, deadline))
    sections += [
        Section(f"container-{number}", engine.remove_container(name), deadline)
        for number, (name, _) in enumerate(_rows(survey, "containers"))
    ]
    if everything:
        sections += [
            provenance.removal_section(
                f"images-{number}", context_directory, engine.binary, identity, references, deadline
            )
            for number, (identity, references) in enumerate(_images(survey).items())
        ]
    sections.append(Section("contexts", program("clean_contexts", context_directory, scope), deadline))
    removed, left = _removal(Step("clean", tuple(sections)), host)
    return Removal(tuple(removed), tuple(kept), tuple(left))


def _rows(reply: Reply, section: str) -> list[tuple[str, str]]:
    answer = reply[section]
    if not answer.ok:
        raise CannotJudge(f"the engine can't list its {section}: {answer.error_text.strip()[:300]}")
    pairs = (line.partition("\t") for line in answer.text.splitlines() if line.strip())
    return [(first, second) for first, _, second in pairs]


def _images(survey: Reply) -> dict[str, tuple[str, ...]]:
    """Return what to remove: the tags that xbtasks gave its images, or an image's id where it has no tag."""
    recorded = provenance.read_record(survey["recorded"])
    found: dict[str, tuple[str, ...]] = {}
    for identity, name in _rows(survey, "images"):
        if identity not in recorded:
            continue  # built FROM one of ours, it has its labels
        untagged = name.startswith("<none>")
        if untagged or name in recorded[identity]:
            found[identity] = (*found.get(identity, ()), identity if untagged else name)
    return found


def _removal(step: Step, host: Host) -> tuple[list[str], list[str]]:
    """Return what was removed, and what could not be."""
    reply = host.run(step)
    removed: list[str] = []
    left: list[str] = []
    for section, answer in zip(step.sections, reply.sections, strict=True):
        what = f"{section.name.partition('-')[0]} {section.argv[-1]}"
        program_ran = section.name.startswith(("contexts", "images-", "staging-"))
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
