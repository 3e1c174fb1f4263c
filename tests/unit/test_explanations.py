"""Every check that the code can give is explained, and nothing else is."""

from __future__ import annotations

import io
import json
import re
from functools import cache

import pytest

from tests.messages import HOLE, Program
from tests.workplace import PROJECT, program
from xbtasks.backends import BACKENDS
from xbtasks.backends.base import Platform
from xbtasks.backends.linking import judge_linking
from xbtasks.backends.nvidia import questions
from xbtasks.backends.profiles import profile_for, profile_names
from xbtasks.checks import Check, Status
from xbtasks.errors import ExitCode, UsageError
from xbtasks.explanations import Explanation, Topic, advice, explanation, named, topic, topics
from xbtasks.reporting.console import Console
from xbtasks.reporting.explaining import explained_document, show_explained
from xbtasks.sim.mutants.catalogue import chosen

CASES = [f"{backend.name}.case{case.number}" for backend in BACKENDS.values() for case in backend.cases]
CHECKS = [check for each in topics() for check in each.checks]


@cache
def code() -> Program:
    return Program(PROJECT / "xbtasks")


def explained(name: str) -> set[str]:
    found = topic(name)
    assert found is not None
    return {check.id.removeprefix(f"{name}.") for check in found.checks}


def of_any_case() -> set[str]:
    """Return the checks of a hardware case that the pipeline itself gives."""
    found = code().check_ids("xbtasks.casejob", "_hardware", but=("judge",))
    return found | code().check_ids("xbtasks.casejob", "without_cards")


@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith("case1")])
def test_what_a_hardware_case_can_say_is_what_is_explained(name: str) -> None:
    backend = name.partition(".")[0]
    found = code().check_ids(f"xbtasks.backends.{name}", "judge") | of_any_case()
    if HOLE in found:  # judge_family names its rows by the family
        assert name == "nvidia.case2"
        found = (found - {HOLE}) | {family.value for family in questions.FAMILIES}
    assert found - explained(name) == set(), f"explain these in xbtasks/backends/{backend}/checks.toml"
    assert explained(name) - found == set(), f"no code gives these rows of {backend}"


def test_what_case_1_can_say_is_what_is_explained() -> None:
    found = code().check_ids("xbtasks.casejob", "_linking", but=("judge",)) - {HOLE}
    told = set().union(*(explained(name) for name in CASES if name.endswith("case1")))
    assert found - told == set(), "explain these in xbtasks/backends/checks.toml"
    assert told - found == set(), "no code gives these rows: xbtasks/backends/checks.toml"


@pytest.mark.parametrize("backend", list(BACKENDS))
def test_what_case_1_demands_of_a_backend_is_explained_for_it(backend: str) -> None:
    name = f"{backend}.case1"
    for profile in profile_names(backend):
        required, rows = judge_linking(
            BACKENDS[backend],
            (),
            (),
            platform=Platform.AMD64,
            profile=profile_for(backend, "", profile),
            max_glibc=(2, 28),
            image_glibc=(2, 28),
        )
        ids = {*required, *(row.id for row in rows)}
        assert {each.removeprefix(f"{name}.") for each in ids} <= explained(name)


def test_what_preflight_can_say_is_what_is_explained() -> None:
    found = code().check_ids("xbtasks.preflight.rows", "preflight_checks")
    for backend in BACKENDS.values():
        found |= code().check_ids(backend.host, "checks")
    assert found == explained("preflight")


def test_what_the_mutants_are_noticed_by_is_explained() -> None:
    ids = {f"{variant.vendor}.case{variant.case}.{row}" for variant in chosen("") for row in variant.rows}
    assert ids
    assert [each for each in ids if explanation(each) is None] == []


@pytest.mark.parametrize("each", topics(), ids=lambda each: each.id)
def test_a_topic_tells_all_that_a_reader_asks(each: Topic) -> None:
    assert "not told" not in (each.runs, each.needs, each.proves, each.changes, each.takes)
    assert len({check.id for check in each.checks}) == len(each.checks)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_an_explanation_is_one_line_each_and_whole(check: Explanation) -> None:
    texts = (check.means, check.why, check.next, *check.causes)
    assert all(text and "\n" not in text for text in texts)
    assert len(check.means) <= 120
    assert not check.means.endswith(".")


def slug(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading."""
    text = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return text.replace(" ", "-")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_what_an_explanation_points_at_is_there(check: Explanation) -> None:
    path, _, anchor = check.see.partition("#")
    text = (PROJECT / path).read_text()
    assert not anchor or anchor in {slug(line.lstrip("#")) for line in text.splitlines() if line[:1] == "#"}


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("nvidia.case2.sm-limt", "nvidia.case2.sm-limit"),
        ("nvidia.case4", "nvidia.case"),
        ("prefligt", "preflight"),
        ("ascnd", "ascend"),
    ],
)
def test_an_unknown_name_gets_the_nearest_one(typed: str, meant: str) -> None:
    with pytest.raises(UsageError) as caught:
        named(typed)
    assert f"did you mean {meant}" in caught.value.hint


def test_a_name_like_no_other_gets_the_list() -> None:
    with pytest.raises(UsageError, match="nothing is called 'zzz'; `inv explain` alone lists what there is"):
        named("zzz")


def shown(name: str) -> str:
    out = io.StringIO()
    show_explained(named(name) if name else topics(), Console(out))
    return out.getvalue()


def test_a_case_is_shown_with_its_checks() -> None:
    text = shown("nvidia.case2")
    assert text.startswith("nvidia.case2  Single-card inject + nvidia-smi\n")
    assert [line.split()[0] for line in text.splitlines() if line[:1].isalpha()][1:6] == [
        "runs",
        "needs",
        "proves",
        "changes",
        "takes",
    ]
    for check in explained("nvidia.case2"):
        assert f"nvidia.case2.{check} " in text


def test_a_check_is_shown_with_its_next_step_and_where_to_read_on() -> None:
    text = shown("nvidia.case2.sm-limit")
    lines = text.splitlines()
    assert lines[0] == "nvidia.case2.sm-limit"
    words = [line.split()[0] for line in lines if line[:1].isalpha()][1:]
    assert words == ["means", "why", "causes", "next", "see"]
    assert "docs/references/nvidia-smi-and-sm-limit.md#the-log-line" in text


def test_all_is_listed_and_a_backend_has_its_own_cases() -> None:
    assert [line.split()[0] for line in shown("").splitlines() if "checks)" in line] == ["preflight", *CASES]
    assert [line.split()[0] for line in shown("ascend").splitlines() if "checks)" in line] == [
        name for name in CASES if name.startswith("ascend.")
    ]


def test_the_document_holds_what_is_shown() -> None:
    document = json.loads(json.dumps(explained_document(named("ascend.case3.floor"))))
    (check,) = document["checks"]
    assert check["id"] == "ascend.case3.floor"
    assert set(check) == {"id", "means", "why", "causes", "next", "see"}
    (case,) = explained_document(named("ascend.case3"))["topics"]  # type: ignore[misc]
    assert len(case["checks"]) == len(explained("ascend.case3"))


def test_a_red_row_is_told_what_to_do_next() -> None:
    assert advice("nvidia.case1.mode") == (
        "install -m 0644 (0755 for programs) in the stage; `inv explain nvidia.case1.mode` tells more"
    )
    assert advice("no.such.row") == "no checks.toml explains it"


def test_the_table_says_it_once_for_each_check() -> None:
    from xbtasks.reporting.table import _show_rows
    from xbtasks.typed import as_typed

    rows = [Check("nvidia.case1.mode", Status.FAIL, "a"), Check("nvidia.case1.mode", Status.FAIL, "b")]
    rows += [Check("nvidia.case1.elf", Status.PASS, "c")]
    out = io.StringIO()
    _show_rows("title", rows, Console(out))
    assert out.getvalue().splitlines()[-1] == as_typed(f"  nvidia.case1.mode: {advice('nvidia.case1.mode')}")
    assert out.getvalue().count(" explain ") == 1


def test_the_name_of_a_task_is_what_is_asked_about() -> None:
    import subprocess

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program("inv"), "explain", *words], cwd=PROJECT, capture_output=True, text=True
        )

    done = run("nvidia.case2")
    assert (done.returncode, done.stdout.splitlines()[0]) == (
        0,
        "nvidia.case2  Single-card inject + nvidia-smi",
    )
    assert run("nvidia.case9").returncode == ExitCode.USAGE
