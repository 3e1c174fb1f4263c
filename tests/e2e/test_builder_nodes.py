"""Builds scale out: ``XB_BUILDER`` names a BuildKit builder of two nodes, one for each platform."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.buildnodes import build_node
from tests.workplace import cells, statuses

if TYPE_CHECKING:
    from pathlib import Path

    from tests.workplace import PrivateEngine, Workplace

pytestmark = pytest.mark.engine

AMD64, ARM64 = "xbuild-nvidia-cuda-13", "xbuild-nvidia-cuda-12"


def test_each_node_builds_for_its_platform_and_the_host_judges_what_it_loads(
    place: Workplace, engine: PrivateEngine, tmp_path: Path
) -> None:
    def preflight() -> list[str]:
        done = place.inv("preflight", XB_BUILDER=builder)
        assert done.code == 0, done.text
        rows = cells(done.out)
        first = next(at for at, row in enumerate(rows) if row[1] == "preflight.buildx")
        text = rows[first][-1]
        for row in rows[first + 1 :]:
            if row[1]:
                break
            text += f" {row[-1]}"
        return [rows[first][0], text]

    def verify(stage: str, platform: str) -> None:
        image = place.tag(stage[-2:])
        done = place.inv(
            *("verify", stage, "--cases", "1", "--platform", platform, "--json"),
            XB_BUILDER=builder,
            XB_IMAGE=image,
        )
        assert done.code == 0, done.text
        assert [build["outcome"] for build in done.document["builds"]] == ["built"]
        (case,) = done.document["cases"]
        assert statuses(case, "arch", "staged") == {"arch": ["PASS"], "staged": ["PASS"]}
        form = "{{.Os}}/{{.Architecture}}"
        assert engine.docker("image", "inspect", "--format", form, image) == platform

    builder = f"xb-{place.name[-20:]}"
    with build_node(tmp_path / "a", engine) as first, build_node(tmp_path / "b", engine) as second:
        create = ("buildx", "create", "--name", builder, "--driver", "remote", "--platform")
        engine.docker(*create, "linux/amd64", first.endpoint)
        try:
            engine.docker(*create, "linux/arm64", "--append", second.endpoint)
            status, text = preflight()
            assert status == "PASS"
            assert f"builder {builder} (remote): {builder}0 at {first.endpoint}" in text
            assert f"{builder}1 at {second.endpoint}" in text
            verify(AMD64, "linux/amd64")
            verify(ARM64, "linux/arm64")
            assert re.findall(r'build-vgpu.sh /vgpu /out "(.*?)"', first.built()) == ["cuda-13"]
            assert re.findall(r'build-vgpu.sh /vgpu /out "(.*?)"', second.built()) == ["cuda-12"]
        finally:
            engine.docker("buildx", "rm", builder)
