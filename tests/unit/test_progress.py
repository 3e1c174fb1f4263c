from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.reporting.progress import BuildProgress


def after(*lines: str) -> BuildProgress:
    progress = BuildProgress()
    for line in lines:
        progress.take(f"{line}\n".encode())
    return progress


def test_a_stage_that_is_known_late_takes_nothing_back() -> None:
    lines = ["#4 [tools 1/1] FROM base", "#4 DONE 0.1s"]
    assert after(*lines).percent == 100
    progress = after(*lines)
    assert progress.percent == 100
    progress.take(b"#5 [xbuild 1/9] FROM other\n")
    assert progress.percent == 100


def test_nothing_is_known_at_first() -> None:
    assert after().percent is None
    assert after("#1 [internal] load build definition", "#1 DONE 0.1s").percent is None
    assert after().step == ""


def test_steps_are_counted_over_all_stages_of_the_build() -> None:
    lines = ["#4 [toolkit 1/2] FROM base", "#5 [xbuild 1/2] FROM base", "#4 DONE 0.0s", "#5 CACHED"]
    assert after(*lines).percent == 50
    lines.append("#6 [toolkit 2/2] RUN --mount=type=bind,src=a make")
    assert after(*lines).step == "2/2 RUN make"
    lines.append("#6 DONE 9.0s")
    assert after(*lines).percent == 75
    assert after(*lines).step == ""


def test_a_download_tells_how_far_it_is() -> None:
    lines = [
        "#4 [xbuild 1/2] FROM base",
        "#4 sha256:aa 25.00MB / 100.00MB 0.2s",
        "#4 sha256:bb 0B / 512kB 0.2s",
        "#4 sha256:bb 256kB / 512kB 0.4s",
    ]
    assert after(*lines).percent == 18  # (1/4 + 1/2) / 2 of one step of two


def test_the_last_step_that_goes_on_is_shown() -> None:
    lines = ["#4 [a 1/3] FROM x", "#5 [b 1/3] FROM y", "#5 DONE 0.1s"]
    assert after(*lines).step == "1/3 FROM x"
    assert after(*lines, "#4 DONE 0.1s", "#6 exporting to image").step == "exporting to image"


@pytest.mark.parametrize(
    "line",
    [
        "#9 0.162 [xbuild 9/9] RUN x",  # a step's own output bears a time
        "#9 sha256:aa 1MB / 2MB 0.1s",  # of nothing that was begun
        "#4 0.162 sha256:aa 99MB / 99MB 0.1s",
        "#4 sha256:aa 1.2.3MB / 2MB 0.1s",
        "#4 sha256:aa 0B / 0B 0.1s",
        "#9 [xbuild 1/0] RUN x",
        "#9 [xbuild 99999/99999] RUN x",
        "99 %",
    ],
)
def test_nothing_else_moves_it(line: str) -> None:
    begun = ["#4 [xbuild 1/4] FROM base", "#5 [xbuild 2/4] RUN x", "#4 DONE 0.1s"]
    assert after(*begun).percent == 25
    assert after(*begun, line).percent == 25


_LINES = st.one_of(
    st.text(),
    st.builds(
        "#{} {}".format,
        st.integers(0, 5),
        st.one_of(
            st.builds("[s{} {}/{}] RUN".format, st.integers(0, 2), st.integers(0, 9), st.integers(0, 9)),
            st.builds("sha256:{}a {}MB / {}MB".format, st.integers(0, 3), st.floats(), st.floats()),
            st.sampled_from(["DONE 0.1s", "CACHED", "ERROR: x", "CANCELED", "..."]),
        ),
    ),
)


@given(st.lists(_LINES))
def test_it_never_falls_and_stays_within_bounds(lines: list[str]) -> None:
    progress, last = BuildProgress(), 0
    for line in lines:
        progress.take(f"{line}\n".encode(errors="replace"))
        assert progress.step.isprintable()
        now = progress.percent
        assert now is None or last <= now <= 100
        last = now or last


def test_a_line_without_an_end_takes_no_memory() -> None:
    progress = BuildProgress()
    for _ in range(100):
        progress.take(b"x" * 65536)
    assert len(progress._rest) <= 65536
