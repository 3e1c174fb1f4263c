"""Engines that are absent, dead, hanging, lying: the class and the words are right, and never PASS."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.workplace import Done, Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-nvidia-cuda-13"


def shim(place: Workplace, body: str) -> dict[str, str]:
    """Return variables that put a docker of our own first on PATH; it keeps a log of what it was asked."""
    return {"PATH": place.shim("docker", f'echo "$*" >>"$(dirname "$0")/log"\n{body}')}


def verify(place: Workplace, variables: dict[str, str], *flags: str) -> Done:
    done = place.inv("verify", STAGE, "--cases", "1", "--json", *flags, **variables)
    assert "Traceback" not in done.err
    assert done.document["exit_code"] == done.code
    return done


def test_a_daemon_that_takes_the_connection_and_says_nothing_is_timed_out(place: Workplace) -> None:
    path = place.folder / "silent.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen(64)
        held: list[socket.socket] = []
        thread = threading.Thread(target=lambda: _hold(server, held))
        thread.start()
        variables = shim(place, 'case "$1 $2" in "info "*) exec sleep 300 ;; esac; exec "$REAL" "$@"')
        done = verify(place, {**variables, "DOCKER_HOST": f"unix://{path}", "XB_TIMEOUT": "3"})
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    for connection in held:
        connection.close()
    assert (done.code, done.document["verdict"]) == (4, "ERROR")
    assert "did not answer" in done.document["reason"] or "within" in done.document["reason"]


def _hold(server: socket.socket, held: list[socket.socket]) -> None:
    while True:
        try:
            held.append(server.accept()[0])
        except OSError:
            return


@pytest.mark.parametrize(
    "body",
    [
        "echo garbage",
        "exit 0",
        "echo 'Emulate Docker CLI using podman.' >&2; echo '{}'",
        "kill -9 $$",
        "head -c 3000000 /dev/urandom",
        "printf '\\033[2J PASS | x\\n'; exit 1",
    ],
)
def test_a_docker_that_is_none_is_no_verdict(place: Workplace, body: str) -> None:
    done = verify(place, shim(place, body))
    assert (done.code, done.document["verdict"]) == (4, "ERROR"), done.err
    assert "the container engine can't be used" in done.document["reason"]
    assert "\x1b" not in done.text


DOWN = 'echo "Cannot connect to the Docker daemon" >&2; exit 1'
AFTER = '"$REAL" "$@"; status=$?'
LIMITED = "ERROR: failed to build: failed to solve: toomanyrequests: pull rate limit"
LIES = {
    # after a good preflight, one command lies or fails: which, what it does, and what is said of it
    "inspect prints garbage": ("image inspect", 'echo "[garbage"', "answered something else"),
    "inspect prints nothing": ("image inspect", ":", "answered something else"),
    "inspect dies": ("image inspect", DOWN, "Cannot connect"),
    "load leaves no image": (
        "buildx build",
        f'{AFTER}; "$REAL" image rm -f "$XB_IMAGE" >&2; exit $status',
        "was not loaded",
    ),
    "the tag is moved": (
        "buildx build",
        f'{AFTER}; "$REAL" tag xbtasks-sim/base:1 "$XB_IMAGE"; exit $status',
        "moved the tag",
    ),
    "the build does nothing": ("buildx build", ":", "not loaded"),
    "the build is killed": ("buildx build", 'echo "#5 0.1 working" >&2; kill -9 $$', "could not be built"),
    "the build is rate limited": ("buildx build", f'echo "{LIMITED}" >&2; exit 1', "toomanyrequests"),
    "create would pull": ("create ", 'echo "Unable to find image locally" >&2; exit 125', "Unable to find"),
    "cp prints garbage": ("cp ", "echo garbage", "not a tar"),
    "cp prints nothing": ("cp ", ":", "not a tar"),
    "cp is cut": ("cp ", '"$REAL" "$@" | head -c 1000', "the engine's copy"),
    "cp dies": ("cp ", DOWN, "Cannot connect"),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_engine_that_lies_half_way_is_no_verdict(place: Workplace, lie: str) -> None:
    command, does, said = LIES[lie]
    done = verify(
        place, shim(place, f'case "$1 $2" in "{command}"*) {does}; exit ;; esac\nexec "$REAL" "$@"')
    )
    assert (done.code, done.document["verdict"]) == (4, "ERROR"), done.err
    assert said in done.document["reason"]
    assert place.left_over() == []
    assert not (place.staging / "libvgpu.so").exists()


@pytest.mark.parametrize("command", ["image inspect", "buildx build", "create --pull"])
def test_a_command_that_hangs_is_stopped_and_names_the_knob(place: Workplace, command: str) -> None:
    knob = "XB_BUILD_TIMEOUT" if command == "buildx build" else "XB_TIMEOUT"
    variables = shim(place, f'case "$1 $2" in "{command}"*) exec sleep 300 ;; esac\nexec "$REAL" "$@"')
    done = verify(place, {**variables, knob: "3"})
    assert (done.code, done.document["verdict"]) == (4, "ERROR"), done.err
    assert knob in done.document["reason"]
    assert place.left_over() == []
    assert verify(place, {}).code == 0


def test_no_command_that_reaches_docker_pulls_pushes_or_runs(place: Workplace) -> None:
    variables = shim(place, 'exec "$REAL" "$@"')
    assert verify(place, variables).code == 0
    words = (place.folder / "shim/log").read_text().split()
    assert "buildx" in words
    assert not {"run", "start", "exec", "pull", "push", "--push", "login", "compose"} & set(words)
