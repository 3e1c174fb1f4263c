from __future__ import annotations

import pytest

from xbtasks.errors import UsageError
from xbtasks.matrix.selection import chosen_cases, chosen_names

STAGES = ("xbuild-ascend-cann-8-910b", "xbuild-ascend-cann-9-910c", "xbuild-nvidia-cuda-13")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", STAGES),
        ("*", STAGES),
        ("xbuild-nvidia-*", STAGES[2:]),
        ("xbuild-nvidia-cuda-13,xbuild-ascend-cann-8-910b", (STAGES[0], STAGES[2])),
        ("*910[bc], *-13", STAGES),
        ("*910b,*910b", STAGES[:1]),
    ],
)
def test_patterns_choose_in_the_order_of_the_names(text: str, expected: tuple[str, ...]) -> None:
    assert chosen_names("--stages", text, STAGES) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("xbuild-nvidia-cuda-31", "did you mean xbuild-nvidia-cuda-13"),
        ("xbuild-nvidia-*,zzz", "nothing is called 'zzz'; there is xbuild"),
        ("XBUILD-NVIDIA-*", "nothing is called"),
        ("xbuild-nvidia-cuda-13,", "nothing is called ''"),
    ],
)
def test_what_fits_nothing_is_an_error_with_the_nearest(text: str, said: str) -> None:
    with pytest.raises(UsageError, match="--stages") as caught:
        chosen_names("--stages", text, STAGES)
    assert said in str(caught.value)


def test_cases() -> None:
    assert chosen_cases("", (1, 2, 3)) == (1, 2, 3)
    assert chosen_cases("3,1", (1, 2, 3)) == (1, 3)
    assert chosen_cases("[23]", (1, 2, 3)) == (2, 3)
    for text in ("4", "1,", "one", "1-2"):
        with pytest.raises(UsageError, match="--cases"):
            chosen_cases(text, (1, 2, 3))
