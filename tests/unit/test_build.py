"""What a build's end means. The messages are BuildKit's, as buildx 0.13 and later print them."""

from __future__ import annotations

import json

import pytest

from xbtasks.backends.base import Platform
from xbtasks.build import build_step, built_image, excerpt, is_built, refuse_foreign, why_build
from xbtasks.engine import LABEL_COMMIT, LABEL_INPUTS, LABEL_RUN, LABEL_STAGE, BuildRequest, Engine
from xbtasks.errors import BuildFailed, CannotJudge, LostReply, Refused
from xbtasks.host.step import Reply, SectionReply
from xbtasks.images import Image
from xbtasks.plan import StagePlan

STAGE = StagePlan(
    stage="xbuild-nvidia-cuda-13",
    backend_name="nvidia",
    suffix="13",
    image="vgpu-build:13",
    staging_directory="/opt/vgpu",
    digests=(("linux/amd64", "a" * 64),),
)
ID = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64
IMAGE = Image(ID, "linux/amd64", STAGE.stage, "a" * 64, "c0ffee")
METADATA = {"containerimage.config.digest": ID, "containerimage.digest": OTHER}
ENDED = "did not complete successfully"
STEP = f'process "/bin/sh -c make" {ENDED}'
FAKED = f'process "/bin/sh -c echo \\"x\\" {ENDED}: exit code: 7" {ENDED}'
EMULATED = f'process "/dev/.buildkit_qemu_emulator /bin/sh -c make" {ENDED}'


def answer(name: str, status: int = 0, stdout: bytes = b"", stderr: str | bytes = b"") -> SectionReply:
    said = stderr.encode() if isinstance(stderr, str) else stderr
    return SectionReply(name, status, stdout, said, 1, False)


def inspected(identity: str = ID, labels: dict[str, str] | None = None, architecture: str = "amd64") -> bytes:
    found = {LABEL_STAGE: STAGE.stage, LABEL_INPUTS: "a" * 64} if labels is None else labels
    document = {"Id": identity, "Os": "linux", "Architecture": architecture, "Config": {"Labels": found}}
    return json.dumps([document]).encode()


def reply(build: SectionReply, image: SectionReply | None = None) -> Reply:
    return Reply("build", (build, image or answer("image", stdout=inspected())))


def ended(*lines: str, status: int = 1) -> Reply:
    return reply(answer("build", status, stderr="\n".join(["#1 [internal] load build definition", *lines])))


# up to date or not


@pytest.mark.parametrize(
    ("image", "why"),
    [
        (None, "no image"),
        (Image(ID, "linux/amd64", "", "", ""), "nothing that xbtasks built"),
        (Image(ID, "linux/amd64", "xbuild-nvidia-cuda-12", "a" * 64, ""), "xbuild-nvidia-cuda-12"),
        (Image(ID, "linux/arm64", STAGE.stage, "a" * 64, ""), "linux/arm64"),
        (Image(ID, "linux/amd64", STAGE.stage, "b" * 64, ""), "inputs changed"),
        (Image(OTHER, "linux/amd64", STAGE.stage, "a" * 64, ""), "not one that xbtasks built here"),
        (Image(ID, "linux/amd64", STAGE.stage, "a" * 64, "another commit"), ""),
    ],
)
def test_why_a_stage_is_built(image: Image | None, why: str) -> None:
    found = why_build(STAGE, Platform.AMD64, image, {ID}, rebuild=False)
    assert why in found
    assert bool(found) == bool(why)


def test_rebuild_is_a_reason_of_its_own() -> None:
    assert why_build(STAGE, Platform.AMD64, IMAGE, {ID}, rebuild=True) == "--rebuild was given"


@pytest.mark.parametrize(
    ("image", "state"),
    [
        (None, "no"),
        (Image(ID, "linux/amd64", "xbuild-nvidia-cuda-12", "a" * 64, ""), "no"),
        (Image(ID, "linux/amd64", STAGE.stage, "b" * 64, ""), "stale"),
        (Image(ID, "linux/arm64", STAGE.stage, "a" * 64, ""), "stale"),
        (IMAGE, "yes"),
    ],
)
def test_what_the_list_of_stages_says(image: Image | None, state: str) -> None:
    assert is_built(STAGE, image) == state


def test_a_tag_of_somebody_elses_image_is_not_taken() -> None:
    theirs = Image(ID, "linux/amd64", "", "", "")
    with pytest.raises(Refused, match="--adopt"):
        refuse_foreign(STAGE, theirs, adopt=False)
    refuse_foreign(STAGE, theirs, adopt=True)
    refuse_foreign(STAGE, IMAGE, adopt=False)
    refuse_foreign(STAGE, None, adopt=False)


# the command line


REQUEST = BuildRequest(
    context="/home/a b/ctx/$(id)",
    dockerfile="pack/gpustack-operator/Dockerfile",
    stage=STAGE.stage,
    platform=Platform.ARM64,
    image="vgpu-build:13",
    input_digest="a" * 64,
    commit="c0ffee-dirty",
    builder="remote",
)


def test_only_allowed_words_reach_buildx() -> None:
    argv = Engine().build(REQUEST)
    assert argv[:3] == ("docker", "buildx", "build")
    assert argv[-1] == REQUEST.context
    flags = {word.partition("=")[0] for word in argv[3:-1] if word.startswith("-")}
    allowed = {"--builder", "--file", "--target", "--platform", "--load", "--tag", "--label"}
    assert flags == allowed | {"--provenance", "--progress"}
    assert "--provenance=false" in argv
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "--label"] == [
        f"{LABEL_STAGE}={STAGE.stage}",
        f"{LABEL_INPUTS}={'a' * 64}",
        f"{LABEL_COMMIT}=c0ffee-dirty",
    ]


def test_the_names_of_the_labels_are_a_contract() -> None:
    assert (LABEL_STAGE, LABEL_INPUTS) == ("xbtasks.stage", "xbtasks.inputs")
    assert (LABEL_COMMIT, LABEL_RUN) == ("xbtasks.commit", "xbtasks.run")


def test_nothing_of_the_run_is_a_label_so_that_the_same_inputs_give_the_same_id() -> None:
    assert "xbtasks.run" not in " ".join(Engine().build(REQUEST))


def test_a_build_without_builder_and_commit_names_neither() -> None:
    argv = Engine().build(BuildRequest("/c", "D", STAGE.stage, Platform.AMD64, "i", "a" * 64))
    assert "--builder" not in argv
    assert LABEL_COMMIT not in " ".join(argv)


def test_no_command_of_the_engine_pulls_pushes_or_starts_anything() -> None:
    engine = Engine()
    create = engine.create("xbtasks-run-read", ID, Platform.ARM64, "run")
    assert create[:6] == ("docker", "create", "--pull", "never", "--network", "none")
    words = {
        *create,
        *engine.build(REQUEST),
        *engine.copy_out("c", "/out/x"),
        *engine.inspect_image("i"),
        *engine.remove_container("c"),
        *engine.list_containers(),
        *engine.list_images(),
    }
    assert not words & {
        "run",
        "start",
        "exec",
        "pull",
        "push",
        "--push",
        "--cache-to",
        "--privileged",
        "login",
    }


def test_the_build_has_its_own_deadline_and_shows_progress() -> None:
    step = build_step(Engine(), REQUEST, "/ctx", 7200, 300)
    build, image, recorded = step.sections
    assert [section.deadline for section in step.sections] == [7200, 300, 300]
    assert [section.live for section in step.sections] == [True, False, False]
    assert build.argv[4:8] == ("/ctx", "docker", "vgpu-build:13", "a" * 64)
    assert image.argv[-1] == REQUEST.image
    assert recorded.argv[-1] == "/ctx"


# the image that was built


@pytest.mark.parametrize("identity", [ID, OTHER])
def test_the_image_is_the_one_that_the_build_reported(identity: str) -> None:
    done = reply(
        answer("build", stdout=json.dumps(METADATA).encode()),
        answer("image", stdout=inspected(identity)),
    )
    assert built_image(STAGE, done).id == identity


def test_a_tag_that_was_moved_meanwhile_is_no_verdict() -> None:
    metadata = json.dumps({"containerimage.config.digest": ID}).encode()
    moved = reply(answer("build", stdout=metadata), answer("image", stdout=inspected(OTHER)))
    with pytest.raises(CannotJudge, match="another build moved the tag"):
        built_image(STAGE, moved)


def test_a_load_that_left_no_image_is_no_verdict() -> None:
    gone = answer("image", 1, b"[]", "Error response from daemon: No such image: vgpu-build:13")
    with pytest.raises(CannotJudge, match="was not loaded"):
        built_image(STAGE, reply(answer("build", stdout=json.dumps(METADATA).encode()), gone))


@pytest.mark.parametrize(
    "metadata", [b"", b"[" * 100_000, b"{}", b"[]", b"null", b'"x"', b"{", b"\xff", b'{"x": 1}']
)
def test_a_build_that_reports_no_image_is_no_verdict(metadata: bytes) -> None:
    with pytest.raises(LostReply, match="reported no image"):
        built_image(STAGE, reply(answer("build", stdout=metadata)))


# what a failure means


@pytest.mark.parametrize("prefix", ["failed to solve: ", "failed to build: failed to solve: ", ""])
@pytest.mark.parametrize(
    ("message", "why"),
    [
        (f"{STEP}: exit code: 1", "exit code 1"),
        (f"{STEP}: exit code: 255", "exit code 255"),
        (f"{FAKED}: exit code: 2", "exit code 2"),
        (f"{EMULATED}: exit code: 2", "exit code 2"),
        (f"{STEP}: unable to find user nouser: invalid argument", "unable to find user"),
        ("dockerfile parse error on line 2: unknown instruction: FOO", "unknown instruction"),
        ('target stage "xbuild-nvidia-cuda-13" could not be found', "could not be found"),
        ('failed to parse stage name "UPPER:x": invalid reference format', "invalid reference"),
        ("base name (${NOPE}) should not be blank", "should not be blank"),
        ('failed to process "${NOPE:?needed}": NOPE: needed', "NOPE: needed"),
        (
            'failed to compute cache key: failed to calculate checksum of ref a::b: "/nope": not found',
            "/nope",
        ),
        ('failed to calculate checksum of ref a::b: "/nope": not found', "/nope"),
        ("lstat /var/lib/docker/tmp/buildkit-mount12/out/lib: no such file or directory", "out/lib"),
    ],
)
def test_the_stages_own_fault_fails_it(prefix: str, message: str, why: str) -> None:
    with pytest.raises(BuildFailed, match=r"xbuild-nvidia-cuda-13: ") as caught:
        built_image(STAGE, ended(f"ERROR: {prefix}{message}"))
    assert why in caught.value.message


@pytest.mark.parametrize("prefix", ["failed to solve: ", "failed to build: failed to solve: "])
@pytest.mark.parametrize(
    "message",
    [
        "x/y:1: failed to resolve source metadata for docker.io/x/y:1: failed to do request: dial tcp",
        "toomanyrequests: You have reached your pull rate limit",
        "failed to compute cache key: failed to copy: httpReadSeeker: failed open: failed to do request: EOF",
        "failed to compute cache key: failed to copy: read tcp 1.1.1.1:1->2.2.2.2:443: connection timed out",
        "failed to calculate checksum of ref a::b: failed to get state for index 0 on x: no such device",
        "failed to compute cache key: write /var/lib/docker/x: no space left on device",
        'failed to load cache key: Get "http://127.0.0.1:1/x": connection refused',
        "failed to prepare a as b: no space left on device",
        "rpc error: code = Unavailable desc = error reading from server: EOF",
        "Canceled: context canceled",
        "DeadlineExceeded: context deadline exceeded",
        f"{STEP}: exit code: 137",
        f"{STEP}: exit code: 137: context canceled: context canceled",
        f"{STEP}: exit code: 1: cannot allocate memory",
        f"{STEP}: failed to create endpoint x on network bridge",
        "something that BuildKit has never said",
    ],
)
def test_trouble_of_the_host_is_not_the_stages_fault(prefix: str, message: str) -> None:
    with pytest.raises(CannotJudge, match="not judged"):
        built_image(STAGE, ended(f"ERROR: {prefix}{message}"))


def test_the_engine_has_the_last_word() -> None:
    imitation = f"ERROR: failed to solve: {STEP}: exit code: 1"
    network = "ERROR: failed to solve: x: failed to resolve source metadata: network is unreachable"
    with pytest.raises(CannotJudge):
        built_image(STAGE, ended(imitation, network))
    with pytest.raises(BuildFailed):
        built_image(STAGE, ended(network, imitation, "View build details: docker-desktop://x"))


@pytest.mark.parametrize("separator", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028"])
def test_a_steps_output_is_never_the_engines_word(separator: str) -> None:
    imitation = f"#5 0.1 compiling{separator}ERROR: failed to solve: {STEP}: exit code: 1"
    with pytest.raises(CannotJudge):
        built_image(STAGE, ended(imitation, status=137))


def test_an_engine_that_went_away_says_nothing_of_the_stage() -> None:
    gone = answer("image", 1, b"[]", "Cannot connect to the Docker daemon at unix:///x. Is it running?")
    failed = answer("build", 1, stderr=f"ERROR: failed to solve: {STEP}: exit code: 1")
    with pytest.raises(CannotJudge, match="Cannot connect"):
        built_image(STAGE, reply(failed, gone))


@pytest.mark.parametrize("text", ["", "\n\n", "unknown flag: --load", "\x00\xff"])
def test_a_failure_without_a_word_is_no_verdict(text: str) -> None:
    with pytest.raises(CannotJudge, match="could not be built"):
        built_image(STAGE, reply(answer("build", 125, stderr=text)))


def test_bytes_that_are_no_text_do_no_harm() -> None:
    with pytest.raises(BuildFailed):
        built_image(
            STAGE, reply(answer("build", 1, stderr=b"\xff\n" + f"ERROR: {STEP}: exit code: 2".encode()))
        )


def test_the_excerpt_is_what_buildkit_shows_of_the_failure() -> None:
    log = "#5 0.1 a\n------\n > [2/2] RUN make:\n0.1 boom\n------\nDockerfile:2\nERROR: x"
    assert excerpt(log)[:3] == ("------", " > [2/2] RUN make:", "0.1 boom")
    assert not [line for line in excerpt(log) if "ERROR" in line]
    assert excerpt(log, 2) == ("------", " > [2/2] RUN make:")
    assert excerpt("#5 0.1 \r------\rforged") == ()
