from __future__ import annotations

import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xbtasks.knobs.references import (
    HostSpec,
    ImageReference,
    parse_host,
    parse_image_reference,
    parse_image_tag,
)
from xbtasks.knobs.values import BadValue

HEX = "0123456789abcdef" * 4

NAMES = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,30}", fullmatch=True)
HOSTS = st.builds(
    HostSpec,
    NAMES | st.ip_addresses(v=4).map(str) | st.ip_addresses(v=6).map(str) | st.just("fe80::1%eth0"),
    st.none() | st.from_regex(r"[A-Za-z_][A-Za-z0-9_.@+\\-]{0,20}[a-z0-9]", fullmatch=True),
    st.none() | st.integers(1, 65535),
)


class TestHost:
    @given(HOSTS)
    def test_round_trip(self, host: HostSpec) -> None:
        assert parse_host(str(host)) == host

    @pytest.mark.parametrize(
        ("text", "host"),
        [
            ("npu-1", HostSpec("npu-1")),
            ("root@npu-1", HostSpec("npu-1", "root")),
            ("root@10.0.0.1:2222", HostSpec("10.0.0.1", "root", 2222)),
            ("h:1", HostSpec("h", None, 1)),
            ("h:65535", HostSpec("h", None, 65535)),
            ("root@[fe80::1%eth0]:22", HostSpec("fe80::1%eth0", "root", 22)),
            ("[::1]", HostSpec("::1")),
            ("me@corp.example@npu-1", HostSpec("npu-1", "me@corp.example")),
            (r"CORP\me@npu-1", HostSpec("npu-1", r"CORP\me")),
            ("x_y.z-1", HostSpec("x_y.z-1")),
            ("u@h", HostSpec("h", "u")),
            ("u" * 64 + "@h", HostSpec("h", "u" * 64)),
            ("h" * 253, HostSpec("h" * 253)),
        ],
    )
    def test_accepted(self, text: str, host: HostSpec) -> None:
        assert parse_host(text) == host

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "-oProxyCommand=id",
            "-h",
            "root@-h",
            "-l@h",
            "@h",
            "root@",
            "h:",
            "h:0",
            "h:65536",
            "h:022",
            "h:x",
            "h:22:22",
            "fe80::1",
            "root@fe80::1",
            "[fe80::1",
            "[h]",
            "[::1]22",
            "[::1%]",
            "[::1%a b]",
            "[]",
            "ssh://root@h",
            "root@h/path",
            "h h",
            " h",
            "h\n",
            "root@h;id",
            "$(id)@h",
            "`id`",
            "h|x",
            "a'b@h",
            "root\\@h",
            ".h",
            "\uff11",
            "\uff48",
            "h\u00a0",
            "a" * 254,
            "u" * 65 + "@h",
            "h,i",
            "u:p@h",
        ],
    )
    def test_refused(self, text: str) -> None:
        with pytest.raises(BadValue):
            parse_host(text)

    @pytest.mark.parametrize(
        ("text", "hint"),
        [
            ("ssh://h", "without a scheme"),
            ("fe80::1", "in brackets"),
            ("-h", "begin with '-'"),
            ("root@-h", "begin with '-'"),
            ("h:99999", "1 to 65535"),
            ("@h", "the user"),
            ("[::1]x", ":port"),
        ],
    )
    def test_hints(self, text: str, hint: str) -> None:
        with pytest.raises(BadValue) as caught:
            parse_host(text)
        assert hint in caught.value.hint

    @pytest.mark.parametrize("char", [chr(code) for code in range(256)], ids=ascii)
    def test_every_character(self, char: str) -> None:
        safe = string.ascii_letters + string.digits + "_.-"
        texts = {f"a{char}b": safe + "@", f"a{char}b@h": safe + "+@\\"}
        for text, allowed in texts.items():
            if char in allowed:
                parse_host(text)
            else:
                with pytest.raises(BadValue):
                    parse_host(text)

    @given(st.text(st.characters(exclude_categories=())) | st.text(st.characters(max_codepoint=127)))
    def test_nothing_that_a_shell_or_ssh_obeys_gets_through(self, text: str) -> None:
        try:
            host = parse_host(text)
        except BadValue:
            return
        for part in (host.user or "u", host.host):
            assert part[0] != "-"
            assert not set(part) & set(" \t\r\n'\"`$;&|<>(){}*?!#/=")
        assert str(host) == text or ":" in host.host


# docker's grammar, as regular expressions: the oracle for the hand-written reader
PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
DOMAIN = rf"(?:{LABEL}(?:\.{LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
ORACLE = re.compile(
    rf"(?P<name>(?:{DOMAIN}/)?{PART}(?:/{PART})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>[a-z0-9]+:[0-9a-f]+))?"
)


def docker_reads(text: str) -> tuple[str, str] | None:
    """Return name and tag as docker's reference package would, for texts without a digest."""
    match = ORACLE.fullmatch(text)
    if match is None or match["digest"] or len(match["name"]) > 255:
        return None
    first, slash, rest = match["name"].partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        rest = match["name"]
    if re.search("[A-Z]", rest) or (rest == match["name"] and re.fullmatch("[0-9a-f]{64}", rest)):
        return None
    return match["name"], match["tag"] or ""


class TestImage:
    @settings(max_examples=400)
    @given(
        st.from_regex(ORACLE, fullmatch=True)
        | st.text(st.sampled_from("aA0._-:/"), max_size=16)
        | st.from_regex(rf"\A{DOMAIN}/a\Z", fullmatch=True)
    )
    @example("localhost/a:b")
    @example("localhost:5000")
    @example("a.b/c")
    @example("A/b")
    @example("a:b/c")
    @example("a---b__c.d_e")
    @example("a___b")
    @example("a..b")
    @example("a_-b")
    @example("a/b/")
    @example("a:")
    @example("a:5000/b:c")
    @example("-a.b/c")
    @example("a-.b/c")
    @example("a.:1/c")
    @example("a.b:/c")
    @example(HEX)
    @example("a:" + "t" * 128)
    @example("a:" + "t" * 129)
    @example("a" * 255)
    @example("a" * 256)
    @example("a:-b")
    @example("a:.b")
    def test_reads_as_docker_does(self, text: str) -> None:
        if "@" in text or "[" in text:
            return
        try:
            reference = parse_image_reference(text)
        except BadValue:
            assert docker_reads(text) is None
        else:
            assert docker_reads(text) == (reference.name, reference.tag)
            assert str(reference) == text

    @pytest.mark.parametrize(
        ("text", "reference"),
        [
            ("vgpu-build:cuda-13", ImageReference("vgpu-build", "cuda-13")),
            ("registry.example:5000/a/b", ImageReference("registry.example:5000/a/b")),
            (f"a:b@sha256:{HEX}", ImageReference("a", "b", f"sha256:{HEX}")),
            (f"a@sha512:{HEX}{HEX}", ImageReference("a", "", f"sha512:{HEX}{HEX}")),
            (f"a@sha384:{HEX}{HEX[:32]}", ImageReference("a", "", f"sha384:{HEX}{HEX[:32]}")),
            (f"sha256:{HEX}", ImageReference("sha256", HEX)),
            ("[::1]:5000/a:b", ImageReference("[::1]:5000/a", "b")),
            ("[::1]/a", ImageReference("[::1]/a")),
        ],
    )
    def test_accepted(self, text: str, reference: ImageReference) -> None:
        assert parse_image_reference(text) == reference
        assert str(reference) == text

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "vgpu-build:",
            ":x",
            "a@",
            "a@sha256:00",
            f"a@sha256:{HEX.upper()}",
            f"a@md5:{HEX[:32]}",
            f"a@sha256:{HEX}@sha256:{HEX}",
            "a b",
            "a;id",
            "--privileged",
            "-v",
            "a\n",
            "ä",
            "a:ä",
            "\uff11",
            "[::1/a",
            "[::1%eth0]/a",
            "[::1]5000/a",
            "[::1]:x/a",
            "[::1]:x5/a",
            f"a@sha256:{HEX}0",
            f"a@sha256:{HEX[:-1]}g",
            "a:b:c",
            "a:\uff11",
        ],
    )
    def test_refused(self, text: str) -> None:
        with pytest.raises(BadValue):
            parse_image_reference(text)

    def test_upper_case_hint(self) -> None:
        with pytest.raises(BadValue) as caught:
            parse_image_reference("Vgpu:1")
        assert "lower-case" in caught.value.hint
        with pytest.raises(BadValue) as caught:
            parse_image_reference("A b")
        assert caught.value.hint == ""

    def test_a_built_image_has_no_digest(self) -> None:
        assert parse_image_tag("a:b") == ImageReference("a", "b")
        with pytest.raises(BadValue) as caught:
            parse_image_tag(f"a@sha256:{HEX}")
        assert "digest" in caught.value.hint
