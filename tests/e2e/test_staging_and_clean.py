"""Staging, clean and tags as a user meets them, on a real engine."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.workplace import BASE, Done, Workplace, make_checkout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.engine

ASCEND, NVIDIA = "xbuild-ascend-cann-9-950", "xbuild-nvidia-cuda-13"
LIB, TOOL = "lib/libvruntime.so", "tools/enpu-monitor"


def content(place: Workplace) -> dict[str, bytes]:
    return {
        str(path.relative_to(place.staging)): path.read_bytes()
        for path in place.staging.rglob("*")
        if path.is_file() and not path.name.startswith(".xbtasks")
    }


def test_a_foreign_file_stops_a_run_and_adopt_keeps_it(place: Workplace) -> None:
    (place.staging / "lib").mkdir(parents=True)
    (place.staging / LIB).write_bytes(b"somebody's")
    refused = place.inv("verify", ASCEND, "--cases", "1", "--json")
    assert (refused.code, refused.document["verdict"]) == (2, "ERROR")
    assert f"{place.staging}/{LIB}" in refused.document["reason"]
    assert "--adopt" in refused.document["reason"]
    assert content(place) == {LIB: b"somebody's"}
    adopted = place.inv("verify", ASCEND, "--cases", "1", "--adopt", "--json")
    assert adopted.code == 0, adopted.text
    assert adopted.document["builds"][0]["outcome"] == "up to date"
    (kept,) = place.staging.glob(f"{LIB}.kept-*")
    assert kept.read_bytes() == b"somebody's"
    assert content(place).keys() == {LIB, TOOL, str(kept.relative_to(place.staging))}


TEARS: dict[str, Callable[[Path], object]] = {
    "flipped": lambda where: (where / LIB).write_bytes((where / LIB).read_bytes()[:-1] + b"!"),
    "deleted": lambda where: (where / TOOL).unlink(),
    "manifest": lambda where: (where / ".xbtasks-ascend.json").write_text("{"),
    "mode": lambda where: (where / TOOL).chmod(0o700),
}


def test_a_torn_set_is_staged_again_without_a_build(place: Workplace) -> None:
    assert place.inv("verify", ASCEND, "--cases", "1").code == 0
    whole = content(place)
    for tear, deal in TEARS.items():
        deal(place.staging)
        done = place.inv("ascend.case1", ASCEND, "--json")
        assert (done.code, done.document["verdict"]) == (0, "PASS"), (tear, done.text)
        assert f"staged in {place.staging}" in done.err, tear
        assert whole.items() <= content(place).items(), tear
        assert (place.staging / TOOL).stat().st_mode & 0o7777 == 0o755


def test_a_staging_directory_may_have_any_name(place: Workplace) -> None:
    odd = place.folder / 'it\'s a "dir" $(touch pwned) `id`; *'
    tag = place.tag("a")
    done = place.inv("verify", NVIDIA, "--cases", "1", "--json", "--image", tag, XB_STAGE=str(odd))
    assert done.code == 0, done.text
    assert (odd / "libvgpu.so").is_file()
    assert not list(place.folder.rglob("pwned"))
    again = place.inv(
        "verify", NVIDIA, "--cases", "1", "--json", "--image", tag, "--stage-dir", str(odd), XB_STAGE=None
    )
    assert "staged in" not in again.err
    cleaned = place.inv("clean", "--all", XB_STAGE=str(odd))
    assert cleaned.code == 0, cleaned.text
    assert not odd.exists()


def test_a_directory_that_can_not_be_written_is_no_verdict(place: Workplace) -> None:
    readonly = "/proc/xbtasks"
    done = place.inv("verify", NVIDIA, "--cases", "1", "--json", XB_STAGE=readonly)
    assert (done.code, done.document["verdict"]) == (4, "ERROR")
    assert readonly in done.document["reason"]
    assert place.left_over() == []
    occupied = place.folder / "occupied"
    occupied.write_text("a file")
    done = place.inv("verify", NVIDIA, "--cases", "1", "--json", XB_STAGE=str(occupied))
    assert (done.code, done.document["verdict"]) == (4, "ERROR")
    assert occupied.read_text() == "a file"


def test_two_runs_share_a_staging_directory_without_a_false_word(place: Workplace) -> None:
    stages = ("xbuild-nvidia-cuda-12", NVIDIA)
    children = [
        place.start("verify", stage, "--cases", "1", "--json", "--image", place.tag(stage))
        for stage in stages
    ]
    ended = [(*child.communicate(timeout=120), child.returncode) for child in children]
    for stage, (out, err, code) in zip(stages, ended, strict=True):
        assert code == 0, err.decode()
        document = json.loads(out)
        assert (document["verdict"], document["cases"][0]["stage"]) == ("PASS", stage)
    manifest = json.loads((place.staging / ".xbtasks-nvidia.json").read_text())
    assert manifest["stage"] in stages
    assert content(place).keys() == {"libvgpu.so"}
    assert place.left_over() == []


def test_somebody_elses_image_keeps_its_tag_until_adopt(place: Workplace) -> None:
    tag = place.tag("image")
    theirs = place.engine.docker("image", "inspect", "--format", "{{.Id}}", BASE)
    place.engine.docker("tag", BASE, tag)
    refused = place.inv("verify", NVIDIA, "--cases", "1", "--json")
    assert (refused.code, refused.document["verdict"]) == (2, "ERROR")
    assert "--adopt" in refused.document["reason"]
    assert place.engine.docker("image", "inspect", "--format", "{{.Id}}", tag) == theirs
    assert place.inv("verify", NVIDIA, "--cases", "1", "--adopt").code == 0
    assert place.engine.docker("image", "inspect", "--format", "{{.Id}}", tag) != theirs
    assert place.engine.docker("image", "inspect", "--format", "{{.Id}}", BASE) == theirs


def test_an_image_that_was_patched_by_hand_is_not_up_to_date(place: Workplace) -> None:
    checkout = make_checkout(
        place.folder / "checkout", f"FROM {BASE} AS {NVIDIA}\nRUN mkdir /out; echo x >/out/libvgpu.so\n"
    )
    assert place.inv("verify", NVIDIA, "--cases", "1", XB_REPO=str(checkout)).code == 1
    # committed from its container, or made FROM it, with a library that would pass
    good = place.inv(
        "verify",
        NVIDIA,
        "--cases",
        "1",
        "--image",
        place.tag("good"),
        "--stage-dir",
        str(place.folder / "good"),
    )
    assert good.code == 0, good.text
    container = place.engine.docker("create", place.tag("image"), "true")
    place.engine.docker("cp", str(place.folder / "good/libvgpu.so"), f"{container}:/out/libvgpu.so")
    place.engine.docker("commit", container, place.tag("image"))
    place.engine.docker("rm", container)
    done = place.inv("verify", NVIDIA, "--cases", "1", "--json", XB_REPO=str(checkout))
    assert (done.code, done.document["builds"][0]["outcome"]) == (1, "built")
    assert "not one that xbtasks built here" in done.document["builds"][0]["reason"]


def test_clean_all_removes_ours_and_nothing_else(place: Workplace) -> None:
    assert place.inv("verify", ASCEND, "--cases", "1", "--image", place.tag("ascend")).code == 0
    assert place.inv("verify", NVIDIA, "--cases", "1", "--image", place.tag("nvidia")).code == 0
    (place.staging / LIB).write_bytes(b"changed by hand")
    (place.staging / "theirs.so").write_bytes(b"theirs")
    (place.contexts / "notes").mkdir()
    place.engine.docker(
        "build",
        "-q",
        "-t",
        place.tag("derived"),
        "-",
        stdin=f"FROM {place.tag('nvidia')}\nLABEL x=y\n".encode(),
    )
    place.engine.docker("tag", place.tag("nvidia"), place.tag("own-name"))
    theirs = place.engine.docker("create", "--name", place.name, BASE, "true")
    left = place.engine.docker(
        "create", "--label", "xbtasks.run=gone", "--name", f"xbtasks-gone-{place.name}", BASE, "true"
    )

    first = place.inv("clean")
    assert first.code == 0, first.text
    assert f"xbtasks-gone-{place.name}" in first.out
    assert place.engine.docker("ps", "--all", "--quiet", "--no-trunc").split() == [theirs]
    assert left != theirs
    assert place.inv("nvidia.case1", NVIDIA, "--image", place.tag("nvidia")).code == 0

    done = place.inv("clean", "--all")
    assert done.code == 0, done.text
    assert f"kept {place.staging}/{LIB}" in done.out
    tags = place.engine.docker(
        "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter", f"reference=xbtest-{place.name}"
    ).split()
    assert sorted(tags) == sorted([place.tag("derived"), place.tag("own-name")])
    assert content(place) == {LIB: b"changed by hand", "theirs.so": b"theirs"}
    assert [path.name for path in place.contexts.iterdir()] == ["notes"]
    assert not list(place.staging.glob(".xbtasks*"))

    again = place.inv("clean", "--all")
    assert (again.code, again.out.strip()) == (0, "nothing to remove")
    place.engine.docker("rm", place.name)
    assert place.engine.docker("image", "inspect", "--format", "{{.Id}}", BASE)


def test_an_image_whose_tag_was_taken_at_once_is_removed_all_the_same(place: Workplace) -> None:
    tag, made = place.tag("image"), place.folder / "made"
    text = f"FROM {BASE} AS {NVIDIA}\nRUN mkdir /out; echo {place.name} >/out/libvgpu.so\n"
    checkout = make_checkout(place.folder / "checkout", text)
    path = place.shim(
        "docker",
        f"""if [ "$1 $2" = "buildx build" ]; then
  "$REAL" "$@"; status=$?
  "$REAL" image inspect --format '{{{{.Id}}}}' {tag} >{made}
  "$REAL" tag {BASE} {tag}
  exit $status
fi
exec "$REAL" "$@\"""",
    )
    done = place.inv("verify", NVIDIA, "--cases", "1", "--json", PATH=path, XB_REPO=str(checkout))
    assert (done.code, done.document["verdict"]) == (4, "ERROR")
    assert f"{tag} names " in done.document["reason"]
    ours = made.read_text().strip()
    assert place.engine.docker("image", "inspect", "--format", "{{.Id}} {{.RepoTags}}", ours) == f"{ours} []"
    cleaned = place.inv("clean", "--all")
    assert (cleaned.code, f"image {ours}" in cleaned.out) == (0, True), cleaned.text
    place.engine.docker("image", "inspect", ours, code=1)
    assert place.engine.docker("image", "inspect", "--format", "{{.Id}}", tag)  # it is another's by now
    place.engine.docker("image", "rm", tag)


def test_clean_with_a_dead_engine_is_no_success(place: Workplace) -> None:
    done = place.inv("clean", "--all", DOCKER_HOST="unix:///nonexistent.sock")
    assert done.code == 4, done.text
    assert "error: " in done.err


def test_clean_on_a_host_where_nothing_is_ours_touches_nothing(place: Workplace) -> None:
    place.staging.mkdir()
    (place.staging / "libvgpu.so").write_bytes(b"theirs")
    before = place.staging.stat().st_mtime_ns
    done: Done = place.inv("clean", "--all")
    assert (done.code, done.out.strip()) == (0, "nothing to remove")
    assert content(place) == {"libvgpu.so": b"theirs"}
    assert place.staging.stat().st_mtime_ns == before
    shutil.rmtree(place.staging)
    place.staging.mkdir()
    assert place.inv("clean").code == 0
    assert place.staging.is_dir()
