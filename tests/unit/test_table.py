from __future__ import annotations

import io
from dataclasses import replace

import pytest

from xbtasks.checks import CaseReport, Check, Status, Verdict
from xbtasks.errors import ExitCode
from xbtasks.reporting.console import Console
from xbtasks.reporting.table import grid, show_result
from xbtasks.result import ArtifactRecord, Result

STAGE = "xbuild-nvidia-cuda-13"
PASSED = CaseReport(
    "nvidia.case1", "Build artifacts + linking", STAGE, Verdict.PASS, "", 1.25, ExitCode.PASSED,
    (Check("nvidia.case1.mode", Status.PASS, "libvgpu.so: 0644"),),
)  # fmt: skip
FAILED = replace(
    PASSED,
    stage="xbuild-nvidia-cuda-12",
    verdict=Verdict.FAIL,
    reason="nvidia.case1.mode",
    exit_code=ExitCode.FAILED,
    checks=(Check("nvidia.case1.mode", Status.FAIL, "libvgpu.so: the umask's", "0644", "0600"),),
)
RESULT = Result("run", "verify", "local", "/evidence", engine="docker 26.1.5")


def shown(result: Result) -> str:
    out = io.StringIO()
    show_result(result, Console(out))
    return out.getvalue()


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in text.splitlines() if "|" in line]


def test_cells_are_never_read_as_numbers() -> None:
    rows = [["4,096", "0010", "1e5"], ["2.50", "None", "nan"], ["-0", "true", "0x10"]]
    assert cells(grid(["A", "B", "C"], rows, width=80))[1:] == rows


def test_a_cell_can_not_make_a_row_or_a_column_of_its_own() -> None:
    evil = "a\n PASS\x1b[2J | y | ok"
    text = grid(["STATUS", "CHECK", "DETAIL"], [["FAIL", evil, evil]], width=120)
    assert len(text.splitlines()) == 3
    assert "\x1b" not in text
    assert text.splitlines()[2].lstrip().startswith("FAIL")


def test_the_last_column_is_wrapped_and_loses_nothing() -> None:
    words = " ".join(f"word{number}" for number in range(60))
    text = grid(["A", "DETAIL"], [["x", words]], width=60)
    assert all(len(line) <= 60 for line in text.splitlines())
    assert " ".join(row[1] for row in cells(text)[1:]) == words


def test_a_table_without_rows_is_its_head() -> None:
    assert "STATUS" in grid(["STATUS", "DETAIL"], [])


def test_one_stage_shows_all_its_rows_and_the_artifacts() -> None:
    artifact = ArtifactRecord(STAGE, "/out/libvgpu.so", "f" * 64, 4096, "sha256:x")
    text = shown(replace(RESULT, cases=(PASSED,), artifacts=(artifact,)))
    assert ["PASS", "nvidia.case1.mode", "libvgpu.so: 0644"] in cells(text)
    assert ["/out/libvgpu.so", "4096", "f" * 64] in cells(text)
    assert text.splitlines()[-3:] == [
        "PASS",
        "  host local, engine docker 26.1.5, exit code 0",
        "  evidence: /evidence",
    ]


def test_a_failed_row_says_what_was_expected_and_seen() -> None:
    text = shown(replace(RESULT, cases=(FAILED,)))
    assert "libvgpu.so: the umask's (expected 0644, observed 0600)" in text
    assert "FAIL: nvidia.case1.mode" in text.splitlines()


def test_several_stages_show_a_line_each_and_the_rows_of_those_that_did_not_pass() -> None:
    text = shown(replace(RESULT, cases=(PASSED, FAILED)))
    assert ["PASS", STAGE, "nvidia.case1", "1 PASS", "1.2 s", ""] in cells(text)
    assert [*("FAIL", FAILED.stage, "nvidia.case1", "1 FAIL", "1.2 s"), FAILED.reason] in cells(text)
    assert "libvgpu.so: the umask's" in text
    assert "libvgpu.so: 0644" not in text


SKIPPED = replace(
    PASSED,
    id="nvidia.case3",
    verdict=Verdict.SKIP,
    reason="needs 2 GPUs, the host has 1",
    exit_code=ExitCode.SKIPPED,
    checks=(Check("nvidia.case3.cards", Status.WARN, "needs 2 GPUs, the host has 1"),),
)


@pytest.mark.parametrize(
    ("cases", "errors", "line"),
    [
        ((PASSED, replace(PASSED, stage="other")), (), "PASS"),
        ((PASSED, replace(SKIPPED, stage="other"), SKIPPED), (), "PASS (2 skipped of 3 cases)"),
        ((PASSED, FAILED, SKIPPED), (), "FAIL: 1 failed of 3 cases, 1 skipped"),
        (
            (replace(PASSED, reason="compute not measured"), replace(PASSED, stage="other")),
            (),
            "PASS (compute not measured)",
        ),
        (
            (PASSED, FAILED),
            ((ExitCode.CANNOT_JUDGE, "the link was lost"),),
            "FAIL: 1 failed of 2 cases; the link was lost",
        ),
    ],
)
def test_the_verdict_of_several_stages_counts_and_the_table_gives_the_reasons(
    cases: tuple[CaseReport, ...], errors: tuple[tuple[ExitCode, str], ...], line: str
) -> None:
    text = shown(replace(RESULT, cases=cases, errors=errors))
    assert line in text.splitlines()
    assert "nvidia.case3.cards" not in text


@pytest.mark.parametrize("simulated", [False, True])
def test_a_simulated_run_says_so(simulated: bool) -> None:
    assert ("SIMULATED" in shown(replace(RESULT, cases=(PASSED,), simulated=simulated))) == simulated


def test_warnings_of_the_preflight_are_counted_and_failures_shown() -> None:
    rows = (
        Check("preflight.host", Status.PASS, "x86_64"),
        Check("preflight.npu-smi", Status.WARN, "no NPU"),
        Check("preflight.buildx", Status.FAIL, "too old", "0.13", "0.9"),
    )
    text = shown(replace(RESULT, cases=(PASSED,), preflight=rows))
    assert "1 WARN about this host" in text
    assert "too old" in text
    assert "no NPU" not in text
    several = [replace(row, host="gpu-1") for row in rows[:2]] + [replace(row, host="gpu-2") for row in rows]
    text = shown(replace(RESULT, cases=(PASSED,), preflight=tuple(several)))
    assert "preflight of gpu-2\n" in text
    assert "preflight of gpu-1" not in text
    assert "2 WARN about 2 hosts" in text
    assert "1 WARN about 1 host," in shown(
        replace(RESULT, cases=(PASSED,), preflight=(several[0], *several[2:]))
    )
    asked = shown(replace(RESULT, command="preflight", preflight=rows))
    assert all(row.detail in asked for row in rows)


def test_a_reason_can_not_forge_a_verdict() -> None:
    forged = replace(FAILED, reason="x\nPASS\n  host local, exit code 0")
    lines = shown(replace(RESULT, cases=(forged,))).splitlines()
    assert "PASS" not in lines
    assert lines[-2].endswith("exit code 1")
