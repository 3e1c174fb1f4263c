"""NVIDIA in preflight: what is asked, what was found, and the rows that say which cases it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xbtasks.backends.nvidia.smi import QUERY, Gpu, parse_gpus
from xbtasks.checks import Check, Status
from xbtasks.hostprobe import Answers, Trouble, Unusable, one_line, probe, unusable

if TYPE_CHECKING:
    from xbtasks.host.step import Reply, Section
    from xbtasks.hostfacts import EngineFacts

__all__ = ["NvidiaFacts", "ask_smi", "checks", "read", "sections"]

_PLACES = "/usr/bin:/usr/local/bin:/usr/local/nvidia/bin:/usr/lib/wsl/lib"
_SMI = r"""
find "$1" "$2" || exit 0
shift 2
ask gpus "$tool" "$@"
"""
_LOOK = r"""
dev=${XBTASKS_DEVICE_ROOT%/}/dev
for file in "$dev"/nvidia*; do
  case ${file#"$dev"/nvidia} in '' | *[!0-9]*) continue ;; esac
  [ ! -c "$file" ] || say node "/dev/${file##*/}"
done
[ ! -c "$dev/nvidiactl" ] || say control /dev/nvidiactl
for directory in /etc/cdi /var/run/cdi; do
  see "$directory" || say unseen "$directory"
  for file in "$directory"/*.json "$directory"/*.yaml "$directory"/*.yml; do
    [ -f "$file" ] || continue
    kind=$(sed -n 's|.*kind"\{0,1\}: *"\{0,1\}\([A-Za-z0-9._-]*/[A-Za-z0-9._-]*\).*|\1|p' "$file" | head -n 1)
    say cdi "$kind $file"
  done
done
pipes=${CUDA_MPS_PIPE_DIRECTORY:-/tmp/nvidia-mps}
[ ! -d "$pipes" ] || say mps "$pipes"
"""
_CDI_KIND = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class NvidiaFacts:
    """What the host has of NVIDIA.

    ``unusable`` tells why ``gpus`` is empty; ``nodes`` are the GPUs' device files; ``cdi_specs`` the files
    that name devices of kind nvidia.com/gpu; ``mps`` the pipe directory of an MPS daemon, or empty.
    """

    gpus: tuple[Gpu, ...]
    unusable: Unusable | None
    nodes: frozenset[str]
    control_node: bool
    cdi_specs: frozenset[str]
    mps: str

    @property
    def usable(self) -> int:
        """How many GPUs a case can use."""
        return sum(gpu.sliceable for gpu in self.gpus)

    @property
    def chips(self) -> tuple[str, ...]:
        """None: NVIDIA's stages are named by the toolkit alone."""
        return ()

    def cdi(self, engine: EngineFacts) -> bool:
        """Whether ``engine`` can be asked for nvidia.com/gpu devices."""
        if any(device.startswith(f"{_CDI_KIND}=") for device in engine.cdi_devices):
            return True
        return any(spec.rpartition("/")[0] in engine.cdi_directories for spec in self.cdi_specs)


def ask_smi(name: str, deadline: int, *arguments: str) -> Section:
    """Ask the host's nvidia-smi; what it answers is under the tag ``gpus``."""
    return probe(name, _SMI, deadline, "nvidia-smi", _PLACES, *arguments)


def sections(*, tool: int, look: int) -> tuple[Section, ...]:
    """Return the sections that ask a host for its GPUs: ``tool`` and ``look`` are deadlines in seconds."""
    return (
        ask_smi("nvidia-smi", tool, *QUERY),
        probe("nvidia-devices", _LOOK, look),
    )


def read(reply: Reply) -> NvidiaFacts:
    """Return what the sections' answers say."""
    smi, look = Answers(reply["nvidia-smi"]), Answers(reply["nvidia-devices"])
    found: tuple[Gpu, ...] | Unusable | None = unusable(smi, "nvidia-smi")
    if found is None:
        answer = smi.answer("gpus")
        found = (
            parse_gpus(answer.stdout, answer.exit_status, smi.stderr)
            if answer
            else Unusable(Trouble.FAILED, one_line(f"nvidia-smi was cut off: {smi.stderr}"))
        )
    specs = (line.partition(" ") for line in look.lines("cdi"))
    return NvidiaFacts(
        gpus=() if isinstance(found, Unusable) else found,
        unusable=found if isinstance(found, Unusable) else None,
        nodes=frozenset(look.lines("node")),
        control_node=bool(look.lines("control")),
        cdi_specs=frozenset(spec for kind, _, spec in specs if kind == _CDI_KIND),
        mps=look.first("mps"),
    )


def checks(facts: NvidiaFacts, engine: EngineFacts) -> tuple[Check, ...]:
    """Return the rows: GPUs, runtime or CDI, device files, MPS."""
    return (_smi(facts), _runtime(facts, engine), _devices(facts), _mps(facts))


_CASES = "nvidia.case2 and nvidia.case3 unavailable"


def _smi(facts: NvidiaFacts) -> Check:
    row = "preflight.nvidia-smi"
    if facts.unusable:
        if facts.unusable.trouble is Trouble.ABSENT:
            return Check(row, Status.WARN, f"{_CASES}: no GPU ({facts.unusable.text})")
        return Check(row, Status.WARN, f"{_CASES}: {facts.unusable.trouble}: {facts.unusable.text}")
    cards = "; ".join(_card(gpu) for gpu in facts.gpus)
    plural = "GPU" if len(facts.gpus) == 1 else "GPUs"
    detail = f"{len(facts.gpus)} physical {plural}, driver {facts.gpus[0].driver}: {cards}"
    usable = facts.usable
    if usable == 0:
        return Check(row, Status.WARN, f"{_CASES}: no GPU whose memory limit can be measured; {detail}")
    if usable == 1:
        return Check(
            row, Status.WARN, f"nvidia.case3 unavailable: it needs 2 usable GPUs, 1 is there; {detail}"
        )
    status = Status.PASS if usable == len(facts.gpus) else Status.WARN
    return Check(row, status, detail)


def _card(gpu: Gpu) -> str:
    if gpu.mig:
        return f"{gpu.index} {gpu.name} (MIG is enabled: a limit can't be measured on it)"
    if gpu.memory_mib is not None:
        return f"{gpu.index} {gpu.name} ({gpu.memory_mib} MiB)"
    why = "unified memory" if gpu.unified else "memory not reported"
    return f"{gpu.index} {gpu.name} ({why}: {gpu.memory_text or 'empty'})"


def _runtime(facts: NvidiaFacts, engine: EngineFacts) -> Check:
    row = "preflight.nvidia-runtime"
    if not engine.up:
        return Check(row, Status.WARN, f"{_CASES}: the engine doesn't answer")
    if "nvidia" in engine.runtimes:
        return Check(row, Status.PASS, "runtime nvidia is registered; the cases ask for it by name")
    if facts.cdi(engine):
        return Check(row, Status.PASS, f"no runtime nvidia; devices of {_CDI_KIND} through CDI")
    if facts.cdi_specs:
        why = f"there are CDI specs for {_CDI_KIND}, but the engine reads none of their directories"
    else:
        why = f"neither runtime nvidia nor a CDI spec for {_CDI_KIND}"
    return Check(row, Status.WARN, f"{_CASES}: {why}")


def _devices(facts: NvidiaFacts) -> Check:
    row = "preflight.nvidia-devices"
    if not facts.nodes:
        if facts.gpus:
            return Check(row, Status.WARN, "nvidia-smi lists GPUs, but there is no /dev/nvidia<N>")
        return Check(row, Status.WARN, f"{_CASES}: no /dev/nvidia<N>")
    detail = f"{len(facts.nodes)} /dev/nvidia<N>"
    if not facts.control_node:
        return Check(row, Status.WARN, f"{detail}, but no /dev/nvidiactl: {_CASES}")
    if facts.gpus and len(facts.gpus) != len(facts.nodes):
        return Check(row, Status.WARN, f"{detail}, but nvidia-smi lists {len(facts.gpus)} GPUs")
    return Check(row, Status.PASS, detail)


def _mps(facts: NvidiaFacts) -> Check:
    row = "preflight.nvidia-mps"
    if facts.mps:
        where = one_line(facts.mps)
        return Check(row, Status.WARN, f"MPS pipe directory {where}: under MPS, limits are not proven")
    return Check(row, Status.INFO, "no MPS pipe directory")
