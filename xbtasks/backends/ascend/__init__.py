"""Ascend: vcann-rt's ``libvruntime.so`` and ``enpu-monitor``."""

from __future__ import annotations

from xbtasks.backends.base import Artifact, Backend, Case

__all__ = ["BACKEND"]

BACKEND = Backend(
    name="ascend",
    stage_prefix="xbuild-ascend-cann-",
    image_repository="vcann-build",
    staging_directory="/opt/enpu/vcann-rt",
    artifacts=(
        Artifact("/out/lib/libvruntime.so", "lib/libvruntime.so", 0o644),
        Artifact("/out/tools/enpu-monitor", "tools/enpu-monitor", 0o755),
    ),
    card="NPU",
    cases=(
        Case(1, "Build artifacts + linking", 0),
        Case(2, "Inject + enpu-monitor", 1, "xbtasks.backends.ascend.case2"),
        Case(3, "Memory-quota enforcement", 1, "xbtasks.backends.ascend.case3"),
    ),
    host="xbtasks.backends.ascend.hardware",
)
"""What xbtasks knows of Ascend: names, artifacts, cases, and its part of preflight."""
