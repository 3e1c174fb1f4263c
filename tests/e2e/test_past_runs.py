"""Past runs as a user asks for them: what did this bump of the library do?"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.workplace import DOCKERFILE, SAMPLE, cells

if TYPE_CHECKING:
    from tests.workplace import Workplace

pytestmark = pytest.mark.engine

STAGE = "xbuild-nvidia-cuda-13"
PIN = "52f33fc7fa1fbb3f08148ab076d0e7447bec7f2a"
HOOK = "cuMemAllocPitch_v2"
RENAMED = "cuMemAllocPitch_v3"


def test_what_a_bump_of_the_library_did_is_told_in_one_table(place: Workplace) -> None:
    checkout = place.folder / "checkout"
    shutil.copytree(SAMPLE, checkout)
    forms = {form: place.folder / f"a {form}" for form in ("junit", "markdown", "html")}
    written = [f"--{form}={name}" for form, name in forms.items()]
    before = place.inv("verify", STAGE, "--cases", "1", *written, "--json", XB_REPO=str(checkout))
    assert before.code == 0, before.text
    assert ET.fromstring(forms["junit"].read_bytes()).attrib["failures"] == "0"
    assert "SIMULATED PASS: xbtasks verify" in forms["html"].read_text()
    assert "PASS" in forms["markdown"].read_text()

    dockerfile = checkout / DOCKERFILE
    dockerfile.write_text(dockerfile.read_text().replace(PIN, "7" * 40))
    for path in (dockerfile.parent / "external/nvidia/vgpu").glob("*.*"):
        path.write_text(path.read_text().replace(HOOK, RENAMED))
    after = place.inv("verify", STAGE, "--cases", "1", XB_REPO=str(checkout))
    assert after.code == 1, after.text

    listed = place.inv("report")
    assert listed.code == 0, listed.text
    assert [row[0] for row in cells(listed.out)[1:]] == ["FAIL", "PASS"]
    again = place.inv("report", "last")
    assert (again.code, again.out) == (1, after.out[after.out.index("\nnvidia.case1 ") :])

    done = place.inv("report.diff", "--json")
    assert done.code == 0, done.text
    told = {change["what"]: change for change in done.document["changes"]}
    assert told["source pin"]["after"] == "7" * 40
    assert told["exported functions"]["lost"] == [HOOK]
    assert told["exported functions"]["gained"] == [RENAMED]
    assert told["nvidia.case1.hooks"]["trend"] == "worse"
    assert told["nvidia.case1.hooks"]["after"] == "FAIL"
    assert "sha256" in told
    shown = place.inv("report.diff", *(path.name for path in place.evidence()))
    assert f"lost {HOOK}" in shown.out

    kept = json.loads((place.evidence()[0] / "result.json").read_text())
    assert place.inv("report", str(place.evidence()[0]), "--json").document == kept
