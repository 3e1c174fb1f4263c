"""What ``inv --list`` costs beside the same command on a tasks.py with one empty task.

Both are run in turn, so that a busy machine slows both; the figure is the median of the ratios.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
INV = Path(sys.executable).with_name("inv")
EMPTY = 'from invoke import task\n\n\n@task\ndef nothing(c):\n    """Nothing."""\n'
ROUNDS = 25
MOST = 1.15


def seconds(folder: Path) -> float:
    begun = time.perf_counter()
    subprocess.run([INV, "--list"], cwd=folder, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    return time.perf_counter() - begun


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        peer = Path(name)
        (peer / "tasks.py").write_text(EMPTY)
        for folder in (PROJECT, peer):
            seconds(folder)  # compiles what has to be compiled
        pairs = [(seconds(PROJECT), seconds(peer)) for _ in range(ROUNDS)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(mine / other for mine, other in pairs)
    print(f"inv --list: {ours * 1000:.0f} ms, on an empty tasks.py {theirs * 1000:.0f} ms")
    print(f"ratio {ratio:.3f} (at most {MOST}), median of {ROUNDS} pairs")
    return 0 if ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
