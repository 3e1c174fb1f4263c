"""Shell completion: tasks, flags, and the values that are known without a look at a host.

Invoke completes names alone, and asks its parser, which ends the program at a wrong word. Here the words are
walked through without it. Whatever goes wrong, nothing is said: a shell would print it into the command line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from invoke import program
from invoke.exceptions import Exit

from xbtasks.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from invoke.parser.context import ParserContext

__all__ = ["candidates", "install", "names_of"]

_SCRIPTS: Final = Path(__file__).with_name("shells")
_LISTS: Final = ("stages", "cases", "hosts")
_HARMLESS: Final = re.compile(r"[\w./@:+=,-]+\Z", re.ASCII)
"""What a candidate is made of. bash expands what Invoke's script hands it, `$(…)` too."""


def install() -> None:
    """Make Invoke complete as this module says; safe to call twice."""
    program.complete = _complete  # type: ignore[attr-defined]
    program.print_completion_script = _print_script  # type: ignore[attr-defined]


def _complete(names: Any, core: Any, initial_context: Any, collection: Any, parser: Any) -> NoReturn:
    del names, collection
    words = str(core.remainder).split(" ")
    for each in candidates(words, names_of(parser.contexts.values()), initial_context):
        print(each)
    raise Exit


def names_of(contexts: Iterable[ParserContext]) -> dict[str, ParserContext]:
    """Return tasks by what may be typed for them: a collection's own name stands for its default task."""
    return {str(name): each for each in contexts for name in (each.name, *each.aliases)}


def _print_script(shell: str, names: Sequence[str]) -> None:
    script = _SCRIPTS / f"completion.{shell}"
    if shell not in ("bash", "zsh", "fish"):
        raise Exit(f"error: no completion for {shell!a}; there is bash, zsh and fish", code=ExitCode.USAGE)
    print(script.read_text().format(binary=names[0]), end="")


@dataclass(frozen=True)
class _Place:
    """Where on the command line something is completed: the task, and the flag or positional, if any."""

    task: ParserContext | None
    argument: str
    given: Mapping[str, str]


def candidates(
    words: Sequence[str], tasks: Mapping[str, ParserContext], core: ParserContext
) -> tuple[str, ...]:
    """Return what the last of ``words`` may become; the first is the program. Nothing: files, for the shell.

    Invoke's own scripts drop an empty last word: a whole name may be followed by nothing, or by a blank.
    """
    *before, last = words[1:] or [""]
    flag, equals, _ = last.partition("=")
    if last == "=" and before:  # bash cuts at it
        before, last = [*before, "="], ""
    place, known = _walk(before, tasks, core)
    if place.argument and place.argument.startswith("-"):
        return _harmless(_listed(known[place.argument], last, _values(place, known[place.argument])))
    if last in known and place.task and place.task.flags[last].takes_value:
        found = _values(place, known[last])
        return _harmless((last, *found)) if found else ()
    if last.startswith("-"):
        if equals and flag in known:
            values = _listed(known[flag], last.partition("=")[2], _values(place, known[flag]))
            return _harmless(f"{flag}={value}" for value in values)
        return _harmless(name for name in known if name.startswith("--"))
    found = _values(place, place.argument) if place.argument else ()
    if any(value.startswith(last) for value in found):
        return _harmless(found)
    if last in tasks:
        place = _Place(tasks[last], next(iter(_positionals(tasks[last])), ""), {})
        return _harmless((*tasks, *(_values(place, place.argument) if place.argument else ())))
    return _harmless(name for name in tasks if name.startswith(last))


def _walk(
    words: Sequence[str], tasks: Mapping[str, ParserContext], core: ParserContext
) -> tuple[_Place, dict[str, str]]:
    """Return where the words lead, and the flags that may stand there with their arguments' names."""
    task: ParserContext | None = None
    positionals: list[str] = []
    waiting = ""
    given: dict[str, str] = {}
    for word in words:
        flags = _flags(task or core)
        flag, equals, value = word.partition("=")
        if word == "=":
            continue
        if waiting:
            given[flags[waiting].replace("-", "_")] = word
            waiting = ""
        elif word.startswith("-"):
            argument: Any = (task or core).flags.get(flag)
            if equals:
                given[flags.get(flag, flag).replace("-", "_")] = value
            elif argument is not None and argument.takes_value and not argument.optional:
                waiting = flag
        elif word in tasks:
            task, given = tasks[word], {}
            positionals = _positionals(task)
        elif positionals:
            given[positionals.pop(0)] = word
    return _Place(task, waiting or next(iter(positionals), ""), given), _flags(task or core)


def _flags(context: ParserContext) -> dict[str, str]:
    return {str(flag): str(argument.name) for flag, argument in context.flags.items()}


def _positionals(task: ParserContext) -> list[str]:
    return [str(each.name) for each in task.positional_args]


def _values(place: _Place, argument: str) -> tuple[str, ...]:
    """Return the values of an argument that are known at once; nothing on trouble."""
    from xbtasks.tasks.suggestions import suggest

    task = str(place.task.name) if place.task else ""
    try:
        return tuple(suggest(task, argument.replace("-", "_"), place.given))
    except Exception:  # noqa: BLE001 - a completion never fails and never talks
        return ()


def _listed(argument: str, last: str, values: Sequence[str]) -> Sequence[str]:
    """Return what continues ``last`` where an argument takes several values, with commas between."""
    before, comma, _ = last.rpartition(",")
    if not comma or argument not in _LISTS:
        return values
    return [f"{before},{value}" for value in values if value not in before.split(",")]


def _harmless(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if _HARMLESS.match(name)))
