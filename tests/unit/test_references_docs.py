"""The references' contracts are those of the code, table by table; links and anchors are there."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

import pytest

from tests.guides import FOLLOWED
from tests.markdown import PAGES, read_page
from tests.workplace import PROJECT
from xbtasks.backends import BACKENDS
from xbtasks.backends.ascend import board, log, monitor, quota, smi
from xbtasks.backends.ascend import contract as ascend
from xbtasks.backends.nvidia import (
    case2,
    case3,
    hami_log,
    questions,
    smi_memory,
    throttle,
)
from xbtasks.backends.nvidia import (
    contract as nvidia,
)
from xbtasks.backends.nvidia import smi as nvidia_smi
from xbtasks.backends.nvidia.probe.operations import Family
from xbtasks.backends.profiles import profile_names
from xbtasks.errors import ExitCode
from xbtasks.knobs.resolve import resolve
from xbtasks.knobs.table import knob

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.markdown import Block
    from xbtasks.engine import Mount

REFERENCES: Final = PROJECT / "docs/references"
NAMES: Final = (
    "ascend-npu-info-config",
    "ascend-ld-preload-and-libdcmi",
    "ascend-npu-smi-and-aicore",
    "nvidia-hami-core-vgpu",
    "nvidia-smi-and-sm-limit",
    "troubleshooting",
)
DIE_ID: Final = "A1B2C3D4 20B03704 4A10C8D4 14CC040A D2102003"


def profiles(backend: str) -> dict[str, dict[str, list[str]]]:
    text = (PROJECT / f"xbtasks/backends/{backend}/profiles.json").read_text()
    return dict(json.loads(text)["profiles"])


def artifact(backend: str, name: str) -> dict[str, list[str]]:
    text = (PROJECT / f"xbtasks/backends/{backend}/profiles.json").read_text()
    return dict(json.loads(text)["artifacts"][name])


def default(name: str) -> str:
    return knob(name).default


# each contract: what the marked block must say


def ascend_config(block: Block) -> None:
    assert block.column(0) == ascend.KEYS
    accepted = dict(zip(block.column(0), block.column(1), strict=True))
    written = {row[0].strip("`"): row[2] for row in block.rows}
    physical = smi.Die(0, 0, None, 15, "910B")
    assert (physical.sliceable, smi.Die(0, 0, None, 16, "910B").sliceable) == (True, False)
    assert accepted["physical-npu-id"] == "0 to 15"
    for key, name in (("virtual-npu-id", "vnpu"), ("aicore-quota", "aicore"), ("memory-quota", "mem")):
        low, high = re.findall(r"\d+", accepted[key])[:2]
        for text, right in ((low, True), (high, True), (str(int(high) + 1), False)):
            assert takes(name, text) == right, (key, text)
    assert written["virtual-npu-id"] == f"`--vnpu`, default {default('vnpu')}"
    assert written["aicore-quota"] == f"`--aicore`, default {default('aicore')}"
    assert written["memory-quota"] == f"`--mem`, default {ascend.DEFAULT_MEMORY_MIB}"
    fields = ascend.Slice(0, 0, 20, 1024, "x").fields
    assert written["scheduling-policy"] == f"always {fields['scheduling-policy']}"
    assert ascend.MIB == 1048576


def takes(name: str, text: str) -> bool:
    from xbtasks.errors import UsageError

    try:
        resolve({name: text}, {}, user_file=None, explicit_user_file=False, project_file=None)
    except UsageError:
        return False
    return True


def ascend_config_example(block: Block) -> None:
    part = ascend.Slice(
        0, int(default("vnpu")), int(default("aicore")), ascend.DEFAULT_MEMORY_MIB, ascend.shm_name(DIE_ID)
    )
    assert block.text + "\n" == part.config


def ascend_labels(block: Block) -> None:
    assert dict(zip(block.column(0), block.column(1), strict=True)) == board.LABELS


def ascend_shm_id(block: Block) -> None:
    assert [ascend.shm_name(told) for told in block.column(0)] == list(block.column(1))


def ascend_loaded(block: Block) -> None:
    found = log.parse_log(block.text)
    assert found.loaded == (("aicore-quota", "20"), ("memory-quota", "1024"))


def mounted(block: Block, mounts: Sequence[Mount]) -> None:
    found = {(row[0].strip("`"), row[2]) for row in block.rows}
    assert found == {(each.target, "read-only" if each.read_only else "read-write") for each in mounts}


def ascend_mounts(block: Block) -> None:
    mounted(block, ascend.mounts("/a", "/b", "/c", "/d"))


def ascend_environment(block: Block) -> None:
    assert tuple(zip(block.column(0), block.column(1), strict=True)) == (
        *ascend.visible(0),
        *ascend.environment(),
    )


def ascend_preload(block: Block) -> None:
    assert tuple(block.text.splitlines()) == ascend.PRELOAD


def ascend_profiles(block: Block) -> None:
    assert block.column(0) == tuple(profile_names("ascend"))
    for row, needed, forbidden in zip(block.rows, block.codes(1), block.codes(2), strict=True):
        known = profiles("ascend")[row[0].strip("`")]
        assert (list(needed), list(forbidden)) == (known["needed"], known["forbidden"])
        assert row[3] == known["dcmi"]
        ends = re.findall(r"\b[0-9a-f]{7}\b", row[4])
        if row[4].startswith("from"):
            assert all(any(pin.startswith(end) for pin in known["pins"]) for end in ends)
    base = json.loads((PROJECT / "xbtasks/backends/ascend/profiles.json").read_text())["artifacts"]
    assert {tuple(each["needed"]) for each in base.values()} == {("libc.so.6", "libc_sec.so")}


def ascend_weak(block: Block) -> None:
    told = {*block.column(0), *block.column(1)}
    assert told == set(profiles("ascend")["acl-linked"]["weak"])
    assert told == set(profiles("ascend")["acl-dlopened"]["weak"])


def artifacts(backend: str) -> Callable[[Block], None]:
    def check(block: Block) -> None:
        assert tuple(zip(*(block.column(number) for number in range(3)), strict=True)) == tuple(
            (each.image_path, each.staged_path, f"{each.mode:04o}") for each in BACKENDS[backend].artifacts
        )

    return check


def hooks(backend: str, name: str) -> Callable[[Block], None]:
    def check(block: Block) -> None:
        told = [function for codes in block.codes(1) for function in codes]
        assert sorted(told) == sorted(artifact(backend, name)["hooks"])

    return check


def ascend_maps(block: Block) -> None:
    assert {tuple(row[1].split(", ")) for row in block.rows} == smi._COLUMNS


def ascend_smi_codes(block: Block) -> None:
    assert {int(row[0]): row[1] for row in block.rows} == {code: str(why) for code, why in smi._CODES.items()}


def ascend_monitor_lines(block: Block) -> None:
    found = log.parse_log(block.text)
    assert (found.aicore, found.memory) == (("20",), ("1024",))


def ascend_monitor_exits(block: Block) -> None:
    told = {int(row[0]): row[1] for row in block.rows}
    assert set(monitor._CODES) | {0, 1, 139} == set(told)
    for code, words in monitor._CODES.items():
        number = re.search(r"-\d+", words)
        assert number is not None
        assert number[0] in told[code]
        assert -int(number[0]) % 256 == (256 - code) % 256 or int(number[0]) % 256 == code


def ascend_refusal_line(block: Block) -> None:
    (line,) = log.parse_log(block.text).refusals
    assert (line.request, line.used, line.quota) == (268435456, 1073741824, 1073741824)


def ascend_refusal_codes(block: Block) -> None:
    assert {int(row[0]): row[1] for row in block.rows} == {
        code: words for code, words in quota._CODES.items() if code > 0
    }


def nvidia_environment(block: Block) -> None:
    limits = nvidia.Limits((8192, 4096), 50)
    told = dict(zip(block.column(0), block.column(1), strict=True))
    assert told == dict([*nvidia.visible(("GPU-a", "GPU-b")), nvidia.CARD_ORDER, *nvidia.environment(limits)])


def nvidia_mounts(block: Block) -> None:
    mounted(block, nvidia.mounts("/a", "/b", "/c", "/d"))


def nvidia_profiles(block: Block) -> None:
    known = profiles("nvidia")
    assert block.column(0) == tuple(known)
    for name, needed in zip(block.column(0), block.codes(1), strict=True):
        assert list(needed) == known[name].get("needed", [])
    text = (PROJECT / "xbtasks/backends/nvidia/profiles.json").read_text()
    assert block.rows[0][2].startswith("the default")
    assert json.loads(text)["default"] == block.column(0)[0]


def nvidia_families(block: Block) -> None:
    told = {code: row[1] for row, codes in zip(block.rows, block.codes(0), strict=True) for code in codes}
    expected = {family.value: family.function for family in questions.FAMILIES}
    alloc = Family.ALLOC.function
    assert told == {"alloc-under": alloc, "alloc-over": alloc, **expected}


def nvidia_sizes(block: Block) -> None:
    assert [int(row[1]) * nvidia.MIB for row in block.rows] == [
        questions.SLACK,
        questions.CROSSING,
        questions.ABOVE,
    ]


def nvidia_factors(block: Block) -> None:
    assert tuple(map(int, block.rows[0][1:])) == case3.limit_factors(len(block.header) - 1)


def nvidia_defaults(block: Block) -> None:
    assert [row[1:] for row in block.rows] == [
        (str(nvidia.DEFAULT_MEMORY_MIB),) * 2,
        (str(case2._DEFAULT_SM), str(case3._DEFAULT_SM)),
    ]


def nvidia_smi_command(block: Block) -> None:
    assert tuple(block.text.split()) == smi_memory.COMMAND


def nvidia_smi_exits(block: Block) -> None:
    told = {int(code): row[1] for row in block.rows for code in row[0].split(", ")}
    assert told == {code: str(why) for code, why in nvidia_smi._TROUBLES.items()}


def nvidia_log_lines(block: Block) -> None:
    found = hami_log.parse_log(block.text)
    assert found.limits == (hami_log.ComputeLimit(0, 50), hami_log.ComputeLimit(None, 50))
    assert found.other == 0


def nvidia_throttle(block: Block) -> None:
    assert [float(row[1]) for row in block.rows] == [
        throttle.SM,
        throttle._MOST,
        throttle._LEAST,
        throttle._UNCLEAR,
        questions._BLOCKS,
        questions._CYCLES,
        questions._WARM_MS,
        questions._MEASURE_MS,
    ]


def exit_codes(block: Block) -> None:
    assert [int(row[0]) for row in block.rows] == [int(code) for code in ExitCode]


CONTRACTS: Final[dict[str, Callable[[Block], None]]] = {
    "ascend.config": ascend_config,
    "ascend.config-example": ascend_config_example,
    "ascend.die-id-labels": ascend_labels,
    "ascend.shm-id": ascend_shm_id,
    "ascend.loaded-lines": ascend_loaded,
    "ascend.mounts": ascend_mounts,
    "ascend.environment": ascend_environment,
    "ascend.preload": ascend_preload,
    "ascend.profiles": ascend_profiles,
    "ascend.weak": ascend_weak,
    "ascend.artifacts": artifacts("ascend"),
    "ascend.hooks": hooks("ascend", "libvruntime.so"),
    "ascend.maps": ascend_maps,
    "ascend.npu-smi-codes": ascend_smi_codes,
    "ascend.monitor-lines": ascend_monitor_lines,
    "ascend.monitor-exits": ascend_monitor_exits,
    "ascend.refusal-line": ascend_refusal_line,
    "ascend.refusal-codes": ascend_refusal_codes,
    "nvidia.artifacts": artifacts("nvidia"),
    "nvidia.environment": nvidia_environment,
    "nvidia.mounts": nvidia_mounts,
    "nvidia.profiles": nvidia_profiles,
    "nvidia.hooks": hooks("nvidia", "libvgpu.so"),
    "nvidia.families": nvidia_families,
    "nvidia.sizes": nvidia_sizes,
    "nvidia.factors": nvidia_factors,
    "nvidia.defaults": nvidia_defaults,
    "nvidia.smi-command": nvidia_smi_command,
    "nvidia.smi-exits": nvidia_smi_exits,
    "nvidia.log-lines": nvidia_log_lines,
    "nvidia.throttle": nvidia_throttle,
    "exit-codes": exit_codes,
    "exit-codes-ci": exit_codes,
}

MARKED: Final = [
    (block.mark.removeprefix("contract: "), path.stem, block)
    for path in PAGES
    for block in read_page(path).blocks
    if block.mark.startswith("contract: ")
]


@pytest.mark.parametrize(("name", "page", "block"), MARKED, ids=[name for name, _, _ in MARKED])
def test_a_contract_on_a_page_is_the_codes(name: str, page: str, block: Block) -> None:
    assert name in CONTRACTS, f"{page}: nothing checks the contract {name}"
    CONTRACTS[name](block)


def test_no_contract_is_missing_or_told_twice() -> None:
    assert sorted(name for name, _, _ in MARKED) == sorted(CONTRACTS)


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_is_there_and_tells_of_checks_and_traps(name: str) -> None:
    page = read_page(REFERENCES / f"{name}.md")
    wanted = {"what-xbtasks-checks", "traps"} if name != "troubleshooting" else set()
    assert wanted <= set(page.anchors)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    page = read_page(path)
    wrong = []
    for link in page.links:
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        there = path if not target else (path.parent / target)
        if not there.exists() or (anchor and anchor not in read_page(there).anchors):
            wrong.append(link)
    assert wrong == []


CONSOLES: Final = [
    (str(path.relative_to(PROJECT)), block)
    for path in PAGES
    for block in read_page(path).blocks
    if block.language == "console"
]


@pytest.mark.parametrize(
    ("page", "block"), CONSOLES, ids=[f"{page}:{block.line}" for page, block in CONSOLES]
)
def test_commands_on_a_page_are_run_by_a_test(page: str, block: Block) -> None:
    kind, _, name = block.mark.partition(": ")
    assert kind == "run", f"{page}:{block.line} has no mark"
    assert page in FOLLOWED[name]
    assert all(line.startswith("$ ") for line in block.text.splitlines())


def test_every_name_of_commands_that_are_run_stands_on_its_pages() -> None:
    marks = {(page, block.mark) for page, block in CONSOLES}
    assert marks == {(page, f"run: {name}") for name, pages in FOLLOWED.items() for page in pages}


IDS: Final = re.compile(r"`((?:nvidia|ascend)\.case\d\.[a-z0-9-]+|preflight\.(?!rows)[a-z-]+)`")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_check_ids_on_a_page_exist(path: Path) -> None:
    from xbtasks.explanations import explanation

    assert [name for name in IDS.findall(path.read_text()) if explanation(name) is None] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_variables_on_a_page_are_knobs(path: Path) -> None:
    from xbtasks.knobs.table import KNOBS as TABLE

    known = {each.env for each in TABLE}
    assert set(re.findall(r"\bXB_[A-Z_]+\b", path.read_text())) - known == set()


def test_every_task_stands_on_the_page_of_commands() -> None:
    from xbtasks.tasks import ns

    text = (PROJECT / "docs/commands.md").read_text()
    left = {"demo", "test", "sim.down", "sim.mutants", "hooks.uninstall", "report.show"}
    names = {name.replace("_", "-") for name in ns.task_names} - left
    missing = {
        name
        for name in names
        if f"./xb {name}" not in text and not name.startswith(("ascend.", "nvidia.case"))
    }
    assert missing == set()


def test_what_is_typed_on_a_page_is_a_task() -> None:
    from xbtasks.tasks import ns

    known = set(ns.task_names) | {"report", "TASK"}
    typed = {
        (path.name, name)
        for path in PAGES
        for name in re.findall(r"(?:\./xb|\binv) ([a-z][a-z0-9.]*)(?![a-z-])", path.read_text())
        if "inv" not in name
    }
    wrong = {(page, name) for page, name in typed if name not in known and not name.startswith("toy.")}
    assert wrong == set()
