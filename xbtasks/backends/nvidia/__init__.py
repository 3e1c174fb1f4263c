"""NVIDIA: HAMi-core's ``libvgpu.so``."""

from __future__ import annotations

from xbtasks.backends.base import Artifact, Backend

__all__ = ["BACKEND"]

BACKEND = Backend(
    name="nvidia",
    stage_prefix="xbuild-nvidia-cuda-",
    image_repository="vgpu-build",
    staging_directory="/opt/vgpu",
    artifacts=(Artifact("/out/libvgpu.so", "libvgpu.so", 0o644),),
)
