"""Runs of the NVIDIA hardware cases on the cards of :mod:`tests.gpumodel`, with no engine and no host."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tests.gpumodel import GpuModel, ModelCard, container_of
from tests.unit.preflight_replies import FakeHost, asked, section
from xbtasks.backends.base import Platform
from xbtasks.checks import Status, Verdict, judge
from xbtasks.engine import Engine
from xbtasks.hardware import CaseRun
from xbtasks.host.step import Reply, SectionReply
from xbtasks.plan import CaseKnobs, StagePlan
from xbtasks.preflight import read_preflight

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xbtasks.checks import Check
    from xbtasks.hardware import Findings
    from xbtasks.host.step import Section, Step

__all__ = ["CARDS", "SHA", "World", "failing", "on_cards", "statuses", "verdict"]

SHA = "5" * 64
CARDS = (
    ModelCard(0, "GPU-aaaaaaaa-1111-4c2b-9d3f-0123456789ab"),
    ModelCard(1, "GPU-bbbbbbbb-2222-4d3c-8e4a-123456789abc"),
    ModelCard(2, "GPU-cccccccc-3333-4d3c-8e4a-123456789abc", total=81920 * (1 << 20)),
)


def smi(cards: Sequence[ModelCard], changes: Mapping[int, str] | None = None) -> str:
    """Return the host's nvidia-smi answer; ``changes`` gives a card's last columns other text."""
    usual = {card.index: f"{card.total >> 20}, Disabled, 570.1" for card in cards} | dict(changes or {})
    rows = "".join(f"{card.index}, {card.uuid}, NVIDIA Model, {usual[card.index]}\n" for card in cards)
    return f"found /usr/bin/nvidia-smi\n{asked('gpus', 0, rows)}"


@dataclass
class World:
    """A host, a run on it, and what it was asked. ``answers`` maps a section to what it answers instead."""

    model: GpuModel = field(default_factory=lambda: GpuModel(CARDS))
    knobs: CaseKnobs = field(default_factory=CaseKnobs)
    pin: str = ""
    run_id: str = "20270101-000000-abcdef"
    tenants: list[str] = field(default_factory=list)
    later: list[str] = field(default_factory=list)
    answers: dict[str, tuple[int, str, str]] = field(default_factory=dict)
    changes: dict[int, str] = field(default_factory=dict)
    facts: FakeHost = field(default_factory=FakeHost)
    workload: str = ""
    asked: list[Step] = field(default_factory=list)
    permissions: list[str] = field(default_factory=list)

    def knob(self, **changes: object) -> World:
        """Set knobs and return the world."""
        self.knobs = replace(self.knobs, **changes)  # type: ignore[arg-type]
        return self

    def case_run(self) -> CaseRun:
        """Return what the case gets."""
        host = replace(self.facts, nvidia_smi=smi(self.model.cards, self.changes))
        stage = StagePlan(
            stage="xbuild-nvidia-cuda-12",
            backend_name="nvidia",
            suffix="12",
            image="vgpu-build:12",
            staging_directory="/opt/vgpu",
            digests=(("linux/amd64", "0" * 64),),
            pin=self.pin,
        )
        return CaseRun(
            run_id=self.run_id,
            stage=stage,
            platform=Platform.AMD64,
            image="sha256:" + "1" * 64,
            workload=self.workload or "sha256:" + "1" * 64,
            artifacts=(("libvgpu.so", SHA),),
            knobs=self.knobs,
            facts=read_preflight(host.reply()),
            engine=Engine(),
            deadline=300,
            ask=self.ask,
            say=lambda _: None,
            permission=self.permissions.append,
        )

    def run(self, case: Callable[[CaseRun], Findings]) -> Findings:
        """Judge a case here."""
        return case(self.case_run())

    def ask(self, step: Step) -> Reply:
        """Answer a step as the host would."""
        self.asked.append(step)
        return Reply(step.name, tuple(self._answer(step, item) for item in step.sections))

    def _answer(self, step: Step, item: Section) -> SectionReply:
        if item.name in self.answers:
            status, out, err = self.answers[item.name]
            return SectionReply(item.name, status, out.encode(), err.encode(), 1, timed_out=False)
        match item.name:
            case "tenants":
                rows = self.later if step.name == "afterwards" else self.tenants
                return section("tenants", "found /usr/bin/nvidia-smi\n" + asked("gpus", 0, "\n".join(rows)))
            case "prepare":
                return section("prepare", f"644 {SHA}\n")
            case "compile":
                return section("compile", f"{SHA}\n")
            case "create" | "remove" | "removal":
                return section(item.name, "")
        container = container_of(item.argv)
        assert container is not None, item
        if "hangs" in self.model.faults and container.injected and container.command[0] != "nvidia-smi":
            said = b"xbtasks-probe: init\n[HAMI-core Msg(1:1:utils.c:27)]: unified_lock locked, waiting"
            return SectionReply(item.name, 124, b"", said, 300, timed_out=False)
        status, out, err = self.model.run(container)
        return SectionReply(item.name, status, out.encode(), err.encode(), 1, timed_out=False)


def on_cards(*faults: str, **values: object) -> World:
    """Return a world of the usual cards, whose library has ``faults``."""
    return World(GpuModel(CARDS, frozenset(faults), **values))  # type: ignore[arg-type]


def statuses(rows: Sequence[Check]) -> dict[str, set[Status]]:
    """Return the statuses of the rows by the last part of their ids."""
    found: dict[str, set[Status]] = {}
    for row in rows:
        found.setdefault(row.id.rpartition(".")[2], set()).add(row.status)
    return found


def verdict(findings: Findings) -> Verdict:
    """Return the verdict over what a case found."""
    return judge(findings.required, findings.checks)[0]


def failing(findings: Findings) -> set[str]:
    """Return the names of the rows that FAIL, those that weren't reached among them."""
    rows = judge(findings.required, findings.checks)[1]
    return {name for name, seen in statuses(rows).items() if Status.FAIL in seen}
