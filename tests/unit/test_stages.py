"""Discovery: which stages a Dockerfile has, what each needs, and how a name finds one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dockerfile as go
import pytest

from xbtasks.backends.base import Platform
from xbtasks.errors import ExitCode, UsageError
from xbtasks.stages import Discovery, Stage, discover, find_stage

if TYPE_CHECKING:
    from pathlib import Path

AMD64, ARM64 = Platform.AMD64, Platform.ARM64

OPERATOR = """\
ARG ROOT="/etc/x"
ARG LIBS="${ROOT}/lib"
ARG UBUNTU="ubuntu:24.04@sha256:%s"

# Bump the commit to update: no stage here is FROM --platform=linux/amd64 x AS xbuild-nvidia-cuda-11
ARG LIB_UBS_VIRT_ENPU_COMMIT="aaaa"
ARG LIB_HAMI_CORE_COMMIT="bbbb"
ARG LIB_UNUSED_COMMIT="cccc"

FROM ${UBUNTU} AS tools
ARG TARGETARCH
RUN <<EOF
    cat<<EOT > /x
FROM no AS xbuild-nvidia-cuda-10
EOT
EOF

FROM quay.io/ascend/cann:8 AS xbuild-ascend-cann-8-910b
ARG LIB_UBS_VIRT_ENPU_COMMIT
RUN --mount=type=bind,src=external/ascend/build.sh,target=/b.sh \\
    --mount=type=bind,src=external/ascend/patches,target=/patches <<EOF
    bash /b.sh "${LIB_UBS_VIRT_ENPU_COMMIT}"
EOF

from nvidia/cuda:12-ubi8 as xbuild-nvidia-cuda-12
ARG LIB_HAMI_CORE_COMMIT
RUN dnf install -y cmake
RUN --mount=type=bind,src=external/nvidia/build.sh,target=/b.sh <<EOF
    bash /b.sh
EOF

FROM vendor/ppu:2 AS xbuild-thead-ppu-amd64
RUN --mount=type=bind,src=csrc/ppu,target=/src make
FROM ${UBUNTU} AS xbuild-thead-ppu-arm64
WORKDIR /out
FROM xbuild-thead-ppu-${TARGETARCH} AS xbuild-thead-ppu

FROM ${UBUNTU} AS final
ARG LIBS
COPY --from=xbuild-nvidia-cuda-12 /out ${LIBS}/nvidia
COPY --from=xbuild-thead-ppu /out ${LIBS}/thead
""" % ("ab" * 32)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "external/ascend/patches").mkdir(parents=True)
    (tmp_path / "external/nvidia").mkdir()
    (tmp_path / "external/ascend/build.sh").write_text("make\n")
    (tmp_path / "external/nvidia/build.sh").write_text("make\n")
    return tmp_path


def look(repo: Path, text: str) -> Discovery:
    (repo / "Dockerfile").write_bytes(text.encode("utf-8", "surrogateescape"))
    return discover(repo, "Dockerfile")


def one(repo: Path, text: str, name: str = "xbuild-nvidia-cuda-12") -> Stage:
    return find_stage(look(repo, text), name)


def cuda(base: str, *body: str) -> str:
    return "\n".join([f"FROM {base} AS xbuild-nvidia-cuda-12", *body, ""])


class TestOperator:
    def test_lists_known_stages_in_order(self, repo: Path) -> None:
        found = look(repo, OPERATOR)
        assert [(stage.name, stage.backend.name, stage.suffix) for stage in found.stages] == [
            ("xbuild-ascend-cann-8-910b", "ascend", "8-910b"),
            ("xbuild-nvidia-cuda-12", "nvidia", "12"),
        ]
        assert found.others == ("xbuild-thead-ppu",)
        assert found.legs == (
            ("xbuild-thead-ppu-amd64", "xbuild-thead-ppu"),
            ("xbuild-thead-ppu-arm64", "xbuild-thead-ppu"),
        )

    def test_stage_line_is_that_of_its_from(self, repo: Path) -> None:
        lines = OPERATOR.splitlines()
        for stage in look(repo, OPERATOR).stages:
            assert stage.name in lines[stage.line - 1]

    def test_names_agree_with_go(self, repo: Path) -> None:
        headers = [command.value for command in go.parse_string(OPERATOR) if command.cmd.upper() == "FROM"]
        names = {value[2] for value in headers if len(value) == 3 and value[2].startswith("xbuild-")}
        found = look(repo, OPERATOR)
        listed = {stage.name for stage in found.stages} | set(found.others) | {leg for leg, _ in found.legs}
        assert listed == names

    def test_base_images_pins_and_platforms(self, repo: Path) -> None:
        ascend, nvidia = look(repo, OPERATOR).stages
        assert (ascend.base_image, nvidia.base_image) == ("quay.io/ascend/cann:8", "nvidia/cuda:12-ubi8")
        assert ascend.pins == (("LIB_UBS_VIRT_ENPU_COMMIT", "aaaa"),)
        assert (ascend.pin, nvidia.pin) == ("aaaa", "bbbb")
        assert ascend.platforms == nvidia.platforms == (AMD64, ARM64)

    def test_inputs(self, repo: Path) -> None:
        ascend, _ = look(repo, OPERATOR).stages
        assert [(each.path, each.kind) for each in ascend.inputs] == [
            ("external/ascend/build.sh", "file"),
            ("external/ascend/patches", "dir"),
        ]
        line = next(at for at, text in enumerate(OPERATOR.splitlines(), 1) if "ascend/build.sh" in text)
        assert {str(naming) for each in ascend.inputs for naming in each.named_by} == {
            f"mount in line {line}"
        }
        assert ascend.missing == ()

    def test_crlf_changes_nothing_of_this(self, repo: Path) -> None:
        ours, theirs = look(repo, OPERATOR), look(repo, OPERATOR.replace("\n", "\r\n"))
        assert [(each.name, each.line, each.inputs, each.pins) for each in ours.stages] == [
            (each.name, each.line, each.inputs, each.pins) for each in theirs.stages
        ]


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
            ("", '"x"', "x"),
            ("", "host:5000/a/b:c@sha256:" + "0" * 64, "host:5000/a/b:c@sha256:" + "0" * 64),
        ],
    )
    def test_is_expanded(self, repo: Path, arguments: str, base: str, image: str) -> None:
        assert one(repo, arguments + cuda(base)).base_images == (image,)

    def test_is_at_the_root_of_the_chain(self, repo: Path) -> None:
        assert one(repo, "FROM a AS b\nFROM b AS c\n" + cuda("c")).base_image == "a"

    def test_is_a_stage_only_if_that_stands_before(self, repo: Path) -> None:
        assert one(repo, cuda("later") + "FROM a AS later\n").base_image == "later"

    def test_one_per_platform(self, repo: Path) -> None:
        stage = one(repo, cuda("x:${TARGETARCH}", "RUN a"))
        assert stage.base_images == ("x:amd64", "x:arm64")
        assert stage.base_image == "x:amd64, x:arm64"

    def test_is_the_last_stage_of_that_name_before(self, repo: Path) -> None:
        assert one(repo, "FROM a AS b\nFROM c AS b\n" + cuda("b") + "FROM d AS b\n").base_image == "c"

    def test_of_the_last_stage_where_two_have_the_name(self, repo: Path) -> None:
        text = cuda("a") + cuda("b")
        assert [(stage.base_image, stage.line) for stage in look(repo, text).stages] == [("b", 2)]

    def test_name_is_lower_case(self, repo: Path) -> None:
        assert one(repo, "FROM a AS XBuild-NVIDIA-cuda-12\n").name == "xbuild-nvidia-cuda-12"


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
    def test_of_the_base(self, repo: Path, platform: str, platforms: tuple[Platform, ...]) -> None:
        assert (
            one(repo, f"ARG P=linux/amd64\n{cuda(f'--platform={platform} a', 'RUN b')}").platforms
            == platforms
        )

    def test_of_the_last_from_line(self, repo: Path) -> None:
        assert one(repo, "FROM --platform=linux/amd64 a AS b\n" + cuda("b", "RUN c")).platforms == (AMD64,)

    def test_in_a_comment_means_nothing(self, repo: Path) -> None:
        assert one(repo, "# FROM --platform=linux/amd64 a AS b\n" + cuda("b", "RUN c")).platforms == (
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
    def test_of_an_alias(self, repo: Path, legs: dict[str, str], platforms: tuple[Platform, ...]) -> None:
        text = "".join(f"FROM a AS xbuild-nvidia-cuda-12-{arch}\n{body}\n" for arch, body in legs.items())
        found = look(repo, text + cuda("xbuild-nvidia-cuda-12-${TARGETARCH}", "WORKDIR /out"))
        assert [stage.name for stage in found.stages] == ["xbuild-nvidia-cuda-12"]
        assert found.stages[0].platforms == platforms

    def test_of_an_alias_that_works_itself(self, repo: Path) -> None:
        text = "FROM a AS t-amd64\nRUN b\nFROM a AS t-arm64\nENV C=d\n" + cuda("t-${TARGETARCH}", "RUN e")
        assert one(repo, text).platforms == (AMD64, ARM64)

    def test_of_legs_with_a_common_base(self, repo: Path) -> None:
        common = "FROM a AS common\nRUN b\n"
        empty = "FROM common AS t-amd64\nRUN b\nFROM common AS t-arm64\nWORKDIR /out\n"
        assert one(repo, common + empty + cuda("t-${TARGETARCH}")).platforms == (AMD64,)
        same = "FROM common AS t-amd64\nFROM common AS t-arm64\n"
        assert one(repo, common + same + cuda("t-${TARGETARCH}")).platforms == (AMD64, ARM64)

    def test_of_a_leg_behind_a_leg(self, repo: Path) -> None:
        text = "FROM a AS t-amd64\nRUN b\nFROM t-${TARGETARCH} AS t\n" + cuda("t")
        stage = one(repo, text)
        assert (stage.platforms, stage.base_images) == ((AMD64,), ("a",))

    def test_external_images_by_platform_are_no_legs(self, repo: Path) -> None:
        assert one(repo, cuda("gcc-${TARGETARCH}:1", "RUN a")).platforms == (AMD64, ARM64)

    def test_where_a_base_comes_out_blank_is_none(self, repo: Path) -> None:
        assert one(repo, cuda("${TARGETARCH#arm64}", "RUN a")).platforms == (AMD64,)

    def test_a_stage_that_only_has_a_base_keeps_them(self, repo: Path) -> None:
        assert one(repo, cuda("a")).platforms == (AMD64, ARM64)

    def test_onbuild_of_the_base_counts_as_work(self, repo: Path) -> None:
        text = "FROM a AS b\nONBUILD RUN c\nFROM b AS t-amd64\nFROM a AS t-arm64\n" + cuda("t-${TARGETARCH}")
        assert one(repo, text).platforms == (AMD64,)


class TestPins:
    def test_unused_global_is_none(self, repo: Path) -> None:
        stage = one(repo, "ARG LIB_HAMI_CORE_COMMIT=a\n" + cuda("b", "RUN c"))
        assert (stage.pins, stage.pin) == ((), None)

    def test_own_default_wins(self, repo: Path) -> None:
        text = "ARG LIB_HAMI_CORE_COMMIT=a\n" + cuda("b", "ARG LIB_HAMI_CORE_COMMIT=c", "RUN d")
        assert one(repo, text).pin == "c"

    def test_comes_with_a_base_stage(self, repo: Path) -> None:
        text = "ARG LIB_HAMI_CORE_COMMIT=a\nFROM b AS c\nARG LIB_HAMI_CORE_COMMIT\n" + cuda("c", "RUN d")
        assert one(repo, text).pin == "a"

    def test_own_one_is_told_from_a_copied_stage_s(self, repo: Path) -> None:
        text = "ARG LIB_HAMI_CORE_COMMIT=a\nARG LIB_Z_COMMIT=z\nFROM b AS c\nARG LIB_Z_COMMIT\n" + cuda(
            "d", "ARG LIB_HAMI_CORE_COMMIT", "COPY --from=c /x /x"
        )
        stage = one(repo, text)
        assert dict(stage.pins) == {"LIB_HAMI_CORE_COMMIT": "a", "LIB_Z_COMMIT": "z"}
        assert stage.pin == "a"

    def test_two_own_ones_leave_no_telling(self, repo: Path) -> None:
        assert one(repo, cuda("a", "ARG LIB_X_COMMIT=1 LIB_Y_COMMIT=2")).pin is None

    def test_in_the_base_image(self, repo: Path) -> None:
        stage = one(repo, "ARG LIB_X_COMMIT=1\n" + cuda("a:${LIB_X_COMMIT}"))
        assert (stage.pins, stage.base_image) == ((("LIB_X_COMMIT", "1"),), "a:1")

    @pytest.mark.parametrize("name", ["XLIB_A_COMMIT", "LIB_COMMIT", "LIB_A_COMMIT_X", "lib_a_commit"])
    def test_have_their_own_form(self, repo: Path, name: str) -> None:
        assert one(repo, cuda("a", f"ARG {name}=1")).pins == ()


class TestSources:
    """What of the context a stage names; paths that lead nowhere are as good as others here."""

    @pytest.mark.parametrize(
        ("line", "paths"),
        [
            ("RUN --mount=type=bind,src=a,target=/a b", ["a"]),
            ("RUN --mount=type=bind,source=a,target=/a b", ["a"]),
            ("RUN --mount=src=a,target=/a b", ["a"]),
            ("RUN --mount=TYPE=BIND,Src=a,dst=/a b", ["a"]),
            ('RUN --mount=type=bind,"src=a",target=/a b', ["a"]),
            ("RUN --mount=target=/a b", ["."]),
            ("RUN --mount=type=bind,target=/a,rw b", ["."]),
            ("RUN --mount=src=a,target=/a --mount=src=b,target=/b c", ["a", "b"]),
            ("RUN --mount=src=/a/./b/../c/,target=/a b", ["a/c"]),
            ("RUN --mount=src=../../a,target=/a b", ["a"]),
            ("RUN --mount=src=a*,target=/a b", ["a*"]),
            ("RUN --mount=type=cache,src=a,target=/a b", []),
            ("RUN --mount=type=secret,id=a b", []),
            ("RUN --mount=type=ssh b", []),
            ("RUN --mount=type=tmpfs,target=/a b", []),
            ("RUN --mount=from=other,src=a,target=/a b", []),
            ("RUN --mount=from=image/x,target=/a b", []),
            ("RUN --mount=type=$T,src=$S/x,target=/a b", ["y/x"]),
            ("RUN --mount=src=${ARGUED}/x,target=/a b", ["argued/x"]),
            ("RUN --mount=src=${GLOBAL}x,target=/a b", ["x"]),
            ("COPY a b /c/", ["a", "b"]),
            ('COPY ["a b", "/c/"]', ["a b"]),
            ("COPY a\\ b /c/", ["a", "b"]),
            ("COPY --from=other a /c/", []),
            ("COPY --from=image/x a /c/", []),
            ("COPY --chown=1:1 --link a /c/", ["a"]),
            ("COPY $S ${S}/z /c/", ["y", "y/z"]),
            ("COPY '$S' /c/", ["$S"]),
            ("COPY . /c/", ["."]),
            ("COPY <<EOF a /c/\nx\nEOF", ["a"]),
            ("COPY <<A <<B /c/\nx\nA\ny\nB", []),
            ("ADD a https://x/y.tgz /c/", ["a"]),
            ("ADD http://x/y git@host:z.git ssh://x/y git://x/y /c/", []),
            ("ADD github.com/x/y /c/", ["github.com/x/y"]),
            ("ADD --checksum=sha256:aa https://x/y /c/", []),
            ("ONBUILD COPY a /c/", []),
        ],
    )
    def test_of_one_instruction(self, repo: Path, line: str, paths: list[str]) -> None:
        text = "ARG GLOBAL=g\nFROM x AS other\n" + cuda("x", "ARG ARGUED=argued", "ENV T=bind S=y", line)
        (recipe, _) = one(repo, text).recipes
        assert [source.path for source in recipe.sources] == paths

    def test_with_the_other_escape(self, repo: Path) -> None:
        text = "# escape=`\n" + cuda("x", "COPY a`$b c\\d `", "  /e/")
        assert [source.path for source in one(repo, text).recipes[0].sources] == ["a$b", "c\\d"]

    def test_variables_come_in_order(self, repo: Path) -> None:
        body = [
            "ENV A=1 B=$A",
            "COPY x$B /",
            "ENV B=$A",
            "COPY x$B /",
            "ARG C=2 D=$C",
            "COPY $D /",
            "ENV C=3",
            "COPY $C /",
        ]
        assert [source.path for source in one(repo, cuda("x", *body)).recipes[0].sources] == [
            "x",
            "x1",
            "2",
            "3",
        ]

    def test_variables_come_with_a_base_stage(self, repo: Path) -> None:
        text = "ARG G=g\nFROM x AS base\nARG G\nENV E=e\n" + cuda("base", "COPY $G$E /")
        assert [source.path for source in one(repo, text).recipes[0].sources] == ["ge"]

    def test_predefined_ones_must_be_declared(self, repo: Path) -> None:
        text = cuda("x", "COPY a$TARGETARCH /", "ARG TARGETARCH", "COPY a$TARGETARCH /")
        paths = [[source.path for source in recipe.sources] for recipe in one(repo, text).recipes]
        assert paths == [["a", "aamd64"], ["a", "aarm64"]]

    def test_of_whatever_the_stage_needs(self, repo: Path) -> None:
        text = (
            "FROM x AS unused\nCOPY no /\nFROM x AS copied\nCOPY c /\nFROM x AS mounted\nCOPY m /\n"
            "FROM x AS base\nCOPY b /\nFROM x AS deep\nCOPY d /\nFROM x AS counted\nCOPY --from=deep / /\n"
        ) + cuda(
            "base", "COPY --from=Copied / /", "RUN --mount=from=mounted,target=/m x", "COPY --from=5 / /"
        )
        assert {source.path for source in one(repo, text).recipes[0].sources} == {"c", "m", "b", "d"}

    def test_of_the_last_stage_of_the_name_copied_from(self, repo: Path) -> None:
        text = "FROM x AS c\nCOPY one /\nFROM x AS c\nCOPY two /\n" + cuda("x", "COPY --from=c / /")
        assert [source.path for source in one(repo, text).recipes[0].sources] == ["two"]

    def test_variables_stay_in_their_stage(self, repo: Path) -> None:
        text = "FROM x AS base\nFROM base AS c\nENV A=1\n" + cuda("base", "COPY a$A /", "COPY --from=c / /")
        assert [source.path for source in one(repo, text).recipes[0].sources] == ["a"]

    def test_onbuild_of_the_base_runs_first_and_once(self, repo: Path) -> None:
        text = "FROM x AS a\nONBUILD COPY o /\nONBUILD ENV V=v\nFROM a AS b\nFROM b AS c\n" + cuda(
            "c", "COPY $V /"
        )
        assert [source.path for source in one(repo, text).recipes[0].sources] == ["o", "v"]

    def test_of_builders_of_every_platform(self, repo: Path) -> None:
        text = "FROM x AS t-amd64\nCOPY a /\nFROM x AS t-arm64\nCOPY b /\n"
        text += "FROM --platform=$BUILDPLATFORM t-${BUILDARCH} AS t\n" + cuda("x", "COPY --from=t / /")
        (amd64, arm64) = one(repo, text).recipes
        assert (
            [source.path for source in amd64.sources]
            == [source.path for source in arm64.sources]
            == ["a", "b"]
        )

    def test_line_is_the_instruction_s(self, repo: Path) -> None:
        text = cuda("x", "RUN a \\", "# c", "  b", "COPY \\", "  c /d")
        assert [str(naming) for each in one(repo, text).inputs for naming in each.named_by] == [
            "copy in line 5"
        ]


class TestText:
    def test_holds_what_the_stage_needs_and_nothing_else(self, repo: Path) -> None:
        _, nvidia = look(repo, OPERATOR).stages
        assert nvidia.text == "\n".join(
            [
                'ARG LIB_HAMI_CORE_COMMIT="bbbb"',
                "FROM nvidia/cuda:12-ubi8 as xbuild-nvidia-cuda-12",
                "ARG LIB_HAMI_CORE_COMMIT",
                "RUN dnf install -y cmake",
                "RUN --mount=type=bind,src=external/nvidia/build.sh,target=/b.sh <<EOF",
                "    bash /b.sh",
                "EOF",
            ]
        )

    def test_global_arguments_bring_those_they_use(self, repo: Path) -> None:
        text = "ARG A=1\nARG B=${A}2\nARG C=3 D=$B\n" + cuda("x:$D", "RUN y")
        assert one(repo, text).text.splitlines()[:3] == ["ARG A=1", "ARG B=${A}2", "ARG D=$B"]

    def test_names_the_frontend(self, repo: Path) -> None:
        assert one(repo, "# syntax=a/b:1\n" + cuda("x")).text.startswith("# syntax=a/b:1\n")

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("# Bump the commit", "# Bump it"),
            ('LIB_UNUSED_COMMIT="cccc"', 'LIB_UNUSED_COMMIT="dddd"'),
            ("FROM vendor/ppu:2", "FROM vendor/ppu:3"),
            ("COPY --from=xbuild-thead-ppu /out", "COPY --from=xbuild-thead-ppu /o"),
            ('LIB_UBS_VIRT_ENPU_COMMIT="aaaa"', 'LIB_UBS_VIRT_ENPU_COMMIT="xxxx"'),
            ("ARG LIB_HAMI_CORE_COMMIT\nRUN dnf", "ARG LIB_HAMI_CORE_COMMIT\n# why\n\nRUN dnf"),
            ("ARG LIB_HAMI_CORE_COMMIT\nRUN dnf", "arg LIB_HAMI_CORE_COMMIT\nrun dnf"),
        ],
    )
    def test_of_one_stage_ignores_an_edit_elsewhere(self, repo: Path, old: str, new: str) -> None:
        assert OPERATOR.count(old) == 1
        assert one(repo, OPERATOR).text == one(repo, OPERATOR.replace(old, new)).text


class TestFindStage:
    def test_exact(self, repo: Path) -> None:
        assert find_stage(look(repo, OPERATOR), "xbuild-nvidia-cuda-12").suffix == "12"

    @pytest.mark.parametrize(
        ("name", "problem", "hint"),
        [
            ("xbuild-nvidia-cuda-", "lacks its suffix", "xbuild-nvidia-cuda-12"),
            ("xbuild-ascend-cann-", "lacks its suffix", "xbuild-ascend-cann-8-910b"),
            ("xbuild-nvidia-cuda-21", "no stage", "did you mean xbuild-nvidia-cuda-12"),
            ("XBUILD-NVIDIA-CUDA-12", "no stage", "did you mean xbuild-nvidia-cuda-12"),
            ("xbuild-nvidia", "no stage", "did you mean xbuild-nvidia-cuda-12?"),
            ("8-910b", "no stage", "xbuild-ascend-cann-8-910b"),
            ("qqq", "no stage", "xbuild-ascend-cann-8-910b or xbuild-nvidia-cuda-12"),
            ("", "no stage", "xbuild-ascend-cann-8-910b or xbuild-nvidia-cuda-12"),
            ("final", "no stage", "xbuild-"),
            ("a\nb", "no stage 'a\\nb'", "xbuild-"),
            ("xbuild-thead-ppu", "no backend here knows", "xbuild-nvidia-cuda-*"),
            ("xbuild-thead-ppu-amd64", "is what xbuild-thead-ppu is on one platform", "xbuild-thead-ppu"),
        ],
    )
    def test_unknown(self, repo: Path, name: str, problem: str, hint: str) -> None:
        with pytest.raises(UsageError) as caught:
            find_stage(look(repo, OPERATOR), name)
        assert problem in caught.value.message
        assert hint in caught.value.hint
        assert caught.value.exit_code is ExitCode.USAGE
        assert "\n" not in str(caught.value)

    def test_where_there_is_none(self, repo: Path) -> None:
        with pytest.raises(UsageError, match="no stage 'x' in Dockerfile; it has no stage to build"):
            find_stage(look(repo, "FROM a AS b\n"), "x")


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "line", "problem"),
        [
            ("ARG A=1\n", 1, "no FROM"),
            ("RUN a\nFROM b\n", 1, "RUN stands before the first FROM"),
            ("FROM\n", 1, "FROM takes an image"),
            ("FROM a b\n", 1, "FROM takes an image"),
            ("FROM a IS b\n", 1, "FROM takes an image"),
            ("FROM a AS b c\n", 1, "FROM takes an image"),
            ("FROM a AS 1b\n", 1, "'1b' is no name"),
            ("FROM a AS b/c\n", 1, "'b/c' is no name"),
            (cuda("${NONE}"), 1, "comes out blank"),
            (cuda("--platform=${NONE} a"), 1, "comes out blank"),
            (cuda("${A"), 1, "in ${A"),
            ("ARG A=${B\n" + cuda("a"), 1, "in ${B"),
            ("FROM a AS b\n" + cuda("B"), 2, "'B' is neither a stage"),
            (cuda("a b c", "RUN d").replace("a b c", "a:b:c"), 1, "'a:b:c' is neither"),
            (cuda("a", "COPY b"), 2, "a source and a destination"),
            (cuda("a", "ONBUILD ADD b"), 2, "a source and a destination"),
            (cuda("a", "ARG"), 2, "ARG takes"),
            (cuda("a", "ARG =b"), 2, "ARG takes"),
            (cuda("a", "COPY --from=$B c d"), 2, "no variable is expanded in from=$B"),
            (cuda("a", "RUN --mount=from=${B},target=/c d"), 2, "no variable is expanded in from=${B}"),
            (cuda("a", 'RUN --mount=\\"src=a b'), 2, "malformed"),
            (cuda("a", "COPY --from=7 b c"), 2, "no stage has the position 7"),
            (cuda("a", "COPY ${B c"), 2, "in ${B"),
            (cuda("a", "ENV A=${B:?no}"), 2, "B: no"),
            (cuda("a", "COPY --from=xbuild-nvidia-cuda-12 b c"), 1, "in a circle"),
            (
                "FROM a AS b\nCOPY --from=c d e\nFROM a AS c\nRUN --mount=from=b,target=/f g\n",
                1,
                "in a circle",
            ),
        ],
    )
    def test_by_buildkit_and_here(self, repo: Path, text: str, line: int, problem: str) -> None:
        with pytest.raises(UsageError) as caught:
            look(repo, text)
        assert caught.value.message.startswith(f"Dockerfile:{line}: ")
        assert problem in caught.value.message
        assert "\n" not in str(caught.value)

    def test_not_for_a_stage_that_nobody_builds(self, repo: Path) -> None:
        assert one(repo, "FROM a AS b\nCOPY ${C d\n" + cuda("a")).name == "xbuild-nvidia-cuda-12"

    def test_not_for_what_a_newer_buildkit_may_know(self, repo: Path) -> None:
        assert one(repo, cuda("a", "RUN --device=x --new=y b", "COPY --parents --exclude=*.o c d")).name

    @pytest.mark.parametrize("raw", [b"\x7fELF\x02\x01\x00\x00", "FROM a\n".encode("utf-16")])
    def test_a_binary_file(self, repo: Path, raw: bytes) -> None:
        (repo / "Dockerfile").write_bytes(raw)
        with pytest.raises(UsageError, match="Dockerfile is not a text file"):
            discover(repo, "Dockerfile")

    def test_not_for_a_comment_in_another_encoding(self, repo: Path) -> None:
        assert one(repo, "# gr\udcfc\udcdfe\n" + cuda("a")).name == "xbuild-nvidia-cuda-12"

    def test_many_stages_are_no_trouble(self, repo: Path) -> None:
        chain = "".join(f"FROM s{at} AS s{at + 1}\nCOPY --from=s{at} a b\n" for at in range(1500))
        assert one(repo, chain + cuda("s1500")).base_image == "s0"
