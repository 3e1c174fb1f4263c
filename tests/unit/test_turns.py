"""Turns at what runs beside each other share: threads of one matrix, processes of one client."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from xbtasks.errors import Interrupted, UsageError
from xbtasks.turns import Turns, turn_of_processes

FORK = multiprocessing.get_context("fork")


def test_turns_are_taken_one_after_another_by_name() -> None:
    turns, inside, seen = Turns(threading.Event()), Counter[str](), Counter[str]()

    def work(name: str) -> None:
        with turns.turn(name, "x"):
            inside[name] += 1
            seen[name] = max(seen[name], inside[name])
            time.sleep(0.02)
            inside[name] -= 1

    threads = [threading.Thread(target=work, args=(name,)) for name in "aabb"]
    for thread in threads:
        thread.start()
    with turns.turn("c"):
        pass
    for thread in threads:
        thread.join()
    assert seen == {"a": 1, "b": 1}


def test_whoever_waits_for_a_turn_is_interrupted() -> None:
    stop = threading.Event()
    turns = Turns(stop)
    with turns.turn("a"):
        stop.set()
        with pytest.raises(Interrupted), turns.turn("a"):
            raise AssertionError
    with turns.turn("a"):
        pass


def _takes_its_turn(folder: Path, log: Path) -> None:
    with turn_of_processes(folder, "m", "image", "a:1"), log.open("a") as stream:
        stream.write("in\n")
        stream.flush()
        time.sleep(0.1)
        stream.write("out\n")


def test_processes_take_turns_at_what_they_share(tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [FORK.Process(target=_takes_its_turn, args=(tmp_path / "turns", log)) for _ in range(4)]
    with turn_of_processes(tmp_path / "turns", "m", "image", "b:1"):  # another one's
        for process in processes:
            process.start()
        for process in processes:
            process.join(30)
            assert process.exitcode == 0
    assert log.read_text().split() == ["in", "out"] * 4
    assert list((tmp_path / "turns").iterdir()) == []


def test_a_turn_that_can_not_be_taken_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "turns").write_text("a file")
    with (
        pytest.raises(UsageError, match=r"no turn can be taken in .*/turns: File exists"),
        turn_of_processes(tmp_path / "turns", "a"),
    ):
        raise AssertionError


def _waits_in_vain(folder: Path) -> None:
    try:
        with turn_of_processes(folder, "a"):
            os._exit(1)
    except Interrupted:
        os._exit(130)


def test_a_process_that_waits_for_its_turn_is_interrupted(tmp_path: Path) -> None:
    with turn_of_processes(tmp_path, "a"):
        process = FORK.Process(target=_waits_in_vain, args=(tmp_path,))
        process.start()
        for _ in range(1000):
            if _waits_for_a_lock(process.pid):
                break
            time.sleep(0.01)
        os.kill(process.pid or 0, signal.SIGINT)
        process.join(30)
    assert process.exitcode == 130


def _waits_for_a_lock(pid: int | None) -> bool:
    """Return whether a process waits for a lock that another holds, as the kernel tells it."""
    lines = (line.split() for line in Path("/proc/locks").read_text().splitlines())
    return any(words[1:3] == ["->", "FLOCK"] and words[5] == str(pid) for words in lines)
