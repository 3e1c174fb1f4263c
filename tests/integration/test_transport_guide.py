"""The transport that the guide adds carries steps as the local host does, and loses none silently."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.guides import copy_project, write_files
from tests.markdown import read_page
from tests.workplace import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

TRIAL = """
import json, sys, time
from xbtasks.errors import XbError
from xbtasks.host.command import CommandTransport
from xbtasks.host.framed import FramedHost
from xbtasks.host.local import LocalTransport
from xbtasks.host.step import Section, Step

def told(reply, name):
    part = reply[name]
    return part.exit_status, len(part.text), part.text[-9:], part.error_text

big = Section("big", ("sh", "-c", "yes 0123456789 | head -c 3000000; echo end; echo err >&2; exit 3"), 60)
taken = Section("taken", ("wc", "-c"), 60, payload=True)
steps = [Step("one", (big,)), Step("two", (taken,), b"x" * 5_000_000), Step("three", (big,))]
found = {}
with_a_banner = ("env", "-i", "PATH=/usr/bin:/bin", "sh", "-c", 'echo a banner; exec "$@"', "x")
for name, transport in (
    ("local", LocalTransport()),
    ("command", CommandTransport(with_a_banner, "pod")),
):
    host = FramedHost(transport)
    found[name] = [told(host.run(step), step.sections[0].name) for step in steps]
    host.close()

def lost(command, step):
    host = FramedHost(CommandTransport(command, "pod"))
    began = time.monotonic()
    try:
        host.run(step)
    except XbError as error:
        return type(error).__name__, time.monotonic() - began < 30
    return "no error", False

slow = Step("slow", (Section("slow", ("sleep", "300"), 400),))
found["absent"] = lost(("/nonexistent/kubectl",), steps[0])
found["refused"] = lost(("false",), steps[0])
found["cut"] = lost(("timeout", "2"), slow)
print(json.dumps(found))
"""


def test_the_transport_of_the_guide(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project")
    write_files(read_page(PROJECT / "docs/guides/adding-a-transport.md"), project, tmp_path / "checkout")
    done = subprocess.run(
        [sys.executable, "-c", TRIAL], cwd=project, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["command"] == found["local"]
    assert found["local"][0][:2] == [3, 3000004]
    assert found["local"][1][2].strip() == "5000000"
    assert found["absent"] == ["HostUnreachable", True]
    assert found["refused"] == ["HostUnreachable", True]
    assert found["cut"][0] in ("LostReply", "HostUnreachable")
    assert found["cut"][1]
