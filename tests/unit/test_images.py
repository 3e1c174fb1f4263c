from __future__ import annotations

import io
import json
import tarfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.engine import LABEL_COMMIT, LABEL_INPUTS, LABEL_STAGE
from xbtasks.errors import CannotJudge, LostReply
from xbtasks.host.step import SectionReply
from xbtasks.images import Image, read_file, read_image

ID = "sha256:" + "1" * 64
GOOD = {
    "Id": ID,
    "Os": "linux",
    "Architecture": "amd64",
    "Config": {"Labels": {LABEL_STAGE: "xbuild-x", LABEL_INPUTS: "a" * 64, LABEL_COMMIT: "c0ffee"}},
}


def answer(status: int = 0, stdout: bytes = b"", stderr: str = "") -> SectionReply:
    return SectionReply("image", status, stdout, stderr.encode(), 1, False)


def inspected(**changes: object) -> SectionReply:
    document = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    return answer(stdout=json.dumps([document]).encode())


def test_an_image_is_what_its_config_says() -> None:
    image = read_image(inspected())
    assert image == Image(ID, "linux/amd64", "xbuild-x", "a" * 64, "c0ffee")
    assert image.ours


@pytest.mark.parametrize(
    ("architecture", "platform"),
    [
        ("arm64", "linux/arm64"),
        ("aarch64", "linux/arm64"),
        ("x86_64", "linux/amd64"),
        ("riscv64", "linux/riscv64"),
    ],
)
def test_the_platform_is_spelt_in_one_way(architecture: str, platform: str) -> None:
    image = read_image(inspected(Architecture=architecture))
    assert image is not None
    assert image.platform == platform


@pytest.mark.parametrize(
    "config",
    [
        None,
        {},
        {"Labels": None},
        {"Labels": {}},
        {"Labels": {LABEL_STAGE: "x"}},
        {"Labels": {LABEL_INPUTS: "x"}},
    ],
)
def test_an_image_without_both_labels_is_not_ours(config: object) -> None:
    image = read_image(inspected(Config=config))
    assert image is not None
    assert not image.ours


@pytest.mark.parametrize(
    "said",
    [
        "Error response from daemon: No such image: x:1",
        "Error: No such image: x:1\n",
        "Error: no such image: x",
    ],
)
def test_there_is_no_such_image(said: str) -> None:
    assert read_image(answer(1, b"[]", said)) is None


@pytest.mark.parametrize(
    "said",
    [
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "permission denied while trying to connect to the Docker daemon socket",
        "",
        "Error response from daemon: layer does not exist",
    ],
)
def test_an_engine_that_does_not_answer_has_not_said_that_there_is_none(said: str) -> None:
    with pytest.raises(CannotJudge, match="can't inspect"):
        read_image(answer(1, b"[]", said))


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"garbage",
        b"[" * 100_000,
        b"[]",
        b"{}",
        b"null",
        b"[null]",
        b"[[]]",
        b"[1]",
        b"\xff",
        b"[{}]",
        b'[{"Id": "x"}]',
    ],
)
def test_garbage_with_exit_0_is_a_lost_answer(document: bytes) -> None:
    with pytest.raises(LostReply, match="answered something else"):
        read_image(answer(stdout=document))


# files copied out


def tar(kind: bytes = tarfile.REGTYPE, mode: int = 0o644, data: bytes = b"", link: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        member = tarfile.TarInfo("libvgpu.so")
        member.type, member.mode, member.size, member.linkname = kind, mode, len(data), link
        archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o4755, 0o2755, 0o1644, 0])
def test_a_file_comes_with_its_exact_mode(mode: int) -> None:
    file = read_file("/out/x", answer(stdout=tar(mode=mode, data=b"\x7fELF")))
    assert (file.kind, file.mode, file.data) == ("file", mode, b"\x7fELF")


def test_an_empty_file_is_a_file() -> None:
    assert read_file("/out/x", answer(stdout=tar())).kind == "file"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (tarfile.SYMTYPE, "symlink"),
        (tarfile.DIRTYPE, "directory"),
        (tarfile.FIFOTYPE, "other"),
        (tarfile.CHRTYPE, "other"),
    ],
)
def test_what_is_no_file_is_named(kind: bytes, name: str) -> None:
    file = read_file(
        "/out/x", answer(stdout=tar(kind, 0o777, link="/etc/shadow" if name == "symlink" else ""))
    )
    assert (file.kind, file.data) == (name, b"")
    assert file.link_target == ("/etc/shadow" if name == "symlink" else "")


@pytest.mark.parametrize(
    "said",
    [
        "Error response from daemon: Could not find the file /out/x in container xbtasks-1-read",
        "Error: Could not find the file /out/x in container xbtasks-1-read\n",
        "Error response from daemon: lstat /out/x/y: not a directory",
    ],
)
def test_a_file_is_missing_where_the_engine_says_so(said: str) -> None:
    assert read_file("/out/x", answer(1, b"", said)).kind == "missing"


def test_of_several_places_each_must_be_said_to_be_empty() -> None:
    missing = "Error response from daemon: Could not find the file /lib64/libc.so.6 in container c"
    assert read_file("libc", answer(1, b"", f"{missing}\n{missing}\n")).kind == "missing"
    with pytest.raises(CannotJudge):
        read_file("libc", answer(1, b"", f"{missing}\nCannot connect to the Docker daemon\n"))


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Error response from daemon: No such container: xbtasks-1-read",
        "Cannot connect to the Docker daemon at unix:///x",
        "open /var/lib/docker/overlay2/abc/merged: no such file or directory",
        "no space left on device",
    ],
)
def test_other_words_do_not_make_a_file_missing(said: str) -> None:
    with pytest.raises(CannotJudge, match="can't be copied"):
        read_file("/out/x", answer(1, b"", said))


@pytest.mark.parametrize("damage", [b"", b"garbage" * 200, b"\0" * 10240])
def test_a_damaged_copy_is_a_lost_answer(damage: bytes) -> None:
    with pytest.raises(LostReply):
        read_file("/out/x", answer(stdout=damage))


def test_a_copy_that_was_cut_is_a_lost_answer() -> None:
    whole = tar(data=b"x" * 5000)
    for length in (100, 511, 512, 513, 3000, 5511):
        with pytest.raises(LostReply):
            read_file("/out/x", answer(stdout=whole[:length]))


@given(st.lists(st.tuples(st.integers(0, 2047), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_copy_with_flipped_bytes_is_lost_or_a_value(flips: list[tuple[int, int]]) -> None:
    data = bytearray(tar(data=b"x" * 500))
    for at, value in flips:
        data[at] = value
    with suppress(LostReply):
        assert read_file("/out/x", answer(stdout=bytes(data))).kind in (
            "file",
            "symlink",
            "directory",
            "other",
        )


@given(st.binary(max_size=2000))
def test_any_answer_is_an_image_or_lost(data: bytes) -> None:
    with suppress(LostReply):
        read_image(answer(stdout=data))
