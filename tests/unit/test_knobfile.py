from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from xbtasks.errors import UsageError
from xbtasks.knobs.files import MAX_BYTES, nearest, read_knob_file
from xbtasks.knobs.table import KNOBS

LABEL = "conf.yaml"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / LABEL


def texts(path: Path, content: str | bytes) -> dict[str, str]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return {name: entry.text for name, entry in read_knob_file(path, LABEL, required=True).items()}


def error_of(path: Path, content: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        texts(path, content)
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_values_stay_what_was_typed(path: Path) -> None:
    content = "mem: 010\nmax_glibc: 2.10\nyes: no\ngpus: 0,1\nmode: 'on'\nsm: 1_0\naicore: 1:30\n"
    content += 'banner_re: "a\\tb"\n'
    assert texts(path, content) == {
        "mem": "010",
        "max_glibc": "2.10",
        "yes": "no",
        "gpus": "0,1",
        "mode": "on",
        "banner_re": "a\tb",
        "sm": "1_0",
        "aicore": "1:30",
    }


def test_places_are_lines(path: Path) -> None:
    path.write_text("# comment\n\nmem: 1\n\n  # more\nsm:\n  50\n", "utf-8")
    entries = read_knob_file(path, LABEL, required=True)
    assert {name: entry.place for name, entry in entries.items()} == {
        "mem": "conf.yaml line 3",
        "sm": "conf.yaml line 6",
    }


def test_dashes_and_underscores(path: Path) -> None:
    assert texts(path, "stage-dir: /x\nremote_ctx: /y\n") == {"stage_dir": "/x", "remote_ctx": "/y"}


@pytest.mark.parametrize("content", ["", "\n", "# nothing\n", "---\n", "{}", "\ufeff"])
def test_an_empty_file_sets_nothing(path: Path, content: str) -> None:
    assert texts(path, content) == {}


def test_an_empty_value_is_empty(path: Path) -> None:
    assert texts(path, "mem:\nsm: ''\n") == {"mem": "", "sm": ""}


def test_line_ends_and_byte_order_mark(path: Path) -> None:
    assert texts(path, b"\xef\xbb\xbfmem: 1\r\nsm: 2\r\n") == {"mem": "1", "sm": "2"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("mem: 1\nsm: [2\n", "conf.yaml line 3: broken YAML: "),
        ("mem: 1\n\tsm: 2\n", "conf.yaml line 2: broken YAML: "),
        ("mem: 1\nsm: '\n", "conf.yaml line 3: broken YAML: "),
        ("mem: 1\nsm: *nowhere\n", "conf.yaml line 2: broken YAML: "),
        ("mem: 1\n---\nsm: 2\n", "conf.yaml line 2: broken YAML: "),
        ("mem: 1\nsm: \x01\n", "conf.yaml line 2: broken YAML: special characters are not allowed"),
        ("mem: 1\nsm: @\n", "conf.yaml line 2: broken YAML: found character '@' that cannot start any token"),
        ("- mem\n", "conf.yaml line 1: not a mapping"),
        ("\nmem 4096\n", "conf.yaml line 2: not a mapping"),
        ("mem: 1\nsm: 1\nmem: 2\n", "conf.yaml line 3: mem is set twice; first on conf.yaml line 1"),
        ("stage-dir: /x\nstage_dir: /x\n", "conf.yaml line 2: stage_dir is set twice"),
        ("mem:\nmem: 1\n", "conf.yaml line 2: mem is set twice"),
        ("gpus: [0, 1]\n", "conf.yaml line 1: 'gpus' takes one plain value; write a list of cards as 0,1"),
        ("mem: {a: 1}\n", "conf.yaml line 1: 'mem' takes one plain value"),
        ("? [a]\n: 1\n", "conf.yaml line 1: a key is the name of a knob"),
        ("a: &a [*a]\n", "conf.yaml line 1: 'a' takes one plain value"),
        ("[" * 5000, "conf.yaml: nested too deeply"),
        ("mem: 1\nmemm: 2\n", "conf.yaml line 2: 'memm' is not a knob; did you mean mem?"),
        ("stage: /x\n", "did you mean stage_dir?"),
        ("XB_MEM: 1\n", "did you mean mem?"),
        ("ctr: docker\n", "did you mean engine?"),
        ("Mem: 1\n", "did you mean mem?"),
        ("quux: 1\n", "'quux' is not a knob; `inv knobs` lists them"),
        ("<<: 1\n", "'<<' is not a knob"),
        ('"a\\nb\\e[31m": 1\n', r"'a\nb\x1b[31m' is not a knob"),
        ("run: {echo: true}\n", "'run' takes one plain value"),
        ("run: x\n", "conf.yaml line 1: run is a setting of Invoke, not a knob; put it into ~/.invoke.yaml"),
        ("keys: x\n", "'keys' is not a knob"),
    ],
)
def test_refusals_name_the_line(path: Path, content: str, message: str) -> None:
    assert message in error_of(path, content)


def test_bytes_that_are_no_text(path: Path) -> None:
    assert error_of(path, b"mem: 1\nsm: \xff\n") == "conf.yaml line 2: not UTF-8 text"
    assert error_of(path, "mem: 1\n".encode("utf-16")) == "conf.yaml line 1: not UTF-8 text"


def test_size_is_bounded(path: Path) -> None:
    assert texts(path, "#" * (MAX_BYTES - 1) + "\n") == {}
    assert "at most 65536 bytes" in error_of(path, "#" * MAX_BYTES + "\n")


def test_a_missing_file(path: Path) -> None:
    assert read_knob_file(path, LABEL, required=False) == {}
    with pytest.raises(UsageError, match="there is no such configuration file"):
        read_knob_file(path, LABEL, required=True)


@pytest.mark.parametrize("required", [True, False])
def test_a_file_that_cannot_be_read(path: Path, required: bool) -> None:
    path.mkdir()
    with pytest.raises(UsageError, match=r"conf\.yaml: can't be read: Is a directory"):
        read_knob_file(path, LABEL, required=required)
    with pytest.raises(UsageError, match="can't be read: Not a directory"):
        read_knob_file(Path(os.devnull) / "x", LABEL, required=required)
    with pytest.raises(UsageError, match="can't be read: not a usable path"):
        read_knob_file(Path("a\0b"), LABEL, required=required)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text(st.sampled_from("mem: 1\n-[]{}&*!|>'\"%@`?,#\t~")).map(str.encode))
@example(b"%YAML 3.0\n---\nmem: 1")
@example(b"mem: !!python/object/apply:os.getcwd []")
@example(b"mem: !<")
@example(b'mem: "\\x"')
@example(b"? ")
@example(b"&a")
def test_any_bytes_are_read_or_refused_in_one_line(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        entries = read_knob_file(path, LABEL, required=True)
    except UsageError as error:
        message = str(error)
    else:
        message = ""
        assert set(entries) <= {entry.name for entry in KNOBS}
    assert message == "" or message.isprintable()
    assert len(message) < 250


def test_nearest() -> None:
    known = {"XB_MEM": "XB_MEM", "XB_ENGINE": "XB_CTR"}
    assert nearest("XB_MEN", known) == "XB_MEM"
    assert nearest("XB_ENGIN", known) == "XB_CTR"
    assert nearest("zzz", known) == ""
