"""Preflight: what a host can do, asked in one round trip, read-only (SPEC 4).

``preflight_step`` is the question, ``read_preflight`` turns its reply into facts, ``preflight_checks``
turns facts into rows. Decisions are taken on facts, never on rows.
"""

from __future__ import annotations

from xbtasks.preflight.reading import read_preflight
from xbtasks.preflight.rows import preflight_checks
from xbtasks.preflight.step import Deadlines, preflight_step

__all__ = ["Deadlines", "preflight_checks", "preflight_step", "read_preflight"]
