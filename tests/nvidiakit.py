"""A simulated host with NVIDIA cards, and what the tests run on it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.test_sim import Host
from xbtasks.errors import XbError
from xbtasks.sim.base_image import BASE_IMAGE
from xbtasks.sim.drivers.inventory import write_part
from xbtasks.sim.machine import Machine
from xbtasks.sim.paths import SAMPLE_CHECKOUT, SimPaths

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CARD", "SPIN", "Node", "nvidia_host", "words"]

PROBE = Path(__file__).resolve().parent / "integration/cuda_words.c"
CARD = {"model": "rtx-4090", "context_mib": 300}
SPIN = "rate=200000:75000:3"
"""A grid that keeps a 4090 busy for 2 ms, launched for 3 s."""


@dataclass
class Node:
    """A simulated host that runs containers; ``shared`` is a folder that all of them see as ``/shared``."""

    host: Host
    shared: Path
    environment: dict[str, str]

    def cards(self, *cards: dict[str, object], **values: object) -> None:
        """Give the host other cards; the node reads them before it answers again."""
        write_part(self.host.paths.inventory, "nvidia", {"cards": list(cards), **values})

    def run(
        self,
        *command: str,
        visible: str | None = "0",
        capabilities: str = "compute,utility",
        options: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a container."""
        chosen = () if visible is None else ("--env", f"NVIDIA_VISIBLE_DEVICES={visible}")
        return self.docker(
            *("run", "--rm", "--network", "none", "--runtime", "nvidia", *chosen),
            *("--env", f"NVIDIA_DRIVER_CAPABILITIES={capabilities}"),
            *("--mount", f"type=bind,src={self.shared},dst=/shared"),
            *options,
            *(BASE_IMAGE, *command),
        )

    def limited(self, script: str, *environment: str, visible: str = "0") -> subprocess.CompletedProcess[str]:
        """Run a shell script whose programs are preloaded, on a cache of its own."""
        folder = "/tmp/vgpu"
        exports = " ".join((f"CUDA_DEVICE_MEMORY_SHARED_CACHE={folder}/cache", *environment))
        preload = "export LD_PRELOAD=/shared/libvgpu.so"
        return self.run(
            "bash", "-c", f"mkdir -p {folder}; export {exports}; {preload}\n{script}", visible=visible
        )

    def docker(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = (str(self.host.paths.programs / "bin/docker"), *arguments)
        return subprocess.run(
            argv, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
        )

    def smi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the host's own nvidia-smi."""
        tool = self.host.paths.bin / "nvidia-smi"
        return subprocess.run((tool, *arguments), env={}, capture_output=True, text=True, timeout=60)

    def used(self, index: int = 0) -> int:
        """Return how many MiB of a card are in use."""
        answer = self.smi("--query-gpu=memory.used", "--format=csv,noheader,nounits")
        return int(answer.stdout.splitlines()[index])


@pytest.fixture(scope="module")
def nvidia_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """Return a host with the probe and the sample preload library in its shared folder."""
    try:
        Machine.examine()
    except XbError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("nvidia")
    host = Host.at(folder / "state", SimPaths.from_environment().cache.parents[1])
    node = Node(host, folder / "shared", host.env | host.up())
    node.shared.mkdir()
    (node.shared / "words.c").write_bytes(PROBE.read_bytes())
    compiler = ("gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-o", "/shared/words", "/shared/words.c")
    compiled = node.run(*compiler, visible=None)
    assert compiled.returncode == 0, compiled.stderr
    dockerfile = SAMPLE_CHECKOUT / "pack/gpustack-operator/Dockerfile"
    stage = ("--target", "xbuild-nvidia-cuda-12", "--file", str(dockerfile))
    built = node.docker("buildx", "build", *stage, "--load", "--tag", "vgpu:1", str(SAMPLE_CHECKOUT))
    assert built.returncode == 0, built.stderr
    copied = node.docker(
        *("run", "--rm", "--mount", f"type=bind,src={node.shared},dst=/shared"),
        *("vgpu:1", "cp", "/out/libvgpu.so", "/shared/libvgpu.so"),
    )
    assert copied.returncode == 0, copied.stderr
    yield node
    host.call("down")


def words(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return what each word came to: the last time that it was done."""
    assert done.returncode == 0, (done.stdout, done.stderr)
    return dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
