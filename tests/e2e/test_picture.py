"""The README's picture is of what is printed today."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from docs import picture

if TYPE_CHECKING:
    from tests.workplace import Workplace


def test_the_picture_shows_what_it_was_drawn_from() -> None:
    text = "$ ./xb verify\n \x1b[32mPASS\x1b[0m     | nvidia.case1.mode | <0644> & more\n\n   end"
    assert picture.seen(picture.words_of(picture.draw(text))) == picture.seen(text)


def test_what_differs_from_run_to_run_is_taken_out_and_words_are_not() -> None:
    one = "  built a:1 (sha256:0123456789ab) in 5.2 s\n    #4 CACHED\n PASS | b | 1.5 MiB, sha256\n"
    one += "      |   | 0123456789ab…"
    two = "  built a:1 (sha256:fffffffffff0) in 4.1 s\n PASS | b | 2.5 MiB, sha256 fffffffffff0…"
    assert picture.seen(one) == picture.seen(two)
    assert picture.seen(one) != picture.seen(two.replace("built", "made"))


@pytest.mark.engine
def test_the_picture_is_of_the_present_output(place: Workplace) -> None:
    shown, status = picture.record(picture.COMMAND, place.environment())
    assert status == 0, shown
    drawn = picture.seen(picture.words_of(picture.PICTURE.read_text()))
    drawn = drawn.removeprefix(f"$ ./xb {picture.seen(' '.join(picture.COMMAND))} ")
    present = picture.seen(shown, {place.tag("image"): "vgpu-build:13"})
    assert drawn == present, "nox -s picture makes it anew"
