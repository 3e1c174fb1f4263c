"""The build context on a real file system: packed here, unpacked by the program under sh."""

from __future__ import annotations

import base64
import hashlib
import os
import resource
import shutil
import subprocess
import tarfile
import tempfile
import time
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.workplace import SAMPLE
from xbtasks import context
from xbtasks.checkout.stages import context_files, find_stage
from xbtasks.errors import CannotJudge, UsageError
from xbtasks.host.step import SectionReply, Step
from xbtasks.host.transfer import StreamPayload
from xbtasks.knobs.resolve import resolve
from xbtasks.planning import discover_stages, make_plan

if TYPE_CHECKING:
    from collections.abc import Callable

DIGEST = "d" * 64
STAGE = "xbuild-nvidia-cuda-13"


def unseen(read: int, size: int) -> None:
    pass


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a checkout with files of several kinds and modes."""
    root = tmp_path / "checkout"
    (root / "sub/empty").mkdir(parents=True)
    (root / "sub/plain.txt").write_bytes(b"plain")
    (root / "sub/run.sh").write_bytes(b"#!/bin/sh\n")
    (root / "sub/link").symlink_to("plain.txt")
    (root / "sub/dangling").symlink_to("/nowhere")
    (root / 'it\'s a "name" $(id)\n\u00e9').write_bytes(b"odd")
    return root


def listed(root: Path) -> list[tuple[str, Path]]:
    found = [
        path
        for path in sorted(root.rglob("*"))
        if not path.is_dir() or path.is_symlink() or not any(path.iterdir())
    ]
    return [(str(path.relative_to(root)), path) for path in found]


def packed(files: list[tuple[str, Path]]) -> bytes:
    with context.archive(files, print) as payload:
        payload.file.seek(0)
        return payload.file.read()


def sent(target: Path, files: list[tuple[str, Path]]) -> SectionReply:
    with context.archive(files, print) as payload:
        return send(context.send_step(str(target), payload, 60))


def send(step: Step, *, home: Path | None = None) -> SectionReply:
    section = step.sections[0]
    environment = {**os.environ, **({"HOME": str(home)} if home else {})}
    payload = b"".join(step.payload_chunks())
    done = subprocess.run(section.argv, input=payload, capture_output=True, env=environment, timeout=60)
    return SectionReply(section.name, done.returncode, done.stdout, done.stderr, 0, False)


def modes(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): f"{path.lstat().st_mode & 0o7777:04o}"
        for path in sorted(root.rglob("*"))
        if not path.is_symlink()
    }


def test_the_archive_depends_on_the_files_alone(tree: Path) -> None:
    first = packed(listed(tree))
    for path in tree.rglob("*"):
        if not path.is_symlink():
            os.utime(path, (time.time() - 1000, 5))
            os.chown(path, 1234, 1234)
    assert packed(listed(tree)) == first
    (tree / "sub/plain.txt").write_bytes(b"other")
    assert packed(listed(tree)) != first


@pytest.mark.parametrize(
    ("mode", "executable"), [(0o600, 0o700), (0o664, 0o775), (0o444, 0o555), (0o4644, 0o4755)]
)
def test_the_archive_does_not_depend_on_a_checkouts_umask(tree: Path, mode: int, executable: int) -> None:
    (tree / "sub/run.sh").chmod(0o755)
    first = packed(listed(tree))
    for path in tree.rglob("*"):
        if path.is_file() and not path.is_symlink():
            path.chmod(executable if path.name == "run.sh" else mode)
    assert packed(listed(tree)) == first
    with tarfile.open(fileobj=BytesIO(first)) as tar:
        members = {member.name: member.mode for member in tar.getmembers()}
    assert (members["sub/plain.txt"], members["sub/run.sh"]) == (0o644, 0o755)


def test_an_input_that_can_not_be_read_is_no_verdict(tree: Path) -> None:
    files = listed(tree)
    (tree / "sub/plain.txt").unlink()
    with pytest.raises(CannotJudge, match=r"plain\.txt can't be read"):
        packed(files)


def test_without_room_for_the_archive_there_is_no_verdict(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    (tree / "random").write_bytes(os.urandom(100_000))
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(CannotJudge, match="packed in a temporary file here: File too large"):
            packed(listed(tree))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    monkeypatch.setattr(tempfile, "tempdir", "/dev/full")
    with pytest.raises(CannotJudge, match="packed in a temporary file here: Not a directory"):
        packed(listed(tree))


def test_a_context_arrives_as_it_is_and_readable_by_every_user(tree: Path, tmp_path: Path) -> None:
    (tree / "sub/run.sh").chmod(0o755)
    target = tmp_path / "it's base $(id)" / DIGEST
    before = os.umask(0o077)
    try:
        answer = sent(target, listed(tree))
    finally:
        os.umask(before)
    assert answer.ok, answer.error_text
    assert {name for name, _ in listed(target)} == {name for name, _ in listed(tree)}
    assert (target / "sub/link").readlink() == Path("plain.txt")
    assert modes(target) == {
        'it\'s a "name" $(id)\n\u00e9': "0644",
        "sub": "0755",
        "sub/empty": "0755",
        "sub/plain.txt": "0644",
        "sub/run.sh": "0755",
    }
    assert target.stat().st_mode & 0o7777 == 0o755
    assert target.parent.stat().st_mode & 0o7777 == 0o700
    assert [path.name for path in target.parent.iterdir()] == [DIGEST]


@pytest.mark.parametrize(
    "damage", ["cut", "flipped", "no base64", "another digest", "nothing", "text in front"]
)
def test_a_context_that_did_not_arrive_whole_is_not_there(tree: Path, tmp_path: Path, damage: str) -> None:
    data = packed(listed(tree))
    digest, body = hashlib.sha256(data).hexdigest().encode(), base64.encodebytes(data)
    payload = {
        "cut": digest + b"\n" + body[: len(body) // 2 // 4 * 4],
        "flipped": digest + b"\n" + base64.encodebytes(data[:-9] + b"x" + data[-8:]),
        "no base64": digest + b"\n" + body[:40] + b"`" + body[41:],
        "another digest": b"0" * 64 + b"\n" + body,
        "nothing": b"",
        "text in front": b"Welcome to the host\n" + digest + b"\n" + body,
    }[damage]
    target = tmp_path / "base" / DIGEST
    sections = context.send_step(str(target), StreamPayload.of(BytesIO(), unseen), 60).sections
    answer = send(Step("context", sections, payload))
    assert not answer.ok
    assert damage == "nothing" or "it was corrupt when it arrived" in answer.error_text
    assert not any(target.parent.iterdir())


def test_a_context_that_is_there_already_stays(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / DIGEST
    target.mkdir()
    (target / "there").touch()
    assert sent(target, listed(tree)).ok
    assert [path.name for path in target.iterdir()] == ["there"]


@pytest.mark.parametrize("base", ["~/my ctx", "{tmp}/a b's"])
def test_where_a_context_lies_is_asked_of_the_host(tmp_path: Path, base: str) -> None:
    section = context.state_section(base.format(tmp=tmp_path), DIGEST, 60)
    directory, present = context.read_state(send(Step("state", (section,)), home=tmp_path / "home"))
    assert directory == str(tmp_path / ("home/my ctx" if base.startswith("~") else "a b's") / DIGEST)
    assert not present
    Path(directory).mkdir(parents=True)
    assert context.read_state(send(Step("state", (section,)), home=tmp_path / "home")) == (directory, True)


@pytest.mark.parametrize("text", [b"", b"/x\n", b"/x\npresent\nmore\n"])
def test_another_answer_is_no_place(text: bytes) -> None:
    with pytest.raises(CannotJudge, match="XB_REMOTE_CTX"):
        context.read_state(SectionReply("context", 0, text, b"", 0, False))


def test_a_base_that_can_not_be_made_is_said(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    answer = sent(tmp_path / "file/ctx" / DIGEST, listed(tree))
    assert not answer.ok
    assert "Not a directory" in answer.error_text


EDITS: dict[str, Callable[[Path, Path], object]] = {
    "content": lambda _, read: read.write_bytes(read.read_bytes() + b"\n"),
    "mode": lambda _, read: read.chmod(read.stat().st_mode ^ 0o111),
    "gone": lambda _, read: read.unlink(),
    "text of the stage": lambda file, _: file.write_text(
        file.read_text().replace(f" AS {STAGE}\n", f" AS {STAGE}\nRUN true\n", 1)
    ),
    "no such stage": lambda file, _: file.write_text(file.read_text().replace(STAGE, f"{STAGE}x")),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_was_edited_since_it_was_planned_is_not_sent_under_the_plans_digest(
    tmp_path: Path, edit: str
) -> None:
    repo = tmp_path / "operator"
    shutil.copytree(SAMPLE, repo, symlinks=True)
    knobs = resolve({}, {"XB_REPO": str(repo)}, user_file=None, explicit_user_file=False, project_file=None)
    discovery = discover_stages(knobs)
    found = find_stage(discovery, STAGE)
    (plan,) = make_plan(knobs, "verify", discovery, [found]).stages
    context.pack(discovery, plan, print).file.close()
    (repo / "README.md").write_text("nothing that the stage reads")
    context.pack(discovery, plan, print).file.close()
    read = next(
        path for name, path in context_files(found, repo) if "/external/" in f"/{name}" and path.is_file()
    )
    EDITS[edit](repo / discovery.dockerfile, read)
    with pytest.raises((CannotJudge, UsageError), match=r"has other inputs by now|can't be read|missing"):
        context.pack(discovery, plan, print)
