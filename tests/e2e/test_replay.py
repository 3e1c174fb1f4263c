"""Evidence judged again: the same rows, verdict and exit code; changed evidence never gives the same."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.workplace import BASE, make_checkout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.workplace import Done, Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-nvidia-cuda-13"
BROKEN = f"FROM {BASE} AS {STAGE}\nRUN mkdir /out; echo x >/out/libvgpu.so; chmod 600 /out/libvgpu.so\n"
FAILING = f"FROM {BASE} AS {STAGE}\nRUN exit 3\n"


def told(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without what names the place of the evidence."""
    return {key: value for key, value in document.items() if key != "evidence"}


def table(done: Done) -> list[str]:
    """Return what is shown once the run is over: rows and verdict, commands without the flags of the call."""
    lines = done.err.splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith(("preflight", "SIMULATED", "ERROR")))
    shown = [line for line in lines[begin:] if "evidence: " not in line]
    return [re.sub(r"(`[^` ]*inv [^`]*?)( --[a-z-]+=[^` ]+)+", r"\1", line) for line in shown]


def replayed(place: Workplace, evidence: Path) -> Done:
    """Replay with neither engine nor checkout in reach."""
    gone = {"DOCKER_HOST": "unix:///nonexistent.sock", "XB_REPO": None, "XB_STAGE": None, "XB_IMAGE": None}
    done = place.inv("replay", str(evidence), "--json", **gone)
    assert "Traceback" not in done.err
    return done


def test_every_run_replays_to_its_own_verdict(place: Workplace) -> None:
    """One run of each kind of ending, and the evidence of each moved elsewhere before it is judged again."""

    def checkout(name: str, text: str) -> str:
        return str(make_checkout(place.folder / name, text))

    runs: dict[str, tuple[int, Callable[[], Done]]] = {
        "pass": (0, lambda: place.inv("verify", STAGE, "--cases", "1", "--json")),
        "up to date": (0, lambda: place.inv("verify", STAGE, "--cases", "1", "--json")),
        "case": (0, lambda: place.inv("nvidia.case1", STAGE, "--json")),
        "chosen": (0, lambda: place.inv("nvidia.case1", "--json")),
        "preflight": (0, lambda: place.inv("preflight", "--json")),
        "skip": (3, lambda: place.inv("nvidia.case2", STAGE, "--json", PATH=place.without_cards())),
        "fail": (
            1,
            lambda: place.inv("verify", STAGE, "--cases", "1", "--json", XB_REPO=checkout("a", BROKEN)),
        ),
        "build fails": (
            1,
            lambda: place.inv("verify", STAGE, "--cases", "1", "--json", XB_REPO=checkout("b", FAILING)),
        ),
        "not built": (2, lambda: place.inv("nvidia.case1", STAGE, "--json", "--image", place.tag("none"))),
        "foreign": (2, lambda: foreign(place)),
        "dead engine": (
            4,
            lambda: place.inv("verify", STAGE, "--cases", "1", "--json", DOCKER_HOST="unix:///none.sock"),
        ),
        "stopped": (4, lambda: stopped(place)),
    }
    for name, (code, run) in runs.items():
        done = run()
        assert done.code == code, (name, done.text)
        moved = place.folder / "moved" / name
        shutil.copytree(place.evidence()[-1], moved)
        shutil.rmtree(place.evidence()[-1])
        again = replayed(place, moved)
        assert again.code == code, (name, again.text)
        assert told(again.document) == told(done.document), name
        assert table(again) == table(done), name
        assert again.document["evidence"] == str(moved)


def foreign(place: Workplace) -> Done:
    directory = place.folder / "foreign"
    directory.mkdir()
    (directory / "libvgpu.so").write_bytes(b"theirs")
    return place.inv("verify", STAGE, "--cases", "1", "--json", XB_STAGE=str(directory))


def stopped(place: Workplace) -> Done:
    path = place.shim("docker", 'case $1 in cp) sleep 300 ;; esac; exec "$REAL" "$@"')
    return place.inv("verify", STAGE, "--cases", "1", "--json", PATH=path, XB_TIMEOUT="3")


@pytest.fixture
def evidence(place: Workplace) -> Path:
    """Return the evidence of a run that failed."""
    checkout = make_checkout(place.folder / "checkout", BROKEN)
    assert place.inv("verify", STAGE, "--cases", "1", XB_REPO=str(checkout)).code == 1
    return place.evidence()[-1]


def change_frame(evidence: Path, old: bytes, new: bytes) -> None:
    """Replace a section's content in the recorded answers, leaving lengths and digests as they were."""
    for path in evidence.glob("steps/*/stdout.gz"):
        lines = gzip.decompress(path.read_bytes()).split(b"\n")
        for at, line in enumerate(lines):
            words = line.split(b" ")
            if len(words) == 3 and words[1] in (b"o", b"e"):
                data = base64.b64decode(words[2])
                words[2] = base64.b64encode(data.replace(old, new))
                lines[at] = b" ".join(words)
        path.write_bytes(gzip.compress(b"\n".join(lines)))


def step(evidence: Path, name: str) -> Path:
    (found,) = evidence.glob(f"steps/*-{name}")
    return found


TAMPERINGS: dict[str, Callable[[Path], object]] = {
    "an answer's mode": lambda e: change_frame(e, b"0000600", b"0000644"),
    "an answer's byte": lambda e: (step(e, "read") / "stdout.gz").write_bytes(
        gzip.compress(gzip.decompress((step(e, "read") / "stdout.gz").read_bytes())[:-20])
    ),
    "an answer cut": lambda e: (step(e, "read") / "stdout.gz").write_bytes(
        (step(e, "read") / "stdout.gz").read_bytes()[:-30]
    ),
    "an answer that is no gzip": lambda e: (step(e, "read") / "stdout.gz").write_bytes(b"garbage"),
    "an answer with rubbish inside": lambda e: (step(e, "read") / "stdout.gz").write_bytes(
        (step(e, "read") / "stdout.gz").read_bytes()[:40] + b"\0" * 40
    ),
    "an answer gone": lambda e: (step(e, "read") / "stdout.gz").unlink(),
    "a step gone": lambda e: shutil.rmtree(step(e, "read")),
    "the last steps gone": lambda e: [shutil.rmtree(step(e, name)) for name in ("read", "stage")],
    "two steps swapped": lambda e: (
        step(e, "state").rename(e / "x"),
        (e / "x").rename(e / "steps/009-state"),
    ),
    "another question": lambda e: (step(e, "state") / "script.sh").write_text("echo"),
    "another marker": lambda e: rewrite(step(e, "read") / "step.json", "marker", "xb-0.1"),
    "another time": lambda e: rewrite(step(e, "read") / "step.json", "seconds", "soon"),
    "a note that is no JSON": lambda e: (step(e, "read") / "step.json").write_text("{"),
    "a note that is a list": lambda e: (step(e, "read") / "step.json").write_text("[]"),
    "no plan": lambda e: rewrite(e / "run.json", "plan", {}),
    "a plan of another image": lambda e: rewrite_stage(e, "image", "other:1"),
    "a plan of other inputs": lambda e: rewrite_stage(e, "digests", [["linux/amd64", "0" * 64]]),
    "a plan of another version": lambda e: rewrite(e / "run.json", "schema", 2),
    "a note of ours that is a list": lambda e: (e / "own-side.json").write_text("[]"),
    "a note of ours that is odd": lambda e: (e / "own-side.json").write_text('{"context of x": 1}'),
}


def rewrite(path: Path, key: str, value: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))


def rewrite_stage(evidence: Path, key: str, value: object) -> None:
    note = json.loads((evidence / "run.json").read_text())
    note["plan"]["stages"][0][key] = value
    (evidence / "run.json").write_text(json.dumps(note))


def test_changed_evidence_never_gives_the_same_verdict(place: Workplace, evidence: Path) -> None:
    assert replayed(place, evidence).document["verdict"] == "FAIL"
    for name, tamper in TAMPERINGS.items():
        changed = place.folder / "changed" / name
        shutil.copytree(evidence, changed)
        tamper(changed)
        done = replayed(place, changed)
        assert done.code in (2, 4), (name, done.text)
        assert done.document["verdict"] == "ERROR", name


def test_a_folder_that_is_no_evidence_is_wrong_usage(place: Workplace) -> None:
    for name in ("/nonexistent", str(place.folder), "", "/etc/passwd", "\x1b[2J"):
        done = place.inv("replay", name)
        assert done.code == 2, (name, done.text)
        assert "\x1b" not in done.text


def test_evidence_is_private_and_outside_the_checkout(place: Workplace, evidence: Path) -> None:
    assert evidence.stat().st_mode & 0o777 == 0o700
    assert place.folder / "state" in evidence.parents
    assert (evidence / "result.json").is_file()
    assert (evidence / f"{STAGE}.log").is_file()
