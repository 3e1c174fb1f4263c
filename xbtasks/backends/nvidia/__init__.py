"""NVIDIA: HAMi-core's ``libvgpu.so``."""

from __future__ import annotations

from xbtasks.backends.base import Artifact, Backend, Case

__all__ = ["BACKEND"]

BACKEND = Backend(
    name="nvidia",
    stage_prefix="xbuild-nvidia-cuda-",
    image_repository="vgpu-build",
    staging_directory="/opt/vgpu",
    artifacts=(Artifact("/out/libvgpu.so", "libvgpu.so", 0o644),),
    card="GPU",
    cases=(
        Case(1, "Build artifacts + linking", 0),
        Case(2, "Single-card inject + nvidia-smi", 1, "xbtasks.backends.nvidia.case2", rate=True),
        Case(3, "Multi-card per-device limits", 2, "xbtasks.backends.nvidia.case3"),
    ),
    host="xbtasks.backends.nvidia.hardware",
)
"""What xbtasks knows of NVIDIA: names, artifacts, cases, and its part of preflight."""
