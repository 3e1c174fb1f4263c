"""Fixtures of the integration tests."""

from __future__ import annotations

from tests.sshd import rig

__all__ = ["rig"]
