"""A person at a terminal: choosing stages, and what a terminal must never show."""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.actions import obeyed
from tests.emulator import Terminal
from tests.workplace import BASE, PROJECT, SAMPLE, make_checkout

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workplace import Workplace

pytestmark = pytest.mark.engine


def checkout(place: Workplace, count: int = 4) -> Path:
    """Make a checkout whose stages build in no time and fail."""
    text = "".join(
        f"FROM {BASE} AS xbuild-nvidia-cuda-{place.name}-{number}\nRUN mkdir /out; : {number}\n"
        for number in range(1, count + 1)
    )
    return make_checkout(place.folder / "checkout", text)


@pytest.mark.parametrize(
    ("keys", "chosen"), [("2\n", [2]), ("1,3\n", [1, 3]), (" 3  1 3 \n", [3, 1]), ("all\n", [1, 2, 3, 4])]
)
def test_several_stages_may_be_chosen(place: Workplace, keys: str, chosen: list[int]) -> None:
    target = place.folder / "result.json"
    done = place.at_terminal(
        "build", f"--json={target}", keys=keys, XB_REPO=str(checkout(place)), XB_IMAGE=None
    )
    assert "Which stages?" in done.err
    assert [line.split() for line in done.out.splitlines()[:4]] == [
        [str(number), f"xbuild-nvidia-cuda-{place.name}-{number}"] for number in range(1, 5)
    ]
    assert done.code == 1  # none of them makes an artifact
    built = [
        build["stage"] for build in json.loads(target.read_text())["builds"] if build["outcome"] == "built"
    ]
    assert built == [f"xbuild-nvidia-cuda-{place.name}-{number}" for number in chosen]


@pytest.mark.parametrize(
    "keys", ["\n", "\x04", "0\n", "5\n", "1,x\n", "-1\n", "\u0661\n", "1;2\n", "xbuild\n"]
)
def test_no_clear_choice_is_2_and_nothing_is_built(place: Workplace, keys: str) -> None:
    done = place.at_terminal("verify", keys=keys, XB_REPO=str(checkout(place)), XB_IMAGE=None)
    assert done.code == 2, done.text
    assert "no stage was chosen" in done.err
    assert place.evidence() == []


def test_a_question_stays_out_of_the_document(place: Workplace) -> None:
    done = place.at_terminal("build", "--json", keys="1\n", XB_REPO=str(checkout(place)), XB_IMAGE=None)
    assert "Which stages?" in done.err
    assert done.document["command"] == "build"


def test_a_terminal_shows_colours_of_ours_and_no_sequence_of_others(place: Workplace) -> None:
    stage = f"xbuild-nvidia-cuda-{place.name}"
    evil = "\\033]0;owned\\007\\033[2J\\033[8m"
    text = f"FROM {BASE} AS {stage}\nRUN printf '{evil}\\n' >&2; exit 3\n"
    folder = make_checkout(place.folder / "checkout", text)
    done = place.on_screen(
        "verify",
        stage,
        "--cases",
        "1",
        question="exit code 1",
        keys="",
        XB_REPO=str(folder),
        NO_COLOR=None,
        TERM="xterm",
    )
    assert done.code == 1, done.text
    assert "\x1b[31mFAIL\x1b[0m" in done.out
    ours = r"\x1b\[(0|2|31|32|33|36|2K|1A)m?"  # colours, and what draws the board anew
    assert "\x1b" not in re.sub(ours, "", done.out)
    assert "\x07" not in done.out


def test_ctrl_c_takes_the_board_away_and_the_summary_is_printed(place: Workplace) -> None:
    stage = f"xbuild-nvidia-cuda-{place.name}"
    text = f"FROM {BASE} AS {stage}\nRUN echo {place.name}; sleep 600\n"
    done = place.on_screen(
        *("verify", stage, "--cases", "1"),
        question="building 2/2 RUN",
        keys="\x03",
        XB_REPO=str(make_checkout(place.folder / "checkout", text)),
        TERM="xterm",
        COLUMNS=None,
    )
    assert done.code == 130, done.out
    terminal = Terminal(120)
    terminal.feed(done.out.replace("\n", "\r\n").encode())
    lines = [line for line in terminal.everything if line]
    assert lines[0] == stage
    assert not [line for line in lines if re.match(r"(run|wait) +\d*:?", line)]
    assert any("exit code 130" in line for line in lines)
    assert terminal.cursor_shown
    assert place.left_over() == []


def test_a_question_is_read_whole_and_answered_below_the_lines(place: Workplace) -> None:
    strip = "s/xbtasks.simulated=true/other=true/g"  # so that it is asked as on a host with real cards
    body = f'case "$*" in *info*) "$REAL" "$@" | sed {strip};; *) exec "$REAL" "$@";; esac'
    done = place.on_screen(
        *("verify", "xbuild-nvidia-cuda-13", "--cases", "2"),
        question="Go on? [y/N] ",
        keys="n\n",
        PATH=place.shim("docker", body),
        TERM="xterm",
        COLUMNS=None,
    )
    assert done.code == 2, done.out
    terminal = Terminal(120)
    terminal.feed(done.out.replace("\n", "\r\n").encode())
    lines = terminal.everything
    asked = lines.index("Go on? [y/N] n")
    assert "needs your word" in "".join(lines[:asked])
    assert not [line for line in lines if re.match(r"(run|wait) +\d*:?", line)]
    assert any(line.startswith("ERROR: ") and "not confirmed" in line for line in lines[asked:])
    assert place.left_over() == []


def test_a_log_of_github_obeys_nothing_but_us(place: Workplace) -> None:
    stage = f"xbuild-nvidia-cuda-{place.name}"
    evil = "::set-output name=x::1\\n##[add-mask]e\\n::error::fake"
    text = f"FROM {BASE} AS {stage}\nRUN printf '{evil}\\n' >&2; exit 3\n"
    folder = make_checkout(place.folder / "checkout", text)
    done = place.inv(
        *("verify", stage, "--cases", "1"),
        XB_REPO=str(folder),
        GITHUB_ACTIONS="true",
        GITHUB_STEP_SUMMARY=None,
    )
    assert done.code == 1, done.text
    assert "::set-output name=x::1" in done.out
    group, end, error = obeyed(done.out)
    assert (group, end) == (("group", "", stage), ("endgroup", "", ""))
    assert error[0] == "error"
    assert "exit code 3" in error[2]
    assert obeyed(done.err) == []


def test_a_locale_without_unicode_shows_what_it_can(place: Workplace) -> None:
    stage = f"xbuild-nvidia-cuda-{place.name}"
    folder = make_checkout(
        place.folder / "checkout", f"FROM {BASE} AS {stage}\nRUN printf 'h\u00f4te\\377' >&2; exit 3\n"
    )
    done = place.inv(
        *("verify", stage, "--cases", "1"),
        XB_REPO=str(folder),
        LC_ALL="C",
        LANG="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
        PYTHONIOENCODING="ascii",
    )
    assert done.code == 1, done.text
    assert "Traceback" not in done.text


def test_a_closed_stdin_is_no_terminal(place: Workplace) -> None:
    done = place.run("sh", "-c", 'exec "$0" "$@" <&-', place.program("inv"), "verify")
    assert done.code == 2, done.text
    assert "no stage is named" in done.err
    passed = place.run(
        "sh", "-c", 'exec "$0" "$@" <&-', place.program("inv"), "verify", "xbuild-nvidia-cuda-13"
    )
    assert passed.code == 0, passed.text


def test_a_reader_that_goes_away_ends_the_run_quietly(place: Workplace) -> None:
    line = 'exec 3>&1; { "$0" "$@"; echo "$?" >&3; } | head -n 1 >/dev/null'
    done = place.run("bash", "-c", line, place.program("inv"), "stages", XB_REPO=str(SAMPLE))
    assert done.out.strip() in ("0", "4")
    assert done.err == ""


def test_input_that_nobody_closes_is_not_waited_for(place: Workplace) -> None:
    reader, writer = os.pipe()
    try:
        done = subprocess.run(
            [place.program("inv"), "nvidia.case1", "xbuild-nvidia-cuda-13"],
            cwd=PROJECT,
            env=place.environment(),
            stdin=reader,
            capture_output=True,
            timeout=120,
        )
    finally:
        os.close(reader)
        os.close(writer)
    assert done.returncode == 2, done.stderr
