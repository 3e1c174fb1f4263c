"""The sample operator checkout: its form, and that it needs nothing from outside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from xbtasks.sim.base_image import BASE_IMAGE
from xbtasks.sim.drivers.ascend.image import CANN_IMAGE
from xbtasks.sim.paths import SAMPLE_CHECKOUT

if TYPE_CHECKING:
    from pathlib import Path

DOCKERFILE = SAMPLE_CHECKOUT / "pack/gpustack-operator/Dockerfile"
TEXT = DOCKERFILE.read_text()
STAGES = (
    "xbuild-ascend-cann-8-910b",
    "xbuild-ascend-cann-8-910c",
    "xbuild-ascend-cann-9-910b",
    "xbuild-ascend-cann-9-910c",
    "xbuild-ascend-cann-9-950",
    "xbuild-nvidia-cuda-12",
    "xbuild-nvidia-cuda-13",
)
FILES = sorted(path for path in SAMPLE_CHECKOUT.rglob("*") if path.is_file())


def test_the_stages_are_the_fields() -> None:
    assert tuple(re.findall(r"^FROM .* AS (\S+)$", TEXT, re.MULTILINE)) == STAGES


def test_every_bind_mounted_input_exists_and_every_file_is_an_input() -> None:
    sources = {SAMPLE_CHECKOUT / name for name in re.findall(r"type=bind,src=([^,\s]+)", TEXT)}
    assert all(source.exists() for source in sources)
    unused = [path for path in FILES if path != DOCKERFILE and not sources & {path, *path.parents}]
    assert unused == []


def test_no_frontend_is_pulled() -> None:
    assert "syntax=" not in TEXT


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_names_an_address(path: Path) -> None:
    assert "://" not in path.read_text()


def test_stages_start_from_the_simulated_images_and_compile_on_the_builds_platform() -> None:
    assert set(re.findall(r'^ARG \w+_IMAGE="(.*)"$', TEXT, re.MULTILINE)) == {BASE_IMAGE, CANN_IMAGE}
    assert all("--platform=${BUILDPLATFORM}" in line for line in re.findall(r"^FROM .*$", TEXT, re.MULTILINE))


def test_both_ways_to_reach_acl_occur() -> None:
    pins = re.findall(r'LIB_UBS_VIRT_ENPU_COMMIT="([0-9a-f]{40})"', TEXT)
    assert [pin[:7] for pin in pins] == ["4d7e4b1", "bac3d46"]
