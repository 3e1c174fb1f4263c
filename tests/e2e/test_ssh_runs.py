"""A whole run over a real sshd gives what a local run gives; a link that is cut gives no wrong verdict."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.sshd import Rig, make_key
from tests.tcpproxy import Proxy

if TYPE_CHECKING:
    from tests.sshd import Server
    from tests.workplace import Done, Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-nvidia-cuda-13"
NOISE = """\
echo "Welcome to host"; echo "FAIL | nvidia.case1.mode | from the motd"; echo FAILS=0
echo "xb-0123456789abcdef01234567.1 begin 1"
echo "xb-0123456789abcdef01234567.1 end 1 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
echo "a word on stderr" >&2
"""


@dataclass
class Far:
    """A simulated host behind ssh: the engine of the session, and a temporary folder of its own."""

    rig: Rig
    place: Workplace

    @property
    def tmp(self) -> Path:
        folder = self.rig.folder / "far tmp"
        folder.mkdir(exist_ok=True)
        return folder

    def server(self, *lines: str, shell: str = "", noise: str = "") -> Server:
        environment = {"TMPDIR": str(self.tmp), **self.place.engine.environment}
        return self.rig.server(*lines, shell=shell, noise=noise, environment=environment)

    def inv(self, host: str, *arguments: str, **changes: str | None) -> Done:
        """Run stock Invoke against the host; what points docker at the engine is on the far side only."""
        gone: dict[str, str | None] = dict.fromkeys(("DOCKER_HOST", "DOCKER_CONFIG", "SSH_AUTH_SOCK"))
        ssh = {"XB_MODE": "ssh", "XB_HOST": host, "XB_SSH_CONFIG": str(self.rig.ssh_config), "XB_YES": "1"}
        wanted: dict[str, str | None] = {**gone, **ssh, **changes}
        return self.place.inv(*arguments, **wanted)


@pytest.fixture
def far(rig: Rig, place: Workplace) -> Far:
    return Far(rig, place)


def rows(document: dict[str, Any]) -> list[tuple[object, ...]]:
    """Return what case 1 said, row by row; image ids and the noise that a host made apart."""
    (case,) = document["cases"]
    found = [
        (case["verdict"], row["id"], row["status"], row["expected"], row["observed"])
        for row in case["checks"]
    ]
    assert len(found) > 10
    return found


def noise_of(document: dict[str, Any]) -> list[tuple[str, str]]:
    checks = [row for row in document["preflight"] if row["id"] == "preflight.noise"]
    return [(row["status"], row["detail"]) for row in checks]


@pytest.mark.parametrize("shell", ["/bin/dash", "/usr/bin/tcsh", "/usr/bin/fish"])
def test_the_same_stage_gives_the_same_rows_locally_and_over_ssh(
    far: Far, place: Workplace, tmp_path: Path, shell: str
) -> None:
    if not Path(shell).exists():
        pytest.skip(f"no {shell}")
    banner = tmp_path / "banner"
    banner.write_text("AUTHORISED USERS ONLY\nFAIL | nvidia.case1.mode | from the banner\n")
    far.rig.alias("far", far.server(f"Banner {banner}", "MaxSessions 1", shell=shell, noise=NOISE).port)
    here = place.inv("verify", STAGE, "--cases", "1", "--rebuild", "--json")
    assert here.code == 0, here.text
    there = far.inv("far", "verify", STAGE, "--cases", "1", "--rebuild", "--json")
    assert there.code == 0, there.text
    assert rows(there.document) == rows(here.document)
    for done in (here, there):
        assert [build["outcome"] for build in done.document["builds"]] == ["built"]
    assert (there.document["verdict"], there.document["host"]) == ("PASS", "far")
    assert noise_of(there.document) == [("INFO", "lines of login noise around the reply, not read: 6")]
    assert there.document["simulated"] is True

    case = far.inv("far", "nvidia.case1", STAGE, "--json")
    assert (case.code, rows(case.document)) == (0, rows(there.document))
    replayed = place.inv("replay", there.document["evidence"], "--json", DOCKER_HOST=None)
    assert replayed.code == 0, replayed.text
    assert rows(replayed.document) == rows(there.document)
    assert replayed.document["preflight"] == there.document["preflight"]
    assert place.left_over() == []
    assert not list(far.tmp.iterdir())
    cleaned = far.inv("far", "clean", "--all")
    assert cleaned.code == 0, cleaned.text
    assert not place.contexts.exists()
    assert not place.staging.exists()


def test_two_jump_hosts_on_the_way(far: Far, place: Workplace) -> None:
    target = far.server("MaxSessions 1")
    second = far.rig.server(f"PermitOpen 127.0.0.1:{target.port}")
    first = far.rig.server(f"PermitOpen 127.0.0.1:{second.port}")
    far.rig.alias("first", first.port)
    far.rig.alias("second", second.port)
    far.rig.alias("far", target.port, "ProxyJump first,second")
    done = far.inv("far", "verify", STAGE, "--cases", "1", "--json")
    assert (done.code, done.document["verdict"]) == (0, "PASS"), done.text


def test_a_failing_build_is_a_failure_over_ssh_too(far: Far, place: Workplace) -> None:
    far.rig.alias("far", far.server(shell="/bin/dash", noise=NOISE).port)
    broken = far.rig.folder / "checkout/pack/gpustack-operator"
    broken.mkdir(parents=True)
    (broken / "Dockerfile").write_text(
        "FROM xbtasks-sim/base:1 AS xbuild-nvidia-cuda-99\nRUN echo to be seen; false | true; exit 7\n"
    )
    done = far.inv(
        "far", "verify", "xbuild-nvidia-cuda-99", "--json", XB_REPO=str(far.rig.folder / "checkout")
    )
    assert (done.code, done.document["verdict"]) == (1, "FAIL"), done.text
    assert "exit code: 7" in done.text or "exit code 7" in done.text


def test_a_home_with_spaces_and_one_that_can_not_be_written(far: Far, place: Workplace) -> None:
    home = far.rig.folder / "a home with spaces"
    home.mkdir()
    environment = {"TMPDIR": str(far.tmp), **place.engine.environment}
    far.rig.alias("spaces", far.rig.server(environment={**environment, "HOME": str(home)}).port)
    done = far.inv("spaces", "verify", STAGE, "--cases", "1", "--json", XB_REMOTE_CTX=None)
    assert done.code == 0, done.text
    assert len(list((home / ".cache/xbtasks/ctx").iterdir())) >= 1
    far.rig.alias("shut", far.rig.server(environment={**environment, "HOME": "/proc/1"}).port)
    assert far.inv("shut", "nvidia.case1", STAGE, "--json", XB_REMOTE_CTX=None).code == 0
    built = far.inv("shut", "verify", STAGE, "--cases", "1", "--rebuild", "--json", XB_REMOTE_CTX=None)
    assert (built.code, built.document["verdict"]) == (4, "ERROR"), built.text


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("key", "far: host key changed"),
        ("identity", "far: authentication failed"),
        ("sessions", "far: too many sessions"),
        ("shell", "far: remote shell unusable"),
        ("port", "far: connection refused"),
    ],
)
def test_every_way_to_fail_is_exit_4_and_named(far: Far, wrong: str, said: str) -> None:
    server = far.server(
        *(("MaxSessions 0",) if wrong == "sessions" else ()), shell="/bin/true" if wrong == "shell" else ""
    )
    far.rig.alias("far", 1 if wrong == "port" else server.port)
    if wrong == "key":
        other = make_key(far.rig.folder / "other").with_suffix(".pub").read_text()
        far.rig.known_hosts.write_text(f"[127.0.0.1]:{server.port} {other}")
    if wrong == "identity":
        (server.folder / "authorized_keys").write_text("")
    for command in (("preflight",), ("verify", STAGE, "--cases", "1")):
        done = far.inv("far", *command, "--json")
        assert (done.code, done.document["verdict"], done.document["exit_code"]) == (4, "ERROR", 4), done.text
        assert said in done.document["reason"]
    cleaned = far.inv("far", "clean")
    assert cleaned.code == 4
    assert said in cleaned.err


def test_a_simulated_host_is_never_asked_about(far: Far) -> None:
    far.rig.alias("far", far.server().port)
    done = far.inv("far", "verify", STAGE, "--cases", "1", "--json", XB_YES=None)
    assert done.code == 0, done.text


def test_evidence_holds_all_that_was_answered_and_no_key(far: Far, place: Workplace) -> None:
    far.rig.alias("far", far.server(noise=NOISE).port)
    done = far.inv("far", "verify", STAGE, "--cases", "1", "--json")
    evidence = Path(done.document["evidence"])
    secret = far.rig.identity.read_text().split("\n")[1:-2]
    found = subprocess.run(["grep", "-rlzF", secret[0], str(evidence)], capture_output=True, check=False)
    assert found.returncode == 1
    steps = sorted(path.name for path in (evidence / "steps").iterdir())
    assert steps[0] == "001-preflight"
    for step in (evidence / "steps").iterdir():
        assert sorted(path.name for path in step.iterdir()) == [
            "script.sh",
            "stderr.gz",
            "stdout.gz",
            "step.json",
        ]
        assert json.loads((step / "step.json").read_text())["failure"] == ""


BUILD = ("build", STAGE, "--rebuild", "--json")
CASE_1 = ("nvidia.case1", STAGE, "--json")
CASE_2 = ("nvidia.case2", STAGE, "--no-throttle", "--json")


@pytest.mark.parametrize(
    ("command", "cuts"), [(BUILD, 20), (CASE_1, 20), (CASE_2, 4)], ids=["build", "case 1", "case 2"]
)
def test_a_link_cut_at_any_point_gives_no_wrong_verdict_and_clean_leaves_nothing(
    far: Far, place: Workplace, command: tuple[str, ...], cuts: int
) -> None:
    server = far.server("MaxSessions 1")
    measured = Proxy(server.port)
    far.rig.alias("measured", measured.port)
    far.rig.alias("far", server.port)
    if command is not BUILD:
        assert far.inv("far", *BUILD).code == 0
    right = far.inv("measured", *command)
    assert right.code == 0, right.text
    measured.close()
    if command is BUILD:
        assert far.inv("far", "clean", "--all").code == 0
    outcomes = []
    for part in range(cuts):
        way, total = (("cut_up", measured.up), ("cut_down", measured.down))[part % 2]
        between = Proxy(server.port, **{way: total * part // cuts})
        name = f"cut-{part}"
        far.rig.alias(name, between.port)
        done = far.inv(name, *command)
        between.close()
        outcomes.append(done.code)
        assert done.code in (0, 4), done.text
        assert done.document["verdict"] == ("PASS" if done.code == 0 else "ERROR")
        if done.code == 0:
            assert told(done.document) == told(right.document)
        else:
            assert {case["verdict"] for case in done.document["cases"]} <= {"ERROR"}
        everything = ("--all",) if command is BUILD else ()
        cleaned = far.inv("far", "clean", *everything)
        assert cleaned.code == 0, cleaned.text
        assert place.left_over() == []
        assert not list(far.tmp.iterdir())
        assert not (place.staging / "test").exists()
        if command is BUILD:
            assert not place.contexts.exists()
            assert not place.staging.exists()
            assert place.engine.docker("image", "ls", "--quiet", place.tag("image").partition(":")[0]) == ""
    assert outcomes.count(4) >= cuts // 2, outcomes


def told(document: dict[str, Any]) -> list[tuple[object, ...]]:
    """Return what a run found, without ids that differ by run."""
    checks = [row for case in document["cases"] for row in case["checks"]]
    return [(document["verdict"], row["id"], row["status"]) for row in checks]


def test_an_interrupted_remote_build_leaves_nothing_and_ends_130(far: Far, place: Workplace) -> None:
    far.rig.alias("far", far.server("MaxSessions 1").port)
    slow = far.rig.folder / "checkout/pack/gpustack-operator"
    slow.mkdir(parents=True)
    (slow / "Dockerfile").write_text("FROM xbtasks-sim/base:1 AS xbuild-nvidia-cuda-98\nRUN sleep 600\n")
    changes = {
        "XB_MODE": "ssh",
        "XB_HOST": "far",
        "XB_SSH_CONFIG": str(far.rig.ssh_config),
        "XB_REPO": str(far.rig.folder / "checkout"),
        "DOCKER_HOST": None,
    }
    child = place.start("build", "xbuild-nvidia-cuda-98", **changes)
    assert child.stdout
    for line in child.stdout:
        if b"RUN sleep 600" in line:
            break
    child.send_signal(2)
    child.communicate(timeout=60)
    assert child.returncode == 130
    assert not list(far.tmp.iterdir())
    assert place.left_over() == []
    found = subprocess.run(["pgrep", "-f", "buildx build .*cuda-98"], capture_output=True, check=False)
    assert found.stdout == b""


def names_nobody(folder: Path, *names: str) -> bool:
    """Return whether no file of the evidence holds a name, in its name or in what it says."""
    for path in folder.rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        said = [base64.b64decode(line.split()[2]) for line in data.split(b"\n") if _BODY.match(line)]
        text = b"\n".join([str(path.relative_to(folder)).encode(), data, *said])
        if any(name.encode() in text for name in names):
            return False
    return True


_BODY = re.compile(rb"xb-[0-9a-f]{24}\.\d+ [oe] [A-Za-z0-9+/=]+$")


def test_a_redacted_run_names_nobody_and_still_replays(far: Far, place: Workplace, tmp_path: Path) -> None:
    (far.rig.folder / "gpu-owner").mkdir()
    context = str(far.rig.folder / "gpu-owner/ctx")
    noise = "echo Welcome to gpu-box-7, gpu-owner; uname -n"
    names = ("gpu-owner", "gpu-box-7")
    far.rig.alias("gpu-box-7", far.server(noise=noise).port)
    command = ("verify", STAGE, "--cases", "1", "--json")
    plain = far.inv("gpu-box-7", *command, XB_REMOTE_CTX=context, LOGNAME="gpu-owner")
    redacted = far.inv("gpu-box-7", *command, "--redact", XB_REMOTE_CTX=context, LOGNAME="gpu-owner")
    assert (plain.code, redacted.code) == (0, 0), redacted.text
    assert not names_nobody(Path(plain.document["evidence"]), "gpu-box-7")
    assert names_nobody(Path(redacted.document["evidence"]), *names)
    assert redacted.document["host"] == "host-1"
    assert "gpu-box-7" not in redacted.out
    assert rows(redacted.document) == rows(plain.document)
    replayed = place.inv("replay", redacted.document["evidence"], "--json")
    assert (replayed.code, replayed.document["host"]) == (0, "host-1"), replayed.text
    assert rows(replayed.document) == rows(plain.document)
    # a command that a message names has the flags of the call, but for those that tell what isn't to be told
    unbuilt = ("nvidia.case1", STAGE, "--host", "gpu-box-7", "--image", place.tag("none"))
    for flags, told in (((), True), (("--redact",), False)):
        done = far.inv("gpu-box-7", *unbuilt, *flags, XB_HOST=None, LOGNAME="gpu-owner")
        assert done.code == 2, done.text
        (line,) = {line for line in done.out.splitlines() if line.startswith("ERROR: ")}
        assert f"build {STAGE}" in line
        assert ("--host=gpu-box-7" in line) is told

    file = tmp_path / "report.tar.gz"
    packed = place.inv("bundle", plain.document["evidence"], "--output", str(file))
    assert packed.code == 0, packed.text
    assert all(name in packed.out for name in names)
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "unpacked", filter="data")
    (there,) = (tmp_path / "unpacked").iterdir()
    assert names_nobody(there, *names)
    assert place.inv("replay", there).code == 0
    again = place.inv("bundle", plain.document["evidence"], "--output", str(file))
    assert (again.code, "is there already" in again.err) == (2, True)


def test_evidence_that_can_not_be_redacted_stays_and_is_no_pass(far: Far) -> None:
    far.rig.alias("payload", far.server().port)
    done = far.inv("payload", "verify", STAGE, "--cases", "1", "--redact", "--json")
    assert done.code == 2, done.text
    assert "not redacted: 'payload' is also a word of xbtasks' own programs" in done.document["reason"]
    assert done.document["cases"][0]["verdict"] == "PASS"
    assert (Path(done.document["evidence"]) / "result.json").exists()
