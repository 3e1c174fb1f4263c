from __future__ import annotations

import os

import pytest

from xbtasks.tasks.development import side_by_side


@pytest.mark.parametrize(("cores", "processes"), [(None, "1"), (1, "1"), (2, "2"), (4, "4"), (64, "4")])
def test_files_of_tests_run_side_by_side(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, processes: str
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    options = side_by_side(["-k", "frame", "--no-header"])
    assert options == ("-n", processes, "--dist", "loadfile", "--no-loadscope-reorder")


@pytest.mark.parametrize("words", [["-n0"], ["-n", "3"], ["--numprocesses=2"], ["--pdb"]])
def test_who_says_how_many_gets_them(words: list[str]) -> None:
    assert side_by_side(words) == ()
