"""Typed values of the knobs, and the parsers that make them from text.

A parser takes what a user typed and returns a bounded value, or raises :class:`BadValue` (a
:class:`~xbtasks.errors.UsageError`, exit 2) whose message is one printable line. Nothing is
guessed: blanks around a value, other digits than ASCII, leading zeros, signs, hexadecimal and
underscores are refused. Cards are in :mod:`xbtasks.knobs.cards`, hosts and images in
:mod:`xbtasks.knobs.references`.
"""

from __future__ import annotations

import posixpath
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, NewType

from xbtasks.errors import UsageError

if TYPE_CHECKING:
    import re

    from xbtasks.backends.base import Platform

__all__ = [
    "BadValue",
    "Engine",
    "HostKeys",
    "Mib",
    "Mode",
    "Percent",
    "Seconds",
    "home_directory",
    "parse_boolean",
    "parse_builder",
    "parse_engine",
    "parse_glibc",
    "parse_host_keys",
    "parse_integer",
    "parse_local_path",
    "parse_mib",
    "parse_mode",
    "parse_percent",
    "parse_platform",
    "parse_profile",
    "parse_regex",
    "parse_remote_path",
    "parse_seconds",
    "parse_staging_directory",
    "shown",
]

Mib = NewType("Mib", int)
"""A whole number of MiB."""
Percent = NewType("Percent", int)
"""A share, 1 to 100."""
Seconds = NewType("Seconds", int)
"""A time in whole seconds."""

MAX_MIB: Final = 2**31 - 1  # the memory quota's range in npu_info.config
MAX_PATH: Final = 4095  # bytes; PATH_MAX without its NUL
MAX_REGEX: Final = 1000  # characters
SHOWN: Final = 60  # characters of a bad value that an error repeats


def shown(text: str) -> str:
    """Return ``text`` quoted for an error line: control characters escaped, long text cut."""
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


class BadValue(UsageError):
    """A text that no value can be made of; ``wanted`` completes "... is not"."""

    def __init__(self, text: str, wanted: str, *, hint: str = "") -> None:
        super().__init__(f"{shown(text)} is not {wanted}", hint=hint)


class Mode(StrEnum):
    """How the target host is reached."""

    LOCAL = "local"
    SSH = "ssh"


class HostKeys(StrEnum):
    """What to do with a host key that known_hosts doesn't have; a changed one always refuses."""

    STRICT = "strict"
    ACCEPT_NEW = "accept-new"


class Engine(StrEnum):
    """The container engine."""

    DOCKER = "docker"


def parse_mode(text: str) -> Mode:
    """Return the mode; case-sensitive, so that a slip never runs on the wrong machine."""
    if text in ("local", "ssh"):
        return Mode(text)
    hint = f"write {text.lower()}" if text.lower() in ("local", "ssh") else ""
    raise BadValue(text, "a mode (local or ssh)", hint=hint)


def parse_host_keys(text: str) -> HostKeys:
    """Return the host key policy."""
    if text in ("strict", "accept-new"):
        return HostKeys(text)
    hint = "host keys are always checked" if text.lower() in ("no", "off", "false", "none") else ""
    raise BadValue(text, "a host key policy (strict or accept-new)", hint=hint)


def parse_engine(text: str) -> Engine:
    """Return the container engine: docker, until hosts without it are supported."""
    if text == "docker":
        return Engine.DOCKER
    later = text in ("nerdctl", "podman", "none")
    hint = 'nerdctl, podman and none (in place) come with "Hosts without docker"' if later else ""
    raise BadValue(text, "a supported container engine (docker)", hint=hint)


def parse_boolean(text: str) -> bool:
    """Return the truth of yes/true/on/1 or no/false/off/0, in any case."""
    word = text.lower() if text.isascii() else ""
    if word in ("yes", "true", "on", "1"):
        return True
    if word in ("no", "false", "off", "0"):
        return False
    raise BadValue(text, "yes or no")


def parse_integer(text: str, low: int, high: int, *, wanted: str = "a whole number", hint: str = "") -> int:
    """Return a plain decimal integer from ``low`` to ``high``, both included.

    Only ASCII digits without sign or leading zeros are read; ``hint`` replaces the usual advice.
    """
    plain = text.isascii() and text.isdigit()
    if plain and (text == "0" or text[0] != "0") and len(text) <= len(str(high)) and low <= int(text) <= high:
        return int(text)
    if not hint:
        hint = _integer_hint(text, plain=plain)
    raise BadValue(text, f"{wanted}, {low} to {high}", hint=hint)


def _integer_hint(text: str, *, plain: bool) -> str:
    if plain:
        return "write it without leading zeros" if text[0] == "0" and text != "0" else ""
    if text != text.strip():
        return "remove the blanks around it"
    return "plain decimal digits only"


def parse_seconds(text: str, high: int) -> Seconds:
    """Return a deadline in whole seconds, 1 to ``high``."""
    return Seconds(parse_integer(text, 1, high, wanted="whole seconds"))


def parse_percent(text: str) -> Percent:
    """Return whole percent, 1 to 100."""
    return Percent(parse_integer(text, 1, 100, wanted="whole percent"))


def parse_mib(text: str) -> Mib:
    """Return a quota in whole MiB; there is no value for "unlimited"."""
    return Mib(parse_integer(text, 1, MAX_MIB, wanted="whole MiB", hint=_mib_hint(text)))


def _mib_hint(text: str) -> str:
    """Return advice: the number that ``text`` with a unit means, or one that shows the form."""
    if text.isascii() and text.removeprefix("-").isdigit() and (text[0] == "-" or not text.strip("0")):
        return "there is no unlimited"
    bare = text.rstrip("bBiI")
    factor = {"m": 1, "g": 1024, "t": 1024**2}.get(bare[-1:].lower(), 0)
    number = bare[:-1].strip()
    plain = number.isascii() and number.isdigit() and len(number) <= len(str(MAX_MIB))
    mib = int(number) * factor if plain else 0
    return f"write {mib}" if 1 <= mib <= MAX_MIB else "such as 4096"


def parse_platform(text: str) -> Platform:
    """Return the one platform to build for."""
    from xbtasks.backends.base import Platform

    if text in ("linux/amd64", "linux/arm64"):
        return Platform(text)
    if "," in text:
        hint = "one platform per run"
    else:
        meant = Platform.from_machine(text.removeprefix("linux/").removesuffix("/v8"))
        hint = f"write {meant.value}" if meant else ""
    raise BadValue(text, "a platform (linux/amd64 or linux/arm64)", hint=hint)


def home_directory() -> Path:
    """Return the user's home, or ``/`` for a user who has none, as login does."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


def parse_local_path(text: str) -> Path:
    """Return a path on this machine, with ``~`` and ``~user`` replaced by the home directory."""
    wanted = "a path"
    _check_path(text, wanted)
    first, _, rest = text.partition("/")
    if first == "~":
        return home_directory() / rest.lstrip("/")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise BadValue(text, wanted, hint="there is no such home directory") from None


def parse_staging_directory(text: str) -> str:
    """Return the staging directory: absolute, normalised, not the root directory."""
    wanted = "an absolute path below /"
    _check_path(text, wanted)
    path = _normal(text)
    if not path.startswith("/") or path == "/":
        is_stage = text.startswith("xbuild-")
        hint = "this is the staging directory; a stage is named on the command line" if is_stage else ""
        raise BadValue(text, wanted, hint=hint)
    return path


def parse_remote_path(text: str) -> str:
    """Return a directory on the host: absolute, or ``~/…`` below the home there; normalised."""
    wanted = "an absolute path or one under ~/"
    _check_path(text, wanted)
    path = _normal(text)
    if path == "/" or not path.startswith(("/", "~/")):
        raise BadValue(text, wanted)
    return path


def _check_path(text: str, wanted: str) -> None:
    if not text.isprintable():
        raise BadValue(
            text, wanted, hint="control characters, line ends and other invisible ones are refused"
        )
    if not text or len(text.encode()) > MAX_PATH:
        raise BadValue(text, f"{wanted} of 1 to {MAX_PATH} bytes")


def _normal(path: str) -> str:
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal


def parse_builder(text: str) -> str:
    """Return a buildx builder or docker context name, which never looks like an option."""
    allowed = text.isascii() and all(char.isalnum() or char in "._+-" for char in text)
    if not (allowed and text[:1].isalnum() and len(text) <= 128):
        raise BadValue(text, "a builder name")
    return text


def parse_regex(text: str) -> re.Pattern[str]:
    """Return a compiled regular expression."""
    import re
    import warnings

    if not 1 <= len(text) <= MAX_REGEX:
        raise BadValue(text, f"a regular expression of 1 to {MAX_REGEX} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a future Python's syntax; the pattern works in this one
            return re.compile(text)
    except (re.error, OverflowError, RecursionError, ValueError) as error:
        raise BadValue(text, "a regular expression", hint=shown(str(error))[1:-1]) from None


def parse_glibc(text: str) -> tuple[int, ...]:
    """Return a glibc version as numbers: ``2.34`` is (2, 34), ``2.2.5`` is (2, 2, 5)."""
    wanted = "a glibc version like 2.34"
    parts = text.split(".") if len(text) <= SHOWN else []
    if len(parts) not in (2, 3) or parts[0] != "2":
        hint = "without GLIBC_" if text.upper().startswith("GLIBC_") else ""
        raise BadValue(text, wanted, hint=hint)
    try:
        return tuple(parse_integer(part, 0, 999) for part in parts)
    except BadValue:
        raise BadValue(text, wanted) from None


def parse_profile(text: str) -> str:
    """Return the name of a profile that some backend knows."""
    from xbtasks.backends import BACKENDS
    from xbtasks.backends.profiles import profile_names

    names = [name for backend in BACKENDS for name in profile_names(backend)]
    if text in names:
        return text
    raise BadValue(text, f"a profile ({', '.join(names)})")
