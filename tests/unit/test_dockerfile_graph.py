"""The graph: which paths of the context a stage names, through whatever it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from stage_samples import cuda, one

if TYPE_CHECKING:
    from pathlib import Path


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
    def test_of_one_instruction(self, tmp_path: Path, line: str, paths: list[str]) -> None:
        text = "ARG GLOBAL=g\nFROM x AS other\n" + cuda("x", "ARG ARGUED=argued", "ENV T=bind S=y", line)
        (recipe, _) = one(tmp_path, text).recipes
        assert [source.path for source in recipe.sources] == paths

    def test_with_the_other_escape(self, tmp_path: Path) -> None:
        text = "# escape=`\n" + cuda("x", "COPY a`$b c\\d `", "  /e/")
        assert [source.path for source in one(tmp_path, text).recipes[0].sources] == ["a$b", "c\\d"]

    def test_variables_come_in_order(self, tmp_path: Path) -> None:
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
        assert [source.path for source in one(tmp_path, cuda("x", *body)).recipes[0].sources] == [
            "x",
            "x1",
            "2",
            "3",
        ]

    def test_variables_come_with_a_base_stage(self, tmp_path: Path) -> None:
        text = "ARG G=g\nFROM x AS base\nARG G\nENV E=e\n" + cuda("base", "COPY $G$E /")
        assert [source.path for source in one(tmp_path, text).recipes[0].sources] == ["ge"]

    def test_predefined_ones_must_be_declared(self, tmp_path: Path) -> None:
        text = cuda("x", "COPY a$TARGETARCH /", "ARG TARGETARCH", "COPY a$TARGETARCH /")
        paths = [[source.path for source in recipe.sources] for recipe in one(tmp_path, text).recipes]
        assert paths == [["a", "aamd64"], ["a", "aarm64"]]

    def test_of_whatever_the_stage_needs(self, tmp_path: Path) -> None:
        text = (
            "FROM x AS unused\nCOPY no /\nFROM x AS copied\nCOPY c /\nFROM x AS mounted\nCOPY m /\n"
            "FROM x AS base\nCOPY b /\nFROM x AS deep\nCOPY d /\nFROM x AS counted\nCOPY --from=deep / /\n"
        ) + cuda(
            "base", "COPY --from=Copied / /", "RUN --mount=from=mounted,target=/m x", "COPY --from=5 / /"
        )
        assert {source.path for source in one(tmp_path, text).recipes[0].sources} == {"c", "m", "b", "d"}

    def test_of_the_last_stage_of_the_name_copied_from(self, tmp_path: Path) -> None:
        text = "FROM x AS c\nCOPY one /\nFROM x AS c\nCOPY two /\n" + cuda("x", "COPY --from=c / /")
        assert [source.path for source in one(tmp_path, text).recipes[0].sources] == ["two"]

    def test_variables_stay_in_their_stage(self, tmp_path: Path) -> None:
        text = "FROM x AS base\nFROM base AS c\nENV A=1\n" + cuda("base", "COPY a$A /", "COPY --from=c / /")
        assert [source.path for source in one(tmp_path, text).recipes[0].sources] == ["a"]

    def test_onbuild_of_the_base_runs_first_and_once(self, tmp_path: Path) -> None:
        text = "FROM x AS a\nONBUILD COPY o /\nONBUILD ENV V=v\nFROM a AS b\nFROM b AS c\n" + cuda(
            "c", "COPY $V /"
        )
        assert [source.path for source in one(tmp_path, text).recipes[0].sources] == ["o", "v"]

    def test_of_builders_of_every_platform(self, tmp_path: Path) -> None:
        text = "FROM x AS t-amd64\nCOPY a /\nFROM x AS t-arm64\nCOPY b /\n"
        text += "FROM --platform=$BUILDPLATFORM t-${BUILDARCH} AS t\n" + cuda("x", "COPY --from=t / /")
        (amd64, arm64) = one(tmp_path, text).recipes
        assert (
            [source.path for source in amd64.sources]
            == [source.path for source in arm64.sources]
            == ["a", "b"]
        )

    def test_line_is_the_instruction_s(self, tmp_path: Path) -> None:
        text = cuda("x", "RUN a \\", "# c", "  b", "COPY \\", "  c /d")
        assert [str(naming) for each in one(tmp_path, text).inputs for naming in each.named_by] == [
            "copy in line 5"
        ]
