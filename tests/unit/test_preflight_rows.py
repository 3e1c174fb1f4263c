"""The table: each row in each status it can have, and what it says then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.preflight_replies import (
    DAVINCI_NODES,
    DF,
    HOST,
    NVIDIA_NODES,
    QEMU_ARM64,
    FakeHost,
    asked,
    buildx_text,
    engine_text,
    npu_text,
    sample,
    section,
)
from xbtasks.backends.base import Platform
from xbtasks.checks import Check, Status
from xbtasks.preflight import preflight_checks, read_preflight

if TYPE_CHECKING:
    from xbtasks.hostfacts import HostFacts

ROWS = (
    "preflight.host",
    "preflight.engine",
    "preflight.buildx",
    "preflight.disk",
    "preflight.staging",
    "preflight.staging",
    "preflight.emulation",
    "preflight.npu-smi",
    "preflight.ascend-runtime",
    "preflight.ascend-devices",
    "preflight.nvidia-smi",
    "preflight.nvidia-runtime",
    "preflight.nvidia-devices",
    "preflight.nvidia-mps",
    "preflight.noise",
)
NVIDIA_CASES = "nvidia.case2 and nvidia.case3 unavailable"
ASCEND_CASES = "ascend.case2 and ascend.case3 unavailable"


def facts(host: FakeHost) -> HostFacts:
    return read_preflight(host.reply())


def row(name: str, host: FakeHost, platform: Platform | None = None) -> Check:
    rows = preflight_checks(facts(host), platform=platform)
    assert tuple(check.id for check in rows) == ROWS
    for check in rows:
        assert check.detail
        assert all(text.isprintable() for text in (check.detail, check.expected, check.observed))
        if check.status is Status.FAIL:
            assert check.id in ("preflight.engine", "preflight.buildx")
            assert check.expected
            assert check.observed
    return next(check for check in rows if check.id == f"preflight.{name}")


def test_a_host_that_has_everything() -> None:
    rows = preflight_checks(facts(FakeHost()))
    assert {check.status for check in rows} == {Status.PASS, Status.INFO}
    assert [check.id for check in rows if check.status is Status.INFO] == [
        "preflight.nvidia-mps",
        "preflight.noise",
    ]


def test_a_bare_machine_fails_in_engine_and_buildx_and_warns_elsewhere() -> None:
    nothing = FakeHost(
        engine="absent docker\n",
        buildx="absent docker\n",
        binfmt="",
        nvidia_smi="absent nvidia-smi\n",
        nvidia_devices="",
        npu_smi="absent npu-smi\n",
        ascend_devices="missing /dev/davinci_manager\nmissing /dev/hisi_hdc\n",
    )
    rows = preflight_checks(facts(nothing))
    assert [check.id for check in rows if check.status is Status.FAIL] == [
        "preflight.engine",
        "preflight.buildx",
    ]
    assert row("engine", nothing).detail.startswith(
        "docker is neither on PATH nor in its usual places; install"
    )
    assert row("nvidia-smi", nothing).detail.startswith(f"{NVIDIA_CASES}: no GPU (nvidia-smi is neither")
    assert row("npu-smi", nothing).detail.startswith(f"{ASCEND_CASES}: no NPU (npu-smi is neither")


def test_host_row() -> None:
    assert row("host", FakeHost()).detail == (
        "x86_64, Linux 6.1.0-18-amd64, user dev, login shell /bin/bash (linux/amd64)"
    )
    unknown = FakeHost(host=HOST.replace("x86_64", "riscv64"), engine="absent docker\n")
    assert facts(unknown).platform is None
    assert row("host", unknown).status is Status.WARN


@pytest.mark.parametrize(
    ("machine", "platform"),
    [
        ("x86_64", Platform.AMD64),
        ("amd64", Platform.AMD64),
        ("aarch64", Platform.ARM64),
        ("arm64", Platform.ARM64),
        ("armv7l", None),
        ("Connectionclosedby", None),
        ("", None),
    ],
)
def test_the_platform_of_a_machine_without_an_engine(machine: str, platform: Platform | None) -> None:
    assert facts(FakeHost(host=f"machine {machine}\n", engine="absent docker\n")).platform is platform


def test_the_engines_platform_counts_where_it_answers() -> None:
    assert facts(FakeHost(host=HOST.replace("x86_64", "aarch64"))).platform is Platform.AMD64


def test_engine_row() -> None:
    up = row("engine", FakeHost())
    assert up.status is Status.PASS
    assert up.detail == (
        "docker 26.1.5+dfsg1 at unix:///var/run/docker.sock, client 26.1.5+dfsg1, overlay2, "
        "runtimes ascend, io.containerd.runc.v2, nvidia, runc"
    )
    simulated = FakeHost(engine=engine_text("docker/info-26.1-simulated.json"))
    assert row("engine", simulated).detail.startswith("SIMULATED, docker 26.1.5")
    assert facts(simulated).simulated
    assert facts(simulated).engine_name == "docker 26.1.5+dfsg1"


def test_the_label_of_the_simulated_host_changes_no_other_row() -> None:
    simulated = preflight_checks(facts(FakeHost(engine=engine_text("docker/info-26.1-simulated.json"))))
    real = preflight_checks(facts(FakeHost()))
    assert [check for check in simulated if check.id != "preflight.engine"] == [
        check for check in real if check.id != "preflight.engine"
    ]


def test_engine_down_and_denied_are_told_apart() -> None:
    down = FakeHost(engine=engine_text("docker/info-server-errors.json", "", socket="absent"))
    denied = FakeHost(engine=engine_text("docker/info-server-errors.json", "", socket="denied"))
    assert (row("engine", down).status, row("engine", down).observed) == (Status.FAIL, "down")
    assert (row("engine", denied).status, row("engine", denied).observed) == (
        Status.FAIL,
        "permission denied",
    )
    assert "group docker" in row("engine", denied).detail
    assert facts(down).engine_problem
    assert not facts(FakeHost()).engine_problem


def test_buildx_missing_prints_the_install_line_for_the_hosts_arch() -> None:
    for machine, arch in (("x86_64", "amd64"), ("aarch64", "arm64")):
        host = FakeHost(host=HOST.replace("x86_64", machine), buildx=buildx_text("", status=1))
        check = row("buildx", host)
        assert check.status is Status.FAIL
        assert "cases on an image that is already there stay possible" in check.detail
        assert f".linux-{arch} && chmod +x ~/.docker/cli-plugins/docker-buildx" in check.detail


def test_buildx_row_without_an_engine_promises_no_cases() -> None:
    host = FakeHost(engine="absent docker\n", buildx=buildx_text("", status=1))
    assert "stay possible" not in row("buildx", host).detail


def test_buildx_row() -> None:
    check = row("buildx", FakeHost())
    assert (check.status, check.detail) == (
        Status.PASS,
        "buildx 0.13.1, builder default (docker): default at default",
    )


def test_buildx_builder_in_another_engine_is_a_warning() -> None:
    text = (
        buildx_text()
        .replace("Endpoint:         default", "Endpoint:         other")
        .replace("v0.0.0", "v0.12.0")
    )
    check = row("buildx", FakeHost(buildx=text))
    assert check.status is Status.WARN
    assert "its images land in another engine than the cases' (default)" in check.detail


def test_buildx_nodes_of_other_drivers_may_be_anywhere() -> None:
    check = row("buildx", FakeHost(buildx=buildx_text(inspect="docker/inspect-container-two-nodes.txt")))
    assert check.status is Status.PASS
    nodes = "fleet0 at unix:///var/run/docker.sock (linux/amd64), fleet1 at ssh://builder (linux/arm64)"
    assert nodes in check.detail


def test_a_node_that_takes_no_builds_is_named_and_its_platform_is_not_there() -> None:
    text = buildx_text(inspect="docker/inspect-remote-two-nodes.txt")
    assert row("buildx", FakeHost(buildx=text)).status is Status.PASS
    head, _, second = text.rpartition("inspect Status:           running")
    gone = f"{head}inspect Status:           inactive{second}".replace("linux/arm64*,", "linux/arm64*")
    check = row("buildx", FakeHost(buildx=gone))
    assert check.status is Status.WARN
    assert check.detail.startswith("pair1 takes no builds now; buildx 0.13.1, builder pair (remote)")
    assert "pair0 at unix:///run/buildkit/node1.sock (linux/amd64)" in check.detail
    assert "pair1 at unix:///run/buildkit/node2.sock (inactive)" in check.detail
    assert facts(FakeHost(buildx=gone, binfmt="")).why_not_build(Platform.ARM64, cross_compiles=False)


def test_the_hosts_own_processor_does_not_serve_a_builder_elsewhere() -> None:
    text = buildx_text(inspect="docker/inspect-container-two-nodes.txt").replace(
        "linux/amd64*, linux/amd64/v2, linux/386", "linux/arm64*"
    )
    found = facts(FakeHost(buildx=text))
    assert found.platform is Platform.AMD64
    assert found.why_not_build(Platform.AMD64, cross_compiles=False)
    assert not found.why_not_build(Platform.ARM64, cross_compiles=False)


def test_buildx_too_old_for_heredocs() -> None:
    check = row("buildx", FakeHost(engine=engine_text("docker/info-20.10.json")))
    assert (check.status, check.observed) == (Status.FAIL, "BuildKit without heredocs")
    assert "upgrade the engine" in check.detail


def test_disk_row() -> None:
    assert row("disk", FakeHost()).detail.startswith("76.3 GiB free at /var/lib/docker")
    tight = FakeHost(engine=engine_text(df=DF.replace("80000000", "5000000")))
    assert row("disk", tight).status is Status.WARN
    assert row("disk", tight).detail.startswith("4.8 GiB free")
    unknown = FakeHost(engine=engine_text(df=""))
    assert row("disk", unknown).status is Status.WARN
    assert row("disk", FakeHost(engine="absent docker\n")).status is Status.WARN


def test_disk_of_containerds_own_store() -> None:
    host = FakeHost(engine=engine_text("docker/info-29-containerd-cdi.json"))
    assert row("disk", host).detail.startswith("85.8 GiB free at /var/lib/containerd")
    own = engine_text("docker/info-29-containerd-cdi.json").replace("/var/lib/docker", "/data/docker")
    assert row("disk", FakeHost(engine=own)).detail.startswith("76.3 GiB free at /data/docker")


@pytest.mark.parametrize(
    "line",
    ["", "garbage", "/dev/vda1 1 2 x 20% /", "df: /var/lib/docker: No such file or directory", "1 2 3"],
)
def test_disk_that_is_not_a_df_line_is_unknown(line: str) -> None:
    assert facts(FakeHost(engine=engine_text(df=line))).disk.free_kib is None


@pytest.mark.parametrize(
    ("line", "free"),
    [
        ("a file system with blanks 100 40 60 40% /mnt/with blanks", 60),
        ("tmpfs 100 200 -100 - /x", -100),
        ("//server/share name 9 4 5 45% /", 5),
    ],
)
def test_df_lines(line: str, free: int) -> None:
    assert facts(FakeHost(engine=engine_text(df=line))).disk.free_kib == free


def test_an_engine_on_another_machine_sees_other_files() -> None:
    host = FakeHost(
        host=HOST.replace("node-a", "laptop"), engine=engine_text(endpoint="tcp://node-a:2376", socket="")
    )
    assert not facts(host).engine_is_here
    assert row("disk", host).status is Status.WARN
    check = row("staging", host)
    assert check.status is Status.WARN
    assert "the engine runs on node-a and may not see /opt/enpu" in check.detail


def staging(text: str) -> Check:
    return row("staging", FakeHost(staging=(("ascend", text), ("nvidia", text))))


def test_staging_row() -> None:
    there = staging(f"path /opt/a b\nnear /opt/a b\ndirectory yes\nwritable yes\ndf {DF}\n")
    assert (there.status, there.detail) == (Status.PASS, "ascend: /opt/a b is there and writable")
    to_make = staging(f"path /opt/enpu/x\nnear /opt\ndirectory yes\nwritable yes\ndf {DF}\n")
    assert (to_make.status, to_make.detail) == (Status.PASS, "ascend: /opt/enpu/x can be made in /opt")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"path /opt/x\nnear /opt\ndirectory yes\ndf {DF}\n", "user dev can't write to /opt"),
        (f"path /opt/x\nnear /opt/x\nwritable yes\ndf {DF}\n", "/opt/x is not a directory"),
        ("path /opt/x\nnear /opt\ndirectory yes\nwritable yes\ndf /dev/a 100 99 1 99% /\n", "0 MiB free"),
        ("", "could not be looked at"),
    ],
)
def test_staging_that_is_impossible(text: str, says: str) -> None:
    check = staging(text)
    assert check.status is Status.WARN
    assert "ascend.case1 to ascend.case3 are unavailable" in check.detail
    assert says in check.detail


def test_emulation_by_the_kernel() -> None:
    check = row("emulation", FakeHost())
    assert (check.status, check.detail) == (
        Status.PASS,
        "linux/arm64 can be emulated (/usr/bin/qemu-aarch64-static): slow",
    )
    assert facts(FakeHost()).emulation.platforms == {Platform.ARM64}


@pytest.mark.parametrize(
    "entry",
    [
        QEMU_ARM64.replace("enabled", "disabled", 1),
        QEMU_ARM64.replace("flags: F", "flags: "),  # looks for the interpreter inside the container
        QEMU_ARM64.replace("flags: F", "flags: OC"),
        QEMU_ARM64.replace("0200b700", "0200f300"),  # riscv64
        QEMU_ARM64.replace("7f454c46", "00000000"),
        "enabled",
        "",
    ],
)
def test_entries_that_do_not_emulate_arm64_in_containers(entry: str) -> None:
    host = FakeHost(binfmt=f"visible enabled\nentry {entry}\n")
    assert facts(host).emulation.platforms == frozenset()
    assert row("emulation", host).status is Status.INFO
    assert row("emulation", host, Platform.ARM64).status is Status.WARN


def test_emulation_switched_off_or_unseen() -> None:
    off = facts(FakeHost(binfmt=f"visible disabled\nentry {QEMU_ARM64}\n")).emulation
    assert (off.visible, off.platforms) == (True, frozenset())
    assert facts(FakeHost(binfmt="")).emulation.visible is False


def test_emulation_is_not_needed_for_the_hosts_own_platform() -> None:
    check = row("emulation", FakeHost(binfmt=""), Platform.AMD64)
    assert (check.status, check.detail) == (
        Status.PASS,
        "linux/amd64 is the host's own platform: no emulation is needed",
    )


def test_a_builders_node_of_the_platform_needs_no_emulation() -> None:
    host = FakeHost(binfmt="", buildx=buildx_text(inspect="docker/inspect-container-two-nodes.txt"))
    assert row("emulation", host, Platform.ARM64).status is Status.PASS


def test_the_hosts_emulator_does_not_serve_a_builder_elsewhere() -> None:
    text = buildx_text(inspect="docker/inspect-container-two-nodes.txt").replace("linux/arm64, ", "")
    host = FakeHost(buildx=text)
    assert facts(host).emulation.platforms == {Platform.ARM64}
    assert row("emulation", host, Platform.ARM64).status is Status.WARN


def test_why_not_build() -> None:
    bare = facts(FakeHost(binfmt=""))
    assert bare.why_not_build(Platform.AMD64, cross_compiles=False) == ""
    refused = bare.why_not_build(Platform.ARM64, cross_compiles=False)
    assert refused.startswith("the host is linux/amd64 and has no emulation for linux/arm64")
    assert bare.why_not_build(Platform.ARM64, cross_compiles=True) == ""
    assert bare.can_build(Platform.ARM64, cross_compiles=True)
    assert not bare.can_build(Platform.ARM64, cross_compiles=False)
    assert facts(FakeHost()).can_build(Platform.ARM64, cross_compiles=False)
    for broken in (FakeHost(engine="absent docker\n"), FakeHost(buildx=buildx_text("", status=1))):
        assert not facts(broken).can_build(Platform.AMD64, cross_compiles=True)


def nvidia_smi(name: str, status: int = 0) -> FakeHost:
    return FakeHost(
        nvidia_smi="found /usr/bin/nvidia-smi\n" + asked("gpus", status, sample(f"nvidia-smi/{name}"))
    )


def test_nvidia_smi_row() -> None:
    check = row("nvidia-smi", FakeHost())
    assert (check.status, check.detail) == (
        Status.PASS,
        "2 physical GPUs, driver 570.195.03: 0 NVIDIA H200 (143771 MiB); 1 NVIDIA H200 (143771 MiB)",
    )
    assert (facts(FakeHost()).cards("nvidia"), facts(FakeHost()).chips("nvidia")) == (2, ())


def test_one_gpu_is_too_few_for_case_3() -> None:
    check = row("nvidia-smi", nvidia_smi("quoted-name.csv"))
    assert check.status is Status.WARN
    assert check.detail.startswith(
        "nvidia.case3 unavailable: it needs 2 usable GPUs, 1 is there; 1 physical GPU, "
    )


def test_mig_and_unified_memory_are_named() -> None:
    mig = row("nvidia-smi", nvidia_smi("one-in-mig-mode.csv"))
    assert mig.status is Status.WARN
    assert "0 NVIDIA A100-SXM4-80GB (MIG is enabled" in mig.detail
    assert facts(nvidia_smi("one-in-mig-mode.csv")).cards("nvidia") == 1
    unified = row("nvidia-smi", nvidia_smi("unified-gb10.csv"))
    assert unified.status is Status.WARN
    assert unified.detail.startswith(f"{NVIDIA_CASES}: no GPU whose memory limit can be measured")
    assert "unified memory: [N/A]" in unified.detail


@pytest.mark.parametrize(
    ("name", "status", "says"),
    [
        (
            "mismatch.txt",
            18,
            "driver/library mismatch: Failed to initialize NVML: Driver/library version mismatch",
        ),
        ("no-devices.txt", 6, "no device: No devices were found"),
        ("no-driver.txt", 9, "driver not loaded: NVIDIA-SMI has failed"),
        ("unknown-error.txt", 255, "device lost: Failed to initialize NVML: Unknown Error"),
        ("several-lines.txt", 0, "unreadable answer: not a row of GPU fields: 16380"),
    ],
)
def test_a_tool_without_a_card_gives_its_own_reason(name: str, status: int, says: str) -> None:
    check = row("nvidia-smi", nvidia_smi(name, status))
    assert check.status is Status.WARN
    assert check.detail.startswith(f"{NVIDIA_CASES}: {says}")


@pytest.mark.parametrize("tool", ["nvidia-smi", "npu-smi"])
def test_absent_denied_hidden_and_hung_tools_are_told_apart(tool: str) -> None:
    key = tool.replace("-", "_")
    cases = NVIDIA_CASES if tool == "nvidia-smi" else ASCEND_CASES
    said = []
    for answer in (
        section(tool, f"absent {tool}\n"),
        section(tool, f"denied /usr/bin/{tool}\n"),
        section(tool, "hidden /usr/local/Ascend/driver/tools\n"),
        section(tool, f"found /usr/bin/{tool}\n", timed_out=True, seconds=20),
        section(tool, f"found /usr/bin/{tool}\n", stderr="Killed"),
        section(tool, "", stderr="sh: out of memory"),
    ):
        check = row(tool, FakeHost(**{key: answer}))
        assert check.status is Status.WARN
        assert check.detail.startswith(cases)
        said.append(check.detail.removeprefix(f"{cases}: "))
    assert said[1:4] == [
        f"not executable: /usr/bin/{tool} is there, but this user may not run it",
        f"hidden: {tool} was not found, and /usr/local/Ascend/driver/tools can't be searched by this user",
        f"timed out: /usr/bin/{tool} did not answer within 20 s",
    ]
    assert len(set(said)) == len(said)


def test_nvidia_runtime_row() -> None:
    assert row("nvidia-runtime", FakeHost()).status is Status.PASS
    plain = engine_text("docker/info-26.1.json")
    without = row("nvidia-runtime", FakeHost(engine=plain))
    assert (without.status, without.detail) == (
        Status.WARN,
        f"{NVIDIA_CASES}: neither runtime nvidia nor a CDI spec for nvidia.com/gpu",
    )
    unasked = row("nvidia-runtime", FakeHost(engine="absent docker\n"))
    assert (unasked.status, unasked.detail) == (Status.WARN, f"{NVIDIA_CASES}: the engine doesn't answer")


def test_nvidia_through_cdi() -> None:
    discovered = FakeHost(engine=engine_text("docker/info-29-containerd-cdi.json"))
    assert row("nvidia-runtime", discovered).status is Status.PASS
    spec = NVIDIA_NODES + "cdi nvidia.com/gpu /etc/cdi/nvidia.yaml\n"
    engine = engine_text("docker/info-29-containerd-cdi.json").replace('"Source":"cdi"', '"Source":"other"')
    assert row("nvidia-runtime", FakeHost(engine=engine, nvidia_devices=spec)).status is Status.PASS
    assert row("nvidia-runtime", FakeHost(engine=engine)).status is Status.WARN
    foreign = NVIDIA_NODES + "cdi example.com/net /etc/cdi/net.yaml\ncdi  /etc/cdi/empty.yaml\n"
    assert row("nvidia-runtime", FakeHost(engine=engine, nvidia_devices=foreign)).status is Status.WARN
    net = engine_text("docker/info-29-containerd-cdi.json").replace("nvidia.com/gpu=", "example.com/net=")
    assert row("nvidia-runtime", FakeHost(engine=net)).status is Status.WARN
    unread = row("nvidia-runtime", FakeHost(engine=engine_text("docker/info-26.1.json"), nvidia_devices=spec))
    assert unread.status is Status.WARN
    assert "the engine reads none of their directories" in unread.detail


def test_nvidia_devices_row() -> None:
    assert row("nvidia-devices", FakeHost()).detail == "2 /dev/nvidia<N>"
    none = row("nvidia-devices", FakeHost(nvidia_devices=""))
    assert (none.status, none.detail) == (
        Status.WARN,
        "nvidia-smi lists GPUs, but there is no /dev/nvidia<N>",
    )
    neither = row("nvidia-devices", FakeHost(nvidia_smi="absent nvidia-smi\n", nvidia_devices=""))
    assert (neither.status, neither.detail) == (Status.WARN, f"{NVIDIA_CASES}: no /dev/nvidia<N>")
    control = row("nvidia-devices", FakeHost(nvidia_devices="node /dev/nvidia0\nnode /dev/nvidia1\n"))
    assert (control.status, "no /dev/nvidiactl" in control.detail) == (Status.WARN, True)
    fewer = row("nvidia-devices", FakeHost(nvidia_devices="node /dev/nvidia0\ncontrol /dev/nvidiactl\n"))
    assert (fewer.status, fewer.detail) == (Status.WARN, "1 /dev/nvidia<N>, but nvidia-smi lists 2 GPUs")


def test_mps_row() -> None:
    assert row("nvidia-mps", FakeHost()).status is Status.INFO
    active = row("nvidia-mps", FakeHost(nvidia_devices=NVIDIA_NODES + "mps /tmp/nvidia-mps\n"))
    assert active.status is Status.WARN
    assert "/tmp/nvidia-mps" in active.detail


def test_npu_smi_row() -> None:
    check = row("npu-smi", FakeHost())
    assert (check.status, check.detail) == (Status.PASS, "8 cards, 8 dies: 8 Ascend 910B4; driver 25.5.3")
    assert (facts(FakeHost()).cards("ascend"), facts(FakeHost()).chips("ascend")) == (8, ("910b",))
    assert [die.physical_id for die in facts(FakeHost()).npus] == list(range(8))


TWO_CARDS = "\tTotal Count : 2\n\tNPU ID : {}\n\tChip Count : 1\n\tNPU ID : {}\n\tChip Count : 1\n"


def npus(map_: str, table: str, first: int = 0, second: int = 1) -> FakeHost:
    listed = asked("list", 0, TWO_CARDS.format(first, second))
    text = npu_text(map_=map_, table=table)
    return FakeHost(npu_smi=text[: text.index("list.status")] + listed + text[text.index("map.status") :])


def test_two_dies_a_card_are_counted_as_dies() -> None:
    check = row("npu-smi", npus("map-a3-5col", "table-a3-25.3.rc1"))
    assert (check.status, check.detail) == (Status.PASS, "2 cards, 4 dies: 4 Ascend910; driver 25.3.rc1")
    assert facts(npus("map-a3-5col", "table-a3-25.3.rc1")).chips("ascend") == ("910c",)


def test_list_and_map_must_name_the_same_cards() -> None:
    assert row("npu-smi", npus("map-310p-noncontiguous", "table-310p3-23.0.rc3", 4, 64)).status is Status.PASS
    check = row("npu-smi", npus("map-310p-noncontiguous", "table-310p3-23.0.rc3", 4, 5))
    assert check.status is Status.WARN
    assert "npu-smi lists cards [4, 5] and maps cards [4, 64]" in check.detail
    assert facts(npus("map-310p-noncontiguous", "table-310p3-23.0.rc3", 4, 5)).npus == ()


def test_npus_that_are_ill_or_out_of_reach() -> None:
    ill = FakeHost(npu_smi=npu_text().replace("| OK            | 89.7", "| Alarm         | 89.7"))
    assert row("npu-smi", ill).status is Status.WARN
    assert row("npu-smi", ill).detail.startswith("NPU 1 is Alarm: ")
    far = FakeHost(npu_smi=npu_text().replace("0    7    Ascend", "0    17    Ascend"))
    assert row("npu-smi", far).detail.startswith("1 dies have a physical id above 15")
    assert facts(far).cards("ascend") == 7
    assert facts(far).npus[7].physical_id == 17
    blind = FakeHost(npu_smi=npu_text(table="error-board-type-9005"))
    assert row("npu-smi", blind).status is Status.WARN
    assert facts(blind).cards("ascend") == 8


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("error-dcmi-8005", "driver not loaded: DrvMngGetConsoleLogLevel failed. (ret=4) dcmi module"),
        ("error-dcmi-8020", "device busy: DrvMngGetConsoleLogLevel failed."),
        ("error-invalid-card", "no device: Invalid card id."),
        ("error-board-type-9005", "not supported: npu get board type failed. ret is -9005"),
    ],
)
def test_npu_smi_without_a_card_gives_its_own_reason(name: str, says: str) -> None:
    check = row("npu-smi", FakeHost(npu_smi=npu_text(name, name, name)))
    assert check.status is Status.WARN
    assert check.detail.startswith(f"{ASCEND_CASES}: {says}")


def test_ascend_runtime_row() -> None:
    assert row("ascend-runtime", FakeHost()).status is Status.PASS
    without = row("ascend-runtime", FakeHost(engine=engine_text("docker/info-26.1.json")))
    assert (without.status, without.detail) == (Status.WARN, f"{ASCEND_CASES}: no runtime ascend")
    unasked = row("ascend-runtime", FakeHost(engine="absent docker\n"))
    assert (unasked.status, unasked.detail) == (Status.WARN, f"{ASCEND_CASES}: the engine doesn't answer")


def test_ascend_devices_row() -> None:
    assert row("ascend-devices", FakeHost()).detail == "8 /dev/davinci<N>"
    assert row("ascend-devices", FakeHost(ascend_devices="")).status is Status.WARN
    missing = row("ascend-devices", FakeHost(ascend_devices=DAVINCI_NODES + "missing /dev/davinci_manager\n"))
    assert (missing.status, "no /dev/davinci_manager" in missing.detail) == (Status.WARN, True)
    fewer = row("ascend-devices", FakeHost(ascend_devices="node /dev/davinci0\n"))
    assert (fewer.status, fewer.detail) == (Status.WARN, "1 /dev/davinci<N>, but npu-smi maps 8 dies")


def test_noise_is_counted_in_one_row_and_changes_nothing_else() -> None:
    loud = FakeHost(noise=("Welcome", "FAIL | preflight.engine | from motd", "PASS"))
    assert row("noise", loud) == Check(
        "preflight.noise", Status.INFO, "lines of login noise around the reply, not read: 3"
    )
    assert preflight_checks(facts(loud))[:-1] == preflight_checks(facts(FakeHost()))[:-1]


def test_control_characters_and_many_lines_become_one_line() -> None:
    host = FakeHost(
        host=HOST.replace("dev", "d\x1b[31mev").replace("/bin/bash", "/bin/\x07sh"),
        nvidia_smi="found /usr/bin/nvidia-smi\n" + asked("gpus", 9, "one\x1b[2J\ntwo\r\nthree\x00"),
    )
    assert row("nvidia-smi", host).detail == f"{NVIDIA_CASES}: driver not loaded: one [2J two three"


SECTIONS = ("host", "engine", "buildx", "binfmt", "nvidia_smi", "nvidia_devices", "npu_smi", "ascend_devices")
TAGS = (
    "found denied hidden absent context.status context socket version.status version info.status info "
    "df.root inspect.status inspect path near directory writable df visible entry gpus.status gpus list "
    "list.status map.status map table.status table node control cdi mps missing machine user shell"
)
VALUES = ("0", "1", "enabled", "enabled\tmagic\tx y", "/a\x07b", "{}", DF, "\x1b[0m\x00")
LINES = st.lists(
    st.tuples(st.sampled_from(TAGS.split()), st.sampled_from(VALUES) | st.text()).map(" ".join), max_size=8
).map("\n".join)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from(SECTIONS), LINES | st.text()), LINES, st.booleans())
def test_whatever_a_host_says_there_is_a_whole_printable_table(
    texts: dict[str, str], staging: str, late: bool
) -> None:
    parts = {name: section(name, text, timed_out=late, seconds=9) for name, text in texts.items()}
    rows = {name: replace(part, name=name.replace("_", "-")) for name, part in parts.items()}
    row("engine", FakeHost(**rows, staging=(("ascend", staging), ("nvidia", staging))))


def test_unknown_backend_is_refused() -> None:
    with pytest.raises(KeyError):
        facts(FakeHost()).cards("amd")
