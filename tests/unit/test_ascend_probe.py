"""The probe of the Ascend cases: memory that has no address yet is asked for too."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from xbtasks.backends.ascend.probe import Acl

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

MIB = 1 << 20


def library(monkeypatch: pytest.MonkeyPatch, *functions: Callable[..., int]) -> None:
    names = {function.__name__: function for function in functions}
    monkeypatch.setattr(ctypes, "CDLL", lambda name, mode: SimpleNamespace(**names))


def test_physical_memory_is_asked_for_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def aclrtMallocPhysical(handle: Any, size: Any, properties: Any, flags: Any) -> int:  # noqa: N802
        asked.extend((size.value, list(properties), flags.value, handle))
        return 300000

    library(monkeypatch, aclrtMallocPhysical)
    assert Acl().malloc_physical(128 * MIB) == 300000
    assert asked[:3] == [128 * MIB, [0, 0, 4, 0, 1, 0, 0, 0], 0]


def test_a_toolkit_without_that_way_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    library(monkeypatch)
    assert Acl().malloc_physical(MIB) is None
