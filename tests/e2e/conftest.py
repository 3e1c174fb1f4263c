"""Fixtures of the tests of whole runs."""

from __future__ import annotations

from tests.sshd import rig

__all__ = ["rig"]
