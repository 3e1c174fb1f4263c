"""Ctrl-C and SIGTERM at every point of a run: exit 130, nothing left, and the next run works."""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

import pytest

from tests.processes import words_of_processes
from tests.workplace import BASE, make_checkout

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.workplace import Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-nvidia-cuda-x"
SIGNALS = [signal.SIGINT, signal.SIGTERM]


def wait_for(what: Callable[[], object], child: subprocess.Popen[bytes]) -> None:
    """Return when ``what`` is true; a child that ends before has failed the test."""
    for _ in range(600):
        if what():
            return
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    raise AssertionError("it never came to that")


def running(word: str) -> list[int]:
    """Return the processes that have ``word`` as an argument of their own."""
    return [number for number, words in words_of_processes("cmdline") if word.encode() in words]


def interrupted(child: subprocess.Popen[bytes], number: signal.Signals) -> str:
    """Send the signal, insist on 130, and return what was said."""
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, (out, err)
    assert b"Traceback" not in out + err
    return (out + err).decode()


@pytest.mark.parametrize("number", SIGNALS)
def test_during_a_build(place: Workplace, number: signal.Signals) -> None:
    marker = f"8{time.monotonic_ns()}"
    text = f"FROM {BASE} AS {STAGE}\nRUN sleep {marker}; mkdir /out; echo x >/out/libvgpu.so\n"
    checkout = make_checkout(place.folder / "checkout", text)
    child = place.start("verify", STAGE, "--cases", "1", "--json", XB_REPO=str(checkout))
    wait_for(lambda: running(marker), child)
    said = interrupted(child, number)
    assert '"exit_code": 130' in said
    wait_until_gone(marker)
    assert place.left_over() == []
    assert not place.staging.exists()
    assert place.engine.docker("image", "ls", "--quiet", place.tag("image")) == ""
    assert place.engine.docker("ps", "--all", "--quiet") == ""
    # what it was about is judged again from its evidence, and the next run works
    assert place.inv("replay", str(place.evidence()[-1])).code == 130
    make_checkout(checkout, text.replace(f"sleep {marker};", ":;"))
    assert place.inv("verify", STAGE, "--cases", "1", XB_REPO=str(checkout)).code == 1


def wait_until_gone(word: str) -> None:
    for _ in range(200):
        if not running(word):
            return
        time.sleep(0.05)
    raise AssertionError(f"{word} still runs")


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("command", ["cp", "create", "image"])
def test_during_a_case(place: Workplace, number: signal.Signals, command: str) -> None:
    """A docker that takes its time with one command, once; what it had made by then is removed by name."""
    assert place.inv("verify", "xbuild-nvidia-cuda-13", "--cases", "1").code == 0
    marker = f"9{time.monotonic_ns()}"
    body = f'"$REAL" "$@"; status=$?; [ "$1" != {command} ] || sleep {marker}; exit $status'
    child = place.start("verify", "xbuild-nvidia-cuda-13", "--cases", "1", PATH=place.shim("docker", body))
    wait_for(lambda: running(marker), child)
    said = interrupted(child, number)
    assert "interrupted in step" in said
    wait_until_gone(marker)
    assert place.left_over() == []
    assert place.engine.docker("ps", "--all", "--quiet") == ""
    assert place.inv("verify", "xbuild-nvidia-cuda-13", "--cases", "1").code == 0


def test_at_a_question(place: Workplace) -> None:
    done = place.on_screen("verify", question="Which stages?", keys="\x03")
    assert done.code == 130, done.text
    assert "Traceback" not in done.text


def test_a_second_ctrl_c_while_cleaning_up_changes_nothing(place: Workplace) -> None:
    marker = f"7{time.monotonic_ns()}"
    text = f"FROM {BASE} AS {STAGE}\nRUN sleep {marker}\n"
    checkout = make_checkout(place.folder / "checkout", text)
    child = place.start("verify", STAGE, "--cases", "1", XB_REPO=str(checkout))
    wait_for(lambda: running(marker), child)
    for _ in range(5):
        child.send_signal(signal.SIGINT)
        time.sleep(0.02)
    out, err = child.communicate(timeout=60)
    assert child.returncode in (130, -signal.SIGINT), (out, err)
    wait_until_gone(marker)
    assert place.left_over() == []
