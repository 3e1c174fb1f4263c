from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xbtasks.backends import BACKENDS
from xbtasks.backends.linking import ImageFile, StagedFile
from xbtasks.engine import Engine
from xbtasks.errors import CannotJudge, LostReply, Refused
from xbtasks.host.step import Reply, Section, SectionReply
from xbtasks.plan import StagePlan
from xbtasks.staging import Manifest, StagedSet, manifest_name, read_state, stage_step, staged_set

ASCEND = BACKENDS["ascend"]
STAGE = StagePlan("xbuild-ascend-cann-9-950", "ascend", "9-950", "vcann-build:9-950", "/opt/a b", ())
OLD, NEW, ALIEN = "1" * 64, "2" * 64, "3" * 64
LIB, TOOL = "lib/libvruntime.so", "tools/enpu-monitor"
IMAGE = "sha256:" + "9" * 64


def manifest(lib: str = OLD, tool: str = OLD, stage: str = STAGE.stage, image: str = IMAGE) -> Manifest:
    return Manifest(stage, "linux/amd64", "a" * 64, image, "run", ((LIB, lib), (TOOL, tool)))


def files(lib: str = OLD, tool: str = OLD, mode: int = 0o644, kind: str = "file") -> tuple[StagedFile, ...]:
    return (
        StagedFile(LIB, kind, mode if kind == "file" else 0, lib if kind == "file" else ""),
        StagedFile(TOOL, "file", 0o755, tool),
    )


NOTHING = (StagedFile(LIB, "missing", 0, ""), StagedFile(TOOL, "missing", 0, ""))


def state(*lines: str, manifest: bytes = b"", following: bytes = b"", status: int = 0) -> SectionReply:
    documents = [
        f"{n} {base64.b64encode(d).decode()}" for n, d in (("manifest", manifest), ("next", following))
    ]
    text = "\n".join([*lines, *documents]) + "\n"
    return SectionReply("staged", status, text.encode(), b"", 0, False)


# the manifest


@given(st.builds(manifest, st.text(), st.text(), st.text(), st.text()))
def test_a_manifest_survives_the_disk(written: Manifest) -> None:
    assert Manifest.from_bytes(written.to_bytes()) == written


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"null", b"[]", b'"x"', b"{}", b"\xff\xfe", b"[" * 100_000),
        *(
            json.dumps({**json.loads(manifest().to_bytes()), **change}).encode()
            for change in ({"schema": 2}, {"files": None}, {"files": ["a"]}, {"files": "x"})
        ),
        manifest().to_bytes()[:-20],
    ],
)
def test_another_text_is_no_manifest(data: bytes) -> None:
    assert Manifest.from_bytes(data) is None


# what lies there


def test_the_state_of_a_directory_is_read() -> None:
    lines = (f"file 644 {OLD}", f"file 4755 {NEW}")
    found = read_state(ASCEND, state(*lines, manifest=manifest().to_bytes()))
    assert found == StagedSet((*files()[:1], StagedFile(TOOL, "file", 0o4755, NEW)), manifest())


@pytest.mark.parametrize("kind", ["symlink", "directory", "other", "missing"])
def test_what_is_no_file_has_neither_mode_nor_digest(kind: str) -> None:
    found = read_state(ASCEND, state(f"{kind} - -", f"file 755 {OLD}"))
    assert found.files[0] == StagedFile(LIB, kind, 0, "")
    assert not found.broken


@pytest.mark.parametrize("data", [b"{", b" ", b"null"])
def test_a_manifest_that_can_not_be_read_is_broken_and_not_absent(data: bytes) -> None:
    found = read_state(ASCEND, state("missing - -", "missing - -", manifest=data))
    assert found.broken
    assert found.manifest is None


@pytest.mark.parametrize(
    "answer",
    [
        state(),
        state("missing - -"),
        state("missing - -", "missing - -", "missing - -"),
        state("missing - -", "missing -"),
        state("missing - -", f"file rw-r--r-- {OLD}"),
        SectionReply("staged", 0, b"", b"", 0, False),
        SectionReply("staged", 0, b"missing - -\nmissing - -\nmanifest\n", b"", 0, False),
        SectionReply("staged", 0, b"missing - -\nmissing - -\nnext \nmanifest \n", b"", 0, False),
        SectionReply("staged", 0, b"missing - -\nmissing - -\nmanifest @\nnext \n", b"", 0, False),
    ],
)
def test_a_damaged_state_is_a_lost_answer(answer: SectionReply) -> None:
    with pytest.raises(LostReply, match="damaged"):
        read_state(ASCEND, answer)


def test_a_directory_that_can_not_be_read_is_no_verdict() -> None:
    with pytest.raises(CannotJudge, match="can't be read"):
        read_state(ASCEND, state(status=66))


# whose it is, and what must change


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (StagedSet(NOTHING, None), "nothing is staged yet"),
        (StagedSet(files(), manifest()), ""),
        (StagedSet(files(lib=ALIEN), manifest()), "don't match"),
        (StagedSet(files(tool=ALIEN), manifest()), "don't match"),
        (StagedSet((*NOTHING[:1], *files()[1:]), manifest()), "don't match"),
        (StagedSet(files(kind="symlink"), manifest()), "don't match"),
        (StagedSet(files(mode=0o600), manifest()), "don't match"),
        (StagedSet(files(mode=0o4644), manifest()), "don't match"),
        (
            StagedSet(files(), manifest(stage="xbuild-ascend-cann-8-910b")),
            "xbuild-ascend-cann-8-910b was staged",
        ),
        (StagedSet(files(), manifest(image="sha256:0")), "an older image"),
        (StagedSet(files(), manifest(), next=manifest(NEW, NEW)), "interrupted"),
        (StagedSet(files(), None, broken=True), "can't be read"),
    ],
)
def test_why_a_set_is_staged(found: StagedSet, why: str) -> None:
    assert why in found.why_stage(STAGE, IMAGE)
    assert bool(found.why_stage(STAGE, IMAGE)) == bool(why)


def test_a_file_without_a_manifest_is_somebody_elses() -> None:
    found = StagedSet((*files()[:1], *NOTHING[1:]), None)
    assert [file.path for file in found.foreign] == [LIB]
    assert found.changed == ()


def test_a_manifest_that_does_not_name_a_file_does_not_make_it_ours() -> None:
    half = replace(manifest(), files=((LIB, OLD),))
    assert [file.path for file in StagedSet(files(), half).foreign] == [TOOL]


def test_a_changed_file_is_not_foreign_and_not_ours_any_more() -> None:
    found = StagedSet(files(tool=ALIEN), manifest())
    assert found.foreign == ()
    assert [file.path for file in found.changed] == [TOOL]


def test_what_is_no_file_is_never_ours_whatever_a_manifest_says() -> None:
    found = StagedSet(files(kind="symlink"), manifest(lib=""))
    assert not found.put_by_us(found.files[0])


def test_what_an_interrupted_set_put_is_ours() -> None:
    found = StagedSet(files(lib=NEW), manifest(), next=manifest(NEW, NEW))
    assert all(found.put_by_us(file) for file in found.files)
    first = StagedSet((*files(lib=NEW)[:1], *NOTHING[1:]), None, next=manifest(NEW, NEW))
    assert first.foreign == ()


@given(
    st.tuples(*(st.sampled_from([OLD, NEW, ALIEN, "directory", "symlink", "missing"]) for _ in range(2))),
    st.sampled_from([None, manifest(), replace(manifest(), files=((LIB, OLD),))]),
    st.sampled_from([None, manifest(NEW, NEW)]),
    st.booleans(),
)
def test_nothing_but_our_own_bytes_is_ever_replaced(
    lying: tuple[str, str], current: Manifest | None, following: Manifest | None, broken: bool
) -> None:
    kinds = ("directory", "symlink", "missing")
    there = tuple(
        StagedFile(path, word if word in kinds else "file", 0o644, "" if word in kinds else word)
        for path, word in zip((LIB, TOOL), lying, strict=True)
    )
    found = StagedSet(there, None if broken else current, following, broken=broken)
    for adopt in (False, True):
        try:
            step = request(found, adopt=adopt)
        except Refused:
            assert found.foreign
            assert not adopt
            continue
        assert adopt or not found.foreign
        for file, keep in zip(there, keeps(step), strict=True):
            if keep == "replace":
                assert file.kind == "missing" or found.put_by_us(file)


# the step


def request(found: StagedSet, *, adopt: bool = False) -> Section:
    images = tuple(ImageFile(artifact.image_path, "file", 0o644, b"x") for artifact in ASCEND.artifacts)
    create = Section("create", ("docker", "create"), 60)
    step = stage_step(
        Engine(),
        STAGE,
        manifest(NEW, NEW),
        images,
        found,
        "xbtasks-run-stage",
        create,
        adopt=adopt,
        deadline=60,
    )
    assert step.payload == manifest(NEW, NEW).to_bytes()
    assert step.sections[-1] == step.on_loss[0]
    assert step.on_loss[0].argv[-1] == "xbtasks-run-stage"
    return step.sections[1]


def keeps(section: Section) -> list[str]:
    return list(section.argv[14::6])


def test_the_program_gets_everything_as_words_of_its_own() -> None:
    section = request(StagedSet(files(tool=ALIEN), manifest()))
    assert section.payload
    assert section.argv[:2] == ("sh", "-c")
    assert section.argv[4:] == (
        *(STAGE.staging_directory, manifest_name(ASCEND), "run", "docker", "xbtasks-run-stage"),
        *("/out/lib/libvruntime.so", LIB, "0644", NEW, OLD, "replace"),
        *("/out/tools/enpu-monitor", TOOL, "0755", NEW, ALIEN, "keep"),
    )


def test_a_refusal_names_every_file_and_what_to_do() -> None:
    with pytest.raises(Refused, match="--adopt") as caught:
        request(StagedSet(files(), None))
    assert f"/opt/a b/{LIB}, /opt/a b/{TOOL}" in caught.value.message


def reply(create: int = 0, stage: int = 0, said: bytes = b"", text: bytes = b"") -> Reply:
    return Reply(
        "stage",
        (
            SectionReply("create", create, b"", b"no such image" if create else b"", 0, False),
            SectionReply("stage", stage, text, said, 0, False),
            SectionReply("remove", 0, b"", b"", 0, False),
        ),
    )


def test_what_was_staged_is_what_lay_there_under_the_lock() -> None:
    text = state(f"file 644 {NEW}", f"file 755 {NEW}", manifest=manifest(NEW, NEW).to_bytes()).stdout
    found = staged_set(ASCEND, reply(text=text))
    assert found == StagedSet(files(NEW, NEW), manifest(NEW, NEW))


def test_where_another_run_was_quicker_one_looks_again() -> None:
    assert staged_set(ASCEND, reply(stage=76, said=b"x changed")) is None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(create=1), "no such image"),
        (reply(create=76), "no such image"),
        (reply(stage=75, said=b"busy"), "another run holds"),
        (reply(stage=77, said=b"x"), "the image changed"),
        (reply(stage=2, said=b"sh: 1: cannot create /x: Read-only file system"), "Read-only file system"),
        (reply(stage=1), "staging failed"),
    ],
)
def test_a_set_that_was_not_staged_is_no_verdict(answer: Reply, why: str) -> None:
    with pytest.raises(CannotJudge, match=why):
        staged_set(ASCEND, answer)
