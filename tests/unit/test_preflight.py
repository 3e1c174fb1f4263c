"""The preflight step as it runs: real shells, tools replayed by scripts that are first on PATH."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.unit.preflight_replies import SAMPLES
from xbtasks.backends.ascend import hardware as ascend
from xbtasks.backends.nvidia import hardware as nvidia
from xbtasks.checks import Check, Status
from xbtasks.host import frame
from xbtasks.host.framed import FramedHost
from xbtasks.host.local import LocalTransport
from xbtasks.host.recording import Evidence, RecordedHost
from xbtasks.host.step import Reply, Step
from xbtasks.hostfacts import BuildxState, EngineState, HostFacts
from xbtasks.hostprobe import Answers, Lookup, probe
from xbtasks.preflight import Deadlines, preflight_checks, preflight_step, read_preflight
from xbtasks.preflight import reading as preflight_reading
from xbtasks.preflight import step as preflight_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

TOOLS = ["sh", "base64", "sha256sum", "timeout", "sed", "wc", "tee", "mkfifo", "mktemp", "rm", "date", "dd"]
TOOLS += ["cat", "head", "tail", "tr", "df", "uname", "id", "sleep"]
NOBODY = 65534
USUAL = Deadlines()
SHORT = {
    "docker": Deadlines(engine=2, tool=60, look=60),
    "nvidia-smi": Deadlines(engine=60, tool=2, look=60),
    "npu-smi": Deadlines(engine=60, tool=2, look=60),
}


@dataclass
class Shims:
    """A folder that is the whole PATH: the plain tools of the system, and scripts that replay others."""

    folder: Path

    def add(self, name: str, text: str, mode: int = 0o755) -> Path:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(mode)
        return path

    def docker(self, **answers: tuple[int, str]) -> Path:
        """Replay ``docker``: a sub-command's exit status and the sample that it prints."""
        lines = [f'echo "$*" >>{self.folder}/docker.log', 'case "$1 $2" in']
        said = {
            "context_inspect": (0, "unix:///nowhere/docker.sock"),
            "version": (0, "docker/version-26.1.json"),
            "info": (0, "docker/info-26.1-both-runtimes.json"),
            "buildx_version": (0, "docker/buildx-version-debian.txt"),
            "buildx_inspect": (0, "docker/inspect-docker.txt"),
            **answers,
        }
        for command, (status, text) in said.items():
            first, _, second = command.partition("_")
            prints = f"cat {SAMPLES / text}" if (SAMPLES / text).is_file() else f"echo '{text}'"
            lines.append(f'"{first} {second or "--format"}") {prints}; exit {status} ;;')
        return self.add("docker", "\n".join((*lines, "esac\nexit 99\n")))

    @property
    def asked(self) -> list[str]:
        return (self.folder / "docker.log").read_text().splitlines()


@pytest.fixture
def shims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shims:
    folder = tmp_path / "path"
    folder.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (folder / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(folder))
    for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "CUDA_MPS_PIPE_DIRECTORY"):
        monkeypatch.delenv(name, raising=False)
    return Shims(folder)


def ask(step: Step, evidence: Path | None = None) -> Reply:
    with closing(FramedHost(LocalTransport(), Evidence(evidence) if evidence else None)) as host:
        return host.run(step)


def facts(
    staging: dict[str, str] | None = None,
    *,
    builder: str | None = None,
    deadlines: Deadlines = USUAL,
) -> HostFacts:
    return read_preflight(ask(preflight_step("docker", staging or {}, builder=builder, deadlines=deadlines)))


def row(found: HostFacts, name: str) -> Check:
    return next(check for check in preflight_checks(found) if check.id == f"preflight.{name}")


def test_the_plans_of_the_tests_reach_the_host(shims: Shims) -> None:
    assert shutil.which("docker") is None
    shims.docker()
    assert shutil.which("docker") == str(shims.folder / "docker")


def test_everything_in_one_step_and_docker_info_once(shims: Shims) -> None:
    shims.docker()
    shims.add("nvidia-smi", f"cat {SAMPLES}/nvidia-smi/two-h200.csv")
    found = facts()
    assert found.engine.state is EngineState.UP
    assert found.engine.tool is not None
    assert found.engine.tool.path == str(shims.folder / "docker")
    assert found.engine.endpoint == "unix:///nowhere/docker.sock"
    assert found.buildx.state is BuildxState.READY
    assert [gpu.memory_mib for gpu in found.gpus] == [143771, 143771]
    assert [line for line in shims.asked if line.startswith("info")] == ["info --format {{json .}}"]
    assert shims.asked == [
        "context inspect --format {{.Endpoints.docker.Host}}",
        "version --format {{json .}}",
        "info --format {{json .}}",
        "buildx version",
        "buildx inspect",
    ]


def test_a_named_builder_is_asked_for_as_one_word(shims: Shims) -> None:
    shims.docker()
    facts(builder="my builder; rm -rf /")
    assert shims.asked[-1] == "buildx inspect -- my builder; rm -rf /"


def test_without_docker_no_docker_is_run(shims: Shims) -> None:
    found = facts()
    assert found.engine.state is EngineState.ABSENT
    assert found.buildx.state is BuildxState.ENGINE_ABSENT
    assert row(found, "engine").status is Status.FAIL


def test_docker_that_may_not_be_run_is_not_absent(shims: Shims) -> None:
    path = shims.add("docker", "exit 0", 0o644)
    found = facts()
    assert found.engine.state is EngineState.UNUSABLE
    assert found.engine.reason == f"{path} is there, but this user may not run it"


def test_no_daemon(shims: Shims) -> None:
    shims.docker(
        version=(1, "docker/version-28.2-no-server.json"), info=(1, "docker/info-28.2-no-server.json")
    )
    assert facts().engine.state is EngineState.DOWN


def test_exit_0_with_nothing_behind_it(shims: Shims) -> None:
    shims.docker(info=(0, "docker/info-server-errors.json"))
    found = facts()
    assert found.engine.state is EngineState.DOWN
    assert "Is the docker daemon running?" in found.engine.reason


def test_buildx_that_is_no_command_is_asked_no_further(shims: Shims) -> None:
    shims.docker(buildx_version=(1, "docker: unknown command: docker buildx"))
    assert facts().buildx.state is BuildxState.ABSENT
    assert "buildx inspect" not in shims.asked


@pytest.mark.parametrize("tool", ["docker", "nvidia-smi", "npu-smi"])
def test_a_tool_that_hangs_costs_its_deadline_and_one_row(shims: Shims, tool: str) -> None:
    shims.docker()
    path = shims.add(tool, f"echo $$ >>{shims.folder}/pids\nsleep 600\n")
    begun = time.monotonic()
    found = facts(deadlines=SHORT[tool])
    assert time.monotonic() - begun < 30
    name = "engine" if tool == "docker" else tool
    assert f"{path} did not answer within 2 s" in row(found, name).detail
    if tool == "docker":
        assert found.engine.state is EngineState.TIMED_OUT
        assert found.buildx.state is BuildxState.TIMED_OUT
    else:
        assert found.engine.up
        assert row(found, tool).status is Status.WARN
    assert not _alive(shims)


def test_a_tool_that_ignores_the_end_of_its_time_is_killed(shims: Shims) -> None:
    shims.add("nvidia-smi", f"echo $$ >>{shims.folder}/pids\ntrap '' TERM\nwhile :; do sleep 1; done\n")
    found = facts(deadlines=SHORT["nvidia-smi"])
    assert row(found, "nvidia-smi").detail.partition("did not answer within")[1]
    assert not _alive(shims)


def _alive(shims: Shims) -> list[str]:
    """Return which tools still run; one that ended and wasn't waited for doesn't."""
    pids = (shims.folder / "pids").read_text().split()
    return [pid for pid in pids if _state(pid) not in ("", "Z", "X")]


def _state(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_tools_get_no_stdin(shims: Shims) -> None:
    shims.docker()
    shims.add("nvidia-smi", f"cat >&2; cat {SAMPLES}/nvidia-smi/two-h200.csv")
    shims.add("npu-smi", "cat; exit 7")
    found = facts()
    assert len(found.gpus) == 2
    assert "it said nothing and ended with 7" in row(found, "npu-smi").detail


def test_npu_smi_is_asked_in_its_three_forms(shims: Shims) -> None:
    files = {"info -l": "list-8-cards", "info -m": "map-a2-4col", "info": "table-910B4-25.5.3"}
    answers = "\n".join(f'"{ask}") cat {SAMPLES}/npu-smi/{name}.txt ;;' for ask, name in files.items())
    shims.add("npu-smi", f'case "$*" in\n{answers}\n*) exit 9 ;; esac\n')
    found = facts()
    assert (
        "npu-smi lists cards [0, 1, 2, 3, 4, 5, 6, 7] and maps cards [0, 1]" in row(found, "npu-smi").detail
    )
    assert found.ascend.driver == "25.5.3"


def test_errors_of_tools_on_both_streams(shims: Shims) -> None:
    shims.add("nvidia-smi", f"cat {SAMPLES}/nvidia-smi/mismatch.txt; exit 18")
    shims.add("npu-smi", f"cat {SAMPLES}/npu-smi/stderr-libc_sec-missing.txt >&2; exit 127")
    found = facts()
    assert "driver/library mismatch: Failed to initialize NVML" in row(found, "nvidia-smi").detail
    assert "library missing: libc_sec.so is missing" in row(found, "npu-smi").detail


def test_a_tool_cannot_speak_for_the_probe(shims: Shims) -> None:
    lies = "gpus.status 0\\nfound /elsewhere\\nabsent nvidia-smi\\nxb-1.1 end 0 abc\\n\\001\\377\\r"
    shims.add("nvidia-smi", f"printf '{lies}'\nexit 6\n")
    found = facts()
    assert row(found, "nvidia-smi").detail.partition(": ")[2].startswith("no device: gpus.status 0 found")


def test_staging_directories(shims: Shims, tmp_path: Path) -> None:
    there, file = tmp_path / "is there", tmp_path / "file"
    there.mkdir()
    file.touch()
    (tmp_path / "dangling").symlink_to(tmp_path / "gone")
    before = sorted(tmp_path.rglob("*"))
    found = facts(
        {
            "a": str(there),
            "b": str(tmp_path / "to" / "be" / "made"),
            "c": str(file),
            "d": str(file / "below"),
            "e": str(tmp_path / "dangling"),
            "f": "/xb-test-not-there/deep",
        }
    )
    assert sorted(tmp_path.rglob("*")) == before
    seen = {one.backend: one for one in found.staging}
    assert [one.backend for one in found.staging] == list("abcdef")
    assert (seen["a"].exists, seen["a"].writable) == (True, True)
    assert (seen["b"].exists, seen["b"].nearest, seen["b"].is_directory) == (False, str(tmp_path), True)
    assert (seen["c"].is_directory, seen["d"].nearest) == (False, str(file))
    assert (seen["e"].nearest, seen["e"].is_directory) == (str(tmp_path / "dangling"), False)
    assert seen["f"].nearest == "/"
    for name in "abc":
        assert (seen[name].free_kib or 0) > 0


def test_the_same_facts_from_the_recording(shims: Shims, tmp_path: Path) -> None:
    shims.docker()
    shims.add("nvidia-smi", f"cat {SAMPLES}/nvidia-smi/one-in-mig-mode.csv")
    step = preflight_step("docker", {"nvidia": "/opt/vgpu"})
    live = read_preflight(ask(step, tmp_path / "evidence"))
    replayed = read_preflight(RecordedHost(tmp_path / "evidence", "local").run(step))
    assert replayed == live
    assert preflight_checks(replayed) == preflight_checks(live)


def test_the_step_holds_no_value_of_the_user_in_its_texts() -> None:
    step = preflight_step("docker", {"ascend": "/opt/it's; $(touch x)"}, builder="`id`")
    for section in step.sections:
        assert section.argv[:2] == ("sh", "-c")
        assert "touch x" not in section.argv[2]
        assert "`id`" not in section.argv[2]
    names = [section.name for section in step.sections]
    assert len(set(names)) == len(names)
    assert step.deadline < 200


def test_the_texts_are_sound_shell() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    if not shellcheck.is_file():
        pytest.skip("shellcheck is not installed")
    for section in preflight_step("docker", {"nvidia": "/opt/vgpu"}).sections:
        done = subprocess.run(
            (shellcheck, "-s", "sh", "-"), input=section.argv[2], capture_output=True, text=True
        )
        assert done.returncode == 0, (section.name, done.stdout)


def texts(text: str, *values: str) -> Answers:
    return Answers(ask(Step("probe", (probe("probe", text, 5, *values),)))["probe"])


def test_emulators_as_the_kernel_lists_them(shims: Shims, tmp_path: Path) -> None:
    (tmp_path / "status").write_text("enabled\n")
    (tmp_path / "register").write_text("never read\n")
    (tmp_path / "qemu-aarch64").write_text(
        "enabled\ninterpreter /usr/libexec/qemu-binfmt/aarch64-binfmt-P\nflags: POCF\noffset 0\n"
        "magic 7f454c460201010000000000000000000200b700\nmask ffffffffffffff00fffffffffffffffffeffffff\n"
    )
    (tmp_path / "python3.11").write_text(
        "enabled\ninterpreter /usr/bin/python3.11\nflags: \noffset 0\nmagic a70d0d0a\n"
    )
    found = preflight_reading._emulation(texts(preflight_texts._BINFMT, str(tmp_path)))
    assert found.visible
    assert [platform.value for platform in found.platforms] == ["linux/arm64"]
    assert found.interpreters == ("/usr/libexec/qemu-binfmt/aarch64-binfmt-P",)
    assert preflight_reading._emulation(texts(preflight_texts._BINFMT, "/nowhere")).visible is False


def test_cdi_specs_and_mps(shims: Shims, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia.yaml").write_text(
        "---\ncdiVersion: 0.5.0\ncontainerEdits:\n  env: []\nkind: nvidia.com/gpu\n"
    )
    (tmp_path / "b.json").write_text('{"cdiVersion":"0.6.0","kind":"example.com/net","devices":[]}')
    (tmp_path / "empty.yaml").touch()
    (tmp_path / "notes.txt").write_text("kind: nvidia.com/gpu\n")
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    answers = texts(nvidia._LOOK.replace("/etc/cdi", str(tmp_path)).replace("/var/run/cdi", "/nowhere"))
    assert set(answers.lines("cdi")) == {
        f"nvidia.com/gpu {tmp_path}/nvidia.yaml",
        f"example.com/net {tmp_path}/b.json",
        f" {tmp_path}/empty.yaml",
    }
    assert answers.first("mps") == str(tmp_path)


def test_device_files_are_told_by_their_names(tmp_path: Path) -> None:
    dev, root = tmp_path / "dev", f"XBTASKS_DEVICE_ROOT={tmp_path}\n"
    dev.mkdir()
    for name in ("nvidia0", "nvidia17", "nvidiactl", "nvidia-uvm", "nvidia-modeset", "nvidia", "nvidia0x"):
        (dev / name).symlink_to("/dev/null")
    (dev / "nvidia1").touch()
    (dev / "nvidia-caps").mkdir()
    answers = texts(root + nvidia._LOOK)
    assert answers.lines("node") == ("/dev/nvidia0", "/dev/nvidia17")
    assert answers.lines("control") == ("/dev/nvidiactl",)
    for name in ("davinci0", "davinci15", "davinci_manager", "davinci0a", "davinci"):
        (dev / name).symlink_to("/dev/null")
    answers = texts(root + ascend._LOOK)
    assert answers.lines("node") == ("/dev/davinci0", "/dev/davinci15")
    assert answers.lines("missing") == ("/dev/hisi_hdc",)


FIND = 'find "$1" "$2" || exit 0\nask said "$tool"\n'


def test_a_tool_beside_path_is_found_where_it_is_known_to_lie(shims: Shims, tmp_path: Path) -> None:
    known = tmp_path / "driver tools"
    known.mkdir()
    (known / "xb-tool").write_text("#!/bin/sh\necho hello\nexit 3\n")
    (known / "xb-tool").chmod(0o755)
    answers = texts(FIND, "xb-tool", f"/nowhere:{known}")
    assert (answers.tool.lookup, answers.tool.path) == (Lookup.FOUND, f"{known}/xb-tool")
    said = answers.answer("said")
    assert said is not None
    assert (said.exit_status, said.stdout) == (3, "hello")
    assert texts(FIND, "xb-other", f"/nowhere:{known}").tool.lookup is Lookup.ABSENT
    shims.add("xb-tool", "echo first\n")
    assert texts(FIND, "xb-tool", str(known)).tool.path == str(shims.folder / "xb-tool")


def test_a_directory_of_the_tools_name_is_not_the_tool(shims: Shims) -> None:
    (shims.folder / "xb-tool").mkdir()
    assert texts(FIND, "xb-tool", "").tool.lookup is Lookup.ABSENT


def test_odd_paths(shims: Shims, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"::relative:{shims.folder}:/not/there/*:")
    assert texts(FIND, "xb-tool", "").tool.lookup is Lookup.ABSENT


@pytest.fixture
def public() -> Iterator[Path]:
    """Return a folder that every user can reach, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="xb-test-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    subprocess.run(("chmod", "-R", "u+rwx", str(folder)), check=True)
    shutil.rmtree(folder)


def as_nobody(step: Step) -> Reply:
    """Run a step as a user who is nobody special."""
    script = frame.script(step, "xb-nobody.1").encode()
    who: dict[str, object] = (
        {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(shlex.split(frame.LOOP), stdin=pipe, stdout=pipe, cwd="/", **who) as shell:
        assert shell.stdin
        assert shell.stdout
        shell.stdin.write(b"%d\n%s" % (len(script), script))
        shell.stdin.flush()
        answer = []
        while not answer or not answer[-1].startswith(b"xb-nobody.1 end "):
            answer.append(shell.stdout.readline())
            assert answer[-1]
        shell.stdin.close()
    return frame.parse(step, "xb-nobody.1", b"".join(answer))


def test_absence_is_not_claimed_of_what_could_not_be_seen(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = public / "driver" / "tools"
    secret.mkdir(parents=True)
    (secret / "xb-tool").write_text("#!/bin/sh\n")
    (secret / "xb-tool").chmod(0o755)
    shut = public / "driver"
    shut.chmod(0o000)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    step = Step("probe", (probe("probe", FIND, 5, "xb-tool", str(secret)),))
    tool = Answers(as_nobody(step)["probe"]).tool
    assert (tool.lookup, tool.path) == (Lookup.HIDDEN, str(secret))
    shut.chmod(0o755)
    assert Answers(as_nobody(step)["probe"]).tool.lookup is Lookup.FOUND
    (secret / "xb-tool").chmod(0o644)
    assert Answers(as_nobody(step)["probe"]).tool.lookup is Lookup.DENIED


def test_a_staging_directory_that_this_user_cannot_write(public: Path) -> None:
    closed = public / "closed"
    closed.mkdir(mode=0o555)
    found = read_preflight(as_nobody(preflight_step("docker", {"nvidia": f"{closed}/vgpu"})))
    (staging,) = found.staging
    assert (staging.nearest, staging.writable) == (str(closed), False)
    assert row(found, "staging").status is Status.WARN


def test_a_socket_that_this_user_may_not_open(public: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(SAMPLES / "docker/info-server-errors.json", public / "down.json")
    (public / "down.json").chmod(0o644)
    (public / "run").mkdir()
    answers = f"context) echo unix://{public}/run/docker.sock ;; info) cat {public}/down.json ;; *) exit 1 ;;"
    Shims(public).add("docker", f'case "$1" in {answers} esac\n')
    monkeypatch.setenv("PATH", f"{public}:/usr/bin:/bin")
    step = preflight_step("docker", {})
    assert read_preflight(as_nobody(step)).engine.state is EngineState.DOWN
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(public / "run/docker.sock"))
        (public / "run/docker.sock").chmod(0o666)
        assert read_preflight(as_nobody(step)).engine.state is EngineState.DOWN
        (public / "run/docker.sock").chmod(0o600 if os.geteuid() == 0 else 0o000)
        assert read_preflight(as_nobody(step)).engine.state is EngineState.DENIED
        (public / "run").chmod(0o000)
        assert read_preflight(as_nobody(step)).engine.state is EngineState.DENIED
