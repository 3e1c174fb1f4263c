from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING

import pytest

from xbtasks.backends import BACKENDS
from xbtasks.backends.base import Platform
from xbtasks.errors import UsageError
from xbtasks.knobs.references import HostSpec
from xbtasks.knobs.resolve import resolve
from xbtasks.knobs.settings import (
    Source,
    build_platform,
    describe,
    image_tag,
    memory_mib,
    sm_percent,
    staging_directory,
    workload_image,
)
from xbtasks.knobs.table import KNOBS

if TYPE_CHECKING:
    from xbtasks.knobs.settings import Settings


def given(**variables: str) -> Settings:
    return resolve({}, variables, user_file=None, explicit_user_file=False, project_file=None)


class TestEffectiveValues:
    def test_memory(self) -> None:
        assert memory_mib(given(), "ascend") == 1024
        assert memory_mib(given(), "nvidia") == 4096
        assert memory_mib(given(XB_MEM="7"), "ascend") == 7

    def test_every_backend_has_a_memory_default(self) -> None:
        for name in BACKENDS:
            assert memory_mib(given(), name) > 0

    def test_sm(self) -> None:
        assert sm_percent(given(), 2) == 50
        assert sm_percent(given(), 3) == 30
        assert sm_percent(given(XB_SM="1"), 3) == 1

    def test_staging_directory(self) -> None:
        assert staging_directory(given(), BACKENDS["ascend"]) == "/opt/enpu/vcann-rt"
        assert staging_directory(given(), BACKENDS["nvidia"]) == "/opt/vgpu"
        assert staging_directory(given(XB_STAGE="/a b/"), BACKENDS["nvidia"]) == "/a b"

    def test_image(self) -> None:
        assert image_tag(given(), BACKENDS["nvidia"], "13") == "vgpu-build:13"
        assert image_tag(given(), BACKENDS["ascend"], "9-910c") == "vcann-build:9-910c"
        assert image_tag(given(XB_IMAGE="a/b:c"), BACKENDS["nvidia"], "13") == "a/b:c"

    def test_workload_image(self) -> None:
        assert workload_image(given(), "vgpu-build:13") == "vgpu-build:13"
        assert workload_image(given(XB_WORKLOAD_IMAGE="a:b"), "vgpu-build:13") == "a:b"

    @pytest.mark.parametrize(
        ("machine", "platform"),
        [
            ("x86_64", Platform.AMD64),
            ("amd64", Platform.AMD64),
            ("aarch64", Platform.ARM64),
            ("arm64", Platform.ARM64),
        ],
    )
    def test_platform_of_the_host(self, machine: str, platform: Platform) -> None:
        assert build_platform(given(), machine) is platform
        assert build_platform(given(XB_PLATFORM="linux/arm64"), machine) is Platform.ARM64

    def test_platform_of_an_unknown_machine(self) -> None:
        with pytest.raises(UsageError, match=r"'Connectionclosed'; give --platform") as caught:
            build_platform(given(), "Connectionclosed")
        assert str(caught.value).isprintable()
        assert build_platform(given(XB_PLATFORM="linux/amd64"), "riscv64") is Platform.AMD64


class TestHost:
    def test_a_host_means_ssh(self) -> None:
        settings = given(XB_HOST="root@npu-1")
        assert settings.mode == "ssh"
        assert settings.host == HostSpec("npu-1", "root")
        assert not settings.needs_host

    def test_no_host_means_local(self) -> None:
        assert given().mode == "local"
        assert not given().needs_host

    def test_ssh_without_a_host_needs_one(self) -> None:
        settings = given(XB_MODE="ssh")
        assert settings.needs_host
        answered = settings.with_host("npu-1:22")
        assert not answered.needs_host
        assert answered.host == HostSpec("npu-1", None, 22)
        assert answered.origin("host") == "your answer"
        assert answered.origin("mode") == "XB_MODE"

    def test_a_bad_answer(self) -> None:
        with pytest.raises(UsageError):
            given(XB_MODE="ssh").with_host("-oProxyCommand=id")


class TestOrigin:
    def test_sources_from_strong_to_weak(self) -> None:
        names = ["FLAG", "HOSTS_FILE", "VARIABLE", "USER_FILE", "PROJECT_FILE", "DEFAULT"]
        assert [source.name for source in sorted(Source)] == names

    def test_settings_and_origins_are_frozen(self) -> None:
        settings = given()
        for value, name in ((settings, "mem"), (settings.origin_of("mem"), "label")):
            with pytest.raises(FrozenInstanceError):
                setattr(value, name, None)

    def test_values(self) -> None:
        settings = given(XB_MEM="5")
        assert settings.origin("mem") == "XB_MEM"
        assert settings.origin("sm") == "default"
        assert settings.origin_of("mem").source is Source.VARIABLE
        assert settings.origin_of("sm").source is Source.DEFAULT

    def test_unknown(self) -> None:
        with pytest.raises(KeyError):
            given().origin("stage")


class TestDescribe:
    def test_a_row_for_every_knob_in_order(self) -> None:
        rows = describe(given())
        assert [(row.name, row.env, row.flag, row.accepts) for row in rows] == [
            (entry.name, entry.env, entry.flag, entry.accepts) for entry in KNOBS
        ]
        assert all(row.value and row.origin == "default" for row in rows)

    def test_texts(self) -> None:
        rows = {
            row.name: row
            for row in describe(
                given(
                    XB_GPUS="1, GPU-0A1B2C3D-0011-2233-4455-66778899AABB",
                    XB_GPU="auto",
                    XB_YES="ON",
                    XB_MAX_GLIBC="2.2.5",
                    XB_BANNER_RE="^x",
                    XB_HOST="root@[::1]:22",
                    XB_NPU="0",
                )
            )
        }
        assert rows["gpus"].value == "1,GPU-0a1b2c3d-0011-2233-4455-66778899aabb"
        assert rows["gpu"].value == "auto"
        assert rows["yes"].value == "yes"
        assert rows["max_glibc"].value == "2.2.5"
        assert rows["banner_re"].value == "^x"
        assert rows["host"].value == "root@[::1]:22"
        assert rows["mode"].value == "ssh"
        assert rows["npu"].value == "0"
        assert rows["npu"].origin == "XB_NPU"
        assert rows["mem"].value == "1024 for ascend, 4096 for nvidia"
        assert rows["sm"].origin == "default"

    def test_document(self) -> None:
        documents = [row.document() for row in describe(given(XB_MEM="5"))]
        assert json.loads(json.dumps(documents)) == documents
        mem = next(document for document in documents if document["name"] == "mem")
        assert mem == {
            "name": "mem",
            "env": "XB_MEM",
            "flag": "--mem",
            "value": "5",
            "origin": "XB_MEM",
            "accepts": "whole MiB, 1 to 2147483647",
        }
