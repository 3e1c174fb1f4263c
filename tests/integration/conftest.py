"""Fixtures of the integration tests."""

from __future__ import annotations

from tests.npus import npu_host, npu_tools
from tests.nvidiakit import nvidia_host
from tests.sshd import rig

__all__ = ["npu_host", "npu_tools", "nvidia_host", "rig"]
