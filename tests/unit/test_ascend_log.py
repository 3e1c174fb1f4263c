"""eNPU's log, the monitor's lines, the loader's and the probe's, as they were measured."""

from __future__ import annotations

from xbtasks.backends.ascend.contract import KEYS, LIBRARY
from xbtasks.backends.ascend.log import OutOfMemory, parse_log
from xbtasks.backends.ascend.report import parse_report

NEW = "[2026-11-30 10:45:48.717] [INFO] [eNPU] [vCANN_RT] [17:1397:config.c:155] "
OLD = "[20261130104549] [INFO] [eNPU] [vCANN_RT] [17:1397:npu-manager.c:9] "


def test_fields_and_the_two_lines_of_success_whatever_the_stamp() -> None:
    for lead in (NEW, OLD, "[INFO] [eNPU] "):
        log = parse_log(
            f"{lead}Success to load config: shm-id, value: A-B\n"
            f"{lead}Success to load config: memory-quota, value: 1024\n"
            f"{lead}Successfully to initialize vnpu device.\n"
        )
        assert log.loaded == (("shm-id", "A-B"), ("memory-quota", "1024"))
        assert (log.device, log.modules, log.lines) == (1, 0, 3)
    assert parse_log(f"{NEW}Successfully to initialize all module.\n").modules == 1
    assert set(KEYS) > {"shm-id", "memory-quota"}


def test_text_that_only_looks_like_a_line_of_ours_counts_for_nothing() -> None:
    log = parse_log("Successfully to initialize all module.\nSuccess to load config: shm-id, value: x\n")
    assert (log.lines, log.modules, log.loaded) == (0, 0, ())


def test_the_monitor_prints_quotas_in_both_spellings() -> None:
    log = parse_log("       Aicore Limit Quota(%)     : 20\n       Memory Limit quota(MB)    : 1024\n")
    assert (log.aicore, log.memory) == (("20",), ("1024",))
    log = parse_log("Aicore Limit Quota(%)   : 21\nMemory Limit Quota(MB)   : 1025\nMemory Usage(MB) : 0\n")
    assert (log.aicore, log.memory, log.usage) == (("21",), ("1025",), ("0",))


def test_a_refusal_is_read_as_three_numbers_and_only_whole() -> None:
    text = "Out of memory! Request:256 B, used:1024 B, quota:1025 B."
    error = NEW.replace("INFO", "ERROR")
    assert parse_log(error + text).refusals == (OutOfMemory(256, 1024, 1025),)
    assert parse_log(error + text[:-5]).refusals == ()
    assert parse_log(text).refusals == ()


def test_the_loaders_lines_are_told_apart_by_entry() -> None:
    log = parse_log(
        "ERROR: ld.so: object '/usr/local/dcmi/libdcmi.so' from /etc/ld.so.preload cannot be preloaded "
        "(cannot open shared object file): ignored.\n"
    )
    assert not log.why_ignored(LIBRARY)
    assert log.why_ignored("/usr/local/dcmi/libdcmi.so") == "cannot open shared object file"
    crlf = parse_log(
        f"ERROR: ld.so: object '{LIBRARY}\r' from /etc/ld.so.preload cannot be preloaded (x): ignored.\n"
    )
    assert not crlf.loaded
    lost = parse_log(
        "sh: error while loading shared libraries: libc_sec.so: cannot open shared object file\n"
    )
    assert "libc_sec.so" in lost.loader


def test_the_probe_is_read_by_process_and_half_a_line_is_none() -> None:
    report = parse_report(
        '[eNPU] dir_path: /x\nxbtasks-probe {"who": "a", "op": "fill", "rc": 0, "size": 5, "chunk": 1}\n'
        'xbtasks-probe {"who": "b", "op": "fill", "rc": 300000, "size": 3, "chunk": 1}\n'
        'xbtasks-probe {"who": "a", "op": "end", "rc"'
    )
    first, second = report.event("fill"), report.event("fill", "b")
    assert first is not None
    assert second is not None
    assert (first.size, second.rc) == (5, 300000)
    assert report.event("end") is None


def test_a_probe_that_prints_other_types_is_not_believed() -> None:
    for text in (
        '{"op": "fill"}',
        '{"op": "fill", "rc": "0"}',
        '{"op": 1, "rc": 0}',
        "[]",
        "{",
        '{"op":"x","rc":true}',
    ):
        assert parse_report(f"xbtasks-probe {text}").events == ()
