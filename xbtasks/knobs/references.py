"""Names of other machines' things: ssh destinations and image references."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xbtasks.knobs.values import BadValue, parse_integer

__all__ = ["HostSpec", "ImageReference", "parse_host", "parse_image_reference", "parse_image_tag"]

_LETTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_HOST_CHARS: Final = _LETTERS | frozenset(".-")
_USER_CHARS: Final = _LETTERS | frozenset(".-+@\\")
_HEX: Final = frozenset("0123456789abcdef")
_MAX_USER: Final = 64
_MAX_HOST: Final = 253
_MAX_NAME: Final = 255
_DIGEST_DIGITS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}


@dataclass(frozen=True)
class HostSpec:
    """A target host: an address or ssh_config alias, and what was said about user and port.

    None leaves the user or port to ssh_config. ``host`` of an IPv6 address has no brackets.
    """

    host: str
    user: str | None = None
    port: int | None = None

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = f":{self.port}" if self.port else ""
        return f"{user}{host}{port}"


def parse_host(text: str) -> HostSpec:
    """Return the host of ``[user@]host[:port]``.

    Users and hosts are limited to characters that mean nothing to a shell, because ssh pastes them
    into ProxyCommand lines, and never begin with ``-``, which would make them options.

    Raises:
        BadValue: it is none, with what is wrong.
    """
    wanted = "a host (user@host[:port] or an ssh_config alias)"
    if "://" in text:
        raise BadValue(text, wanted, hint="without a scheme like ssh://")
    user, at, place = text.rpartition("@")
    if at and not _is_user(user):
        raise BadValue(text, wanted, hint="the user is empty or has characters that are refused")
    if place.startswith("["):
        host, bracket, rest = place[1:].partition("]")
        valid = bool(bracket) and _is_ipv6(host)
    else:
        host, colon, port = place.partition(":")
        rest = colon + port
        if ":" in port:
            raise BadValue(text, wanted, hint="IPv6 addresses stand in brackets: [fe80::1]:22")
        valid = _is_host(host)
    if not valid:
        raise BadValue(
            text,
            wanted,
            hint="it must not begin with '-'" if place.startswith("-") or text.startswith("-") else "",
        )
    if not rest:
        return HostSpec(host, user or None)
    if not rest.startswith(":"):
        raise BadValue(text, wanted, hint="after the bracket only :port may follow")
    try:
        return HostSpec(host, user or None, parse_integer(rest[1:], 1, 65535, wanted="a port"))
    except BadValue:
        raise BadValue(text, wanted, hint="the port is a number, 1 to 65535") from None


def _is_user(text: str) -> bool:
    fits = 1 <= len(text) <= _MAX_USER and _USER_CHARS.issuperset(text)
    return fits and text[0] in _LETTERS and text[-1] not in "\\@"


def _is_host(text: str) -> bool:
    return 1 <= len(text) <= _MAX_HOST and _HOST_CHARS.issuperset(text) and text[0] in _LETTERS


def _is_ipv6(text: str) -> bool:
    import ipaddress

    address, percent, zone = text.partition("%")
    if percent and not _is_host(zone):
        return False
    try:
        ipaddress.IPv6Address(address)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class ImageReference:
    """A name of an image, in docker's grammar: ``name[:tag][@digest]``, "" where absent."""

    name: str
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return self.name + (f":{self.tag}" if self.tag else "") + (f"@{self.digest}" if self.digest else "")


def parse_image_reference(text: str) -> ImageReference:
    """Return the image reference that ``text`` is.

    Raises:
        BadValue: docker would not read it as one.
    """
    rest, at, digest = text.partition("@")
    head, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:  # a colon before a slash begins a registry's port
        head, colon, tag = rest, "", ""
    wanted = "an image reference ([registry/]name[:tag][@digest])"
    if not _is_image_name(head):
        lower = head.lower()
        hint = "names of images are lower-case" if lower != head and _is_image_name(lower) else ""
        raise BadValue(text, wanted, hint=hint)
    if colon and not _is_tag(tag):
        raise BadValue(text, wanted, hint="the tag is empty or not valid")
    if at and not _is_digest(digest):
        raise BadValue(text, wanted, hint="the digest is not valid")
    return ImageReference(head, tag, digest)


def parse_image_tag(text: str) -> ImageReference:
    """Return a reference that a built image can be given: one without a digest.

    Raises:
        BadValue: it is none.
    """
    reference = parse_image_reference(text)
    if reference.digest:
        raise BadValue(text, "a tag for a built image", hint="a digest can't be chosen")
    return reference


def _is_image_name(text: str) -> bool:
    if not 1 <= len(text) <= _MAX_NAME or not text.isascii():
        return False
    first, *path = text.split("/")
    if not all(_is_component(part) for part in path):
        return False
    if not _is_component(first):
        return bool(path) and _is_domain(first)
    bare_id = len(text) == 64 and _HEX.issuperset(text)  # docker reads it as an image id
    return not bare_id


def _is_domain(text: str) -> bool:
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        if not bracket or not _is_ipv6(host) or "%" in host:
            return False
        return not port or (port[0] == ":" and port[1:].isdigit())
    host, colon, port = text.partition(":")
    if colon and not port.isdigit():
        return False
    return all(
        part.replace("-", "").isalnum() and part[0] != "-" and part[-1] != "-" for part in host.split(".")
    )


def _is_component(text: str) -> bool:
    """Whether ``text`` is runs of ``[a-z0-9]`` joined by ``.``, ``_``, ``__`` or dashes."""
    separator = ""
    for char in text:
        if char in "._-":
            separator += char
            continue
        joined = separator in ("", ".", "_", "__") or not separator.strip("-")
        if not joined or not (char.isdigit() or "a" <= char <= "z"):
            return False
        separator = ""
    return bool(text) and not separator and text[0] not in "._-"


def _is_tag(text: str) -> bool:
    return 1 <= len(text) <= 128 and _HOST_CHARS.issuperset(text) and text[0] in _LETTERS


def _is_digest(text: str) -> bool:
    algorithm, _, digits = text.partition(":")
    return len(digits) == _DIGEST_DIGITS.get(algorithm, -1) and _HEX.issuperset(digits)
