"""What a test of simulated NPUs has: a host whose inventory it may write, probes, the sample vcann-rt."""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.workplace import SAMPLE
from xbtasks.sim.drivers.ascend.image import CANN_IMAGE
from xbtasks.sim.drivers.inventory import write_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.workplace import PrivateEngine

__all__ = ["COMMITS", "FULL", "RUNTIME", "Done", "NpuHost", "Slice", "npu_host", "npu_tools", "sliced"]

EXTERNAL: Final = SAMPLE / "pack/gpustack-operator/external"
RUNTIME: Final = ("--runtime", "ascend")
COMMITS: Final = {
    "linked": "4d7e4b10ebc2416d761de7d9c1ab0282ae35dae9",
    "opened": "bac3d461c9312acfaa388bed89e9ed2a61971d1a",
}
"""The two ways to reach ACL, by a commit that has it."""

FULL: Final = {"system_mib": 0, "memory_mib": 15360, "context_mib": 0}
"""A die with 15 GiB for programs."""


@dataclass(frozen=True)
class Done:
    """How a container ended."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class NpuHost:
    """The simulated host, with an inventory that a test may write."""

    engine: PrivateEngine
    folder: Path

    def cards(self, **values: object) -> None:
        state = Path(self.engine.environment["DOCKER_CONFIG"]).parent
        write_part(state / "inventory.json", "ascend", values)

    def run(
        self, *argv: str, image: str = CANN_IMAGE, options: tuple[str, ...] = (), card: str = "0"
    ) -> Done:
        visible = ("-e", f"ASCEND_VISIBLE_DEVICES={card}")
        probes = ("--mount", f"type=bind,src={self.folder},dst=/probes,readonly")
        command = (
            "docker",
            "run",
            "--rm",
            "--pull",
            "never",
            *RUNTIME,
            *visible,
            *probes,
            *options,
            image,
            *argv,
        )
        return self._done(command)

    def smi(self, *argv: str, answer: str = "") -> Done:
        return self._done(("npu-smi", *argv), answer)

    def _done(self, command: tuple[str, ...], answer: str = "") -> Done:
        done = subprocess.run(
            command,
            env=dict(self.engine.environment),
            capture_output=True,
            text=True,
            input=answer,
            timeout=120,
        )
        return Done(done.returncode, done.stdout, done.stderr)


PROBE = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int rtSetDevice(int device);
int rtMalloc(void **pointer, unsigned long size, unsigned int type, unsigned short module);
int main(int count, char **arguments)
{
    unsigned long mib = 256, got = 0;
    int most = atoi(arguments[1]), code = rtSetDevice(0);
    void *pointer;

    if (code == 0)
        for (int i = 0; i < most && (code = rtMalloc(&pointer, mib << 20, 0, 3)) == 0; i++)
            got += mib;
    printf("%lu %d\\n", got, code);
    fflush(stdout);
    usleep(count > 2 ? 1000000u * (unsigned int)atoi(arguments[2]) : 200000u);
    return 0;
}
"""
LAUNCH = """
#include <stdio.h>
#include <time.h>
int rtSetDevice(int device);
int rtStreamSynchronize(void *stream);
int rtKernelLaunch(const void *stub, unsigned blocks, void *arguments, unsigned size, void *sm, void *stream);
int main(void)
{
    struct timespec start, end;

    if (rtSetDevice(0) != 0)
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int i = 0; i < 100; i++) {
        if (rtKernelLaunch(0, 100, 0, 0, 0, 0) != 0)
            return 1;
        rtStreamSynchronize(0);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%ld\\n", (end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000);
    return 0;
}
"""
PYACL = """
import acl, sys, time
assert acl.init() == 0 and acl.init() == 100002
assert acl.rt.set_device(0) == 0 and acl.rt.set_device(9) == 107001
free, total, code = acl.rt.get_mem_info(1)
blocks = []
while True:
    pointer, code = acl.rt.malloc(256 << 20, 0)
    if code:
        break
    blocks.append(pointer)
print(acl.get_soc_name(), total >> 20, free >> 20, 256 * len(blocks), code)
host, _ = acl.rt.malloc_host(16)
if blocks:
    assert acl.rt.memset(blocks[0], 16, 0x41, 16) == 0
    assert acl.rt.memcpy(host, 16, blocks[0], 16, 2) == 0
assert all(acl.rt.free(pointer) == 0 for pointer in blocks)
assert acl.rt.free(12345) == 107000
print(acl.rt.get_mem_info(1)[0] == free, acl.rt.get_device_count(), acl.rt.reset_device(0))
time.sleep(0.2)
"""


@pytest.fixture(scope="module")
def npu_tools(engine: PrivateEngine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the sample vcann-rt, both ways to reach ACL, and the probes, as the stages do."""
    folder = tmp_path_factory.mktemp("ascend")
    for name, text in (("rt.c", PROBE), ("launch.c", LAUNCH), ("probe.py", PYACL)):
        (folder / name).write_text(text)
    arch = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
    lines = ["set -eu", f"TARGETARCH={arch}", ". /source/toolchain.sh"]
    for name, commit in COMMITS.items():
        lines.append(f"sh /source/ascend/build-vcann-rt.sh /source/ascend/vcann-rt /out/{name} test {commit}")
    for name in ("rt", "launch"):
        link = "-L$ASCEND_HOME_PATH/lib64 -lruntime -Wl,--allow-shlib-undefined"
        lines.append(f"$CC -o /out/{name} /out/{name}.c {link}")
    mounts = (
        "--mount",
        f"type=bind,src={EXTERNAL},dst=/source,readonly",
        "--mount",
        f"type=bind,src={folder},dst=/out",
    )
    engine.docker("run", "--rm", "--pull", "never", *mounts, CANN_IMAGE, "sh", "-c", "\n".join(lines))
    return folder


@pytest.fixture
def npu_host(engine: PrivateEngine, npu_tools: Path) -> Iterator[NpuHost]:
    """Return the host with its default cards; they are back afterwards."""
    found = NpuHost(engine, npu_tools)
    default: dict[str, object] = {"cards": [{}, {}]}
    found.cards(**default)
    yield found
    found.cards(**default)


@dataclass(frozen=True)
class Slice:
    """A slice of a card, and the vcann-rt that is to keep it."""

    memory: int
    vcann: str = "opened"
    aicore: int = 20
    policy: int = 2
    phy_id: int = 0
    preload: tuple[str, ...] = ("/usr/local/dcmi/libdcmi.so", "/opt/enpu/vcann-rt/lib/libvruntime.so")
    configured: bool = True

    def mounts(self, built: Path, folder: Path) -> tuple[str, ...]:
        (folder / "preload").write_text("".join(f"{line}\n" for line in self.preload))
        fields = {
            "physical-npu-id": self.phy_id,
            "virtual-npu-id": 0,
            "aicore-quota": self.aicore,
            "memory-quota": self.memory,
            "scheduling-policy": self.policy,
            "shm-id": folder.name,
        }
        (folder / "config").write_text("".join(f"{key}={value}\n" for key, value in fields.items()))
        pairs = [
            (folder / "preload", "/etc/ld.so.preload"),
            (built / self.vcann / "lib/libvruntime.so", "/opt/enpu/vcann-rt/lib/libvruntime.so"),
            (built / self.vcann / "tools/enpu-monitor", "/opt/enpu/vcann-rt/tools/enpu-monitor"),
        ]
        if self.configured:
            pairs.append((folder / "config", "/etc/enpu/vcann-rt/npu_info.config"))
        return tuple(
            word for pair in pairs for word in ("--mount", f"type=bind,src={pair[0]},dst={pair[1]},readonly")
        )


def sliced(
    host: NpuHost, folder: Path, part: Slice, *argv: str, image: str = CANN_IMAGE, card: str = "0"
) -> Done:
    return host.run(*argv, options=part.mounts(host.folder, folder), image=image, card=card)
