from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.backends.nvidia.hami_log import ComputeLimit, parse_log

HEAD = "[HAMI-core Info(80:140225570006848:multiprocess_utilization_watcher.c:273)]: "


def test_the_limit_in_the_wording_of_2026() -> None:
    log = parse_log(
        f"{HEAD}device 0: core utilization limit = 50\n{HEAD}device 1: core utilization limit = 7\n"
    )
    assert log.limits == (ComputeLimit(0, 50), ComputeLimit(1, 7))
    assert (log.lines, log.other, log.unread) == (2, 0, "")


@pytest.mark.parametrize("prefix", ["HAMI-core", "4pdvGPU"])
def test_the_limit_in_the_wording_before(prefix: str) -> None:
    log = parse_log(f"[{prefix} Info(80:1:watcher.c:215)]: set core utilization limit to  50\n")
    assert log.limits == (ComputeLimit(None, 50),)


@pytest.mark.parametrize(
    "text",
    [
        "device 0: core utilization limit = 50x",
        "device 0: core utilization limit =",
        "x device 0: core utilization limit = 50",
        "device 0: core utilization cap = 50, a limit of utilization",
        "new limit: utilisation at most 50",
        "device 0: core utilization cap is 50 percent",
        "device 0: compute 50 %",
    ],
)
def test_other_words_about_a_limit_are_unread_and_no_number_is_taken(text: str) -> None:
    log = parse_log(f"{HEAD}{text}\n")
    assert log.limits == ()
    assert log.unread == text


@pytest.mark.parametrize(
    "text",
    [
        "device 0: userutil=12 currentcores=4 total=6 limit=50 share=1",
        "init_utilization_watcher: util_switch=1",
        "SET CUDA_DEVICE_SM_LIMIT to 50",
        "can't find function cuFuncGetParamCount in libcuda.so.1",
    ],
)
def test_lines_that_name_no_limit_of_compute(text: str) -> None:
    log = parse_log(f"{HEAD}{text}\n")
    assert (log.limits, log.unread, log.lines) == ((), "", 1)


def test_the_environment_that_a_program_prints_is_no_log() -> None:
    log = parse_log(
        "CUDA_DEVICE_SM_LIMIT=50\ncore utilization limit = 50\ndevice 0: core utilization limit = 50\n"
    )
    assert (log.limits, log.lines, log.other) == ((), 0, 3)


@pytest.mark.parametrize(
    "line",
    [
        "[HAMI-core ERROR (pid:362 thread=140045668926464 utils.c:158)]: host pid is error!",
        "[HAMI-core Warn(7:1:libvgpu.c:913)]: SET_TASK_PID FAILED - using container PID for accounting",
        "[HAMI-core Warn(7:1:libvgpu.c:890)]: SET_TASK_PID FAILED.",
    ],
)
def test_a_library_that_does_not_find_its_process(line: str) -> None:
    assert parse_log(line).host_pid_error
    assert not parse_log(line.replace("host pid", "pid").replace("FAILED", "OK")).host_pid_error


@pytest.mark.parametrize(
    "line",
    [
        "[4pdvGPU Msg(116:140143647065664:utils.c:34)]: unified_lock locked, waiting 1 second...",
        "[HAMI-core Msg(29:129516285003584:utils.c:27)]: unified_lock locked, waiting 1 second...",
        "[HAMI-core Warn(60:1:multiprocess_memory_limit.c:552)]: Fail to lock shrreg in 300 seconds",
    ],
)
def test_what_blocks_is_told(line: str) -> None:
    assert parse_log(line).blocked == line.partition("]: ")[2]


@pytest.mark.parametrize(
    "why",
    [
        "cannot open shared object file",
        "cannot read file data",
        "wrong ELF class: ELFCLASS32",
        "invalid ELF header",
    ],
)
def test_a_preload_that_the_loader_ignored(why: str) -> None:
    path = "/usr/local/vgpu/libvgpu.so"
    line = f"ERROR: ld.so: object '{path}' from /etc/ld.so.preload cannot be preloaded ({why}): ignored."
    assert parse_log(f"{line}\n").ignored == f"{path} from /etc/ld.so.preload: {why}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "/bin/echo: /lib/libc.so.6: version `GLIBC_2.99' not found (required by /x/libvgpu.so)",
            "version `GLIBC_2.99' not found (required by /x/libvgpu.so)",
        ),
        (
            "sh: error while loading shared libraries: libcuda.so.1: cannot open shared object file",
            "error while loading shared libraries: libcuda.so.1: cannot open shared object file",
        ),
        (
            "nvidia-smi: symbol lookup error: /x.so: undefined symbol: _dl_sym, version GLIBC_PRIVATE",
            "symbol lookup error: /x.so: undefined symbol: _dl_sym, version GLIBC_PRIVATE",
        ),
    ],
)
def test_a_program_that_the_loader_can_not_start(line: str, said: str) -> None:
    assert parse_log(line).loader == said


def test_errors_are_told_once_each_and_the_probes_last_operation_is_known() -> None:
    error = "[HAMI-core ERROR (pid:9 thread=1 allocator.c:52)]: Device 0 OOM 3460300800 / 3145728000"
    log = parse_log(
        f"xbtasks-probe: init\n{error}\n{error}\nxbtasks-probe: take:alloc:0:5\nSegmentation fault\n"
    )
    assert log.errors == ("Device 0 OOM 3460300800 / 3145728000",)
    assert log.last == "take:alloc:0:5"
    assert log.said == "Segmentation fault"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    log = parse_log(text)
    assert log.lines + log.other <= len(text.splitlines())
