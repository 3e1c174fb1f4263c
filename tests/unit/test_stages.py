"""Discovery: which stages a Dockerfile has, what each needs, and how a name finds one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dockerfile as go
import pytest
from stage_samples import OPERATOR, cuda, look, one

from xbtasks.backends.base import Platform
from xbtasks.checkout.stages import discover, find_stage
from xbtasks.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from pathlib import Path

AMD64, ARM64 = Platform.AMD64, Platform.ARM64


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "external/ascend/patches").mkdir(parents=True)
    (tmp_path / "external/nvidia").mkdir()
    (tmp_path / "external/ascend/build.sh").write_text("make\n")
    (tmp_path / "external/nvidia/build.sh").write_text("make\n")
    return tmp_path


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
            ("qqq", "no stage", "it has xbuild-ascend-cann-8-910b, xbuild-nvidia-cuda-12"),
            ("", "no stage", "it has xbuild-ascend-cann-8-910b, xbuild-nvidia-cuda-12"),
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


class TestCrossCompiles:
    @pytest.mark.parametrize(
        ("base", "cross"),
        [
            ("FROM --platform=$BUILDPLATFORM a AS b", True),
            ("FROM --platform=${BUILDPLATFORM} a AS b", True),
            ("FROM --platform=linux/amd64 a AS b", False),
            ("FROM --platform=$TARGETPLATFORM a AS b", False),
            ("FROM a AS b", False),
        ],
    )
    def test_a_stage_whose_runs_follow_the_builder(self, repo: Path, base: str, cross: bool) -> None:
        text = f"{base}\nRUN make\nFROM b AS xbuild-nvidia-cuda-1\nRUN make install\n"
        assert look(repo, text).stages[0].cross_compiles is cross

    def test_one_run_on_the_target_is_enough_to_need_it(self, repo: Path) -> None:
        text = (
            "FROM --platform=$BUILDPLATFORM a AS b\nRUN make\nFROM a AS xbuild-nvidia-cuda-1\n"
            "COPY --from=b /x /x\nRUN strip /x\n"
        )
        assert not look(repo, text).stages[0].cross_compiles

    def test_a_stage_that_only_copies_needs_nothing_of_its_platform(self, repo: Path) -> None:
        text = (
            "FROM --platform=$BUILDPLATFORM a AS b\nRUN make\n"
            "FROM scratch AS xbuild-nvidia-cuda-1\nCOPY --from=b /x /x\n"
        )
        assert look(repo, text).stages[0].cross_compiles
