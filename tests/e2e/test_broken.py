"""Broken stages on a real engine: each is told apart from a host in trouble, and names its own fault."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from tests.elfbytes import Elf
from tests.elfkit import archive, compile_c, cross_compiler, monitor, vgpu
from tests.workplace import BASE, DOCKERFILE, make_checkout, statuses

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workplace import Workplace

pytestmark = pytest.mark.engine

COPY = "COPY --chmod={mode} art/{name} /out/libvgpu.so"


@dataclass(frozen=True)
class Kind:
    """A way to be broken: the artifact, how it gets into the image, and the row that must name it."""

    failing: str
    data: bytes = b""
    steps: str = COPY
    mode: str = "0644"
    also: frozenset[str] = field(default_factory=frozenset)


UNREAD = frozenset(
    {
        "type",
        "needed",
        "needed-forbidden",
        "undefined",
        "hooks",
        "soname",
        "rpath",
        "textrel",
        "glibc-private",
        "glibc-image",
    }
)


FOREIGN = compile_c("int f;", "-shared", "-fPIC", compiler=cross_compiler())


def kinds() -> dict[str, Kind]:
    """Return every kind by a word that can stand in a stage's name; only ``good`` fails nothing."""
    library = vgpu()
    return {
        "good": Kind("", library),
        "unstripped": Kind("", vgpu("-g")),
        "missing": Kind("present", steps="WORKDIR /out"),
        "no-out": Kind("present", steps="COPY art/{name} /elsewhere"),
        "directory": Kind("present", steps="COPY art/{name} /out/libvgpu.so/x"),
        "out-is-a-file": Kind("present", steps="COPY art/{name} /out"),
        "symlink": Kind("present", library, "COPY art/{name} /x\nRUN mkdir /out; ln -s /x /out/libvgpu.so"),
        "dangling": Kind("present", steps="RUN mkdir /out; ln -s /etc/shadow- /out/libvgpu.so"),
        "fifo": Kind("present", steps="RUN mkdir /out; mkfifo /out/libvgpu.so"),
        "mode-0600": Kind("mode", library, mode="0600"),
        "mode-0755": Kind("mode", library, mode="0755"),
        "mode-04755": Kind("mode", library, mode="04755"),
        "mode-01644": Kind("mode", library, f"{COPY}\nRUN chmod 1644 /out/libvgpu.so"),
        "empty": Kind("elf", also=UNREAD | {"arch"}),
        "linker-script": Kind("elf", b"/* GNU ld script */ INPUT(libvgpu.so.1)\n", also=UNREAD | {"arch"}),
        "archive": Kind("elf", archive(), also=UNREAD | {"arch"}),
        "truncated": Kind("elf", library[: len(library) // 2], also=UNREAD),
        "aarch64": Kind("arch", FOREIGN, also=frozenset({"needed", "hooks", "soname"})),
        "big-endian": Kind("arch", Elf(library).header(data=2).bytes, also=UNREAD | {"elf"}),
        "executable": Kind("type", monitor(), also=frozenset({"needed", "hooks", "soname"})),
        "as-needed": Kind("needed", vgpu("-Wl,--as-needed", libraries=())),
        "fake-soname": Kind("needed", vgpu(libraries=("cudafake", "nvidia-ml"))),
        "rpath": Kind("rpath", vgpu("-Wl,-rpath,/build", "-Wl,--disable-new-dtags")),
        "runpath": Kind("rpath", vgpu("-Wl,-rpath,/build", "-Wl,--enable-new-dtags")),
        "no-hook": Kind("hooks", vgpu(without=("cuMemCreate",))),
        "other-soname": Kind("soname", vgpu(soname="libvgpu.so.1")),
        "undefined": Kind("undefined", vgpu(extra="int gone(void); int f(void) { return gone(); }")),
    }  # fmt: skip


def broken_checkout(place: Workplace) -> tuple[Path, dict[str, Kind]]:
    """Make a checkout with a stage for each kind, and return it with the kinds by the stages' names."""
    text, files, stages = f"FROM {BASE} AS tools\n", {}, {}
    for name, kind in kinds().items():
        stage = f"xbuild-nvidia-cuda-{place.name}-{name}"
        text += f"FROM tools AS {stage}\n{kind.steps.format(name=name, mode=kind.mode)}\n"
        files[f"art/{name}"] = kind.data
        stages[stage] = kind
    return make_checkout(place.folder / "checkout", text, files), stages


def test_every_broken_artifact_fails_in_the_row_that_names_it(place: Workplace) -> None:
    checkout, stages = broken_checkout(place)
    target = place.folder / "result.json"
    done = place.at_terminal(
        *("verify", f"--json={target}", "--cases", "1", "--profile", "needed"),
        keys="all\n",
        XB_REPO=str(checkout),
        XB_IMAGE=None,
    )
    assert done.code == 1, done.text
    assert "Traceback" not in done.text
    document = json.loads(target.read_text())
    cases: dict[str, dict[str, Any]] = {case["stage"]: case for case in document["cases"]}
    assert cases.keys() == stages.keys()
    assert {build["outcome"] for build in document["builds"]} == {"built"}
    for stage, kind in stages.items():
        case = cases[stage]
        failed = {name for name, found in statuses(case).items() if "FAIL" in found}
        assert case["verdict"] == ("FAIL" if kind.failing else "PASS"), (stage, case)
        if not kind.failing:
            assert failed == set(), stage
            continue
        assert kind.failing in failed, (stage, failed)
        assert case["exit_code"] == 1
        if kind.failing != "present":
            assert failed <= {kind.failing, *kind.also}, (stage, failed)
        for row in case["checks"]:
            if row["status"] == "FAIL":
                assert row["expected"], (stage, row)
                assert row["observed"], (stage, row)
    assert place.left_over() == []
    # the same again builds nothing and judges the same
    again = place.inv(
        "verify", next(iter(stages)), "--cases", "1", "--json", XB_REPO=str(checkout), XB_IMAGE=None
    )
    assert again.document["builds"][0]["outcome"] == "up to date"
    assert again.code == 0


# builds that fail

STAGE = "xbuild-nvidia-cuda-x"
FORGED = "ERROR: failed to solve: x: failed to resolve source metadata: network is unreachable"
TABLE = " STATUS   | CHECK\\n PASS     | nvidia.case1.elf\\nPASS\\n  host local, exit code 0"


def verify(place: Workplace, text: str, files: dict[str, bytes | str] | None = None) -> dict[str, Any]:
    checkout = make_checkout(place.folder / "checkout", text, files)
    done = place.inv("verify", STAGE, "--cases", "1", "--json", XB_REPO=str(checkout))
    assert "Traceback" not in done.err
    assert place.left_over() == []
    return {**done.document, "code": done.code, "text": done.err}


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("RUN echo it-broke-here >&2; exit 3", "exit code 3"),
        ("RUN set -e; false; true", "exit code 1"),
        ("COPY --from=tools /nowhere /x", "/nowhere"),
        (f"RUN printf '\\n{FORGED}\\n\\r{FORGED}\\r\\n' >&2; exit 4", "exit code 4"),
        ("RUN exit 255", "exit code 255"),
    ],
)
def test_a_step_that_fails_is_the_stages_fault_with_its_log(place: Workplace, steps: str, said: str) -> None:
    found = verify(place, f"FROM {BASE} AS tools\nFROM tools AS {STAGE}\n{steps}\n")
    assert (found["code"], found["verdict"]) == (1, "FAIL")
    assert [case["verdict"] for case in found["cases"]] == ["SKIP"]
    assert [build["outcome"] for build in found["builds"]] == ["failed"]
    assert said in found["reason"]
    log = place.evidence()[-1] / f"{STAGE}.log"
    assert str(log) in found["text"]
    assert steps.partition(" ")[2][:10] in found["text"]
    if "it-broke-here" in steps:
        assert "it-broke-here" in found["text"]
        assert "it-broke-here" in log.read_text()
    assert not (place.staging / "libvgpu.so").exists()


@pytest.mark.parametrize(
    "text",
    [
        f"FROM nosuch.invalid/image:1 AS {STAGE}\nRUN true\n",
        f"FROM nosuch-image-of-xbtasks:1 AS {STAGE}\nRUN true\n",
        f"FROM {BASE} AS {STAGE}\nRUN kill -9 $$; :\nRUN sh -c 'kill -9 $$'\n",
        f"FROM {BASE} AS {STAGE}\nADD http://127.0.0.1:9/library.so /out/libvgpu.so\n",
    ],
)
def test_what_the_stage_can_not_help_is_not_judged(place: Workplace, text: str) -> None:
    found = verify(place, text)
    assert (found["code"], found["verdict"]) == (4, "ERROR"), found["text"]
    assert "not judged" in found["reason"]
    assert [case["verdict"] for case in found["cases"]] == ["ERROR"]


def test_output_that_imitates_us_changes_nothing(place: Workplace) -> None:
    printed = f"printf '\\033[2J{TABLE}\\n{FORGED}\\n'"
    forged = f"FROM {BASE} AS {STAGE}\nRUN {printed}; mkdir /out; echo x >/out/libvgpu.so\n"
    found = verify(place, forged)
    assert (found["code"], found["verdict"]) == (1, "FAIL")
    assert "\x1b" not in found["text"]
    assert "PASS" not in found["text"].splitlines()
    failing = forged.replace("mkdir /out", "exit 5; mkdir /out")
    found = verify(place, failing)
    assert (found["code"], found["verdict"]) == (1, "FAIL")
    assert "\x1b" not in found["text"]
    assert "PASS" not in [line.strip() for line in found["text"].splitlines()]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"FROM {BASE} AS {STAGE}\nFOO bar\n", "FOO"),
        (f"FROM {BASE} AS {STAGE}\nRUN <<EOF\ntrue\n", "heredoc"),
        (f"FROM {BASE} AS {STAGE}\nCOPY missing.so /out/libvgpu.so\n", "missing.so"),
        (f"FROM {BASE} AS {STAGE}\nRUN --mount=type=bind,src=gone,target=/g true\n", "gone"),
        ("", "Dockerfile"),
    ],
)
def test_a_dockerfile_that_nobody_can_build_is_said_before_anything_runs(
    place: Workplace, text: str, said: str
) -> None:
    checkout = make_checkout(place.folder / "checkout", text)
    done = place.inv("verify", STAGE, "--cases", "1", XB_REPO=str(checkout))
    assert done.code == 2, done.text
    assert said in done.text
    assert "Traceback" not in done.text
    assert DOCKERFILE in done.text


def test_a_build_that_fails_is_told_once_the_error_first(place: Workplace) -> None:
    stage = f"xbuild-nvidia-cuda-{place.name}"
    text = f"FROM {BASE} AS {stage}\nRUN echo it-broke-here >&2; exit 3\n"
    checkout = make_checkout(place.folder / "checkout", text)
    done = place.inv("verify", stage, XB_REPO=str(checkout))
    assert done.code == 1, done.text
    assert done.out.count("did not complete successfully") == 1  # as BuildKit's step ends
    lines = done.out.splitlines()
    error = lines.index(f"  {stage}: a build step ended with exit code 3")
    step, output, log = (
        next(number for number, line in enumerate(lines) if line.strip().startswith(words))
        for words in ("> [", "0.", "full log: ")
    )
    assert error < step < output < log
    skipped = "nvidia.case1, nvidia.case2 and nvidia.case3 skipped"
    failed = f"{stage}: a build step ended with exit code 3"
    assert f"FAIL: the build failed: {failed} ({skipped})" in lines
