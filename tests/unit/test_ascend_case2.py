"""Ascend case 2 as a judge: what enpu-monitor and a CANN process said becomes rows."""

from __future__ import annotations

import json

import pytest

from xbtasks.backends.ascend.case2 import REQUIRED
from xbtasks.backends.ascend.contract import LIBRARY, SHARED_MEMORY, Slice
from xbtasks.backends.ascend.monitor import judge_bare, judge_monitor, judge_process, said_all
from xbtasks.backends.ascend.said import MAPS, Said
from xbtasks.checks import Check, Status, Verdict, judge
from xbtasks.hardware import Unjudged
from xbtasks.rig import Outcome

CASE = "ascend.case2"
PART = Slice(3, 0, 37, 517, "A-B")
LEAD = "[2026-11-30 10:45:48.717] [INFO] [eNPU] [vCANN_RT] [17:1397:config.c:155] "
LOADED = [f"{LEAD}Success to load config: {key}, value: {value}" for key, value in PART.fields.items()]
DEVICE = f"{LEAD}Successfully to initialize vnpu device."
MODULES = f"{LEAD}Successfully to initialize all module."
QUOTAS = ["       Aicore Limit Quota(%)     : 37", "       Memory Limit quota(MB)    : 517"]
MAPPED = f"{MAPS}7f00-7f01 r-xp 00000000 00:2a 5     {LIBRARY}\n"


def said(*lines: str, status: int = 0, stdout: str = MAPPED) -> Said:
    return Said(Outcome("x", status, False, 1, stdout, "\n".join(lines)))


SHARED = f"{SHARED_MEMORY}{PART.shm_id}"


def probe(*events: tuple[str, int], maps: tuple[str, ...] = (LIBRARY, SHARED)) -> str:
    documents: list[dict[str, object]] = [{"who": "a", "op": op, "rc": rc} for op, rc in events]
    documents.append({"who": "a", "op": "maps", "rc": 0, "paths": list(maps)})
    return "".join(f"xbtasks-probe {json.dumps(document)}\n" for document in documents)


USED = probe(("open", 0), ("init", 0), ("device", 0), ("take", 0), ("end", 0))
KEPT = probe(("open", 0), ("init", 0), ("device", 100001), ("end", 4))


def statuses(rows: list[Check]) -> dict[str, Status]:
    found: dict[str, Status] = {}
    for row in rows:
        name = row.id.removeprefix(f"{CASE}.")
        found[name] = Status.FAIL if Status.FAIL in (row.status, found.get(name)) else row.status
    return found


def failing(rows: list[Check]) -> set[str]:
    return {name for name, status in statuses(rows).items() if status is Status.FAIL}


GOOD = said(*LOADED, DEVICE, *QUOTAS)
LOST = said(*QUOTAS)


def test_a_good_round_passes() -> None:
    rows = judge_monitor(CASE, "first", PART, [GOOD])
    assert set(statuses(rows).values()) == {Status.PASS}
    assert set(statuses(rows)) == {"mapped", "exit", "fields", "device", "quotas"}
    assert said_all(GOOD, PART, modules=False)
    assert not said_all(GOOD, PART, modules=True)


def test_the_required_checks_are_all_reached_by_a_good_case() -> None:
    rows = judge_monitor(CASE, "first", PART, [GOOD])
    rows += judge_process(CASE, "first", PART, [said(*LOADED, DEVICE, MODULES, stdout=USED)])
    rows += judge_bare(CASE, said(status=1), said(stdout=KEPT, status=4))
    rows += [
        Check(f"{CASE}.{name}", Status.PASS)
        for name in ("card", "shm-id", "artifact", "preload", "config", "usage")
    ]
    assert judge(REQUIRED, rows)[0] is Verdict.PASS


@pytest.mark.parametrize(
    ("lines", "status", "fails"),
    [
        ((*LOADED, DEVICE, *QUOTAS), 1, {"exit"}),
        ((*LOADED, DEVICE, *QUOTAS), 139, {"exit"}),
        ((*LOADED[1:], DEVICE, *QUOTAS), 0, {"fields"}),
        ((*[LOADED[5]] * 6, DEVICE, *QUOTAS), 0, {"fields"}),
        ((*LOADED, LOADED[0], DEVICE, *QUOTAS), 0, {"fields"}),
        ((*LOADED, f"{LEAD}Success to load config: other, value: 1", DEVICE, *QUOTAS), 0, {"fields"}),
        (([line.rpartition(" ")[0] + " 0" for line in LOADED]) + [DEVICE, *QUOTAS], 0, {"fields"}),
        ((*LOADED, *QUOTAS), 0, {"device"}),
        ((*LOADED, MODULES, *QUOTAS), 0, {"device"}),
        ((*LOADED, DEVICE, DEVICE, *QUOTAS), 0, {"device"}),
        ((*LOADED, DEVICE), 0, {"quotas"}),
        ((*LOADED, DEVICE, QUOTAS[0]), 0, {"quotas"}),
        ((*LOADED, DEVICE, *QUOTAS, QUOTAS[0]), 0, {"quotas"}),
        ((*LOADED, DEVICE, QUOTAS[0].replace("37", "517"), QUOTAS[1].replace("517", "37")), 0, {"quotas"}),
        ((*LOADED, DEVICE, QUOTAS[0].replace("37", "370"), QUOTAS[1]), 0, {"quotas"}),
    ],
)
def test_each_fault_fails_in_its_row(lines: tuple[str, ...], status: int, fails: set[str]) -> None:
    assert failing(judge_monitor(CASE, "first", PART, [said(*lines, status=status)] * 5)) == fails


def test_the_crash_without_libdcmi_is_named() -> None:
    rows = judge_monitor(CASE, "first", PART, [said(status=139)])
    row = next(row for row in rows if row.id.endswith(".exit"))
    assert "libdcmi isn't preloaded" in row.detail
    assert row.observed == "crashed by SIGSEGV (139)"


def test_lost_lines_are_no_fault_and_the_tries_are_told() -> None:
    rows = judge_monitor(CASE, "first", PART, [LOST, said(*LOADED[:3], *QUOTAS), GOOD])
    assert not failing(rows)
    assert any("3 tries" in row.detail for row in rows)


def test_a_field_that_no_try_has_is_missing_whatever_else_was_lost() -> None:
    tries = [LOST, said(*LOADED[:5], DEVICE, *QUOTAS), said(*LOADED[:5], DEVICE, *QUOTAS)]
    assert failing(judge_monitor(CASE, "first", PART, tries)) == {"fields"}


def test_a_wrong_value_in_one_try_is_wrong() -> None:
    bad = said(LOADED[2].replace(": 37", ": 20"), *QUOTAS)
    assert failing(judge_monitor(CASE, "first", PART, [bad, GOOD])) == {"fields"}
    other = said(*LOADED, DEVICE, QUOTAS[0], QUOTAS[1].replace("517", "1024"))
    assert failing(judge_monitor(CASE, "first", PART, [other, GOOD])) == {"quotas"}


def test_a_silent_monitor_is_judged_by_its_quotas() -> None:
    assert not failing(judge_monitor(CASE, "first", PART, [LOST] * 5))
    wrong = said(QUOTAS[0], QUOTAS[1].replace("517", "1024"))
    assert failing(judge_monitor(CASE, "first", PART, [wrong] * 5)) == {"quotas"}
    assert {"fields", "device", "exit", "quotas"} == failing(
        judge_monitor(CASE, "first", PART, [said(status=1)])
    )


def test_a_preload_that_the_loader_ignores_is_not_mapped() -> None:
    ignored = (
        "ERROR: ld.so: object '{}' from /etc/ld.so.preload cannot be preloaded (wrong ELF class): ignored."
    )
    rows = judge_monitor(CASE, "first", PART, [said(*LOADED, DEVICE, *QUOTAS, ignored.format(LIBRARY))])
    assert failing(rows) == {"mapped"}
    other = ignored.format("/usr/local/dcmi/libdcmi.so")
    assert not failing(judge_monitor(CASE, "first", PART, [said(*LOADED, DEVICE, *QUOTAS, other)]))
    assert failing(judge_monitor(CASE, "first", PART, [said(*LOADED, DEVICE, *QUOTAS, stdout="")])) == {
        "mapped"
    }


def test_an_image_without_libc_sec_is_named() -> None:
    lost = said("sh: error while loading shared libraries: libc_sec.so: cannot open", status=127, stdout="")
    rows = judge_monitor(CASE, "first", PART, [lost])
    assert any("not a CANN image" in row.detail for row in rows if row.id.endswith(".exit"))


@pytest.mark.parametrize(("status", "word"), [(172, "-8020"), (187, "-8005")])
def test_a_device_that_dcmi_refuses_is_no_verdict(status: int, word: str) -> None:
    with pytest.raises(Unjudged, match=word):
        judge_monitor(CASE, "first", PART, [said(*LOADED, DEVICE, status=status)])


def test_a_process_needs_the_line_of_all_modules() -> None:
    good = said(*LOADED, DEVICE, MODULES, stdout=USED)
    assert not failing(judge_process(CASE, "first", PART, [good]))
    assert failing(judge_process(CASE, "first", PART, [said(*LOADED, DEVICE, stdout=USED)] * 5)) == {
        "modules"
    }
    refused = said(*LOADED, DEVICE, stdout=KEPT, status=4)
    assert failing(judge_process(CASE, "first", PART, [refused])) == {"modules"}
    outside = said(
        *LOADED, DEVICE, MODULES, stdout=probe(("open", 0), ("init", 0), ("device", 0), maps=(SHARED,))
    )
    assert failing(judge_process(CASE, "first", PART, [outside])) == {"mapped"}


@pytest.mark.parametrize(
    "shared", [(), (f"{SHARED_MEMORY}fixed",), (f"{SHARED}-2",), (f"{SHARED} (deleted)",)]
)
def test_a_process_shares_the_memory_that_the_configuration_names(shared: tuple[str, ...]) -> None:
    def tried(*paths: str) -> Said:
        maps = (LIBRARY, *paths)
        return said(*LOADED, DEVICE, MODULES, stdout=probe(("open", 0), ("device", 0), maps=maps))

    rows = judge_process(CASE, "first", PART, [tried(*shared)])
    assert failing(rows) == {"shm-mapped"}
    (row,) = [row for row in rows if row.id.endswith(".shm-mapped")]
    assert row.observed == (", ".join(shared) or "none")
    more = judge_process(CASE, "first", PART, [tried(SHARED, f"{SHARED}_stats")])
    assert not failing(more)


def test_an_image_that_cant_run_the_probe_is_no_verdict() -> None:
    with pytest.raises(Unjudged, match="no ACL"):
        judge_process(CASE, "first", PART, [said(stdout=probe(("open", -1)), status=3)])
    with pytest.raises(Unjudged, match="SyntaxError"):
        judge_process(CASE, "first", PART, [said("Traceback", "SyntaxError: x", status=1, stdout="")])


@pytest.mark.parametrize(
    ("monitor", "process"),
    [
        (GOOD, said(stdout=KEPT, status=4)),
        (said(DEVICE, status=1), said(stdout=KEPT, status=4)),
        (said(status=139), said(stdout=KEPT, status=4)),
        (said(status=1), said(stdout=USED)),
        (said(status=1), said(MODULES, stdout=KEPT, status=4)),
        (said(status=1), said(stdout=probe(("open", 0), ("init", 0)), status=139)),
    ],
)
def test_nothing_may_initialise_without_a_configuration(monitor: Said, process: Said) -> None:
    assert failing(judge_bare(CASE, monitor, process)) == {"no-config"}
