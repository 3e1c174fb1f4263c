"""A Dockerfile in the operator's form, and ways to look at one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xbtasks.checkout.stages import Discovery, Stage, discover, find_stage

if TYPE_CHECKING:
    from pathlib import Path

OPERATOR = """\
ARG ROOT="/etc/x"
ARG LIBS="${ROOT}/lib"
ARG UBUNTU="ubuntu:24.04@sha256:%s"

# Bump the commit to update: no stage here is FROM --platform=linux/amd64 x AS xbuild-nvidia-cuda-11
ARG LIB_UBS_VIRT_ENPU_COMMIT="aaaa"
ARG LIB_HAMI_CORE_COMMIT="bbbb"
ARG LIB_UNUSED_COMMIT="cccc"

FROM ${UBUNTU} AS tools
ARG TARGETARCH
RUN <<EOF
    cat<<EOT > /x
FROM no AS xbuild-nvidia-cuda-10
EOT
EOF

FROM quay.io/ascend/cann:8 AS xbuild-ascend-cann-8-910b
ARG LIB_UBS_VIRT_ENPU_COMMIT
RUN --mount=type=bind,src=external/ascend/build.sh,target=/b.sh \\
    --mount=type=bind,src=external/ascend/patches,target=/patches <<EOF
    bash /b.sh "${LIB_UBS_VIRT_ENPU_COMMIT}"
EOF

from nvidia/cuda:12-ubi8 as xbuild-nvidia-cuda-12
ARG LIB_HAMI_CORE_COMMIT
RUN dnf install -y cmake
RUN --mount=type=bind,src=external/nvidia/build.sh,target=/b.sh <<EOF
    bash /b.sh
EOF

FROM vendor/ppu:2 AS xbuild-thead-ppu-amd64
RUN --mount=type=bind,src=csrc/ppu,target=/src make
FROM ${UBUNTU} AS xbuild-thead-ppu-arm64
WORKDIR /out
FROM xbuild-thead-ppu-${TARGETARCH} AS xbuild-thead-ppu

FROM ${UBUNTU} AS final
ARG LIBS
COPY --from=xbuild-nvidia-cuda-12 /out ${LIBS}/nvidia
COPY --from=xbuild-thead-ppu /out ${LIBS}/thead
""" % ("ab" * 32)


def look(repo: Path, text: str) -> Discovery:
    (repo / "Dockerfile").write_bytes(text.encode("utf-8", "surrogateescape"))
    return discover(repo, "Dockerfile")


def one(repo: Path, text: str, name: str = "xbuild-nvidia-cuda-12") -> Stage:
    return find_stage(look(repo, text), name)


def cuda(base: str, *body: str) -> str:
    return "\n".join([f"FROM {base} AS xbuild-nvidia-cuda-12", *body, ""])


NAME = "xbuild-nvidia-cuda-12"


def plant(root: Path) -> Path:
    """Make a small checkout: files, an executable, an empty directory and a link."""
    for directory in ("src/deep/empty", "other", "pack"):
        (root / directory).mkdir(parents=True)
    for file in ("src/a.c", "src/b.c", "src/b.h", "src/deep/c.c", "other/o", "run.sh", "[x]", "secret"):
        (root / file).write_text(file)
    (root / "run.sh").chmod(0o755)
    (root / "src/link").symlink_to("a.c")
    return root


def stage(repo: Path, *lines: str, top: str = "", end: str = "") -> Stage:
    """Write a Dockerfile with one stage of ``lines`` and return that stage."""
    text = top + "\n".join([f"FROM a AS {NAME}", *lines, ""]) + end
    (repo / "pack/Dockerfile").write_text(text)
    (found,) = discover(repo, "pack/Dockerfile").stages
    return found
