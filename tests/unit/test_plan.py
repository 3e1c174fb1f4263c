from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.backends.base import Platform
from xbtasks.errors import UsageError
from xbtasks.plan import RunPlan, StagePlan

STAGE = StagePlan(
    stage="xbuild-ascend-cann-9-910c",
    backend_name="ascend",
    suffix="9-910c",
    image="vcann-build:9-910c",
    staging_directory="/opt/enpu/vcann-rt",
    digests=(("linux/amd64", "a" * 64), ("linux/arm64", "b" * 64)),
    pin="4d7e4b10",
)
TEXT = st.text(max_size=8)
STAGES = st.builds(
    StagePlan,
    stage=TEXT,
    backend_name=st.sampled_from(["ascend", "nvidia"]),
    suffix=TEXT,
    image=TEXT,
    staging_directory=TEXT,
    digests=st.lists(st.tuples(st.sampled_from(Platform).map(str), TEXT), max_size=2).map(tuple),
    pin=TEXT,
    profile=TEXT,
    cross_compiles=st.booleans(),
)
PLANS = st.builds(
    RunPlan,
    command=TEXT,
    stages=st.lists(STAGES, max_size=2).map(tuple),
    cases=st.lists(st.integers(1, 3), max_size=3).map(tuple),
    build=st.booleans(),
    choose=st.booleans(),
    max_glibc=st.lists(st.integers(0, 99), max_size=3).map(tuple),
    rebuild=st.booleans(),
    adopt=st.booleans(),
    step_deadline=st.integers(1, 9999),
)


@given(PLANS)
def test_a_plan_survives_its_evidence(plan: RunPlan) -> None:
    assert RunPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_every_field_travels() -> None:
    assert asdict(RunPlan("verify", (STAGE,), (1,), build=True)).keys() == RunPlan.__dataclass_fields__.keys()


DOCUMENT = RunPlan("verify", (STAGE,), (1,), build=True).to_json()


@pytest.mark.parametrize(
    "document",
    [
        {},
        {**DOCUMENT, "stages": None},
        {**DOCUMENT, "stages": "xbuild"},
        {**DOCUMENT, "stages": [1]},
        {**DOCUMENT, "stages": [{"stage": "x"}]},
        {**DOCUMENT, "stages": [{**asdict(STAGE), "colour": "red"}]},
        {**DOCUMENT, "colour": "red"},
        {name: value for name, value in DOCUMENT.items() if name != "cases"},
    ],
)
def test_another_document_is_no_plan(document: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="no plan"):
        RunPlan.from_json(document)


def test_a_platform_without_a_digest_can_not_be_built() -> None:
    assert STAGE.digest(Platform.ARM64) == "b" * 64
    assert STAGE.platforms == (Platform.AMD64, Platform.ARM64)
    one = StagePlan(**{**asdict(STAGE), "digests": STAGE.digests[:1]})
    with pytest.raises(UsageError, match=r"nothing for linux/arm64; its platforms: linux/amd64"):
        one.digest(Platform.ARM64)
