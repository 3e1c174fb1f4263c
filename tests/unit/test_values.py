from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xbtasks.backends import BACKENDS
from xbtasks.backends.base import Platform
from xbtasks.backends.profiles import profile_names
from xbtasks.errors import ExitCode, UsageError
from xbtasks.knobs import values
from xbtasks.knobs.cards import parse_gpu, parse_gpus
from xbtasks.knobs.references import parse_host, parse_image_reference, parse_image_tag
from xbtasks.knobs.values import BadValue, Engine, HostKeys, Mode

if TYPE_CHECKING:
    from collections.abc import Callable

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # lone surrogates too: that is how bad bytes arrive


def seconds(text: str) -> int:
    return values.parse_seconds(text, 3600)


def small(text: str) -> int:
    return values.parse_integer(text, 0, 99)


PARSERS: tuple[Callable[[str], object], ...] = (
    parse_gpu,
    parse_gpus,
    parse_host,
    parse_image_reference,
    parse_image_tag,
    seconds,
    small,
    values.parse_boolean,
    values.parse_builder,
    values.parse_engine,
    values.parse_glibc,
    values.parse_host_keys,
    values.parse_local_path,
    values.parse_mib,
    values.parse_mode,
    values.parse_percent,
    values.parse_platform,
    values.parse_profile,
    values.parse_regex,
    values.parse_remote_path,
    values.parse_staging_directory,
)

ODD = (
    "",
    " ",
    "\n",
    "\0",
    "-",
    "~",
    "/",
    "@",
    ":",
    ",",
    "[",
    "(" * 900,
    "a{99999999999999999999}",
    "(?au)x",
    "[[a]",
    "9" * 10_000,
    "a" * 100_000,
    "\u202e4096",
    "\udcff",
    "1\u0660",
    "4096\r",
    "GPU-",
    "2." * 40,
    "~\udcff/x",
    "[::1%]",
)


def refused(parse: Callable[[str], object], text: str) -> UsageError | None:
    """Return the error that ``text`` gives; any other exception than a UsageError goes through."""
    try:
        assert parse(text) is not None
    except UsageError as error:
        return error
    return None


def refusal(parse: Callable[[str], object], text: str) -> BadValue:
    with pytest.raises(BadValue) as caught:
        parse(text)
    return caught.value


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@given(text=ANY_TEXT | st.sampled_from(ODD))
def test_any_text_is_a_value_or_one_printable_line(parse: Callable[[str], object], text: str) -> None:
    error = refused(parse, text)
    if error is not None:
        assert error.exit_code == ExitCode.USAGE
        assert str(error).isprintable()
        assert len(str(error)) < 300


@pytest.mark.parametrize("parse", PARSERS, ids=lambda parse: parse.__name__)
@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_texts_never_crash(parse: Callable[[str], object], text: str) -> None:
    error = refused(parse, text)
    assert error is None or str(error).isprintable()


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\r", "\u00a0", "\u3000"])
@pytest.mark.parametrize(
    ("parse", "good"),
    [
        (parse_gpu, "0"),
        (parse_host, "root@npu-1"),
        (parse_image_reference, "a/b:c"),
        (values.parse_boolean, "yes"),
        (values.parse_builder, "big"),
        (values.parse_engine, "docker"),
        (values.parse_glibc, "2.34"),
        (values.parse_host_keys, "strict"),
        (values.parse_mib, "4096"),
        (values.parse_mode, "ssh"),
        (values.parse_percent, "50"),
        (values.parse_platform, "linux/amd64"),
        (values.parse_profile, "needed"),
    ],
)
def test_surrounding_blanks_are_refused(parse: Callable[[str], object], good: str, blank: str) -> None:
    parse(good)
    refusal(parse, blank + good)
    refusal(parse, good + blank)


class TestShown:
    def test_escapes_what_a_terminal_would_obey(self) -> None:
        assert values.shown("a\x1b[31m\n\u202e\udcff") == r"'a\x1b[31m\n\u202e\udcff'"

    def test_keeps_what_a_person_can_read(self) -> None:
        assert values.shown("/数据") == "'/数据'"

    def test_cuts_long_text(self) -> None:
        assert values.shown("x" * 60) == repr("x" * 60)
        assert values.shown("x" * 61) == repr("x" * 57 + "...")


class TestInteger:
    @given(st.integers(0, 99))
    def test_round_trip(self, number: int) -> None:
        assert values.parse_integer(str(number), 0, 99) == number

    @given(st.integers(), st.integers(0, 50), st.integers(51, 10**6))
    def test_only_numbers_within_bounds(self, number: int, low: int, high: int) -> None:
        try:
            assert values.parse_integer(str(number), low, high) == number
            assert low <= number <= high
        except BadValue:
            assert not low <= number <= high

    @pytest.mark.parametrize(
        "text",
        [
            "010",
            "00",
            "0x10",
            "\uff11",
            "1_0",
            "+1",
            "-1",
            "1.0",
            "1e1",
            "٣",
            "²",
            "",
            "1 ",
            "0b1",
            "1,0",
            "1\n",
        ],
    )
    def test_other_spellings_are_refused(self, text: str) -> None:
        refusal(small, text)

    def test_message_names_value_and_bounds(self) -> None:
        error = refusal(small, "100")
        assert error.message == "'100' is not a whole number, 0 to 99"
        assert error.hint == ""

    @pytest.mark.parametrize(
        ("text", "hint"),
        [("010", "leading zeros"), (" 1", "blanks"), ("0x10", "plain decimal"), ("\uff11", "plain decimal")],
    )
    def test_hints(self, text: str, hint: str) -> None:
        assert hint in refusal(small, text).hint


class TestMib:
    @pytest.mark.parametrize(("text", "mib"), [("1", 1), ("4096", 4096), ("2147483647", 2147483647)])
    def test_bounds(self, text: str, mib: int) -> None:
        assert values.parse_mib(text) == mib

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("4g", "write 4096"),
            ("8GiB", "write 8192"),
            ("512m", "write 512"),
            ("1 TB", "write 1048576"),
            ("0g", "such as 4096"),
            ("9999999g", "such as 4096"),
            ("\uff14g", "such as 4096"),
            ("2147483648", "such as 4096"),
            ("4096 --privileged", "such as 4096"),
            ("0", "there is no unlimited"),
            ("00", "there is no unlimited"),
            ("-1", "there is no unlimited"),
        ],
    )
    def test_refusals_show_the_form(self, text: str, hint: str) -> None:
        assert refusal(values.parse_mib, text).hint == hint


@pytest.mark.parametrize("text", ["1", "100"])
def test_percent_bounds(text: str) -> None:
    assert values.parse_percent(text) == int(text)


@pytest.mark.parametrize("text", ["0", "101", "50%"])
def test_percent_refusals(text: str) -> None:
    refusal(values.parse_percent, text)


def test_seconds() -> None:
    assert seconds("1") == 1
    assert seconds("3600") == 3600
    for text in ("0", "3601", "20s", "1.5"):
        refusal(seconds, text)


class TestWords:
    def test_mode(self) -> None:
        assert values.parse_mode("ssh") is Mode.SSH
        assert values.parse_mode("local") is Mode.LOCAL
        assert refusal(values.parse_mode, "SSH").hint == "write ssh"
        assert refusal(values.parse_mode, "remote").hint == ""

    def test_host_keys(self) -> None:
        assert values.parse_host_keys("strict") is HostKeys.STRICT
        assert values.parse_host_keys("accept-new") is HostKeys.ACCEPT_NEW
        assert refusal(values.parse_host_keys, "no").hint == "host keys are always checked"
        refusal(values.parse_host_keys, "Strict")

    def test_engine(self) -> None:
        assert values.parse_engine("docker") is Engine.DOCKER
        for later in ("nerdctl", "podman", "none"):
            assert 'come with "Hosts without docker"' in refusal(values.parse_engine, later).hint
        assert refusal(values.parse_engine, "Docker").hint == ""

    @pytest.mark.parametrize("text", ["yes", "YES", "true", "True", "on", "oN", "1"])
    def test_true(self, text: str) -> None:
        assert values.parse_boolean(text) is True

    @pytest.mark.parametrize("text", ["no", "No", "false", "FALSE", "off", "0"])
    def test_false(self, text: str) -> None:
        assert values.parse_boolean(text) is False

    @pytest.mark.parametrize("text", ["y", "n", "2", "none", "\uff10", "oﬀ", ""])
    def test_neither(self, text: str) -> None:
        refusal(values.parse_boolean, text)

    def test_platform(self) -> None:
        assert values.parse_platform("linux/amd64") is Platform.AMD64
        assert values.parse_platform("linux/arm64") is Platform.ARM64

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("linux/amd64,linux/arm64", "one platform per run"),
            ("aarch64", "write linux/arm64"),
            ("linux/arm64/v8", "write linux/arm64"),
            ("Linux/amd64", ""),
            ("linux/riscv64", ""),
        ],
    )
    def test_platform_refusals(self, text: str, hint: str) -> None:
        assert refusal(values.parse_platform, text).hint == hint

    def test_profile(self) -> None:
        for name in ("acl-linked", "acl-dlopened", "pre-weak", "needed", "as-needed"):
            assert values.parse_profile(name) == name
        assert "acl-linked, " in refusal(values.parse_profile, "Needed").message

    def test_every_profile_of_a_backend_is_accepted(self) -> None:
        for backend in BACKENDS:
            for name in profile_names(backend):
                assert values.parse_profile(name) == name


class TestPaths:
    def test_local(self) -> None:
        assert values.parse_local_path("a b/c") == Path("a b/c")
        assert values.parse_local_path("/x") == Path("/x")

    def test_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", "/home/me")
        assert values.parse_local_path("~/src//op") == Path("/home/me/src/op")
        assert values.parse_local_path("~") == Path("/home/me")
        assert values.parse_local_path("~//etc") == Path("/home/me/etc")
        assert values.parse_local_path("a/~") == Path("a/~")

    def test_a_user_without_home_has_the_root(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def nowhere() -> Path:
            raise RuntimeError

        monkeypatch.setattr(Path, "home", nowhere)
        assert values.parse_local_path("~/.ssh/config") == Path("/.ssh/config")

    def test_unknown_user(self) -> None:
        assert "no such home" in refusal(values.parse_local_path, "~no-such-user-here/x").hint

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ("/opt/vgpu", "/opt/vgpu"),
            ("/opt/my stage/", "/opt/my stage"),
            ("//opt//vgpu/./x", "/opt/vgpu/x"),
            ("/opt/a/../b", "/opt/b"),
            ("/数据", "/数据"),
            ("/a'b\"c$(id);`", "/a'b\"c$(id);`"),
            ("/" + "x" * 4094, "/" + "x" * 4094),
        ],
    )
    def test_staging_directory(self, text: str, path: str) -> None:
        assert values.parse_staging_directory(text) == path

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "/",
            "//",
            "/..",
            "/opt/..",
            "/.",
            "opt",
            "~/x",
            "./x",
            "/a\nb",
            "/a\0",
            "/a\tb",
            "/\udcff",
            "/a\u2028b",
        ],
    )
    def test_staging_directory_refusals(self, text: str) -> None:
        refusal(values.parse_staging_directory, text)

    def test_path_length_is_in_bytes(self) -> None:
        refusal(values.parse_staging_directory, "/" + "x" * 4095)
        refusal(values.parse_staging_directory, "/" + "数" * 1400)

    def test_a_stage_is_no_staging_directory(self) -> None:
        error = refusal(values.parse_staging_directory, "xbuild-nvidia-cuda-13")
        assert "a stage is named on the command line" in error.hint

    @pytest.mark.parametrize(
        ("text", "path"),
        [("~/.cache//x/", "~/.cache/x"), ("/var/ctx", "/var/ctx"), ("~/a/../b", "~/b"), ("//x", "/x")],
    )
    def test_remote_path(self, text: str, path: str) -> None:
        assert values.parse_remote_path(text) == path

    @pytest.mark.parametrize(
        "text", ["", "/", "~", "~/", "~/..", "~/../x", "~/a/../../x", "~root/x", "ctx", "..", "/x\n"]
    )
    def test_remote_path_refusals(self, text: str) -> None:
        refusal(values.parse_remote_path, text)

    @given(st.text(st.sampled_from("a/. ~"), max_size=12))
    @example("/..")
    def test_normalising_is_idempotent_and_absolute(self, text: str) -> None:
        try:
            path = values.parse_staging_directory(text)
        except BadValue:
            return
        assert path != "/"
        assert path.startswith("/")
        assert not {"", ".", ".."} & set(path[1:].split("/"))
        assert values.parse_staging_directory(path) == path


@pytest.mark.parametrize("name", ["gpustack", "desktop-linux", "a.b_c+d", "0", "B", "x" * 128])
def test_builder(name: str) -> None:
    assert values.parse_builder(name) == name


@pytest.mark.parametrize("name", ["", "-x", ".x", "_x", "a b", "a/b", "ß", "\uff11", "x" * 129, "a;b", "a\n"])
def test_builder_refusals(name: str) -> None:
    refusal(values.parse_builder, name)


class TestRegex:
    def test_compiled(self) -> None:
        assert values.parse_regex("^a+$").fullmatch("aa")

    @pytest.mark.parametrize("text", ["(", "*", "[a", "(?P<a>x)(?P<a>y)", "(?L)x", "a{4294967296}", ""])
    def test_refusals(self, text: str) -> None:
        refusal(values.parse_regex, text)

    def test_hint_is_the_reason(self) -> None:
        assert refusal(values.parse_regex, "a(").hint == "missing ), unterminated subpattern at position 1"

    def test_length(self) -> None:
        values.parse_regex("a" * 1000)
        refusal(values.parse_regex, "a" * 1001)

    @given(st.text(max_size=50))
    def test_escaped_text_matches_itself(self, text: str) -> None:
        if text:
            assert values.parse_regex(re.escape(text)).fullmatch(text)


class TestGlibc:
    @pytest.mark.parametrize(("text", "version"), [("2.34", (2, 34)), ("2.0", (2, 0)), ("2.2.5", (2, 2, 5))])
    def test_versions(self, text: str, version: tuple[int, ...]) -> None:
        assert values.parse_glibc(text) == version

    @pytest.mark.parametrize(
        "text", ["2", "2.", ".34", "3.1", "2.034", "2.34.1.1", "2.x", "2.1000", "02.3", "2.\uff13"]
    )
    def test_refusals(self, text: str) -> None:
        refusal(values.parse_glibc, text)

    def test_prefix(self) -> None:
        assert refusal(values.parse_glibc, "GLIBC_2.34").hint == "without GLIBC_"

    @given(st.lists(st.integers(0, 999), min_size=1, max_size=2))
    def test_round_trip_keeps_order(self, rest: list[int]) -> None:
        assert values.parse_glibc(".".join(map(str, [2, *rest]))) == (2, *rest)
