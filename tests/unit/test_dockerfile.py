"""The Dockerfile parser: each trap by hand."""

from __future__ import annotations

import pytest

from xbtasks.checkout.dockerfile.parser import Instruction, heredoc_of, parse
from xbtasks.errors import ExitCode, UsageError


def instructions(text: str) -> tuple[Instruction, ...]:
    return parse(text).instructions


def only(text: str) -> Instruction:
    """The instruction after the first FROM."""
    head, instruction = instructions(f"FROM a\n{text}")
    assert head.keyword == "FROM"
    return instruction


def shape(text: str) -> list[tuple[str, int, int]]:
    return [(each.keyword, each.line, each.end_line) for each in instructions(text)]


class TestComments:
    def test_are_no_instructions(self) -> None:
        text = "# FROM no AS no\n  # FROM --platform=linux/arm64 no\n\t#x\nFROM a\n#\nRUN b\n"
        assert shape(text) == [("FROM", 4, 4), ("RUN", 6, 6)]

    def test_between_continuation_lines_vanish(self) -> None:
        text = "RUN a \\\n# FROM x\n  # indented \\\n    b \\\n\n    c\nRUN d\n"
        first, second = instructions(f"FROM a\n{text}")[1:]
        assert first.args == ("a     b     c",)
        assert (first.line, first.end_line, second.line) == (2, 7, 8)

    def test_after_a_word_are_part_of_it(self) -> None:
        assert only("RUN a # b").args == ("a # b",)

    def test_in_a_heredoc_are_content(self) -> None:
        assert only("RUN <<E\n# a\nE\n").heredocs[0].content == "# a\n"


class TestDirectives:
    def test_escape_changes_continuation(self) -> None:
        text = "# escape=`\nFROM a\nRUN a \\\nRUN b `\n  c\n"
        assert [each.args for each in instructions(text)] == [("a",), ("a \\",), ("b   c",)]

    @pytest.mark.parametrize("line", ["#escape=`", "# ESCAPE = ` ", "#\tEscape\t=\t`", "  # escape=`"])
    def test_escape_in_any_spelling(self, line: str) -> None:
        assert parse(f"{line}\nFROM a\n").escape == "`"

    @pytest.mark.parametrize("before", ["\n", "# a comment\n", "FROM x\n", "# unknown=1\n", " \n"], ids=ascii)
    def test_count_only_at_the_top(self, before: str) -> None:
        assert parse(f"{before}# escape=`\nFROM a\n").escape == "\\"

    def test_several_may_stand_there(self) -> None:
        text = "\ufeff# syntax=docker/dockerfile:1\n# check=skip=all\n# escape=`\nFROM a\n"
        assert parse(text).directives == (
            ("syntax", "docker/dockerfile:1"),
            ("check", "skip=all"),
            ("escape", "`"),
        )

    def test_byte_order_mark_is_dropped_only_at_the_top(self) -> None:
        assert shape("\ufeffFROM a\n") == [("FROM", 1, 1)]
        with pytest.raises(UsageError, match=r"Dockerfile:2: unknown instruction"):
            parse("FROM a\n\ufeffRUN b\n")


class TestContinuations:
    @pytest.mark.parametrize("end", ["\\\n", "\\ \n", "\\\t \n", "\\\r\n"], ids=ascii)
    def test_end_a_line_also_with_blanks_after(self, end: str) -> None:
        assert only(f"RUN a {end}b\n").args == ("a b",)

    def test_doubled_escape_is_none(self) -> None:
        assert shape("FROM a\nRUN a \\\\\nRUN b\n") == [("FROM", 1, 1), ("RUN", 2, 2), ("RUN", 3, 3)]

    def test_split_a_keyword(self) -> None:
        assert shape("FR\\\nOM a\n") == [("FROM", 1, 2)]

    def test_at_the_end_of_the_file(self) -> None:
        assert only("RUN a \\").args == ("a",)

    def test_of_two_mounts(self) -> None:
        run = only("RUN --mount=type=bind,src=a,target=/a \\\n    --mount=src=b,target=/b <<EOF\nx\nEOF\n")
        assert run.flag_values("mount") == ("type=bind,src=a,target=/a", "src=b,target=/b")
        assert run.args == ("<<EOF",)

    def test_crlf(self) -> None:
        text = "FROM a\r\nRUN <<EOF \\\r\n  cat\r\nx\r\nEOF\r\nRUN b\r\n"
        assert shape(text) == [("FROM", 1, 1), ("RUN", 2, 5), ("RUN", 6, 6)]
        assert instructions(text)[1].heredocs[0].content == "x\r\n"


class TestHeredocs:
    def test_hide_what_looks_like_a_stage(self) -> None:
        assert shape("FROM a\nRUN <<EOF\nFROM x AS y\nEOF\nFROM b\n") == [
            ("FROM", 1, 1),
            ("RUN", 2, 4),
            ("FROM", 5, 5),
        ]

    def test_nested_ones_belong_to_the_shell(self) -> None:
        run = only("RUN <<EOF\ncat<<EOT >/x\nFROM y\nEOT\nEOF\n")
        assert [each.name for each in run.heredocs] == ["EOF"]
        assert run.heredocs[0].content == "cat<<EOT >/x\nFROM y\nEOT\n"

    def test_nested_of_the_same_name_ends_at_the_first(self) -> None:
        with pytest.raises(UsageError, match=r"Dockerfile:5: unknown instruction 'EOF'"):
            parse("FROM a\nRUN <<EOF\ncat <<EOF\nEOF\nEOF\n")

    def test_several_in_one_line_follow_each_other(self) -> None:
        copy = only("COPY <<A <<'B' 3<<-C /x/\n1\nA\n2\nB\n\t3\n\tC\n")
        assert [(each.name, each.text, each.expand, each.file_descriptor) for each in copy.heredocs] == [
            ("A", "1\n", True, 0),
            ("B", "2\n", False, 0),
            ("C", "3\n", True, 3),
        ]

    @pytest.mark.parametrize("name", ['"E F"', "'E F'", "E\\ F"])
    def test_names_may_be_quoted(self, name: str) -> None:
        assert only(f"RUN <<{name}\na\nE F\n").heredocs[0].name == "E F"

    @pytest.mark.parametrize("line", ["EOF ", " EOF", "\tEOF", "EOF #", "eof", "EOFX"])
    def test_end_only_at_their_exact_name(self, line: str) -> None:
        assert only(f"RUN <<EOF\n{line}\nEOF\n").heredocs[0].content == f"{line}\n"

    def test_with_a_dash_may_be_indented_by_tabs_only(self) -> None:
        heredoc = only("RUN <<-EOF\n\t\ta\n EOF\n\tEOF\n").heredocs[0]
        assert heredoc.content == "\t\ta\n EOF\n"
        assert heredoc.text == "a\n EOF\n"

    @pytest.mark.parametrize(
        "line",
        [
            "RUN cat <<<EOF",
            "RUN echo $((1<<2))",
            "RUN echo '<<EOF'",
            'RUN echo "<<EOF"',
            "RUN a<<EOF",
            "RUN cat <<",
            'RUN ["cat", "<<EOF"]',
            "RUN echo 'open <<EOF",
            "CMD cat <<EOF",
            "ENV A=<<EOF",
            "LABEL a=<<EOF",
            "ENTRYPOINT cat <<EOF",
            "ONBUILD CMD cat <<EOF",
        ],
    )
    def test_are_not_these(self, line: str) -> None:
        instruction = only(line)
        assert (instruction.line, instruction.end_line, instruction.heredocs) == (2, 2, ())

    def test_of_an_onbuild_belong_to_its_trigger(self) -> None:
        onbuild = only("ONBUILD COPY <<EOF /x\nFROM y\nEOF\n")
        assert onbuild.trigger is not None
        assert onbuild.trigger.keyword == "COPY"
        assert onbuild.trigger.heredocs == onbuild.heredocs != ()
        assert onbuild.end_line == 4

    def test_blanks_may_stand_before_the_name(self) -> None:
        assert only("RUN << EOF\na\nEOF\n").heredocs[0].content == "a\n"

    def test_word(self) -> None:
        assert heredoc_of("file") is None
        assert heredoc_of("<<<x") is None
        heredoc = heredoc_of("<<-'x'")
        assert heredoc is not None
        assert (heredoc.name, heredoc.strip_tabs, heredoc.expand) == ("x", True, False)


class TestArguments:
    @pytest.mark.parametrize("line", ["from a as b", "From a As b", "FROM a AS b"])
    def test_keywords_in_any_case(self, line: str) -> None:
        (header,) = instructions(line)
        assert (header.keyword, header.args[0], header.args[2]) == ("FROM", "a", "b")

    def test_flags_lose_their_quotes(self) -> None:
        copy = only('COPY --from="x y" --chown=a\\ b --link "a b" c')
        assert copy.flags == ("--from=x y", "--chown=a b", "--link")
        assert copy.args == ('"a', 'b"', "c")  # only the JSON form takes a path with a blank

    def test_two_dashes_end_the_flags(self) -> None:
        assert (only("COPY -- --from=x y").flags, only("COPY -- --from=x y").args) == ((), ("--from=x", "y"))

    def test_flags_are_read_as_bytes(self) -> None:
        assert only("COPY --from=é a b").flags == ("--from=Ã©",)

    def test_json(self) -> None:
        copy = only('COPY ["a b", "c\\u0020d", "/x"]')
        assert (copy.json, copy.args) == (True, ("a b", "c d", "/x"))

    @pytest.mark.parametrize("rest", ["['a', 'b']", '["a"', "[a b", "[NaN]", '["a"] "b"', '["a\tb"]'])
    def test_almost_json_is_a_shell_form(self, rest: str) -> None:
        assert (only(f"RUN {rest}").json, only(f"RUN {rest}").args) == (False, (rest,))

    def test_arg(self) -> None:
        assert only("ARG a b=1 c='d e' f=\"g h\" i=").args == ("a", "b=1", "c='d e'", 'f="g h"', "i=")

    def test_escape_means_nothing_in_single_quotes(self) -> None:
        assert only("ARG a='x\\' b").args == ("a='x\\'", "b")

    def test_env(self) -> None:
        assert only('ENV A=1 B="c d" E=f\\ g').args == ("A", "1", "B", '"c d"', "E", "f\\ g")
        assert only("ENV A b  c=d").args == ("A", "b  c=d")

    def test_healthcheck(self) -> None:
        assert only('HEALTHCHECK --retries=2 CMD ["a", "b"]').args == ("CMD", "a", "b")

    def test_text_is_canonical(self) -> None:
        written = "run --mount=src=a \\\n # why\n   <<-E\n\tx\n\tE\n"
        assert only(written).text == "RUN --mount=src=a    <<-E\n\tx\nE"


class TestErrors:
    @pytest.mark.parametrize(
        ("text", "line", "problem"),
        [
            ("", 1, "no instructions"),
            ("# only\n\n", 2, "no instructions"),
            ("FROM a\nRUN <<EOF\nx\n", 2, "unterminated heredoc 'EOF'"),
            ("FROM a\nRUN <<A <<B\nA\nx\n", 2, "unterminated heredoc 'B'"),
            ("FROM a\n\nFORM b\n", 3, "unknown instruction 'FORM'"),
            ("FROM a\nRUN b \\\n  c\nd\n", 4, "unknown instruction 'd'"),
            ("\\\n", 1, "unknown instruction ''"),
            ("# escape=x\nFROM a\n", 1, "escape directive"),
            ("# escape=`\n# escape=`\nFROM a\n", 2, "only one escape"),
            ("FROM a\nRUN [1]\n", 2, "nothing but strings"),
            ("FROM a\nENV\n", 2, "at least one argument"),
            ("FROM a\nENV A\n", 2, "two arguments"),
            ("FROM a\nENV A=1 B\n", 2, "'B'"),
            ("FROM a\nLABEL =b\n", 2, "'=b'"),
            ("FROM a\nONBUILD\n", 2, "ONBUILD"),
            ("FROM a\nONBUILD ONBUILD RUN a\n", 2, "ONBUILD"),
            ("FROM a\nONBUILD FROM b\n", 2, "FROM"),
            ("FROM a\nRUN " + "x" * 70_000, 2, "longer than 65535 bytes"),
            ("FROM a\nRUN " + "é" * 40_000, 2, "longer than 65535 bytes"),
        ],
    )
    def test_name_file_and_line_in_one_line(self, text: str, line: int, problem: str) -> None:
        with pytest.raises(UsageError) as caught:
            parse(text, "pack/Dockerfile")
        assert caught.value.message.startswith(f"pack/Dockerfile:{line}: ")
        assert problem in caught.value.message
        assert "\n" not in str(caught.value)
        assert caught.value.exit_code is ExitCode.USAGE

    def test_show_what_can_be_shown(self) -> None:
        with pytest.raises(UsageError) as caught:
            parse("\x7fELF\x02\x1b[31m" + "\udcff" * 100)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 300

    def test_depth_is_no_crash(self) -> None:
        with pytest.raises(UsageError):
            parse("FROM a\n" + "ONBUILD " * 8_000)
        assert not only("RUN " + "[" * 60_000).json
        assert only("RUN <<EOF ${X:-" * 1_000).heredocs == ()
