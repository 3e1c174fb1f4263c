"""What a matrix costs beside its parts: many hosts beside the slowest, builds side by side and one by one.

32 hosts, each behind an sshd of its own with a stand-in for an engine: one is killed while it builds, one
never ends its build, one has another key than is on record. The peer is the same command on the slowest of
the well hosts alone. All hosts are on this machine, whose processors do their work too. Then the stages of
the sample on the simulated host, built anew with ``--jobs 4`` and with ``--jobs 1``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))

from tests.elfkit import vgpu  # noqa: E402 - after the path
from tests.fleet import STAGE, Fleet  # noqa: E402
from tests.sshd import Rig, make_key  # noqa: E402

HOSTS = 32
SLOWEST = 90  # seconds
MOST_RATIO = 1.3
MOST_MEMORY = 20.0  # MB for each host
ILL = ("killed", "hanging", "other-key")


def measured(fleet: Fleet, *words: str, during: threading.Thread | None = None) -> tuple[float, float, float]:
    """Run a matrix and return its seconds, its peak memory in MB, and its processor time in seconds."""
    begun = time.perf_counter()
    child = fleet.start(*words)
    if during is not None:
        during.start()
    assert child.stdout is not None
    assert child.stderr is not None
    threading.Thread(target=child.stderr.read, daemon=True).start()
    child.stdout.read()
    _, _, usage = os.wait4(child.pid, 0)
    return time.perf_counter() - begun, usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


def hosts(folder: Path, opened: ExitStack) -> bool:
    """Measure many hosts, print the figures, and return whether they hold."""
    fleet = Fleet(Rig(folder, opened), folder / "fleet", vgpu())
    well = [f"host-{number:02}" for number in range(HOSTS - len(ILL))]
    for number, name in enumerate(well):
        fleet.add(name, seconds=5 + (SLOWEST - 5) * number / (len(well) - 1))
    for name in ILL:
        fleet.add(name, seconds=600)
    fleet.lines["hanging"].append("build-timeout: 15")
    public = make_key(folder / "wrong").with_suffix(".pub").read_text().split()[:2]
    fleet.rig.known_hosts.write_text(f"[127.0.0.1]:{fleet.servers['other-key'].port} {' '.join(public)}\n")

    def kill() -> None:
        while not fleet.hosts["killed"].builds:
            time.sleep(0.1)
        fleet.servers["killed"].stop()

    one, base, _ = measured(fleet, "--stages", STAGE, "--hosts", well[-1])
    result = folder / "result.json"
    killer = threading.Thread(target=kill, daemon=True)
    # the slowest builds anew: its peer did too
    many, peak, cpu = measured(fleet, "--stages", STAGE, "--rebuild", f"--json={result}", during=killer)
    found = {case["host"]: case for case in json.loads(result.read_text())["cases"]}
    passed = sum(found[name]["verdict"] == "PASS" for name in well)
    print(f"{HOSTS} hosts: {many:.1f} s, the slowest alone {one:.1f} s, {cpu:.1f} s of processor time here")
    print(f"  {passed} of the {len(well)} well ones passed")
    for name in ILL:
        print(f"  {name}: {found[name]['verdict']}: {found[name]['reason'][:150]}")
    ratio, memory = many / one, (peak - base) / (HOSTS - 1)
    print(f"ratio {ratio:.2f} (at most {MOST_RATIO}); {memory:.2f} MB for each host (at most {MOST_MEMORY}),")
    print(f"  {peak:.0f} MB in all at the peak, {base:.0f} MB with one host")
    ill = all(found[name]["verdict"] == "ERROR" for name in ILL)
    return ratio <= MOST_RATIO and memory <= MOST_MEMORY and passed == len(well) and ill


def builds(folder: Path) -> bool:
    """Measure builds side by side, print the figures, and return whether they hold."""
    variables = {**os.environ, "XDG_STATE_HOME": str(folder / "sim"), "NO_COLOR": "1"}

    def xb(*words: str, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "xbtasks", *words],
            cwd=PROJECT,
            env={**variables, **more},
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
        )
        return done.stdout

    try:
        xb("sim.up")
        environment = json.loads(xb("sim.status", "--json"))["environment"]
        seconds = {}
        for jobs in ("1", "4"):
            # without its cache the builder does all of it again
            docker = {**os.environ, **environment}
            subprocess.run(["docker", "builder", "prune", "-af"], env=docker, check=True, capture_output=True)
            begun = time.perf_counter()
            xb("matrix", "--cases", "1", "--rebuild", "--jobs", jobs, **environment)
            seconds[jobs] = time.perf_counter() - begun
    finally:
        xb("sim.down")
    ratio = seconds["4"] / seconds["1"]
    print(
        f"7 stages built: --jobs 1 {seconds['1']:.1f} s, --jobs 4 {seconds['4']:.1f} s, {os.cpu_count()} CPUs"
    )
    print(f"ratio {ratio:.2f} (at most 1)")
    return ratio <= 1


def main() -> int:
    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        folder = Path(name)
        (folder / "fleet").mkdir()
        held = [hosts(folder, opened), builds(folder)]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
