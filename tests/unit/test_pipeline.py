"""The main job over a host in memory: what is asked in which order, and what each turn of events means."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest

from tests.elfkit import vgpu
from tests.unit.fakehost import FakeImage, HostInMemory, bad, good, labels
from tests.unit.preflight_replies import FakeHost, section
from xbtasks.checks import Check, Status, Verdict
from xbtasks.context import archive
from xbtasks.elf.summary import summarize
from xbtasks.errors import (
    CannotJudge,
    DeadlineExceeded,
    ExitCode,
    HostUnreachable,
    Interrupted,
    LostReply,
    Refused,
    UsageError,
)
from xbtasks.hardware import CaseRun, Findings, Unfit
from xbtasks.host.step import SectionReply
from xbtasks.pipeline import Tools, perform
from xbtasks.plan import RunPlan, StagePlan
from xbtasks.result import Result
from xbtasks.staging import Manifest

if TYPE_CHECKING:
    from xbtasks.checks import CaseReport
    from xbtasks.host.transfer import StreamPayload

if TYPE_CHECKING:
    from collections.abc import Iterator

LIBRARY = "/out/libvgpu.so"
ENDED = "did not complete successfully"


def stage_plan(suffix: str, digest: str = "a") -> StagePlan:
    return StagePlan(
        stage=f"xbuild-nvidia-cuda-{suffix}",
        backend_name="nvidia",
        suffix=suffix,
        image=f"vgpu-build:{suffix}",
        staging_directory="/opt/vgpu",
        digests=(("linux/amd64", digest * 64),),
        pin="52f33fc7fa1fbb3f08148ab076d0e7447bec7f2a",
    )


THIRTEEN, TWELVE = stage_plan("13"), stage_plan("12", "b")
PLAN = RunPlan("verify", (THIRTEEN,), (1,), build=True, dockerfile="Dockerfile", context_directory="/ctx")
ASCEND = tuple(
    StagePlan(
        f"xbuild-ascend-cann-{s}", "ascend", s, f"vcann-build:{s}", "/opt/enpu", (("linux/amd64", "c" * 64),)
    )
    for s in ("8-910b", "9-910b", "9-910c", "10-310p")
)


@dataclass
class Recorder:
    """A reporter that remembers."""

    lines: list[str] = field(default_factory=list)
    done: list[tuple[str, int, str]] = field(default_factory=list)
    verdicts: list[tuple[str, int, str]] = field(default_factory=list)

    def say(self, text: str = "") -> None:
        self.lines.append(text)

    def live(self, chunk: bytes) -> None:
        """Take progress."""

    def doing(self, stage: str, case: int, what: str) -> None:
        self.done.append((stage, case, what))

    def begins(self, stage: str) -> None:
        self.lines.append(stage)

    def judged(self, report: CaseReport) -> None:
        self.verdicts.append((report.stage, report.number, str(report.verdict)))


@dataclass
class World:
    """A host, what the user is asked, and what was said."""

    host: HostInMemory
    reporter: Recorder = field(default_factory=Recorder)
    asked: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    kept: dict[str, bytes] = field(default_factory=dict)
    answer: Exception | None = None

    def permission(self, what: str, *, accelerator: bool = False) -> None:
        self.asked.append(what)
        if self.answer is not None:
            raise self.answer

    def context(self, stage: StagePlan) -> StreamPayload:
        self.sent.append(stage.stage)
        return archive((), self.reporter.say)

    def keep(self, name: str, data: bytes) -> str:
        self.kept[name] = data
        return f"/evidence/{name}"

    def perform(self, plan: RunPlan = PLAN) -> Result:
        tools = Tools("run-1", self.host, self.context, self.permission, self.keep, self.reporter)
        return perform(plan, tools, Result("run-1", plan.command, "local", "/evidence"))

    @property
    def said(self) -> str:
        return "\n".join(self.reporter.lines)


def image(stage: StagePlan, *, data: bytes | None = None, mode: int = 0o644, inputs: str = "") -> FakeImage:
    found = labels(stage.stage, inputs or stage.digests[0][1])
    return FakeImage({LIBRARY: (vgpu() if data is None else data, mode)}, found)


@pytest.fixture
def world() -> World:
    return World(HostInMemory(lambda given: FakeImage({LIBRARY: (vgpu(), 0o644)}, given)))


def built(world: World, *stages: StagePlan) -> World:
    """Make ``stages`` built already, as an earlier run leaves them."""
    for stage in stages:
        there = image(stage)
        world.host.images[stage.image] = there
        world.host.recorded.add(there.id)
    return world


def row(result: Result, name: str) -> Status:
    (found,) = (each for each in result.cases[0].checks if each.id.endswith(f".{name}"))
    return found.status


# the way through


def test_a_stage_is_built_staged_and_judged(world: World) -> None:
    result = world.perform()
    assert (result.verdict, result.exit_code, result.reason) == (Verdict.PASS, 0, "")
    assert world.host.steps == ["preflight", "state", "context", "build", "read", "stage"]
    assert [(each.outcome, each.reason) for each in result.builds] == [("built", "there is no image yet")]
    assert [(each.path, each.size) for each in result.artifacts] == [(LIBRARY, len(vgpu()))]
    assert [(each.pin, each.elf) for each in result.artifacts] == [(THIRTEEN.pin, summarize(vgpu()))]
    assert world.host.containers == {}
    assert world.sent == [THIRTEEN.stage]
    assert world.kept.keys() == {f"{THIRTEEN.stage}.log"}


def test_whoever_follows_a_run_is_told_what_it_does_and_what_came_of_it(world: World) -> None:
    world.perform()
    stage = THIRTEEN.stage
    assert list(dict.fromkeys(world.reporter.done)) == [
        ("", 0, "looking at the host"),
        (stage, 0, "begins"),
        (stage, 0, "looking at its image and files"),
        (stage, 0, "waits for your word"),
        (stage, 0, "sending the build context"),
        (stage, 0, "building"),
        (stage, 0, "reading the artifacts"),
        (stage, 0, "staging the artifacts"),
        (stage, 1, "judging"),
        (stage, 0, ""),
    ]
    assert world.reporter.verdicts == [(stage, 1, "PASS")]


def test_a_run_that_shares_the_host_says_that_it_waits(world: World) -> None:
    world.perform(replace(PLAN, shared=True))
    assert (THIRTEEN.stage, 0, "waits for its turn on this host") in world.reporter.done


def test_whoever_follows_a_run_is_told_its_end_whatever_happens(world: World) -> None:
    world.host.instead["build"] = bad("build", "ERROR: failed to solve: target stage x not found")
    world.perform()
    assert world.reporter.done[-1] == (THIRTEEN.stage, 0, "")
    assert world.reporter.verdicts == [(THIRTEEN.stage, 1, "SKIP")]


def test_a_second_run_builds_and_stages_nothing_and_says_why(world: World) -> None:
    world.perform()
    world.host.steps.clear()
    result = world.perform()
    assert result.verdict is Verdict.PASS
    assert world.host.steps == ["preflight", "state", "read"]
    assert result.builds[0].outcome == "up to date"
    assert "nothing was built" in world.said


def test_a_context_that_the_host_has_is_not_sent_again(world: World) -> None:
    world.host.contexts.add("a" * 64)
    assert world.perform().verdict is Verdict.PASS
    assert "context" not in world.host.steps
    assert world.sent == []


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"digests": (("linux/amd64", "f" * 64),)}, "its inputs changed"),
        ({"stage": "xbuild-nvidia-cuda-14"}, "the image is of xbuild-nvidia-cuda-13"),
    ],
)
def test_an_image_of_other_inputs_is_built_anew(world: World, change: dict[str, object], why: str) -> None:
    built(world, THIRTEEN)
    result = world.perform(replace(PLAN, stages=(replace(THIRTEEN, **change),)))  # type: ignore[arg-type]
    assert result.builds[0].reason == why
    assert result.verdict is Verdict.PASS


def test_rebuild_builds_what_is_up_to_date(world: World) -> None:
    result = built(world, THIRTEEN).perform(replace(PLAN, rebuild=True))
    assert (result.builds[0].outcome, result.builds[0].reason) == ("built", "--rebuild was given")


def test_an_image_with_inherited_labels_is_built_anew(world: World) -> None:
    # made FROM our image, or committed from its container, with another library in it
    world.host.images[THIRTEEN.image] = image(THIRTEEN, data=vgpu("-Wl,-soname,libother.so"))
    result = world.perform()
    assert "not one that xbtasks built here" in result.builds[0].reason
    assert row(result, "soname") is Status.PASS


def test_a_build_that_can_not_be_recorded_is_judged_and_built_again(world: World) -> None:
    world.host.records = False
    assert world.perform().verdict is Verdict.PASS
    assert "can't be recorded" in world.said
    assert world.perform().builds[0].outcome == "built"


# builds that end otherwise


def test_a_broken_stage_fails_and_its_cases_are_skipped(world: World) -> None:
    log = b'#5 0.1 boom\n------\n > [2/2] RUN make:\n------\nERROR: failed to solve: process "make"'
    ended = log + b" did not complete successfully: exit code: 2"
    world.host.instead["build"] = SectionReply("build", 1, b"", ended, 1, False)
    result = world.perform()
    assert (result.verdict, result.exit_code) == (Verdict.FAIL, 1)
    assert (result.cases[0].verdict, result.cases[0].exit_code) == (Verdict.SKIP, 3)
    assert "exit code 2" in result.reason
    assert " > [2/2] RUN make:" in world.said
    assert f"/evidence/{THIRTEEN.stage}.log" in world.said
    assert world.kept[f"{THIRTEEN.stage}.log"] == ended
    assert world.host.staged == {}


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("build", bad("build", "ERROR: failed to solve: no space left on device")),
        ("build", bad("build", "", 137)),
        ("build", good("build", "{}")),
        ("build", good("build", '{"containerimage.config.digest": "sha256:other"}')),
        ("put-context", bad("put-context", "No space left on device")),
        ("create", bad("create", "Cannot connect to the Docker daemon")),
        ("file-0", bad("file-0", "Cannot connect to the Docker daemon")),
        ("file-0", good("file-0", b"garbage")),
        ("libc", bad("libc", "Cannot connect to the Docker daemon")),
        ("stage", bad("stage", "Read-only file system", 2)),
        ("staged", bad("staged", "Permission denied", 66)),
        ("recorded", bad("recorded", "Permission denied", 66)),
        ("context", bad("context", "no home directory", 2)),
        ("image", good("image", "garbage")),
    ],
)
def test_trouble_of_the_host_is_no_verdict(world: World, name: str, answer: SectionReply) -> None:
    world.host.instead[name] = answer
    result = world.perform()
    assert (result.verdict, result.exit_code) == (Verdict.ERROR, 4)
    assert result.cases[0].verdict is Verdict.ERROR
    assert result.reason


def test_a_tag_that_another_build_moved_is_no_verdict(world: World) -> None:
    def move() -> None:
        if world.host.steps[-1] == "build":
            world.host.images[THIRTEEN.image] = image(THIRTEEN, data=b"theirs")

    world.host.before["image"] = move
    result = world.perform()
    assert (result.exit_code, result.verdict) == (4, Verdict.ERROR)
    assert "moved the tag" in result.reason
    assert world.host.staged == {}


@pytest.mark.parametrize(("name", "knob"), [("build", "XB_BUILD_TIMEOUT"), ("file-0", "XB_TIMEOUT")])
def test_what_was_stopped_names_the_knob(world: World, name: str, knob: str) -> None:
    world.host.instead[name] = SectionReply(name, 124, b"", b"", 300, True)
    result = world.perform()
    assert result.exit_code == 4
    assert "within 300 s" in result.reason
    assert knob in result.reason


def test_a_container_that_can_not_be_made_says_why(world: World) -> None:
    world.host.instead["create"] = bad("create", "Error response from daemon: no space left on device")
    assert "no space left on device" in world.perform().reason


@pytest.mark.parametrize(
    ("name", "answer", "code"),
    [
        ("build", bad("build", "ERROR: failed to solve: no space left on device"), 4),
        ("build", bad("build", f'ERROR: failed to solve: process "x" {ENDED}: exit code: 2'), 1),
        ("stage", bad("stage", "Read-only file system", 2), 4),
        ("image", good("image", "garbage"), 4),
    ],
)
def test_a_build_that_could_not_be_done_is_not_a_pass(
    world: World, name: str, answer: SectionReply, code: int
) -> None:
    world.host.instead[name] = answer
    result = world.perform(replace(PLAN, command="build", cases=()))
    assert result.exit_code == code
    assert result.reason


# refusals


def test_somebody_elses_image_under_our_tag_is_refused(world: World) -> None:
    theirs = FakeImage({LIBRARY: (b"theirs", 0o644)})
    world.host.images[THIRTEEN.image] = theirs
    result = world.perform()
    assert (result.exit_code, result.verdict) == (2, Verdict.ERROR)
    assert "--adopt" in result.reason
    assert world.host.images[THIRTEEN.image] is theirs
    assert world.perform(replace(PLAN, adopt=True)).verdict is Verdict.PASS


def test_somebody_elses_file_is_refused(world: World) -> None:
    world.host.staged["libvgpu.so"] = (b"theirs", 0o644)
    result = world.perform()
    assert result.exit_code == 2
    assert world.host.staged["libvgpu.so"][0] == b"theirs"
    assert "stage" not in world.host.steps


def test_a_build_is_asked_for_once_and_a_no_builds_nothing(world: World) -> None:
    world.answer = Refused("not confirmed")
    result = world.perform()
    assert (result.exit_code, world.asked) == (
        2,
        [f"build {THIRTEEN.stage} for linux/amd64 as {THIRTEEN.image}"],
    )
    assert "build" not in world.host.steps
    assert world.sent == []


def test_what_is_up_to_date_asks_nothing(world: World) -> None:
    assert built(world, THIRTEEN).perform().verdict is Verdict.PASS
    assert world.asked == []


@pytest.mark.parametrize("build", [False, True])
def test_another_stages_image_is_never_judged_as_this_one(world: World, build: bool) -> None:
    built(world, THIRTEEN)
    stage = replace(TWELVE, image=THIRTEEN.image)
    result = world.perform(replace(PLAN, command="nvidia.case1", stages=(stage,), build=build))
    if build:
        assert result.builds[0].reason == f"the image is of {THIRTEEN.stage}"
        assert result.verdict is Verdict.PASS
    else:
        assert (result.exit_code, result.verdict) == (2, Verdict.ERROR)
        assert f"is of stage {THIRTEEN.stage}, not of {TWELVE.stage}" in result.reason


def test_an_image_for_another_platform_is_not_judged(world: World) -> None:
    foreign = replace(image(THIRTEEN), architecture="arm64")
    world.host.images[THIRTEEN.image] = foreign
    result = world.perform(replace(PLAN, command="nvidia.case1", build=False))
    assert result.exit_code == 2
    assert "is for linux/arm64, not for linux/amd64" in result.reason


def test_a_foreign_platform_without_emulation_is_refused_with_the_reason(world: World) -> None:
    world.host.preflight = FakeHost(binfmt="visible enabled\n")
    stage = replace(THIRTEEN, digests=(("linux/arm64", "a" * 64),))
    result = world.perform(replace(PLAN, stages=(stage,), platform="linux/arm64"))
    assert result.exit_code == 2
    assert "emulation" in result.reason
    assert "build" not in world.host.steps


def test_a_stage_that_cross_compiles_needs_no_emulation_and_its_rows_say_that_nothing_ran(
    world: World,
) -> None:
    world.host.preflight = FakeHost(binfmt="visible enabled\n")
    world.host.builds = lambda given: FakeImage({LIBRARY: (vgpu(), 0o644)}, given, "arm64")
    stage = replace(THIRTEEN, digests=(("linux/arm64", "a" * 64),), cross_compiles=True)
    result = world.perform(replace(PLAN, stages=(stage,), platform="linux/arm64"))
    (arch,) = (each for each in result.cases[0].checks if each.id == "nvidia.case1.arch")
    assert (arch.status, result.exit_code) == (Status.FAIL, 1)  # the library is for amd64
    assert "nothing of it was run" in arch.detail
    assert "emulated" not in world.said


def test_an_emulated_build_says_that_it_is_slow(world: World) -> None:
    world.host.builds = lambda given: FakeImage({LIBRARY: (vgpu(), 0o644)}, given, "arm64")
    stage = replace(THIRTEEN, digests=(("linux/arm64", "a" * 64),))
    world.perform(replace(PLAN, stages=(stage,), platform="linux/arm64"))
    assert "emulated and slow" in world.said


def test_a_platform_that_the_stage_does_not_build_is_refused(world: World) -> None:
    result = world.perform(replace(PLAN, platform="linux/arm64"))
    assert result.exit_code == 2
    assert "builds nothing for linux/arm64" in result.reason


def test_without_buildx_a_stage_can_not_be_built_but_a_built_one_is_judged(world: World) -> None:
    world.host.preflight = FakeHost(buildx=section("buildx", "found /usr/bin/docker\nversion.status 1\n"))
    assert world.perform().exit_code == 4
    result = built(world, THIRTEEN).perform()
    assert (result.exit_code, result.verdict) == (0, Verdict.PASS)


def test_a_case_of_a_stage_that_is_not_built_names_the_command(world: World) -> None:
    result = world.perform(replace(PLAN, command="nvidia.case1", build=False))
    assert result.exit_code == 2
    assert f"inv build {THIRTEEN.stage}" in result.reason


# what is judged


@pytest.mark.parametrize(
    ("there", "failing"),
    [
        (FakeImage({LIBRARY: (b"\x7fELF", 0o644)}), "elf"),
        (FakeImage({LIBRARY: (b"", 0o644)}), "elf"),
        (FakeImage({}), "present"),
    ],
)
def test_a_broken_artifact_fails_in_the_row_that_names_it(
    world: World, there: FakeImage, failing: str
) -> None:
    world.host.builds = lambda given: replace(there, labels=given)
    result = world.perform()
    assert (result.verdict, result.exit_code) == (Verdict.FAIL, 1)
    assert row(result, failing) is Status.FAIL
    assert result.reason.startswith(f"nvidia.case1.{failing}")


def test_the_mode_is_the_images_and_not_what_staging_made_of_it(world: World) -> None:
    world.host.builds = lambda given: FakeImage({LIBRARY: (vgpu(), 0o600)}, given)
    result = world.perform()
    assert (row(result, "mode"), row(result, "staged")) == (Status.FAIL, Status.PASS)
    assert result.exit_code == 1


def test_an_incomplete_stage_is_not_staged_and_an_earlier_set_stays(world: World) -> None:
    world.perform()
    before = dict(world.host.staged)
    world.host.builds = lambda given: FakeImage({}, given)
    result = world.perform(replace(PLAN, rebuild=True))
    assert result.exit_code == 1
    assert world.host.staged == before
    assert "not staged" in world.said


def test_a_build_command_fails_for_an_incomplete_stage(world: World) -> None:
    world.host.builds = lambda given: FakeImage({}, given)
    result = world.perform(replace(PLAN, command="build", cases=()))
    assert (result.exit_code, result.verdict) == (1, Verdict.FAIL)


def test_a_case_of_an_older_image_says_so_in_its_verdict(world: World) -> None:
    older = image(THIRTEEN, inputs="f" * 64)
    world.host.images[THIRTEEN.image] = older
    result = world.perform(replace(PLAN, command="nvidia.case1", build=False))
    assert result.verdict is Verdict.PASS
    assert row(result, "image") is Status.WARN
    assert "its inputs changed" in result.reason


def test_a_staging_directory_that_others_change_meanwhile_is_looked_at_again(world: World) -> None:
    world.host.instead["stage"] = [bad("stage", "x changed while it was being staged", 76)]
    result = world.perform()
    assert result.verdict is Verdict.PASS
    assert world.host.steps[-3:] == ["stage", "again", "stage"]


def test_others_that_never_stop_are_no_verdict(world: World) -> None:
    world.host.instead["stage"] = bad("stage", "x changed while it was being staged", 76)
    result = world.perform()
    assert result.exit_code == 4
    assert "keep changing" in result.reason


def test_another_stage_that_was_staged_gives_way_without_a_build(world: World) -> None:
    built(world, THIRTEEN, TWELVE)
    both = replace(PLAN, stages=(THIRTEEN, TWELVE))
    result = world.perform(both)
    assert result.verdict is Verdict.PASS
    assert "build" not in world.host.steps
    manifest = Manifest.from_bytes(world.host.manifest)
    assert manifest is not None
    assert manifest.stage == TWELVE.stage
    assert f"{THIRTEEN.stage} was staged" in world.said


# hardware cases


def test_a_case_without_cards_is_skipped(world: World) -> None:
    world.host.preflight = FakeHost(nvidia_smi=section("nvidia-smi", ""), nvidia_devices="")
    result = built(world, THIRTEEN).perform(replace(PLAN, cases=(2,)))
    assert (result.exit_code, result.verdict) == (3, Verdict.SKIP)
    assert "needs 1 GPU" in result.reason


def test_absent_cards_are_seen_before_anything_is_asked_or_built(world: World) -> None:
    world.host.preflight = FakeHost(nvidia_smi=section("nvidia-smi", ""), nvidia_devices="")
    for build in (True, False):
        result = world.perform(replace(PLAN, cases=(2, 3), build=build))
        assert [case.verdict for case in result.cases] == [Verdict.SKIP, Verdict.SKIP]
        assert result.exit_code == 3
    assert world.asked == []
    assert world.host.steps == ["preflight", "preflight"]


def test_one_card_is_enough_for_the_case_that_needs_one(world: World) -> None:
    one = FakeHost().nvidia_smi
    assert isinstance(one, str)
    lines = [line for line in one.splitlines(keepends=True) if not line.startswith("gpus 1,")]
    world.host.preflight = FakeHost(nvidia_smi="".join(lines))
    result = world.perform(replace(PLAN, cases=(1, 3)))
    assert [case.verdict for case in result.cases] == [Verdict.PASS, Verdict.SKIP]
    assert "needs 2 GPU" in result.reason


def test_what_fails_case_1_is_not_taken_to_a_card(world: World) -> None:
    world.host.builds = lambda given: FakeImage({LIBRARY: (vgpu(), 0o600)}, given)
    result = world.perform(replace(PLAN, cases=(1, 2, 3)))
    assert [case.verdict for case in result.cases] == [Verdict.FAIL, Verdict.SKIP, Verdict.SKIP]
    assert "nvidia.case1 failed" in result.cases[1].reason
    assert result.exit_code == 1
    assert not any("probe" in step for step in world.host.steps)


def test_a_skipped_case_beside_a_passing_one_is_no_failure(world: World) -> None:
    world.host.preflight = FakeHost(nvidia_smi=section("nvidia-smi", ""), nvidia_devices="")
    result = built(world, THIRTEEN).perform(replace(PLAN, cases=(1, 2)))
    assert [case.verdict for case in result.cases] == [Verdict.PASS, Verdict.SKIP]
    assert result.exit_code == 0


@pytest.mark.parametrize("cases", [(2,), (3,), (2, 3)])
def test_an_image_without_its_artifact_is_broken_whatever_another_run_staged(
    world: World, cases: tuple[int, ...]
) -> None:
    assert built(world, TWELVE).perform(replace(PLAN, stages=(TWELVE,))).verdict is Verdict.PASS
    world.host.builds = lambda given: FakeImage({}, given)
    result = world.perform(replace(PLAN, cases=cases))
    assert (result.exit_code, result.cases[0].verdict) == (1, Verdict.FAIL)
    assert result.cases[0].reason == f"the image lacks {LIBRARY}"


def test_what_does_not_fit_one_case_is_wrong_usage_of_that_case_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = Check("nvidia.case2.control", Status.PASS, "the card as it is")

    def unfit(run: CaseRun) -> Findings:
        raise Unfit("900 MiB leave no room", row, hint="--mem 1284 or more")

    def fit(run: CaseRun) -> Findings:
        passed = replace(row, id="nvidia.case3.control")
        return Findings((passed.id,), (passed,))

    monkeypatch.setattr("xbtasks.backends.nvidia.case2.judge", unfit)
    monkeypatch.setattr("xbtasks.backends.nvidia.case3.judge", fit)
    result = world.perform(replace(PLAN, cases=(2, 3)))
    first, second = result.cases
    assert (first.verdict, first.exit_code) == (Verdict.ERROR, ExitCode.USAGE)
    assert first.reason == "900 MiB leave no room; --mem 1284 or more"
    assert row in first.checks
    assert second.verdict is Verdict.PASS
    assert result.exit_code == 2


# several stages


def test_a_failing_stage_does_not_stop_the_next(world: World) -> None:
    built(world, TWELVE)
    world.host.instead["build"] = bad("build", 'ERROR: target stage "x" could not be found')
    result = world.perform(replace(PLAN, stages=(THIRTEEN, TWELVE)))
    assert [case.verdict for case in result.cases] == [Verdict.SKIP, Verdict.PASS]
    assert result.exit_code == 1


@pytest.mark.parametrize(
    "error", [LostReply("cut"), DeadlineExceeded("late"), UsageError("x"), CannotJudge("x")]
)
def test_a_lost_step_of_one_stage_does_not_stop_the_next(world: World, error: Exception) -> None:
    built(world, THIRTEEN, TWELVE)
    world.host.instead["create"] = [error]
    result = world.perform(replace(PLAN, stages=(THIRTEEN, TWELVE)))
    assert [case.verdict for case in result.cases] == [Verdict.ERROR, Verdict.PASS]
    assert result.exit_code in (2, 4)


def test_the_time_of_a_lost_step_is_its_cases(world: World) -> None:
    built(world, THIRTEEN)
    lost = LostReply("cut")
    lost.seconds = 600.5
    world.host.instead["create"] = [lost]
    (case,) = world.perform(PLAN).cases
    assert case.seconds >= 600.5


@pytest.mark.parametrize(("error", "code"), [(HostUnreachable("gone"), 4), (Interrupted("interrupted"), 130)])
def test_a_lost_host_or_an_interrupt_ends_the_run_and_keeps_what_was_found(
    world: World, error: Exception, code: int
) -> None:
    built(world, THIRTEEN, TWELVE)
    later = replace(TWELVE, stage="xbuild-nvidia-cuda-11")

    def second() -> None:
        if world.host.steps.count("read") == 2:
            world.host.instead["create"] = error

    world.host.before["create"] = second
    result = world.perform(replace(PLAN, stages=(THIRTEEN, TWELVE, later)))
    assert [(case.stage, case.verdict) for case in result.cases] == [
        (THIRTEEN.stage, Verdict.PASS),
        (TWELVE.stage, Verdict.ERROR),
        (later.stage, Verdict.ERROR),
    ]
    assert [case.exit_code for case in result.cases] == [0, code, code]
    assert result.cases[2].reason == f"not reached: {error}"
    assert result.exit_code == code


@pytest.mark.parametrize("error", [HostUnreachable("no sh"), LostReply("cut"), DeadlineExceeded("late")])
def test_a_preflight_that_is_lost_ends_the_run(world: World, error: Exception) -> None:
    world.host.instead["preflight"] = error
    result = world.perform()
    assert (result.exit_code, result.verdict) == (4, Verdict.ERROR)
    assert result.cases == ()


@pytest.mark.parametrize(
    "engine",
    [
        "",
        section("engine", "found /usr/bin/docker\n", timed_out=True, seconds=30),
        section("engine", "garbage\n\x1b[2J"),
        section("engine", "found /usr/bin/docker\ninfo.status 0\ninfo {}\nversion.status 0\nversion {}\n"),
    ],
)
def test_an_engine_that_does_not_answer_is_no_verdict(world: World, engine: str | SectionReply) -> None:
    world.host.preflight = FakeHost(engine=engine)
    result = built(world, THIRTEEN).perform()
    assert (result.exit_code, result.verdict) == (4, Verdict.ERROR)
    assert "the container engine can't be used" in result.reason
    assert world.host.steps == ["preflight"]


# a stage that nobody named


def choose(world: World, *stages: StagePlan, cases: tuple[int, ...] = (1,)) -> Result:
    for stage in stages:
        world.host.images[stage.image] = image(stage)
    return world.perform(replace(PLAN, command="case", stages=stages, cases=cases, build=False, choose=True))


def test_the_stage_that_was_staged_last_is_taken(world: World) -> None:
    written = Manifest(TWELVE.stage, "linux/amd64", "", "", "", ())
    world.host.manifest = written.to_bytes()
    result = choose(world, THIRTEEN, TWELVE)
    assert result.cases[0].stage == TWELVE.stage
    assert "last one staged" in world.said


@pytest.mark.parametrize(
    ("chips", "stage"),
    [("Ascend 910B4", "9-910b"), ("Ascend 310P3", "10-310p"), ("", "10-310p")],
)
def test_else_the_newest_toolkit_for_the_hosts_chip(world: World, chips: str, stage: str) -> None:
    if chips != "Ascend 910B4":
        smi = world.host.preflight.npu_smi
        assert isinstance(smi, str)
        world.host.preflight = FakeHost(
            npu_smi=smi.replace("Ascend 910B4", chips).replace("910B4 ", f"{chips[7:]:6}") if chips else "",
            ascend_devices="" if not chips else FakeHost().ascend_devices,
        )
    choose(world, *ASCEND)
    assert f"xbuild-ascend-cann-{stage}, the newest toolkit" in world.said


@pytest.mark.parametrize(
    ("case", "staged", "taken"),
    [(1, "10-310p", "10-310p"), (2, "10-310p", "9-910b"), (3, "10-310p", "9-910b"), (2, "8-910b", "8-910b")],
)
def test_a_stage_for_another_chip_that_was_staged_last_is_not_taken_to_the_card(
    world: World, case: int, staged: str, taken: str
) -> None:
    written = Manifest(f"xbuild-ascend-cann-{staged}", "linux/amd64", "", "", "", ())
    world.host.manifest = written.to_bytes()
    result = choose(world, *ASCEND, cases=(case,))
    assert result.cases[0].stage == f"xbuild-ascend-cann-{taken}"
    assert ("is for another chip" in world.said) is (staged != taken)


def test_a_preflight_alone_runs_no_stage(world: World) -> None:
    result = world.perform(RunPlan("preflight", (), (), build=False))
    assert world.host.steps == ["preflight"]
    assert result.exit_code == ExitCode.PASSED
    assert result.preflight


# turns at what is shared with other runs


def with_turns(world: World, plan: RunPlan) -> list[str]:
    """Run ``plan`` and return its steps, with when its turns began and ended."""

    @contextmanager
    def turn(machine: str, *name: str) -> Iterator[None]:
        assert machine == "f2242244 node-a"  # as the engine says
        world.host.steps.append(f"turn at {name[0]}")
        yield
        world.host.steps.append("turn over")

    tools = Tools("run-1", world.host, world.context, world.permission, world.keep, world.reporter, turn=turn)
    result = perform(plan, tools, Result("run-1", plan.command, "local", "/evidence"))
    assert [case.verdict for case in result.cases] == [Verdict.PASS]
    return world.host.steps


def test_a_run_builds_in_one_turn_and_stages_in_another(world: World) -> None:
    steps = with_turns(world, PLAN)
    image = ["turn at image", "state", "context", "build", "turn over"]
    assert steps == ["preflight", *image, "read", "turn at staging directory", "stage", "turn over"]


def test_what_others_staged_meanwhile_is_seen_when_the_turn_comes(world: World) -> None:
    built(world, THIRTEEN)
    assert world.perform().exit_code is ExitCode.PASSED  # it is what is staged now
    world.host.steps.clear()
    plan = replace(PLAN, shared=True)

    def restaged() -> None:
        world.host.manifest = world.host.manifest.replace(THIRTEEN.stage.encode(), TWELVE.stage.encode())

    world.host.before["file-0"] = restaged  # while this run reads its artifacts
    steps = with_turns(world, plan)
    image = ["turn at image", "state", "turn over"]
    assert steps == ["preflight", *image, "read", "turn at staging directory", "again", "stage", "turn over"]
    assert json.loads(world.host.manifest)["stage"] == THIRTEEN.stage
