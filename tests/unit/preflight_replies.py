"""Replies of the preflight step, put together from what each tool said."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from xbtasks.backends import host_modules
from xbtasks.host.step import Reply, SectionReply

SAMPLES = Path(__file__).parents[1] / "samples"


def sample(name: str) -> str:
    return (SAMPLES / name).read_text()


def tagged(tag: str, text: str) -> str:
    return "".join(f"{tag} {line}\n" for line in text.rstrip("\n").split("\n"))


def asked(tag: str, status: int, text: str) -> str:
    return f"{tag}.status {status}\n{tagged(tag, text)}"


def section(
    name: str, text: str, *, stderr: str = "", timed_out: bool = False, seconds: int = 0
) -> SectionReply:
    status = 124 if timed_out else 0
    return SectionReply(name, status, text.encode(), stderr.encode(), seconds, timed_out)


DF = "/dev/vda1 103000000 20000000 80000000 20% /"


def engine_text(
    info: str = "docker/info-26.1-both-runtimes.json",
    version: str = "docker/version-26.1.json",
    *,
    status: int = 0,
    socket: str = "open",
    endpoint: str = "unix:///var/run/docker.sock",
    df: str = DF,
) -> str:
    return (
        "found /usr/bin/docker\n"
        + asked("context", 0, endpoint)
        + (f"socket {socket}\n" if socket else "")
        + asked("version", status, sample(version) if version else "")
        + asked("info", status, sample(info) if info else "")
        + tagged("df.root", df)
        + tagged("df.containerd", DF.replace("80000000", "90000000"))
    )


def buildx_text(
    version: str = "docker/buildx-version-debian.txt",
    inspect: str = "docker/inspect-docker.txt",
    *,
    status: int = 0,
    inspect_status: int = 0,
) -> str:
    text = "found /usr/bin/docker\n" + asked("version", status, sample(version) if version else "")
    return text if status else text + asked("inspect", inspect_status, sample(inspect) if inspect else "")


def npu_text(list_: str = "list-8-cards", map_: str = "", table: str = "table-910B4-25.5.3") -> str:
    rows = "".join(f"\t{n}    0    {n}    Ascend 910B4\n\t{n}    1    -    Mcu\n" for n in range(8))
    header = "\tNPU ID    Chip ID    Chip Logic ID    Chip Name\n"
    return (
        "found /usr/local/sbin/npu-smi\n"
        + asked("list", 0, sample(f"npu-smi/{list_}.txt"))
        + asked("map", 0, sample(f"npu-smi/{map_}.txt") if map_ else header + rows)
        + asked("table", 0, sample(f"npu-smi/{table}.txt"))
    )


QEMU_ARM64 = (
    "enabled\tinterpreter /usr/bin/qemu-aarch64-static\tflags: F\toffset 0\t"
    "magic 7f454c460201010000000000000000000200b700\tmask ffffffffffffff00fffffffffffffffffeffffff"
)
HOST = "machine x86_64\nkernel 6.1.0-18-amd64\nnode node-a\nuid 1000\nuser dev\nshell /bin/bash\n"
NVIDIA_NODES = "node /dev/nvidia0\nnode /dev/nvidia1\ncontrol /dev/nvidiactl\n"
DAVINCI_NODES = "".join(f"node /dev/davinci{number}\n" for number in range(8))


@dataclass
class FakeHost:
    """A host on which everything is there; a test takes away what it is about."""

    host: str | SectionReply = HOST
    engine: str | SectionReply = field(default_factory=engine_text)
    buildx: str | SectionReply = field(default_factory=buildx_text)
    staging: tuple[tuple[str, str], ...] = (
        ("ascend", f"path /opt/enpu\nnear /opt/enpu\ndirectory yes\nwritable yes\ndf {DF}\n"),
        ("nvidia", f"path /opt/vgpu\nnear /opt\ndirectory yes\nwritable yes\ndf {DF}\n"),
    )
    binfmt: str | SectionReply = f"visible enabled\nentry {QEMU_ARM64}\n"
    nvidia_smi: str | SectionReply = field(
        default_factory=lambda: (
            "found /usr/bin/nvidia-smi\n" + asked("gpus", 0, sample("nvidia-smi/two-h200.csv"))
        )
    )
    nvidia_devices: str | SectionReply = NVIDIA_NODES
    npu_smi: str | SectionReply = field(default_factory=npu_text)
    ascend_devices: str | SectionReply = DAVINCI_NODES
    noise: tuple[str, ...] = ()

    def reply(self) -> Reply:
        parts: list[tuple[str, str | SectionReply]] = [
            ("host", self.host),
            ("engine", self.engine),
            ("buildx", self.buildx),
            *((f"staging.{backend}", text) for backend, text in self.staging),
            ("binfmt", self.binfmt),
            ("nvidia-smi", self.nvidia_smi),
            ("nvidia-devices", self.nvidia_devices),
            ("npu-smi", self.npu_smi),
            ("ascend-devices", self.ascend_devices),
        ]
        told = {name for name, _ in parts}
        asked_for = (
            each.name for module in host_modules().values() for each in module.sections(tool=1, look=1)
        )
        parts += [(name, "") for name in asked_for if name not in told]  # a vendor that no test here is about
        sections = tuple(section(name, part) if isinstance(part, str) else part for name, part in parts)
        return Reply("preflight", sections, self.noise)
