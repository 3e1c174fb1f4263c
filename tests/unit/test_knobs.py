from __future__ import annotations

from pathlib import Path

import pytest

from xbtasks.errors import ExitCode, UsageError
from xbtasks.resolve import resolve

PROJECT_FILE = Path(__file__).parents[2] / "config" / "invoke.yaml"


def test_resolves_with_the_project_file() -> None:
    settings = resolve({}, {}, user_file=None, explicit_user_file=False, project_file=PROJECT_FILE)
    assert settings.mode == "local"
    assert settings.origin("aicore").startswith("config/invoke.yaml line ")


def test_refuses_a_unit() -> None:
    with pytest.raises(UsageError) as caught:
        resolve({}, {"XB_MEM": "4g"}, user_file=None, explicit_user_file=False, project_file=None)
    assert caught.value.exit_code == ExitCode.USAGE
    assert str(caught.value) == (
        "mem from XB_MEM: '4g' is not accepted; accepted: whole MiB, 1 to 2147483647; whole MiB, e.g. 4096"
    )
