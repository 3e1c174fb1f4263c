"""The frame: what a script must be, and that an answer is read whole and unchanged or not at all."""

from __future__ import annotations

import base64
import hashlib
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.errors import HostUnreachable, LostReply
from xbtasks.host import frame
from xbtasks.host.step import Reply, Section, SectionReply, Step

MARKER = "xb-0123456789abcdef01234567.1"
NAMES = ("first", "second", "third")

streams = st.binary(max_size=200)
answers = st.lists(
    st.tuples(st.integers(0, 255), st.integers(0, 9), streams, streams), min_size=1, max_size=3
)
Answers = list[tuple[int, int, bytes, bytes]]


def step_of(answers: Answers) -> Step:
    return Step("some", tuple(Section(name, ("true",), 60) for name, _ in zip(NAMES, answers, strict=False)))


def framed(answers: Answers, marker: str = MARKER) -> bytes:
    """Return the frame that a host sends for ``answers``."""
    lines, headers = ["", f"{marker} begin {len(answers)}"], []
    for name, (status, seconds, out, err) in zip(NAMES, answers, strict=False):
        sums = " ".join(f"{len(data)} {hashlib.sha256(data).hexdigest()}" for data in (out, err))
        headers.append(f"{name} {status} {seconds} {sums}")
        lines.append(f"{marker} section {headers[-1]}")
        for letter, data in (("o", out), ("e", err)):
            text = base64.b64encode(data).decode()
            lines += [f"{marker} {letter} {text[at : at + 76]}" for at in range(0, len(text), 76)]
    listing = "".join(f"{header}\n" for header in headers).encode()
    lines.append(f"{marker} end {len(answers)} {hashlib.sha256(listing).hexdigest()}")
    return ("\n".join(lines) + "\n").encode()


def right(answers: Answers) -> tuple[SectionReply, ...]:
    return tuple(
        SectionReply(name, status, out, err, seconds, timed_out=False)
        for name, (status, seconds, out, err) in zip(NAMES, answers, strict=False)
    )


@given(answers)
def test_any_bytes_on_both_streams_come_back(answers: Answers) -> None:
    reply = frame.parse(step_of(answers), MARKER, framed(answers))
    assert reply == Reply("some", right(answers))


@given(answers, st.data())
def test_a_frame_that_is_cut_short_is_lost(answers: Answers, data: st.DataObject) -> None:
    whole = framed(answers)
    length = data.draw(st.integers(0, len(whole) - 1))
    with pytest.raises(LostReply):
        frame.parse(step_of(answers), MARKER, whole[:length])


@given(answers, st.data(), st.integers(1, 255))
def test_a_frame_with_one_wrong_byte_is_lost(answers: Answers, data: st.DataObject, flip: int) -> None:
    whole = framed(answers)
    spot = data.draw(st.integers(1, len(whole) - 1))  # the first byte ends whatever line came before
    broken = whole[:spot] + bytes([whole[spot] ^ flip]) + whole[spot + 1 :]
    with pytest.raises(LostReply):
        frame.parse(step_of(answers), MARKER, broken)


@given(answers, st.data())
def test_a_frame_with_a_line_lost_or_told_twice_is_lost(answers: Answers, data: st.DataObject) -> None:
    lines = framed(answers).splitlines(keepends=True)
    spot = data.draw(st.integers(1, len(lines) - 1))
    for changed in (lines[:spot] + lines[spot + 1 :], lines[:spot] + lines[spot : spot + 1] + lines[spot:]):
        with pytest.raises(LostReply):
            frame.parse(step_of(answers), MARKER, b"".join(changed))


noises = st.lists(
    st.one_of(
        st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"")),
        st.sampled_from(
            [
                b"FAIL | nvidia.case1.mode | from the motd",
                b"FAILS=0",
                b"bash: warning: setlocale",
                b"\xff\xfe\r",
                b"xb-0123456789abcdef01234567.2 end 1 0000",
                b"xb-0123456789abcdef01234567.11 begin 9",
                b" xb-0123456789abcdef01234567.1 abort tmp",
            ]
        ),
    ).filter(lambda line: not line.startswith(MARKER.encode() + b" ")),
    max_size=6,
)


@given(answers, noises, st.randoms(use_true_random=False))
def test_noise_between_lines_is_counted_and_changes_nothing(
    answers: Answers,
    noise: list[bytes],
    random: st.random.Random,  # type: ignore[name-defined]
) -> None:
    lines = framed(answers).split(b"\n")
    for line in noise:
        lines.insert(random.randrange(len(lines)), line)
    reply = frame.parse(step_of(answers), MARKER, b"\n".join(lines))
    assert reply.sections == right(answers)
    assert sorted(reply.noise) == sorted(line.decode(errors="replace") for line in noise if line.strip())


def test_a_frame_of_another_run_or_step_is_noise() -> None:
    mine: Answers = [(0, 0, b"mine", b"")]
    for other in (
        "xb-ffffffffffffffffffffffff.1",
        f"{MARKER}1",
        MARKER[:-1],
        "xb-0123456789abcdef01234567.2",
    ):
        theirs = framed([(1, 0, b"theirs", b"")], other)
        reply = frame.parse(step_of(mine), MARKER, theirs + framed(mine) + theirs)
        assert reply["first"].stdout == b"mine"
        assert len(reply.noise) == 8
        with pytest.raises(LostReply, match="no reply came back"):
            frame.parse(step_of(mine), MARKER, theirs)


def test_other_sections_than_were_asked_for_are_lost() -> None:
    two: Answers = [(0, 0, b"", b""), (0, 0, b"", b"")]
    with pytest.raises(LostReply):
        frame.parse(step_of(two[:1]), MARKER, framed(two))
    swapped = Step("some", tuple(reversed(step_of(two).sections)))
    with pytest.raises(LostReply, match="other sections came back"):
        frame.parse(swapped, MARKER, framed(two))


def test_stderr_around_a_step_is_noise_unless_a_section_is_live() -> None:
    answers: Answers = [(0, 0, b"", b"")]
    stderr = f"a banner\n\n{MARKER} over\n".encode()
    assert frame.parse(step_of(answers), MARKER, framed(answers), stderr=stderr).noise == ("a banner",)
    live = Step("some", (Section("first", ("true",), 60, live=True),))
    assert frame.parse(live, MARKER, framed(answers), stderr=stderr).noise == ()


@pytest.mark.parametrize(
    ("status", "seconds", "timed_out"),
    [(124, 60, True), (137, 65, True), (143, 60, True), (124, 59, False), (1, 70, False)],
)
def test_only_the_deadline_s_own_statuses_at_the_deadline_are_a_timeout(
    status: int, seconds: int, timed_out: bool
) -> None:
    answers: Answers = [(status, seconds, b"", b"")]
    assert frame.parse(step_of(answers), MARKER, framed(answers))["first"].timed_out is timed_out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("tool sha256sum", "step some: the host's shell lacks sha256sum"),
        ("tmp", "step some: no temporary directory can be made"),
        ("whatever else", "step some: the script gave up: whatever else"),
    ],
)
def test_a_host_that_can_not_run_the_script_is_unreachable(words: str, message: str) -> None:
    output = f"\n{MARKER} abort {words}\n".encode()
    with pytest.raises(HostUnreachable, match=message):
        frame.parse(step_of([(0, 0, b"", b"")]), MARKER, output)


def test_the_last_line_of_noise_is_quoted_where_no_reply_came() -> None:
    with pytest.raises(LostReply, match="the last line seen was 'No space left on device'"):
        frame.parse(step_of([(0, 0, b"", b"")]), MARKER, b"one\nNo space left on device\n")


@pytest.mark.parametrize("word", ["", "a b", "a;b", "a'b", "a\nb", "$x", "é"])
def test_names_that_are_no_plain_words_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="not a plain word"):
        frame.script(Step("some", (Section(word, ("true",), 5),)), MARKER)
    with pytest.raises(ValueError, match="not a plain word"):
        frame.script(Step("some", (Section("a", ("true",), 5),)), word)


def test_a_payload_goes_to_exactly_one_section() -> None:
    plain, taking = Section("a", ("true",), 5), Section("b", ("true",), 5, payload=True)
    for sections, payload in (((plain,), b"x"), ((taking, taking), b"x"), ((taking, taking), b"")):
        with pytest.raises(ValueError, match="a payload needs one section"):
            frame.script(Step("some", sections, payload=payload), MARKER)
    assert "A=1" in frame.script(Step("some", (plain, taking), payload=b""), MARKER)


def test_a_nul_can_not_be_in_a_command() -> None:
    with pytest.raises(ValueError, match="NUL"):
        frame.script(Step("some", (Section("a", ("echo", "a\0b"), 5),)), MARKER)


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=5))
def test_any_argument_survives_quoting_through_a_real_shell(words: list[str]) -> None:
    text = frame.script(Step("some", (Section("a", ("printf", "%s\\0", *words), 5),)), MARKER)
    (line,) = [line for line in _statements(text) if line.startswith("section a ")]
    command = f"section() {{ shift 5; printf '%s\\0' \"$@\"; }}\n{line}\n"
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=True)
    assert done.stdout == "".join(f"{word}\0" for word in ("%s\\0", *words)).encode()


def _statements(text: str) -> list[str]:
    """Return the script's statements behind its head: arguments may hold newlines."""
    body = text.partition("begin 1")[2].partition("\n")[2]
    return [body.removesuffix("finish\n}\n")]


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_script_that_is_cut_anywhere_runs_nothing(shell: str, tmp_path: object) -> None:
    step = Step("some", (Section("a", ("touch", f"{tmp_path}/touched"), 5),))
    text = frame.script(step, MARKER).rstrip("\n")
    for length in range(0, len(text), 37):
        done = subprocess.run(
            [shell, "-c", 'eval "$1"', shell, text[:length]], capture_output=True, check=False
        )
        assert MARKER.encode() not in done.stdout
    assert not list(tmp_path.iterdir())  # type: ignore[attr-defined]


def test_the_loop_s_words_mean_the_same_to_every_shell() -> None:
    command, flag, program = (
        frame.LOOP.split(" ", 2)[0],
        frame.LOOP.split(" ", 2)[1],
        frame.LOOP.split(" ", 2)[2],
    )
    assert (command, flag, program[0], program[-1]) == ("sh", "-c", "'", "'")
    assert not set("'\\!\n") & set(program[1:-1])
