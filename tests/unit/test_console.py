from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.reporting.console import Console, one_line


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(*chunks: bytes, hide: str = "") -> list[str]:
    out = io.StringIO()
    console = Console(out, hide=re.compile(hide) if hide else None)
    for chunk in chunks:
        console.live(chunk)
    return out.getvalue().splitlines()


@given(st.text())
def test_a_cell_is_one_line_without_control_characters(text: str) -> None:
    line = one_line(text)
    assert line.isprintable()
    assert len(line.splitlines()) <= 1


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_nothing_but_line_ends_controls_the_terminal(text: str) -> None:
    out = io.StringIO()
    Console(out).say(text)
    assert out.getvalue().replace("\n", "").isprintable()
    assert out.getvalue().count("\n") == text.count("\n") + 1


@pytest.mark.parametrize("text", ["\x1b[2J", "\x1b]0;title\x07", "\x1b[8m", "a\rb", "\u202etxet", "\x9b2J"])
def test_escape_sequences_of_others_are_disarmed_on_a_terminal(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    out = Terminal()
    console = Console(out)
    console.say(f"{text} {console.status('PASS')}")
    assert out.getvalue().endswith(" \x1b[32mPASS\x1b[0m\n")
    assert out.getvalue()[: -len(" \x1b[32mPASS\x1b[0m\n")].isprintable()


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)],
)
def test_colour_follows_the_terminal(
    variables: dict[str, str], coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (Console(Terminal()).status("FAIL") != "FAIL") == coloured
    assert Console(io.StringIO()).status("FAIL") == "FAIL"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_can_not_be_encoded_is_replaced(encoding: str) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding=encoding)
    Console(out).say("h\u00f4te \u2713 \udcff")
    out.flush()
    assert raw.getvalue().decode(encoding).startswith("h")


# progress


STEP = b"#5 [xbuild-nvidia-cuda-13 2/2] RUN --mount=type=bind,src=a,target=/a <<EOF (set -eux...)\n"


def test_progress_shows_the_steps_and_not_their_output() -> None:
    log = (
        b'#0 building with "default"\n\n#1 [internal] load build definition\n#1 DONE 0.0s\n\n'
        + STEP
        + b"#5 0.162 compiling\n#5 DONE 2.3s\n\n#6 exporting to image\n#6 DONE 0.1s\n"
    )
    assert printed(log) == [
        "    #5 [xbuild-nvidia-cuda-13 2/2] RUN <<EOF (set -eux...)",
        "    #5 DONE 2.3s",
        "    #6 exporting to image",
        "    #6 DONE 0.1s",
    ]


def test_progress_comes_in_pieces_of_any_size() -> None:
    log = STEP + "#5 0.1 h\u00f4te\n".encode() + b"#5 DONE 1.0s\n"
    whole = printed(log)
    for size in (1, 2, 7):
        assert printed(*(log[at : at + size] for at in range(0, len(log), size))) == whole


def test_a_step_that_is_told_again_is_shown_once() -> None:
    assert len(printed(STEP + STEP + b"#5 DONE 1.0s\n")) == 2


def test_another_stage_counts_its_steps_anew() -> None:
    out = io.StringIO()
    console = Console(out)
    for stage in ("one", "one", "two"):
        console.doing(stage, 0, "building")
        console.live(STEP)
    assert len(out.getvalue().splitlines()) == 2


@pytest.mark.parametrize(
    "line",
    [
        b"#5 0.1 #5 DONE 9.9s",
        b"#5 0.1 \rPASS\r",
        b"#5 0.1 ERROR: failed to solve",
        b"PASS",
        b" STATUS | CHECK",
        b"#x [fake] RUN",
        b"#9 DONE 1.0s",
        b"",
    ],
)
def test_a_steps_output_is_no_progress(line: bytes) -> None:
    assert printed(STEP + line + b"\n") == printed(STEP)


def test_the_engines_last_word_is_left_to_who_knows_what_it_means() -> None:
    assert printed(b"ERROR: failed to solve: \x1b[31m" + b"x" * 500 + b"\n") == []


def test_a_banner_is_hidden_from_progress_only() -> None:
    assert printed(STEP, hide="RUN") == []


# questions


def test_an_answer_is_read_and_the_question_stays_out_of_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(" 1,3 \n"))
    out = io.StringIO()
    assert Console(out).ask("Which\x1b[2J stages?") == "1,3"
    assert out.getvalue() == ""
    assert capsys.readouterr().err == "Which [2J stages? "
    shown = Terminal()
    assert Console(shown).ask("Which?") == ""
    assert shown.getvalue() == "Which? "


def test_nobody_can_be_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for stdin, can in ((None, False), (io.StringIO(), False), (Terminal(), True)):
        monkeypatch.setattr("sys.stdin", stdin)
        assert Console(io.StringIO()).can_ask == can
