"""What becomes of evidence when it can't be replaced by its redacted form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xbtasks import sharing
from xbtasks.result import Result

if TYPE_CHECKING:
    from pathlib import Path


def test_evidence_that_can_not_be_replaced_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "run.json").write_text("{}")

    def nothing_written(source: Path, target: Path) -> Result:
        return Result("run", "verify", "local", str(target))

    monkeypatch.setattr(sharing, "_redacted", nothing_written)
    with pytest.raises(FileNotFoundError):
        sharing.redact_in_place(directory)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (directory / "run.json").read_text() == "{}"
