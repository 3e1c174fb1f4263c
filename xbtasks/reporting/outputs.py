"""Writes a result in the forms that were asked for; a form is a module here with ``render(result)``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import UsageError, XbError, reason_of
from xbtasks.files import require_writable, write_atomically

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xbtasks.result import Result

__all__ = ["append_step_summary", "check_outputs", "write_outputs"]

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_SUMMARY_LIMIT: Final = 1024 * 1024
"""Bytes that GitHub takes of one step's summary; what is longer it drops whole."""


def check_outputs(wanted: Mapping[str, str]) -> None:
    """Return when every file of ``wanted`` (by form) can be expected to be written.

    Raises:
        UsageError: one can't, or two forms name one file.
    """
    taken: dict[Path, str] = {}
    for form, name in wanted.items():
        require_writable(name)
        path = Path(name).resolve()
        first = taken.setdefault(path, form)
        if first != form and (path.is_file() or not path.exists()):
            raise UsageError(f"--{first} and --{form} name one file, {name}")


def write_outputs(result: Result, wanted: Mapping[str, str]) -> tuple[XbError, ...]:
    """Write ``result`` into each file of ``wanted`` (by form) and return what kept any from being written."""
    problems: list[XbError] = []
    for form, name in wanted.items():
        try:
            write_atomically(name, _render(form, result))
        except XbError as error:
            problems.append(error)
        except Exception as error:  # noqa: BLE001 - a form that fails must not take the others with it
            problems.append(XbError(f"--{form} {name}: internal error, please report it: {error!r}"))
    return tuple(problems)


def append_step_summary(result: Result, environment: Mapping[str, str]) -> str:
    """Append the Markdown form to the job summary of GitHub Actions, where the environment names one.

    It is a courtesy and never fails a run: what went wrong is returned, as a line.
    """
    name = environment.get(STEP_SUMMARY, "")
    if not name:
        return ""
    from xbtasks.reporting import markdown

    try:
        target = Path(name)
        room = _SUMMARY_LIMIT - (target.stat().st_size if target.exists() else 0)
        text = markdown.render(result, room=room)
        if not text:
            return f"{STEP_SUMMARY}: the summary is full, this run is not in it"
        with target.open("ab") as stream:
            stream.write(text.encode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        return f"{STEP_SUMMARY}: {name!a} can't be written: {reason_of(error)}"
    return ""


def _render(form: str, result: Result) -> str:
    text: str = import_module(f"xbtasks.reporting.{form}").render(result)
    return text
