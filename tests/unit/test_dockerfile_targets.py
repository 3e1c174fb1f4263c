"""Targets: base images and the platforms that a stage can be built for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stage_samples import cuda, look, one

from xbtasks.backends.base import Platform

if TYPE_CHECKING:
    from pathlib import Path

AMD64, ARM64 = Platform.AMD64, Platform.ARM64


class TestBase:
    @pytest.mark.parametrize(
        ("arguments", "base", "image"),
        [
            ("ARG V=12\n", "nvidia/cuda:${V}", "nvidia/cuda:12"),
            ("ARG V='12'\n", "nvidia/cuda:$V", "nvidia/cuda:12"),
            ("ARG V\n", "nvidia/cuda:${V:-13}", "nvidia/cuda:13"),
            ("ARG A=x B=y\n", "${A}-${B}", "x-y"),
            ("ARG A=x\nARG B=${A}/z\n", "$B", "x/z"),
            ("ARG A=${B:-early}\nARG B=late\n", "$A", "early"),
            ("ARG A=1\nARG A=2\n", "x:$A", "x:2"),
            ("ARG A=1\nARG A\n", "x:$A", "x:1"),
            ("ARG A=a.b.c\n", "x:${A%.*}", "x:a.b"),
            ("ARG A=\n", "x${A:+:y}", "x"),
            ("", "scratch", "scratch"),
            ("", "${TARGETOS}/x", "linux/x"),
            ("", "x:${TARGETSTAGE}", "x:xbuild-nvidia-cuda-12"),
            ("", '"x"', "x"),
            ("", "host:5000/a/b:c@sha256:" + "0" * 64, "host:5000/a/b:c@sha256:" + "0" * 64),
        ],
    )
    def test_is_expanded(self, tmp_path: Path, arguments: str, base: str, image: str) -> None:
        assert one(tmp_path, arguments + cuda(base)).base_images == (image,)

    def test_is_at_the_root_of_the_chain(self, tmp_path: Path) -> None:
        assert one(tmp_path, "FROM a AS b\nFROM b AS c\n" + cuda("c")).base_image == "a"

    def test_is_a_stage_only_if_that_stands_before(self, tmp_path: Path) -> None:
        assert one(tmp_path, cuda("later") + "FROM a AS later\n").base_image == "later"

    def test_one_per_platform(self, tmp_path: Path) -> None:
        stage = one(tmp_path, cuda("x:${TARGETARCH}", "RUN a"))
        assert stage.base_images == ("x:amd64", "x:arm64")
        assert stage.base_image == "x:amd64, x:arm64"

    def test_is_the_last_stage_of_that_name_before(self, tmp_path: Path) -> None:
        assert one(tmp_path, "FROM a AS b\nFROM c AS b\n" + cuda("b") + "FROM d AS b\n").base_image == "c"

    def test_of_the_last_stage_where_two_have_the_name(self, tmp_path: Path) -> None:
        text = cuda("a") + cuda("b")
        assert [(stage.base_image, stage.line) for stage in look(tmp_path, text).stages] == [("b", 2)]

    def test_name_is_lower_case(self, tmp_path: Path) -> None:
        assert one(tmp_path, "FROM a AS XBuild-NVIDIA-cuda-12\n").name == "xbuild-nvidia-cuda-12"


class TestPlatforms:
    @pytest.mark.parametrize(
        ("platform", "platforms"),
        [
            ("linux/amd64", (AMD64,)),
            ("linux/arm64", (ARM64,)),
            ("linux/arm64/v8", (ARM64,)),
            ("linux/x86_64", (AMD64,)),
            ("arm64", (ARM64,)),
            ("windows/amd64", ()),
            ("linux/riscv64", ()),
            ("$TARGETPLATFORM", (AMD64, ARM64)),
            ("linux/${TARGETARCH}", (AMD64, ARM64)),
            ("$BUILDPLATFORM", (AMD64, ARM64)),
            ("${P}", (AMD64,)),
            ("${Q:-linux/arm64}", (ARM64,)),
        ],
    )
    def test_of_the_base(self, tmp_path: Path, platform: str, platforms: tuple[Platform, ...]) -> None:
        assert (
            one(tmp_path, f"ARG P=linux/amd64\n{cuda(f'--platform={platform} a', 'RUN b')}").platforms
            == platforms
        )

    def test_of_the_last_from_line(self, tmp_path: Path) -> None:
        assert one(tmp_path, "FROM --platform=linux/amd64 a AS b\n" + cuda("b", "RUN c")).platforms == (
            AMD64,
        )

    def test_in_a_comment_means_nothing(self, tmp_path: Path) -> None:
        assert one(tmp_path, "# FROM --platform=linux/amd64 a AS b\n" + cuda("b", "RUN c")).platforms == (
            AMD64,
            ARM64,
        )

    @pytest.mark.parametrize(
        ("legs", "platforms"),
        [
            ({"amd64": "RUN a", "arm64": "RUN b"}, (AMD64, ARM64)),
            ({"amd64": "RUN a", "arm64": "WORKDIR /out"}, (AMD64,)),
            ({"amd64": "WORKDIR /out", "arm64": "COPY a /out/"}, (ARM64,)),
            ({"amd64": "ADD a /out/", "arm64": "ENV A=b"}, (AMD64,)),
            ({"amd64": "RUN a"}, (AMD64,)),
            ({"arm64": "RUN a"}, (ARM64,)),
            ({"amd64": "WORKDIR /out", "arm64": "WORKDIR /out"}, ()),
            ({"amd64": "WORKDIR /out"}, ()),
            ({}, ()),
        ],
    )
    def test_of_an_alias(self, tmp_path: Path, legs: dict[str, str], platforms: tuple[Platform, ...]) -> None:
        text = "".join(f"FROM a AS xbuild-nvidia-cuda-12-{arch}\n{body}\n" for arch, body in legs.items())
        found = look(tmp_path, text + cuda("xbuild-nvidia-cuda-12-${TARGETARCH}", "WORKDIR /out"))
        assert [stage.name for stage in found.stages] == ["xbuild-nvidia-cuda-12"]
        assert found.stages[0].platforms == platforms

    def test_of_an_alias_that_works_itself(self, tmp_path: Path) -> None:
        text = "FROM a AS t-amd64\nRUN b\nFROM a AS t-arm64\nENV C=d\n" + cuda("t-${TARGETARCH}", "RUN e")
        assert one(tmp_path, text).platforms == (AMD64, ARM64)

    def test_of_legs_with_a_common_base(self, tmp_path: Path) -> None:
        common = "FROM a AS common\nRUN b\n"
        empty = "FROM common AS t-amd64\nRUN b\nFROM common AS t-arm64\nWORKDIR /out\n"
        assert one(tmp_path, common + empty + cuda("t-${TARGETARCH}")).platforms == (AMD64,)
        same = "FROM common AS t-amd64\nFROM common AS t-arm64\n"
        assert one(tmp_path, common + same + cuda("t-${TARGETARCH}")).platforms == (AMD64, ARM64)

    def test_of_a_leg_behind_a_leg(self, tmp_path: Path) -> None:
        text = "FROM a AS t-amd64\nRUN b\nFROM t-${TARGETARCH} AS t\n" + cuda("t")
        stage = one(tmp_path, text)
        assert (stage.platforms, stage.base_images) == ((AMD64,), ("a",))

    def test_external_images_by_platform_are_no_legs(self, tmp_path: Path) -> None:
        assert one(tmp_path, cuda("gcc-${TARGETARCH}:1", "RUN a")).platforms == (AMD64, ARM64)

    def test_where_a_base_comes_out_blank_is_none(self, tmp_path: Path) -> None:
        assert one(tmp_path, cuda("${TARGETARCH#arm64}", "RUN a")).platforms == (AMD64,)

    def test_a_stage_that_only_has_a_base_keeps_them(self, tmp_path: Path) -> None:
        assert one(tmp_path, cuda("a")).platforms == (AMD64, ARM64)

    def test_onbuild_of_the_base_counts_as_work(self, tmp_path: Path) -> None:
        text = "FROM a AS b\nONBUILD RUN c\nFROM b AS t-amd64\nFROM a AS t-arm64\n" + cuda("t-${TARGETARCH}")
        assert one(tmp_path, text).platforms == (AMD64,)
