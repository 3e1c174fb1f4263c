from __future__ import annotations

import json

import pytest

from xbtasks.errors import CannotJudge, Refused, UsageError, XbError
from xbtasks.ownside import OwnSide, read_notes


@pytest.mark.parametrize(
    "error",
    [Refused("not confirmed", hint="--yes"), UsageError("no such file"), CannotJudge("can't be read")],
)
def test_an_error_of_this_side_is_raised_again_in_a_replay(error: XbError) -> None:
    kept: list[bytes] = []
    own = OwnSide(keep=lambda noted: kept.append(json.dumps(noted).encode()))

    def fails() -> None:
        raise error

    with pytest.raises(type(error)):
        own.call("permission to build x", fails)
    again = OwnSide(read_notes(kept[-1]))
    with pytest.raises(type(error)) as caught:
        again.call("permission to build x", lambda: None)
    assert str(caught.value) == str(error)
    assert caught.value.exit_code == error.exit_code


def test_what_went_well_is_not_noted() -> None:
    kept: list[object] = []
    assert OwnSide(keep=kept.append).call("context of x", lambda: b"tar") == b"tar"
    assert kept == []


def test_only_the_call_that_failed_fails_again() -> None:
    again = OwnSide({"permission to build x": ("Refused", "no", "")})
    assert again.call("permission to build y", lambda: 1) == 1


def test_an_unknown_kind_is_no_verdict() -> None:
    with pytest.raises(CannotJudge, match="odd"):
        OwnSide({"x": ("OSError", "odd", "")}).call("x", lambda: None)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"1", b'{"x": 1}', b'{"x": ["Refused", "no"]}', b'{"x": ["a", "b", 1]}']
)
def test_other_notes_are_not_ours(data: bytes) -> None:
    with pytest.raises(ValueError):
        read_notes(data)
