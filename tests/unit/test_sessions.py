from __future__ import annotations

from pathlib import Path

import pytest

from tests.workplace import DOCKERFILE, SAMPLE, make_checkout
from xbtasks.errors import ExitCode, UsageError
from xbtasks.sessions import FIELD_STAGES, meaning, stage_names


def test_the_fields_stages_are_those_of_the_sample() -> None:
    assert stage_names({"XB_REPO": str(SAMPLE)}, Path("/")) == FIELD_STAGES


def test_the_sessions_are_the_stages_of_the_checkout_around(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, "FROM scratch AS xbuild-nvidia-cuda-99\n")
    assert stage_names({"XB_REPO": str(checkout)}, Path("/")) == ("xbuild-nvidia-cuda-99",)


@pytest.mark.parametrize("variables", [{}, {"XB_REPO": "/nowhere"}, {"XB_REPO": "{tmp}"}, {"XB_MODE": "SSH"}])
def test_without_a_checkout_or_with_a_wrong_knob_there_is_an_error(
    variables: dict[str, str], tmp_path: Path
) -> None:
    given = {name: value.format(tmp=tmp_path) for name, value in variables.items()}
    with pytest.raises(UsageError):
        stage_names({"XDG_CONFIG_HOME": str(tmp_path), **given}, tmp_path)


def test_a_dockerfile_that_can_not_be_read_is_an_error(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path, "FROM scratch AS xbuild-nvidia-cuda-99\n")
    (checkout / DOCKERFILE).write_bytes(b"\0")
    with pytest.raises(UsageError):
        stage_names({"XB_REPO": str(checkout)}, tmp_path)


def test_every_exit_code_has_a_meaning() -> None:
    texts = {meaning(code) for code in ExitCode if code}
    assert len(texts) == len(ExitCode) - 1
    assert "nothing was measured" in meaning(3)
    assert all(f"exit code {int(code)}" in meaning(code) for code in ExitCode if code)
    assert "did not run to its end" in meaning(None)
    assert "did not run to its end" in meaning(-9)
