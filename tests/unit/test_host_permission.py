"""The one question of a run before it builds on somebody's host."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from xbtasks.errors import Refused
from xbtasks.knobs.resolve import resolve
from xbtasks.plan import RunPlan, StagePlan
from xbtasks.reporting.console import Console
from xbtasks.session import _permission

if TYPE_CHECKING:
    from xbtasks.knobs.settings import Settings

HOST = "me@far:2222"


class Person(Console):
    """A console with somebody at it, or nobody, who gives the answers in turn."""

    def __init__(self, *answers: str, there: bool = True) -> None:
        super().__init__()
        self.there = there
        self.answers = list(answers)
        self.heard: list[str] = []

    @property
    def can_ask(self) -> bool:
        return self.there

    def say(self, text: str = "") -> None:
        self.heard.append(text)

    def ask(self, question: str) -> str:
        self.heard.append(question)
        return self.answers.pop(0)


def settings(**knobs: str) -> Settings:
    return resolve({}, knobs, user_file=None, explicit_user_file=False, project_file=None)


def stage(name: str) -> StagePlan:
    return StagePlan(
        stage=f"xbuild-nvidia-cuda-{name}",
        backend_name="nvidia",
        suffix=name,
        image=f"vgpu-build:{name}",
        staging_directory="/opt/vgpu",
        digests=(),
        pin="",
        profile="",
    )


PLAN = RunPlan("verify", (stage("12"), stage("13")), (1,), build=True, build_deadline=60)


def test_one_question_a_run_that_says_host_images_time_and_what_is_left() -> None:
    person = Person("y")
    ask = _permission(settings(), HOST, PLAN, person)
    ask("build this")
    ask("build that")
    text = "\n".join(person.heard)
    for part in (
        HOST,
        "vgpu-build:12",
        "vgpu-build:13",
        "60 s",
        "~/.cache/xbtasks/ctx",
        "/opt/vgpu",
        "inv clean",
    ):
        assert part in text
    assert sum("[y/N]" in line for line in person.heard) == 1


@pytest.mark.parametrize("answer", ["", "n", "no", "yep", "Y E S"])
def test_anything_but_yes_is_no_for_the_whole_run(answer: str) -> None:
    ask = _permission(settings(), HOST, PLAN, Person(answer))
    for _ in range(2):
        with pytest.raises(Refused, match=r"not confirmed: build this on me@far:2222$"):
            ask("build this")


@pytest.mark.parametrize("answer", ["y", "Yes", "YES"])
def test_yes_in_any_spelling(answer: str) -> None:
    _permission(settings(), HOST, PLAN, Person(answer))("build this")


def test_without_a_terminal_it_is_refused_and_the_way_out_is_named() -> None:
    person = Person(there=False)
    with pytest.raises(Refused, match="XB_YES=1") as caught:
        _permission(settings(), HOST, PLAN, person)("build this")
    assert caught.value.exit_code == 2
    assert not person.heard


def test_a_yes_ahead_of_time_and_the_local_host_need_no_question() -> None:
    person = Person(there=False)
    _permission(settings(XB_YES="1"), HOST, PLAN, person)("build this")
    _permission(settings(), "local", replace(PLAN, stages=()), person)("build this")
    assert not person.heard
