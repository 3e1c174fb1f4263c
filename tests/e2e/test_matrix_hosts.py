"""A matrix over several hosts, each behind an sshd of its own: what befalls one leaves the others alone."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.elfkit import vgpu
from tests.fleet import OTHER, STAGE, Fleet
from tests.processes import words_of_processes
from tests.sshd import Rig, make_key
from tests.workplace import PROJECT, Done, cells, program

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.shimengine import ShimEngine


@pytest.fixture(scope="session")
def library() -> bytes:
    return vgpu()


@pytest.fixture
def fleet(rig: Rig, tmp_path: Path, library: bytes) -> Fleet:
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Fleet(rig, folder, library)


def verdicts(document: dict[str, Any]) -> dict[str, str]:
    return {
        f"{case['host']} {case['stage'].rpartition('-')[2]}": case["verdict"] for case in document["cases"]
    }


def reasons(document: dict[str, Any]) -> dict[str, str]:
    return {case["host"]: case["reason"] for case in document["cases"] if case["verdict"] == "ERROR"}


def wait_for(what: Callable[[], object], child: subprocess.Popen[str]) -> None:
    for _ in range(1200):
        if what():
            return
        assert child.poll() is None, child.communicate()
        time.sleep(0.05)
    raise AssertionError("it never came to that")


def test_one_killed_one_hanging_one_with_another_key_and_three_unharmed(fleet: Fleet) -> None:
    for name in ("a", "b", "c"):
        fleet.add(name)
    fleet.add("killed", seconds=60)
    fleet.add("hanging", seconds=600, ssh=("ServerAliveInterval 1", "ServerAliveCountMax 4"))
    fleet.add("other-key")
    # the key that is on record for the last one is not its own
    port = fleet.servers["other-key"].port
    public = make_key(fleet.folder / "wrong").with_suffix(".pub").read_text().split()[:2]
    fleet.rig.known_hosts.write_text(f"[127.0.0.1]:{port} {' '.join(public)}\n")

    result = fleet.folder / "result.json"
    child = fleet.start("--stages", STAGE, f"--json={result}", "--jobs", "6")
    wait_for(lambda: fleet.hosts["killed"].builds and fleet.hosts["hanging"].builds, child)
    fleet.servers["killed"].stop()
    stuck = [fleet.servers["hanging"].process.pid, *fleet.servers["hanging"].sessions()]
    for pid in stuck:
        os.kill(pid, signal.SIGSTOP)
    try:
        out, err = child.communicate(timeout=120)
    finally:
        for pid in stuck:
            os.kill(pid, signal.SIGCONT)
    assert child.returncode == 4, (out, err)
    document = json.loads(result.read_text())
    assert verdicts(document) == {
        **{f"{name} 13": "PASS" for name in ("a", "b", "c")},
        **{f"{name} 13": "ERROR" for name in ("killed", "hanging", "other-key")},
    }
    why = reasons(document)
    assert "connection ended" in why["killed"]
    assert "no sign of life for 4 s" in why["hanging"]
    assert "key" in why["other-key"]
    assert "Traceback" not in out + err
    table = [row for row in cells(out) if row[0] in ("PASS", "ERROR")]
    assert {(row[0], row[1]) for row in table} >= {("PASS", "a"), ("ERROR", "killed"), ("ERROR", "other-key")}
    # what was recorded says the same
    replayed = subprocess.run(
        [program("inv"), "replay", str(fleet.newest), "--json"],
        cwd=PROJECT,
        env=fleet.environment,
        capture_output=True,
        text=True,
    )
    assert replayed.returncode == 4
    assert verdicts(json.loads(replayed.stdout)) == verdicts(document)

    # only what has no verdict is run again, once the hosts are well
    engine = fleet.hosts["killed"]
    (engine.folder / "engine/seconds").write_text("0")
    (fleet.hosts["hanging"].folder / "engine/seconds").write_text("0")
    fleet.rig.known_hosts.write_text("")
    server = fleet.rig.server(environment=engine.environment, port=fleet.servers["killed"].port)
    fleet.servers["killed"] = server
    again = fleet_continue(fleet, fleet.newest.name, "--json")
    assert again.code == 0, again.text
    assert set(verdicts(again.document).values()) == {"PASS"}
    assert len(again.document["cases"]) == 6
    assert [fleet.hosts[name].builds for name in ("a", "b", "c")] == [1, 1, 1]
    assert (fleet.newest / f"killed.{STAGE}.2").is_dir()
    assert not (fleet.newest / f"a.{STAGE}.2").exists()


def fleet_continue(fleet: Fleet, run: str, *words: str) -> Done:
    done = subprocess.run(
        [program("inv"), "matrix", "--continue", run, "--yes", *words],
        cwd=PROJECT,
        env=fleet.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    return Done(done.returncode, done.stdout, done.stderr)


def test_a_dead_host_has_its_stages_named_and_names_are_replaced(fleet: Fleet) -> None:
    fleet.add("lab-gpu-7")
    fleet.add("lab-gpu-8")
    fleet.servers["lab-gpu-8"].stop()
    done = fleet.matrix("--json", "--redact")
    assert done.code == 4, done.text
    hosts = {case["host"]: case["verdict"] for case in done.document["cases"]}
    assert len(done.document["cases"]) == 4
    (dead,) = (host for host, verdict in hosts.items() if verdict == "ERROR")
    assert "refuse" in reasons(done.document)[dead]
    assert "not redacted" not in done.err
    for path in fleet.newest.rglob("*"):
        assert "lab-gpu" not in str(path.relative_to(fleet.newest))
        if path.is_file():
            data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            assert b"lab-gpu" not in data, path


def test_a_reader_that_goes_away_stops_nothing(fleet: Fleet) -> None:
    engine = fleet.add("far")
    (engine.folder / "engine/waits").touch()
    child = fleet.start("--stages", STAGE)
    wait_for(lambda: engine.builds, child)
    assert child.stdout is not None
    child.stdout.close()
    (engine.folder / "engine/waits").unlink()  # the build says something, and nobody reads it
    assert child.wait(60) == 0
    assert child.stderr is not None
    with child.stderr as stream:
        assert "Traceback" not in stream.read()
    assert json.loads((fleet.newest / "result.json").read_text())["verdict"] == "PASS"


def by_two_names(fleet: Fleet, ssh: str, *, seconds: float) -> tuple[ShimEngine, Path]:
    """Return one machine, and a hosts file that names it twice, the second time as ``ssh``."""
    engine = fleet.add("cards-a", seconds=seconds)
    fleet.rig.alias("elsewhere", fleet.servers["cards-a"].port)
    file = fleet.file
    (_, _, entry) = file.read_text().partition("\n")
    again = entry.replace("name: cards-a", "name: cards-b").replace("ssh: cards-a", f"ssh: {ssh}")
    file.write_text(file.read_text() + again)
    return engine, file


@pytest.mark.parametrize("ssh", ["cards-a", "elsewhere"])
def test_two_hosts_of_one_machine_build_its_images_one_after_another(fleet: Fleet, ssh: str) -> None:
    engine, file = by_two_names(fleet, ssh, seconds=0.5)
    done = fleet.matrix("--json", "--stages", STAGE, file=file)
    assert done.code == 0, done.text
    assert engine.builds == 1
    assert sorted(build["outcome"] for build in done.document["builds"]) == ["built", "up to date"]


def test_who_waits_for_the_image_of_one_machine_is_interrupted_as_a_replay_says(fleet: Fleet) -> None:
    engine, file = by_two_names(fleet, "elsewhere", seconds=300)
    child = fleet.start("--stages", STAGE, "--json", "--redact", file=file)
    state = fleet.folder / "state/xbtasks/runs"
    wait_for(lambda: engine.builds and len(list(state.glob(f"*/cards-*.{STAGE}/run.json"))) == 2, child)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, (out, err)  # --redact judges what it has written again
    assert engine.builds == 1
    said = {case["reason"].partition(" (")[0] for case in json.loads(out)["cases"]}
    assert said == {"interrupted in step build", "interrupted while another stage was at work on the host"}
    wait_until_idle(engine)


def test_nothing_is_done_without_a_word(fleet: Fleet) -> None:
    engine = fleet.add("far")
    done = fleet.matrix("--json", yes=False)
    assert done.code == 2
    assert f"not confirmed: far: build {OTHER} as image vgpu-build:12" in done.err
    assert engine.builds == 0
    assert not engine.staging.exists()
    # what was asked can be continued with the answer
    assert fleet_continue(fleet, fleet.newest.name).code == 0
    assert engine.builds == 2


def test_the_plan_alone_changes_nothing(fleet: Fleet) -> None:
    engine = fleet.add("far")
    fleet.add("near")
    done = fleet.matrix("--dry-run", "--json", "--hosts", "f*", "--stages", "*-13", yes=False)
    assert done.code == 0, done.text
    (planned,) = done.document["units"]
    assert (planned["host"], planned["stage"], planned["cases"]) == ("far", STAGE, [1])
    assert (planned["build"], planned["sends"]) == ("there is no image yet", True)
    assert done.document["asks"] == [{"host": "far", "what": f"build {STAGE} as image vgpu-build:13"}]
    assert "It would ask before" in done.err
    assert (engine.builds, engine.staging.exists()) == (0, False)
    assert not (fleet.folder / "state/xbtasks/runs").exists()


def test_after_a_failed_build_its_cases_are_skipped_and_fail_fast_begins_nothing_more(fleet: Fleet) -> None:
    broken = fleet.add("broken")
    broken.fail()
    fleet.add("well", seconds=1)
    done = fleet.matrix("--json", "--jobs", "1", "--fail-fast")
    assert done.code == 1, done.text
    assert set(verdicts(done.document).values()) == {"SKIP"}
    said = {case["reason"].partition(":")[0] for case in done.document["cases"]}
    assert said == {"the build failed", "not run"}
    assert broken.builds + fleet.hosts["well"].builds == 1
    broken.mend()
    again = fleet_continue(fleet, fleet.newest.name, "--json")
    assert again.code == 0, again.text
    assert list(verdicts(again.document).values()) == ["PASS"] * 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_units_and_the_summary_is_printed(fleet: Fleet, number: signal.Signals) -> None:
    fleet.add("quick")
    slow = [fleet.add(name, seconds=300) for name in ("slow-1", "slow-2")]
    child = fleet.start("--stages", STAGE)
    state = fleet.folder / "state/xbtasks/runs"
    wait_for(lambda: all(engine.builds for engine in slow), child)
    wait_for(lambda: list(state.glob(f"*/quick.{STAGE}/result.json")), child)
    begun = time.monotonic()
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, (out, err)
    assert time.monotonic() - begun < 30
    assert "Traceback" not in out + err
    rows = {row[1]: row for row in cells(out) if row[0] in ("PASS", "ERROR")}
    assert rows["quick"][0] == "PASS"
    assert {rows[name][0] for name in ("slow-1", "slow-2")} == {"ERROR"}
    assert "interrupted" in rows["slow-1"][-1]
    for engine in slow:
        wait_until_idle(engine)


def test_a_client_that_is_killed_leaves_nothing_running_and_what_it_found_is_gone_on_with(
    fleet: Fleet,
) -> None:
    quick, slow = fleet.add("quick"), fleet.add("slow", seconds=300)
    child = fleet.start("--stages", STAGE)
    state = fleet.folder / "state/xbtasks/runs"
    wait_for(lambda: slow.builds and list(state.glob(f"*/quick.{STAGE}/result.json")), child)
    child.kill()
    child.communicate(timeout=60)
    wait_until_idle(slow)
    assert not list((slow.folder / "tmp").iterdir())
    # what is there can be judged as it is, and nothing of it is taken for more than it is
    replayed = subprocess.run(
        [program("inv"), "replay", str(fleet.newest), "--json"],
        cwd=PROJECT,
        env=fleet.environment,
        capture_output=True,
        text=True,
    )
    assert replayed.returncode == 4, replayed.stderr
    assert verdicts(json.loads(replayed.stdout)) == {"quick 13": "PASS", "slow 13": "ERROR"}
    (slow.folder / "engine/seconds").write_text("0")
    again = fleet_continue(fleet, fleet.newest.name, "--json")
    assert again.code == 0, again.text
    assert verdicts(again.document) == {"quick 13": "PASS", "slow 13": "PASS"}
    assert (quick.builds, slow.builds) == (1, 2)


def wait_until_idle(engine: ShimEngine) -> None:
    """Return when no process of the host runs any more."""
    mark = f"HOME={engine.folder / 'home'}".encode()
    for _ in range(200):
        if not any(mark in words for _, words in words_of_processes("environ")):
            return
        time.sleep(0.05)
    raise AssertionError("the build still runs")


def test_a_changed_input_is_not_continued(fleet: Fleet) -> None:
    fleet.add("far").fail()
    assert fleet.matrix("--stages", STAGE).code == 1
    (fleet.checkout / f"pack/gpustack-operator/external/{STAGE}").write_text("changed")
    done = fleet_continue(fleet, fleet.newest.name)
    assert done.code == 2
    assert f"{STAGE} has other inputs" in done.err


def test_a_verdict_of_a_machine_that_an_alias_led_to_is_not_continued(fleet: Fleet) -> None:
    fleet.add("far").fail()
    other = fleet.add("other")
    del fleet.lines["other"]
    assert fleet.matrix("--stages", STAGE).code == 1
    config = fleet.rig.ssh_config
    config.write_text(
        config.read_text().replace(f"Port {fleet.servers['far'].port}", f"Port {fleet.servers['other'].port}")
    )
    done = fleet_continue(fleet, fleet.newest.name)
    assert done.code == 2
    assert f"far is another engine than in {fleet.newest.name}" in done.err
    assert other.builds == 0


def test_a_verdict_of_another_machine_is_not_continued(fleet: Fleet) -> None:
    fleet.add("far").fail()
    assert fleet.matrix("--stages", STAGE).code == 1
    hosts = fleet.file.read_text()
    fleet.file.write_text(hosts.replace("ssh: far", "ssh: other.example"))
    done = fleet_continue(fleet, fleet.newest.name)
    assert done.code == 2
    assert f"far is other.example now, and was far in {fleet.newest.name}" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hosts", "nope"), "--hosts: nothing is called 'nope'"),
        (("--stages", "xbuild-nvidia-cuda-1"), "did you mean"),
        (("--jobs", "0"), "--jobs '0'"),
        (("--host", "me@far"), "both say where to run"),
        (("--continue", "20200101-000000-abcdef"), "--cases can't be given with it"),
    ],
)
def test_wrong_words_are_refused_before_anything(fleet: Fleet, words: tuple[str, ...], said: str) -> None:
    fleet.add("far")
    done = fleet.matrix(*words)
    assert done.code == 2
    assert said in done.err
    assert not (fleet.folder / "state/xbtasks/runs").exists()


def test_what_is_continued_is_a_matrix(fleet: Fleet) -> None:
    done = fleet_continue(fleet, "20200101-000000-abcdef")
    assert done.code == 2
    assert "'20200101-000000-abcdef' is no matrix" in done.err
    # a variable that isn't set begins no new one
    done = fleet_continue(fleet, "")
    assert done.code == 2
    assert "--continue: a value is missing" in done.err


def test_a_hosts_file_in_the_checkout_is_refused(fleet: Fleet) -> None:
    fleet.add("far")
    inside = fleet.checkout / "hosts.yaml"
    inside.write_text(fleet.file.read_text())
    done = subprocess.run(
        [program("inv"), "matrix", "--hosts-file", str(inside)],
        cwd=PROJECT,
        env=fleet.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "never stored in a project" in done.stderr
