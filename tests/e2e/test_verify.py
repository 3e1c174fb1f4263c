"""The main job as a user types it, on a real engine: build, stage, judge, say so."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator

from tests.workplace import BASE, DOCKERFILE, PROJECT, cells, make_checkout, program, statuses

if TYPE_CHECKING:
    from tests.workplace import Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-nvidia-cuda-13"
SCHEMA = Draft202012Validator(json.loads((PROJECT / "xbtasks/schema/result-1.json").read_text()))


def test_a_stage_is_built_staged_and_judged_and_the_table_says_what_the_document_says(
    place: Workplace,
) -> None:
    target = place.folder / "a result's.json"
    done = place.inv("verify", STAGE, "--cases", "1", f"--json={target}")
    assert done.code == 0, done.text
    assert done.err == ""
    assert f"built {place.tag('image')}" in done.out
    assert "SIMULATED" in done.out
    assert done.out.splitlines()[-3] == "PASS"

    document = json.loads(target.read_text())
    SCHEMA.validate(document)
    (case,) = document["cases"]
    assert (document["verdict"], document["exit_code"], case["verdict"]) == ("PASS", 0, "PASS")
    assert (document["simulated"], document["command"], document["host"]) == (True, "verify", "local")
    assert [build["outcome"] for build in document["builds"]] == ["built"]
    shown = {(row[0], row[1]) for row in cells(done.out) if row[1].startswith("nvidia.case1.")}
    assert shown == {(row["status"], row["id"]) for row in case["checks"]}

    staged = place.staging / "libvgpu.so"
    (artifact,) = document["artifacts"]
    assert artifact["path"] == "/out/libvgpu.so"
    assert artifact["size"] == staged.stat().st_size
    assert artifact["sha256"] == place.run("sha256sum", staged).out.split()[0]
    assert staged.stat().st_mode & 0o7777 == 0o644
    assert Path(document["evidence"]) == place.evidence()[-1]
    assert place.left_over() == []
    labels = json.loads(place.engine.docker("image", "inspect", place.tag("image")))[0]["Config"]["Labels"]
    assert labels["xbtasks.stage"] == STAGE
    assert "xbtasks.run" not in labels


def test_json_on_stdout_is_exactly_one_document_and_text_is_on_stderr(place: Workplace) -> None:
    done = place.inv("verify", STAGE, "--cases", "1", "--json")
    assert done.code == 0, done.text
    SCHEMA.validate(done.document)
    assert "PASS" in done.err.splitlines()
    assert [row["status"] for row in done.document["preflight"]]
    preflight = place.inv("preflight", "--json")
    SCHEMA.validate(preflight.document)
    assert preflight.document["command"] == "preflight"


def test_a_second_verify_builds_nothing_and_says_why(place: Workplace) -> None:
    first = place.inv("verify", STAGE, "--cases", "1", "--json")
    image = place.engine.docker("image", "inspect", "--format", "{{.Id}}", place.tag("image"))
    inode = (place.staging / "libvgpu.so").stat().st_ino
    second = place.inv("verify", STAGE, "--cases", "1", "--json")
    assert (first.code, second.code) == (0, 0)
    assert [build["outcome"] for build in second.document["builds"]] == ["up to date"]
    assert "nothing was built" in second.err
    steps = sorted(path.name[4:] for path in (place.evidence()[-1] / "steps").iterdir())
    assert steps == ["preflight", "read", "state"]
    assert place.engine.docker("image", "inspect", "--format", "{{.Id}}", place.tag("image")) == image
    assert (place.staging / "libvgpu.so").stat().st_ino == inode

    forced = place.inv("verify", STAGE, "--cases", "1", "--rebuild", "--json")
    assert [(build["outcome"], build["reason"]) for build in forced.document["builds"]] == [
        ("built", "--rebuild was given")
    ]
    case = place.inv("nvidia.case1", STAGE, "--json")
    assert statuses(first.document["cases"][0]) == statuses(case.document["cases"][0])


# what rebuilds, and what doesn't

INPUTS = "pack/gpustack-operator/external"
MOUNT = "--mount=type=bind,src=pack/gpustack-operator/external"


def three_stages(place: Workplace) -> tuple[Path, tuple[str, ...]]:
    """Make a checkout of three stages, two of which share an input; return it and its stages."""
    names = tuple(f"xbuild-nvidia-cuda-{place.name}-{number}" for number in (1, 2, 3))
    sources = {names[0]: "shared", names[1]: "shared", names[2]: "own"}
    text = f"FROM {BASE} AS tools\n"
    for name, source in sources.items():
        run = f"RUN {MOUNT}/{source},target=/in : {name}; install -D /in/lib /out/libvgpu.so"
        text += f"FROM tools AS {name}\n{run}\n"
    files = {
        f"{INPUTS}/{name}/{file}": f"{name} {file}" for name in ("shared", "own") for file in ("lib", "more")
    }
    return make_checkout(place.folder / "checkout", text, files), names


def test_exactly_the_stages_that_use_an_input_are_rebuilt(place: Workplace) -> None:
    checkout, names = three_stages(place)
    dockerfile = checkout / DOCKERFILE
    target = place.folder / "result.json"

    def verify() -> list[str]:
        """Verify all stages as a user picks them from the list; return what became of each build."""
        done = place.at_terminal(
            "verify", f"--json={target}", "--cases", "1", keys="all\n", XB_REPO=str(checkout), XB_IMAGE=None
        )
        assert done.code == 1, done.text  # what is built is no library: that is not what this is about
        builds = json.loads(target.read_text())["builds"]
        assert [build["stage"] for build in builds] == list(names)
        return [build["outcome"] for build in builds]

    built, same = "built", "up to date"
    assert verify() == [built, built, built]
    assert verify() == [same, same, same]

    (checkout / f"{INPUTS}/shared/more").write_text("touched")
    listed = place.inv("stages", "--json", XB_REPO=str(checkout), XB_IMAGE=None).document["stages"]
    assert [stage["built"] for stage in listed] == ["stale", "stale", "yes"]
    assert verify() == [built, built, same]

    # the line of one stage; a comment, a file that nobody mounts, a time stamp
    text = dockerfile.read_text()
    dockerfile.write_text(f"# a comment\n{text.replace(': ' + names[2], ': edited')}")
    (checkout / "README.md").write_text("unrelated")
    os.utime(checkout / f"{INPUTS}/shared/lib", (1, 1))
    assert verify() == [same, same, built]

    (checkout / f"{INPUTS}/own/lib").chmod(0o755)
    assert verify() == [same, same, built]


def test_a_file_that_was_deleted_is_gone_from_the_context_and_the_image(place: Workplace) -> None:
    checkout, names = three_stages(place)
    dockerfile = checkout / DOCKERFILE
    dockerfile.write_text(dockerfile.read_text().replace("install -D /in/lib", "mkdir /out; ls /in >"))
    text = dockerfile.read_text()
    assert "ls /in > /out/libvgpu.so" in text

    place.inv("build", names[0], XB_REPO=str(checkout))
    assert (place.staging / "libvgpu.so").read_text().split() == ["lib", "more"]
    before = place.sent()
    (checkout / f"{INPUTS}/shared/more").unlink()
    place.inv("build", names[0], XB_REPO=str(checkout))
    assert (place.staging / "libvgpu.so").read_text().split() == ["lib"]
    (fresh,) = place.sent() - before
    sent = {str(path.relative_to(fresh)) for path in fresh.rglob("*") if path.is_file()}
    assert sent == {DOCKERFILE, f"{INPUTS}/shared/lib"}


# exit codes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("verify",), "no stage is named"),
        (("build",), "no stage is named"),
        (("verify", "xbuild-nvidia-cuda-"), "lacks its suffix"),
        (("verify", "xbuild-nvidia-cuda-1"), "did you mean xbuild-nvidia-cuda-1"),
        (("nvidia.case1", "xbuild-ascend-cann-9-950"), "not of nvidia"),
        (("nvidia.case1", STAGE), f"`{program('inv')} build {STAGE}` builds it"),
        (("verify", STAGE, "--cases", "4"), "--cases"),
        (("verify", STAGE, "--cases", "1", "--platform", "linux/riscv64"), "linux/riscv64"),
        (("replay",), "no run is named"),
        (("replay", "/nonexistent"), "there is no folder"),
        (("replay", "/"), "no evidence of a run"),
        (("stages", "--backend", "amd"), "no backend"),
    ],
)
def test_wrong_usage_is_2_in_a_line_that_says_what_to_do(
    place: Workplace, words: tuple[str, ...], said: str
) -> None:
    done = place.inv(*words)
    assert done.code == 2, done.text
    assert said in done.text
    assert "Traceback" not in done.text


def test_a_case_that_needs_a_card_is_3_where_there_is_none(place: Workplace) -> None:
    path = place.without_cards()
    done = place.inv("verify", STAGE, "--cases", "2", "--json", PATH=path)
    assert (done.code, done.document["verdict"]) == (3, "SKIP")
    assert "needs 1 GPU" in done.document["reason"]
    both = place.inv("verify", STAGE, "--cases", "1,2", "--json", PATH=path)
    assert [case["verdict"] for case in both.document["cases"]] == ["PASS", "SKIP"]
    assert both.code == 0


def test_several_tasks_all_run_and_the_worst_code_wins(place: Workplace) -> None:
    done = place.inv(
        "verify", "xbuild-nope", "verify", STAGE, "--cases", "1", "nvidia.case1", STAGE, "sim.status"
    )
    assert done.code == 2, done.text  # sim.status is 3: that counts where nothing was measured
    assert "no stage 'xbuild-nope'" in done.err
    assert done.out.splitlines().count("PASS") == 2
    assert "not running" in done.out


def test_without_an_engine_it_is_4_and_every_name_of_it_is_said(place: Workplace) -> None:
    socket = place.folder / "none.sock"
    done = place.inv("verify", STAGE, "--cases", "1", "--json", DOCKER_HOST=f"unix://{socket}")
    assert (done.code, done.document["verdict"]) == (4, "ERROR")
    assert str(socket) in done.document["reason"]
    assert done.document["cases"] == []
    assert place.inv("preflight", DOCKER_HOST=f"unix://{socket}").code == 1


# the launchers


@pytest.mark.parametrize("way", ["module", "program", "launcher", "elsewhere"])
def test_every_way_to_start_it_is_the_same_program(place: Workplace, way: str) -> None:
    python = program("python")
    words = ("knobs", "--json")
    done = {
        "module": lambda: place.run(python, "-m", "xbtasks", *words),
        "program": lambda: place.run(python, "-c", "from xbtasks.__main__ import main; main()", *words),
        "launcher": lambda: place.run(PROJECT / "xb", *words),
        "elsewhere": lambda: place.run(PROJECT / "xb", *words, cwd=Path("/")),
    }[way]()
    assert done.code == 0, done.text
    assert done.document["schema"] == 1


def test_a_launcher_passes_exit_codes_on(place: Workplace) -> None:
    assert place.run(PROJECT / "xb", "verify", "xbuild-nope").code == 2
    assert place.run(PROJECT / "xb", "nope").code == 2
    linked = place.folder / "xb"
    linked.symlink_to(PROJECT / "xb")
    assert place.run(linked, "--version").code == 0


def test_whether_a_simulated_host_runs_is_an_exit_code(place: Workplace) -> None:
    done = place.inv("sim.status")
    assert (done.code, done.out) == (3, f"not running; `{program('inv')} sim.up` starts it\n")
    pointing = place.inv("sim.status", "--env")
    assert pointing.code == 3
    assert all(line.startswith("export ") for line in pointing.out.splitlines())
    assert pointing.err == f"warning: not running; `{program('inv')} sim.up` starts it\n"
    assert place.inv("sim.status", "--json").document["running"] is False
