"""Stages and cases as jobs, and jobs in the words of CI engines."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.workplace import DOCKERFILE, PROJECT, SAMPLE, make_checkout
from xbtasks.backends.base import Platform
from xbtasks.checkout.stages import discover
from xbtasks.errors import UsageError
from xbtasks.matrix.jobs import Job, make_jobs, why_no_job
from xbtasks.reporting.ci import FORMS, form

if TYPE_CHECKING:
    from pathlib import Path

STAGES = discover(SAMPLE, DOCKERFILE).stages
CUDA, CANN = STAGES[-1], STAGES[0]
EXAMPLES = PROJECT / "docs/examples"


def job(stage: str = "xbuild-nvidia-cuda-13") -> Job:
    return Job(f"{stage} amd64", stage, "nvidia", (1,), "linux/amd64", "amd64", 0)


def test_a_job_for_each_platform_and_one_with_cards() -> None:
    jobs = make_jobs([CUDA], (1, 2, 3), None)
    assert [(each.name, each.cases, each.platform, each.cards) for each in jobs] == [
        ("xbuild-nvidia-cuda-13 amd64", (1,), "linux/amd64", 0),
        ("xbuild-nvidia-cuda-13 arm64", (1,), "linux/arm64", 0),
        ("xbuild-nvidia-cuda-13 nvidia cards", (2, 3), "", 2),
    ]
    assert [each.command for each in jobs] == [
        "./xb verify xbuild-nvidia-cuda-13 --cases 1 --platform linux/amd64",
        "./xb verify xbuild-nvidia-cuda-13 --cases 1 --platform linux/arm64",
        "./xb verify xbuild-nvidia-cuda-13 --cases 2,3",
    ]


@pytest.mark.parametrize(
    ("cases", "platform", "names"),
    [
        ((1,), Platform.ARM64, ["arm64"]),
        ((2,), None, ["ascend cards"]),
        ((1, 2), Platform.AMD64, ["amd64", "ascend cards"]),
        ((), None, []),
    ],
)
def test_what_was_chosen_and_nothing_else(
    cases: tuple[int, ...], platform: Platform, names: list[str]
) -> None:
    assert [each.name for each in make_jobs([CANN], cases, platform)] == [
        f"{CANN.name} {name}" for name in names
    ]


def test_stages_keep_their_order_and_names_differ() -> None:
    jobs = make_jobs(STAGES, (1, 2, 3), None)
    assert list(dict.fromkeys(each.stage for each in jobs)) == [stage.name for stage in STAGES]
    assert len({each.name for each in jobs}) == len(jobs) == 3 * len(STAGES)
    assert jobs == make_jobs(STAGES, (1, 2, 3), None)


def test_a_stage_that_can_be_built_nowhere_has_no_job(tmp_path: Path) -> None:
    text = "FROM --platform=linux/s390x a AS xbuild-nvidia-cuda-1\nRUN b\n"
    stages = discover(make_checkout(tmp_path, text), DOCKERFILE).stages
    assert [stage.platforms for stage in stages] == [()]
    assert make_jobs(stages, (1, 2, 3), None) == ()
    assert why_no_job(stages[0], (1, 2, 3), None) == "it builds nothing for linux/amd64 or linux/arm64"


def test_whether_a_stage_has_a_job_is_told_of_every_choice() -> None:
    for stage in STAGES:
        for cases in ((), (1,), (2,), (1, 2, 3), (9,)):
            for platform in (None, *Platform):
                silent = not make_jobs([stage], cases, platform)
                assert bool(why_no_job(stage, cases, platform)) is silent
    assert why_no_job(CANN, (9,), None) == "ascend has none of these cases"


def test_githubs_matrix_is_one_line_of_flat_values() -> None:
    text = form("github")([job()])
    assert "\n" not in text
    assert json.loads(text) == {
        "include": [
            {
                "name": "xbuild-nvidia-cuda-13 amd64",
                "stage": "xbuild-nvidia-cuda-13",
                "backend": "nvidia",
                "cases": "1",
                "platform": "linux/amd64",
                "arch": "amd64",
                "cards": 0,
                "command": "./xb verify xbuild-nvidia-cuda-13 --cases 1 --platform linux/amd64",
            }
        ]
    }
    assert json.loads(form("github")([])) == {"include": []}


def test_github_takes_256_jobs() -> None:
    assert len(json.loads(form("github")([job()] * 256))["include"]) == 256
    with pytest.raises(UsageError, match="257 jobs, and GitHub takes 256"):
        form("github")([job()] * 257)


def test_gitlabs_child_pipeline() -> None:
    jobs = make_jobs([CUDA], (1, 2), Platform.AMD64)
    pipeline = yaml.safe_load(form("gitlab")(jobs))
    assert list(pipeline) == ["stages", "xbuild-nvidia-cuda-13 amd64", "xbuild-nvidia-cuda-13 nvidia cards"]
    plain, carded = pipeline["xbuild-nvidia-cuda-13 amd64"], pipeline["xbuild-nvidia-cuda-13 nvidia cards"]
    assert (plain["stage"], plain["extends"], carded["extends"]) == ("verify", ".xbtasks", ".xbtasks-cards")
    assert plain["variables"]["XBTASKS_CASES"] == "1"
    assert carded["variables"]["XBTASKS_PLATFORM"] == ""
    assert all(type(value) is str for each in (plain, carded) for value in each["variables"].values())


def test_a_child_pipeline_is_never_empty() -> None:
    pipeline = yaml.safe_load(form("gitlab")([]))
    assert pipeline["nothing to verify"]["script"] == ["echo 'no stage has a job'"]


def test_json_is_a_document() -> None:
    document = json.loads(form("json")([job()]))
    assert (document["schema"], document["jobs"][0]["stage"]) == (1, "xbuild-nvidia-cuda-13")


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="'jenkins': github, gitlab, json are accepted"):
        form("jenkins")
    assert set(FORMS) == {"github", "gitlab", "json"}


def workflow(name: str) -> Any:
    return yaml.safe_load((EXAMPLES / name).read_text())


def test_the_example_for_github_asks_for_what_a_job_has() -> None:
    entry = json.loads(form("github")([job()]))["include"][0]
    text = (EXAMPLES / "github-verify.yml").read_text()
    asked = set(re.findall(r"matrix\.(\w+)", re.sub(r"outputs\.matrix|steps\.matrix\.\w+", "", text)))
    assert asked <= set(entry)
    assert asked >= {"name", "stage", "cases", "platform", "arch", "cards", "backend"}
    verify = workflow("github-verify.yml")["jobs"]["verify"]
    assert verify["strategy"]["matrix"] == "${{ fromJSON(needs.plan.outputs.matrix) }}"
    assert verify["if"] == "fromJSON(needs.plan.outputs.matrix).include[0]"
    # what GitHub puts into a script is never text of somebody's branch
    for each in workflow("github-verify.yml")["jobs"].values():
        assert not any("${{" in step.get("run", "") for step in each["steps"])


def test_the_examples_for_gitlab_fit_the_child_pipeline() -> None:
    pipeline = yaml.safe_load(form("gitlab")(make_jobs(STAGES, (1, 2, 3), None)))
    templates = workflow("gitlab-verify.yml")
    jobs = [each for name, each in pipeline.items() if name != "stages"]
    assert {each["extends"] for each in jobs} == set(templates)
    asked = set(re.findall(r"XBTASKS_\w+", (EXAMPLES / "gitlab-verify.yml").read_text()))
    assert asked <= set(jobs[0]["variables"])
    trigger = workflow("gitlab-ci.yml")["verify"]["trigger"]["include"]
    assert trigger == [{"artifact": "pipeline.yml", "job": "plan"}, {"local": "gitlab-verify.yml"}]
    assert any("> pipeline.yml" in line for line in workflow("gitlab-ci.yml")["plan"]["script"])
