"""The knob table (SPEC 2) as data: names, variables, flags, defaults and what is accepted.

Only data stands here, so that task flags can be made from it without paying for the parsers
(:mod:`xbtasks.knobs.values`) or for resolution (:mod:`xbtasks.knobs.resolve`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

__all__ = ["KNOBS", "Group", "Knob", "knob", "knobs_for"]


class Group(Enum):
    """What a knob serves; a task offers the flags of the groups it uses."""

    CHECKOUT = "checkout"
    HOST = "host"
    BUILD = "build"
    ASCEND = "ascend"
    NVIDIA = "nvidia"
    ALL = "all"


@dataclass(frozen=True)
class Knob:
    """One setting.

    ``name`` is the Invoke parameter and the key in a configuration file, ``env`` the variable and
    ``flag`` the command line option ("" where there is none). ``default`` is the value that applies
    when nothing sets the knob, as text; where it is "" the default depends on the backend, the stage
    or the host, and ``unset`` says how. ``groups`` is what it serves.
    """

    name: str
    env: str
    flag: str
    groups: tuple[Group, ...]
    help: str
    accepts: str
    default: str = ""
    unset: str = ""
    boolean: bool = False

    @property
    def default_text(self) -> str:
        """The default for a person: the literal one, or how it is found."""
        return self.default or self.unset


_HOST = (Group.HOST,)
_BUILD = (Group.BUILD,)
_CHECKOUT = (Group.BUILD, Group.CHECKOUT)
_CASES = (Group.ASCEND, Group.NVIDIA)
_STAGED = (Group.BUILD, Group.ASCEND, Group.NVIDIA)
_ASCEND = (Group.ASCEND,)
_NVIDIA = (Group.NVIDIA,)

KNOBS: Final[tuple[Knob, ...]] = (
    Knob(
        "mode",
        "XB_MODE",
        "--mode",
        _HOST,
        "where docker and the accelerators are",
        "local or ssh, in lower case",
        unset="ssh if a host is given, else local",
    ),
    Knob(
        "host",
        "XB_HOST",
        "--host",
        _HOST,
        "the target host; never read from a file inside the project",
        "user@host[:port] or an ssh_config alias; IPv6 in brackets; no leading '-'",
        unset="none",
    ),
    Knob(
        "repo",
        "XB_REPO",
        "--repo",
        _CHECKOUT,
        "the operator checkout",
        "the path of a readable checkout; in a file absolute or under ~/",
        unset="git top level of the current directory, if it holds the Dockerfile",
    ),
    Knob(
        "dockerfile",
        "XB_DOCKERFILE",
        "--dockerfile",
        _CHECKOUT,
        "the Dockerfile with the builder stages",
        "a path, relative to the checkout or absolute",
        default="pack/gpustack-operator/Dockerfile",
    ),
    Knob(
        "platform",
        "XB_PLATFORM",
        "--platform",
        _STAGED,
        "the platform to build for",
        "one of linux/amd64, linux/arm64",
        unset="from the host's architecture",
    ),
    Knob(
        "image",
        "XB_IMAGE",
        "--image",
        _STAGED,
        "the tag of the built image",
        "an image reference without digest, like vgpu-build:cuda-13",
        unset="vcann-build:<suffix> or vgpu-build:<suffix>",
    ),
    Knob(
        "workload_image",
        "XB_WORKLOAD_IMAGE",
        "--workload-image",
        _CASES,
        "the image that hardware cases run; never pulled",
        "an image reference that is already on the host",
        unset="the built image",
    ),
    Knob(
        "stage_dir",
        "XB_STAGE",
        "--stage-dir",
        _STAGED,
        "the staging directory on the host",
        "an absolute path, spaces allowed, not /",
        unset="/opt/enpu/vcann-rt for ascend, /opt/vgpu for nvidia",
    ),
    Knob(
        "remote_ctx",
        "XB_REMOTE_CTX",
        "--remote-ctx",
        _BUILD,
        "where build contexts lie on the host, one folder per input digest",
        "an absolute path or one under ~/ (the home on the host)",
        default="~/.cache/xbtasks/ctx",
    ),
    Knob(
        "engine",
        "XB_CTR",
        "--engine",
        _HOST,
        "the container engine",
        "docker",
        default="docker",
    ),
    Knob(
        "builder",
        "XB_BUILDER",
        "--builder",
        _BUILD,
        "the buildx builder; a multi-node BuildKit builder is how builds scale out",
        "a buildx builder name: letters, digits and ._+-, starting with a letter or digit",
        unset="docker's current one",
    ),
    Knob(
        "ssh_config",
        "XB_SSH_CONFIG",
        "--ssh-config",
        _HOST,
        "the ssh client configuration",
        "the path of an ssh_config file; in a file absolute or under ~/",
        default="~/.ssh/config",
    ),
    Knob(
        "host_keys",
        "XB_HOST_KEYS",
        "--host-keys",
        _HOST,
        "what to do with an unknown host key; a changed key always refuses",
        "strict or accept-new",
        default="accept-new",
    ),
    Knob(
        "connect_timeout",
        "XB_CONNECT_TIMEOUT",
        "",
        _HOST,
        "deadline for connecting to the host, in seconds",
        "whole seconds, 1 to 3600",
        default="20",
    ),
    Knob(
        "timeout",
        "XB_TIMEOUT",
        "",
        _HOST,
        "deadline of one step, in seconds",
        "whole seconds, 1 to 86400",
        default="300",
    ),
    Knob(
        "build_timeout",
        "XB_BUILD_TIMEOUT",
        "",
        _BUILD,
        "deadline of a build, in seconds",
        "whole seconds, 1 to 604800",
        default="7200",
    ),
    Knob(
        "banner_re",
        "XB_BANNER_RE",
        "",
        _HOST,
        "lines hidden from live text; results never depend on it",
        "a Python regular expression of at most 1000 characters",
        default="(?i)^(welcome to |last login: |warning: permanently added |authori[sz]ed (users|access) )",
    ),
    Knob(
        "yes",
        "XB_YES",
        "--yes",
        (Group.ALL,),
        "confirm ahead of time",
        "yes, true, on, 1 or no, false, off, 0",
        default="no",
        boolean=True,
    ),
    Knob(
        "npu",
        "XB_NPU",
        "--npu",
        _ASCEND,
        "the card, as npu-smi's -i",
        "a card number, 0 to 255",
        default="0",
    ),
    Knob(
        "chip",
        "XB_CHIP",
        "--chip",
        _ASCEND,
        "the chip on the card, as npu-smi's -c",
        "a chip number, 0 to 15",
        default="0",
    ),
    Knob(
        "vnpu",
        "XB_VNPU",
        "--vnpu",
        _ASCEND,
        "the virtual NPU id",
        "a virtual id, 0 to 99",
        default="0",
    ),
    Knob(
        "aicore",
        "XB_AICORE",
        "--aicore",
        _ASCEND,
        "the AICore quota, in percent",
        "whole percent, 1 to 100",
        default="20",
    ),
    Knob(
        "mem",
        "XB_MEM",
        "--mem",
        _CASES,
        "the memory quota or limit, in MiB",
        "whole MiB, 1 to 2147483647",
        unset="1024 for ascend, 4096 for nvidia",
    ),
    Knob(
        "gpu",
        "XB_GPU",
        "--gpu",
        _NVIDIA,
        "the card of case 2",
        "an index 0 to 255, a GPU UUID (GPU-...), or auto for an idle card",
        default="0",
    ),
    Knob(
        "gpus",
        "XB_GPUS",
        "--gpus",
        _NVIDIA,
        "the cards of case 3",
        "1 to 16 distinct cards, by index or GPU UUID, separated by commas, or auto for idle cards",
        default="0,1",
    ),
    Knob(
        "sm",
        "XB_SM",
        "--sm",
        _NVIDIA,
        "the SM limit, in percent",
        "whole percent, 1 to 100",
        unset="50 for case 2, 30 for case 3",
    ),
    Knob(
        "profile",
        "XB_PROFILE",
        "--profile",
        _CASES,
        "the set of ELF expectations",
        "acl-linked, acl-dlopened or pre-weak for ascend; needed or as-needed for nvidia",
        unset="from the source pin",
    ),
    Knob(
        "max_glibc",
        "XB_MAX_GLIBC",
        "--max-glibc",
        _CASES,
        "the highest GLIBC version that an artifact may need",
        "a glibc version like 2.34",
        unset="no bound: the need is an INFO row",
    ),
)
"""Every knob, in the order of ``inv knobs``."""

_BY_NAME = {entry.name: entry for entry in KNOBS}


def knob(name: str) -> Knob:
    """Return the knob called ``name``.

    Raises:
        KeyError: there is none.
    """
    return _BY_NAME[name]


def knobs_for(*groups: Group) -> tuple[Knob, ...]:
    """Return the knobs that have a flag and serve any of ``groups`` (or everything), in table order."""
    wanted = {Group.ALL, *groups}
    return tuple(entry for entry in KNOBS if entry.flag and not wanted.isdisjoint(entry.groups))
