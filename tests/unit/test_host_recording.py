"""Evidence: a replay answers what the host answered, and evidence that was changed is lost, not believed."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from xbtasks.errors import (
    CannotJudge,
    DeadlineExceeded,
    HostUnreachable,
    Interrupted,
    LostReply,
    UsageError,
    XbError,
)
from xbtasks.host.framed import FramedHost, Transport
from xbtasks.host.local import LocalTransport
from xbtasks.host.recording import Evidence, RecordedHost
from xbtasks.host.step import Reply, Section, Step

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xbtasks.host.wire import Answer, Request, Wire

STEPS = (
    Step(
        "one", (Section("out", ("printf", "%s", "\xff\n"), 20), Section("status", ("sh", "-c", "exit 3"), 20))
    ),
    Step("two", (Section("sum", ("wc", "-c"), 20, payload=True),), payload=b"x" * 1000),
    Step("one", (Section("live", ("sh", "-c", "echo progress >&2"), 20, live=True),)),
)


class FailingTransport(Transport):
    """Fails every step in turn by one of ``errors``; None is a clean-up that works."""

    def __init__(self, *errors: BaseException | None) -> None:
        super().__init__("far")
        self.errors = list(errors)
        self.scripts: list[str] = []
        self.real = LocalTransport()

    def open(self, *, hurried: bool) -> Wire:
        raise AssertionError

    def exchange(self, request: Request, answer: Answer, *, hurried: bool = False) -> None:
        self.scripts.append(request.script.decode())
        error = self.errors.pop(0)
        if error is None:
            return self.real.exchange(request, answer)
        answer.take(b"half an answer", b"and words")
        raise error

    def close(self) -> None:
        self.real.close()


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, list[Reply]]:
    """Run the steps on this machine; return the evidence and what was answered."""
    with closing(FramedHost(LocalTransport(), Evidence(tmp_path / "run"))) as host:
        return tmp_path / "run", [host.run(step) for step in STEPS]


def replay(evidence: Path) -> list[Reply]:
    host = RecordedHost(evidence, "somewhere")
    return [host.run(step) for step in STEPS]


def test_a_replay_is_equal_and_needs_no_payload(recorded: tuple[Path, list[Reply]]) -> None:
    evidence, replies = recorded
    assert replay(evidence) == replies
    host = RecordedHost(evidence, "somewhere")
    assert host.label == "somewhere"
    host.run(STEPS[0])
    assert host.run(Step("two", STEPS[1].sections)) == replies[1]
    host.close()


def test_evidence_is_for_its_owner_and_the_same_answer_gives_the_same_files(
    recorded: tuple[Path, list[Reply]],
) -> None:
    evidence, _ = recorded
    assert evidence.stat().st_mode & 0o777 == 0o700
    folder = evidence / "steps/001-one"
    assert sorted(path.name for path in folder.iterdir()) == [
        "script.sh",
        "stderr.gz",
        "stdout.gz",
        "step.json",
    ]
    assert (folder / "stdout.gz").read_bytes()[4:8] == b"\0\0\0\0"


def test_many_steps_are_replayed_in_their_order(tmp_path: Path) -> None:
    evidence = Evidence(tmp_path / "run")
    with closing(FramedHost(LocalTransport(), evidence)) as host:
        host.run(Step("s", (Section("a", ("echo", "1"), 20),)))
    (tmp_path / "run/steps/001-s").rename(tmp_path / "run/steps/999-s")
    with closing(FramedHost(LocalTransport(), evidence)) as host:
        host._count = 999
        host.run(Step("s", (Section("a", ("echo", "2"), 20),)))
    recorded = RecordedHost(tmp_path / "run", "x")
    texts = [recorded.run(Step("s", (Section("a", ("echo", str(n)), 20),)))["a"].text for n in (1, 2)]
    assert texts == ["1\n", "2\n"]


def test_another_question_than_was_asked_is_lost(recorded: tuple[Path, list[Reply]]) -> None:
    evidence, _ = recorded
    other = Step("one", (Section("out", ("printf", "%s", "other"), 20), STEPS[0].sections[1]))
    with pytest.raises(LostReply, match="asked the host something else"):
        RecordedHost(evidence, "x").run(other)
    with pytest.raises(LostReply, match="holds step one where step two is asked for"):
        RecordedHost(evidence, "x").run(STEPS[1])
    host = RecordedHost(evidence, "x")
    for step in STEPS:
        host.run(step)
    with pytest.raises(LostReply, match="ends before step one"):
        host.run(STEPS[0])


def edit_json(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def edit_gzip(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()))))


def without(path: Path, key: str) -> None:
    entry = json.loads(path.read_text())
    del entry[key]
    path.write_text(json.dumps(entry))


TAMPERED: dict[str, Callable[[Path], object]] = {
    "a better status": lambda f: edit_gzip(f / "stdout.gz", lambda d: d.replace(b"status 3", b"status 0")),
    "another output": lambda f: edit_gzip(f / "stdout.gz", lambda d: d.replace(b" o ", b" o QUJD", 1)),
    "a line less": lambda f: edit_gzip(f / "stdout.gz", lambda d: b"\n".join(d.split(b"\n")[:-2]) + b"\n"),
    "another script": lambda f: (f / "script.sh").write_text("echo"),
    "another marker": lambda f: edit_json(f / "step.json", marker="xb-1.1"),
    "a marker that is none": lambda f: edit_json(f / "step.json", marker="a b"),
    "another name": lambda f: edit_json(f / "step.json", step="two"),
    "no time": lambda f: edit_json(f / "step.json", seconds="soon"),
    "a key less": lambda f: without(f / "step.json", "failure"),
    "no object": lambda f: (f / "step.json").write_text("[]"),
    "no JSON": lambda f: (f / "step.json").write_text("{"),
    "no file": lambda f: (f / "stdout.gz").unlink(),
    "no step": lambda f: (f / "step.json").unlink(),
    "no gzip": lambda f: (f / "stdout.gz").write_bytes(b"plain"),
    "half a gzip": lambda f: (f / "stdout.gz").write_bytes((f / "stdout.gz").read_bytes()[:-9]),
    "a broken gzip": lambda f: (f / "stdout.gz").write_bytes(
        (f / "stdout.gz").read_bytes()[:14] + b"\xff" * 60
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_evidence_that_was_changed_is_lost(recorded: tuple[Path, list[Reply]], name: str) -> None:
    evidence, _ = recorded
    TAMPERED[name](evidence / "steps/001-one")
    with pytest.raises((LostReply, UsageError)):
        RecordedHost(evidence, "x").run(STEPS[0])


@pytest.mark.parametrize(
    "error", [DeadlineExceeded("late", hint="wait"), LostReply("gone"), HostUnreachable("no host")]
)
def test_a_failure_replays_as_it_ended(tmp_path: Path, error: CannotJudge) -> None:
    transport = FailingTransport(error, None)
    remove = (Section("remove", ("false", "container-7"), 20),)
    with closing(FramedHost(transport, Evidence(tmp_path / "run"))) as host:
        step = Step("some", (Section("a", ("true",), 20),), on_loss=remove)
        with pytest.raises(type(error)) as first:
            host.run(step)
    with pytest.raises(type(error)) as second:
        RecordedHost(tmp_path / "run", "x").run(step)
    assert str(second.value) == str(first.value)
    nothing_ran = isinstance(error, HostUnreachable)
    assert ("container-7" in str(first.value)) is not nothing_ran
    assert len(transport.scripts) == (1 if nothing_ran else 2)
    assert gzip.decompress((tmp_path / "run/steps/001-some/stdout.gz").read_bytes()) == b"half an answer"


def test_an_interrupt_replays_as_one(tmp_path: Path) -> None:
    transport = FailingTransport(KeyboardInterrupt(), None)
    step = Step("some", (Section("a", ("true",), 20),))
    with (
        closing(FramedHost(transport, Evidence(tmp_path / "run"))) as host,
        pytest.raises(Interrupted) as first,
    ):
        host.run(step)
    with pytest.raises(Interrupted) as second:
        RecordedHost(tmp_path / "run", "x").run(step)
    assert str(second.value) == str(first.value) == "interrupted in step some"
    assert second.value.exit_code == 130


@pytest.mark.parametrize("error", [LostReply("gone"), DeadlineExceeded("late"), KeyboardInterrupt()])
def test_how_long_a_lost_step_took_is_known_then_and_in_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    ticks = iter(range(0, 70000, 7))
    monkeypatch.setattr("xbtasks.host.framed.time.monotonic", lambda: float(next(ticks)))
    step = Step("some", (Section("a", ("true",), 20),))
    with (
        closing(FramedHost(FailingTransport(error, LostReply("gone")), Evidence(tmp_path / "run"))) as host,
        pytest.raises((CannotJudge, Interrupted)) as first,
    ):
        host.run(step)
    with pytest.raises((CannotJudge, Interrupted)) as second:
        RecordedHost(tmp_path / "run", "x").run(step)
    assert second.value.seconds == first.value.seconds == 7.0


def test_a_clean_up_that_fails_too_names_all_that_may_be_left(tmp_path: Path) -> None:
    transport = FailingTransport(LostReply("gone"), HostUnreachable("gone for good"))
    remove = (Section("remove", ("docker", "rm", "container-7"), 20),)
    host = FramedHost(transport, Evidence(tmp_path / "run"))
    with pytest.raises(
        LostReply, match=r"step some, which may run on, container-7 \(`inv clean` removes it\)$"
    ):
        host.run(Step("some", (Section("a", ("true",), 20),), on_loss=remove))
    assert host.left_behind == ("step some, which may run on", "container-7")
    host.close()


def test_the_run_goes_on_after_a_lost_step_in_a_replay_too(tmp_path: Path) -> None:
    lost, next_one = (
        Step("lost", (Section("a", ("true",), 20),)),
        Step("next", (Section("a", ("echo", "x"), 20),)),
    )
    with closing(
        FramedHost(FailingTransport(LostReply("gone"), None, None), Evidence(tmp_path / "run"))
    ) as host:
        with pytest.raises(LostReply):
            host.run(lost)
        reply = host.run(next_one)
    recorded = RecordedHost(tmp_path / "run", "x")
    with pytest.raises(LostReply):
        recorded.run(lost)
    assert recorded.run(next_one) == reply


@pytest.mark.parametrize("failure", ["UnknownError: what", "nothing"])
def test_a_failure_of_no_known_kind_is_no_verdict(recorded: tuple[Path, list[Reply]], failure: str) -> None:
    evidence, _ = recorded
    edit_json(evidence / "steps/001-one/step.json", failure=failure)
    with pytest.raises(XbError) as caught:
        RecordedHost(evidence, "x").run(STEPS[0])
    assert caught.value.exit_code == 4
