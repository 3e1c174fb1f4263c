"""Redacted evidence names nobody and replays to the same end."""

from __future__ import annotations

import gzip
import json
import subprocess
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.result_samples import RESULT, case
from xbtasks.checks import Verdict
from xbtasks.errors import LostReply, UsageError
from xbtasks.host import frame
from xbtasks.host.framed import FramedHost
from xbtasks.host.local import LocalTransport
from xbtasks.host.recording import Evidence, RecordedHost
from xbtasks.host.redaction import pseudonyms, redact
from xbtasks.host.step import Section, Step
from xbtasks.result import BuildRecord, Result
from xbtasks.sharing import _said

if TYPE_CHECKING:
    from pathlib import Path

MARKER = "xb-0123456789abcdef01234567.1"
SAID = "alice@gpu7.example.org /home/alice/x gpu7: alicexx malice ALICE gpu7-b"
REDACTED = "user-1@host-1 /home/user-1/x host-2: alicexx malice ALICE gpu7-b"
NAMES = pseudonyms(["gpu7.example.org", "gpu7", "local"], ["alice", "root", "alice"])


def step(text: str = SAID) -> Step:
    # the name stands in the answer alone, among bytes that are no text
    binary = Section("binary", ("printf", "a\\154ice\\0"), 20)
    return Step(
        "some", (Section("text", ("sh", "-c", f"echo '{text}'; echo '{text}' >&2; exit 5"), 20), binary)
    )


def test_names_that_tell_nothing_stay() -> None:
    assert NAMES == {"gpu7.example.org": "host-1", "gpu7": "host-2", "alice": "user-1"}
    assert pseudonyms(["local", "::1"], ["root", "nobody", ""]) == {}
    assert pseudonyms(["x"], ["x", "y"]) == {"x": "host-1", "y": "user-2"}


def test_redacted_evidence_replays_with_the_names_replaced(tmp_path: Path) -> None:
    source, target = tmp_path / "run", tmp_path / "out/redacted"
    evidence = Evidence(source)
    evidence.write("run.json", {"host": "alice@gpu7.example.org", "plan": {"dir": "/home/alice/ctx"}})
    evidence.keep("stage.log", b"built on gpu7 by alice\n")
    with closing(FramedHost(LocalTransport(), evidence)) as host:
        before = host.run(step())
    redact(source, target, NAMES)
    assert json.loads((target / "run.json").read_text()) == {
        "host": "user-1@host-1",
        "plan": {"dir": "/home/user-1/ctx"},
    }
    assert (target / "stage.log").read_text() == "built on host-2 by user-1\n"
    after = RecordedHost(target, "user-1@host-1").run(step(REDACTED))
    assert after["text"].text == after["text"].error_text == f"{REDACTED}\n"
    assert after["text"].exit_status == before["text"].exit_status == 5
    assert after["binary"] == before["binary"]
    assert (after.seconds, after.noise) == (before.seconds, before.noise)
    found = subprocess.run(
        ["grep", "-rE", "alice@|/alice|gpu7[.:]", str(target)], capture_output=True, check=False
    )
    assert found.returncode == 1, found.stdout
    for name in ("stdout.gz", "stderr.gz"):
        (file,) = target.rglob(f"001-some/{name}")
        assert b"alice@" not in gzip.decompress(file.read_bytes())
    assert target.stat().st_mode & 0o777 == 0o700
    with pytest.raises(LostReply):
        RecordedHost(target, "x").run(step())


@pytest.mark.parametrize("name", ["gpu-1", "bob", "j\u00fcrgen", "\u738b", "n\U0001d11e"])
@pytest.mark.parametrize(
    "before", ["", " ", "\n", "\t", "\r\n", "\b", "\f", "<", "\u00e9 ", "\u2028", '"', "/", "\\"]
)
@pytest.mark.parametrize("ascii_only", [True, False])
def test_no_name_is_left_however_json_writes_it(
    tmp_path: Path, name: str, before: str, *, ascii_only: bool
) -> None:
    (tmp_path / "run").mkdir()
    text = json.dumps({"said": f"x{before or ' '}{name}: no", "at": name}, ensure_ascii=ascii_only)
    for written in (text, text.replace("<", "\\u003c")):
        (tmp_path / "run/run.json").write_text(written)
        target = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        redact(tmp_path / "run", target, {name: "host-1"})
        found = json.loads((target / "run.json").read_text())
        assert found == {"said": f"x{before or ' '}host-1: no", "at": "host-1"}


def test_no_names_is_a_copy_that_replays(tmp_path: Path) -> None:
    with closing(FramedHost(LocalTransport(), Evidence(tmp_path / "run"))) as host:
        reply = host.run(step())
    redact(tmp_path / "run", tmp_path / "copy", {})
    assert RecordedHost(tmp_path / "copy", "x").run(step()) == reply


def test_a_name_that_is_a_word_of_a_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(UsageError, match="'payload' is also a word of xbtasks' own programs"):
        redact(tmp_path / "run", tmp_path / "out", pseudonyms(["payload"], []))
    assert not (tmp_path / "out").exists()


def test_what_is_no_evidence_is_refused_and_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "run/steps/001-x").mkdir(parents=True)
    (tmp_path / "run/steps/001-x/stdout.gz").write_bytes(b"no gzip")
    (tmp_path / "run/steps/001-x/step.json").write_text("{}")
    with pytest.raises(UsageError, match="can't be redacted"):
        redact(tmp_path / "run", tmp_path / "out", NAMES)
    assert not (tmp_path / "out").exists()
    (tmp_path / "there").mkdir()
    (tmp_path / "there/precious").write_text("x")
    with pytest.raises(UsageError, match="there can't be made"):
        redact(tmp_path / "run", tmp_path / "there", NAMES)
    assert (tmp_path / "there/precious").exists()


@given(st.binary(max_size=300))
def test_a_frame_that_is_not_whole_leaves_only_noise(data: bytes) -> None:
    broken = data + f"\n{MARKER} begin 1\n{MARKER} section a 0 0 5 x 0 x\n{MARKER} o YWxpY2U=\n".encode()
    left = frame.rewrite(MARKER, broken, lambda line: line)
    assert MARKER.encode() not in left
    assert b"YWxpY2U=" not in left


@pytest.mark.parametrize("verdict", [Verdict.SKIP, Verdict.ERROR])
def test_a_case_without_rows_is_part_of_what_must_stay_the_same(verdict: Verdict) -> None:
    passed = case(Verdict.PASS, number=1)
    idle = case(verdict, number=2, reason="no card", rows=())
    found = Result("r", "verify", "h", "", cases=(case(Verdict.FAIL, number=3), passed, idle))
    for other in (
        replace(found, cases=found.cases[:2]),
        replace(found, cases=(*found.cases[:2], replace(idle, verdict=Verdict.PASS))),
        replace(found, builds=(BuildRecord(passed.stage, "failed", "", 1.0),)),
        replace(found, artifacts=RESULT.artifacts),
    ):
        assert other.exit_code is found.exit_code
        assert _said(other) != _said(found)
