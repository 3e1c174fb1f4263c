"""The data files beside the code (``profiles.json``, ``checks.toml``) as values: whole, or an error.

The form of a file is a ``TypedDict``. What it holds may be texts, whole numbers, enumerations, lists,
mappings and further forms, each of them also ``None`` where the form says so. Keys that the form doesn't
know are errors too: a key that is misspelled would else be one that is left out.
"""

from __future__ import annotations

import json
import tomllib
from enum import StrEnum
from importlib.resources import files
from types import UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from xbtasks.errors import UsageError

__all__ = ["read"]

_T = TypeVar("_T")
_PLAIN: Final = {str: "a text", int: "a whole number", list: "a list", dict: "a table"}


class _Odd(Exception):
    """What a file holds has another form; the text says where in it and what was accepted."""


def read(package: str, name: str, form: type[_T]) -> _T:
    """Return what the file ``name`` of ``package`` holds, in the form of the ``TypedDict`` ``form``.

    Raises:
        UsageError: it isn't there, or isn't JSON or TOML (as its name says) of that form.
    """
    file = f"{package.replace('.', '/')}/{name}"
    try:
        text = files(package).joinpath(name).read_text("utf-8")
        value = tomllib.loads(text) if name.endswith(".toml") else json.loads(text)
        found: _T = _form_of(value, form, "")
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{file} can't be parsed: {error}") from error
    except _Odd as odd:
        raise UsageError(f"{file}: {odd}") from odd
    return found


def _form_of(value: object, form: Any, where: str) -> Any:
    if isinstance(form, UnionType):
        (some,) = (each for each in get_args(form) if each is not type(None))
        return None if value is None else _form_of(value, some, where)
    if is_typeddict(form):
        return _table(value, form, where)
    if issubclass(plain := get_origin(form) or form, StrEnum):
        if value not in list(plain):
            raise _Odd(f"{where} is {value!r}, not one of {', '.join(plain)}")
        return plain(value)
    _must_be(value, plain, where)
    if isinstance(value, list):
        (item,) = get_args(form)
        return [_form_of(each, item, _place(where, _entry(at, each))) for at, each in enumerate(value, 1)]
    if isinstance(value, dict):
        _, item = get_args(form)
        return {key: _form_of(each, item, _place(where, key)) for key, each in value.items()}
    return value


def _table(value: object, form: Any, where: str) -> dict[str, object]:
    table = _must_be(value, dict, where)
    known = get_type_hints(form)
    keys = ", ".join(known)
    for key in table:
        if key not in known:
            raise _Odd(f"{_place(where, repr(key))} is not a key here, which are {keys}")
    for key in known:
        if key in form.__required_keys__ and key not in table:
            raise _Odd(f"{_place(where, key)} is missing")
    return {key: _form_of(each, known[key], _place(where, key)) for key, each in table.items()}


def _must_be(value: object, plain: type[_T], where: str) -> _T:
    if type(value) is not plain:  # true is no whole number
        raise _Odd(f"{where or 'the whole'} is {value!r}, not {_PLAIN[plain]}")
    return value


def _place(where: str, key: str) -> str:
    return f"{where}: {key}" if where else key


def _entry(at: int, value: object) -> str:
    """Name an entry of a list: by its name, where it has one."""
    name = value.get("name") if isinstance(value, dict) else None
    return f"{at} ({name})" if isinstance(name, str) else str(at)
