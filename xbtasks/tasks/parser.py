"""Invoke's command line parser with optional positionals, and exit 2 for wrong arguments.

Invoke 2.2 has no optional positional: it insists on all of them, and lets a missing one swallow the
next task or flag. It also takes the last of a repeated flag's values for something else, forgets that a
value stood behind ``=``, and exits 1.
The lines below change that for stock ``inv`` and for ``xb`` alike. This is the only module that reaches
into Invoke's parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from invoke.exceptions import Exit, ParseError
from invoke.parser import parser
from invoke.program import Program
from invoke.vendor.lexicon import Lexicon

from xbtasks import streams
from xbtasks.errors import ExitCode
from xbtasks.nearest import nearest
from xbtasks.typed import note_options

if TYPE_CHECKING:
    from collections.abc import Iterable

    from invoke.parser.context import ParserContext

__all__ = ["install"]


_ASKING: Final = frozenset({"explain"})
"""Tasks whose positional may be the name of a task: they tell about it."""


_FEW: Final = 3
"""How many tasks a hint names at most."""


class _Value(str):
    """What stood behind the ``=`` of a flag: its value, whatever it looks like."""

    __slots__ = ()


class _Word(str):
    """A word of the command line that Invoke splits at its ``=``."""

    __slots__ = ()

    def partition(self, separator: str, /) -> tuple[str, str, str]:
        head, found, tail = super().partition(separator)
        return head, found, _Value(tail)


class _Machine(parser.ParseMachine):
    """A parse machine for which every positional is optional."""

    def __init__(self, initial: ParserContext, contexts: Lexicon, ignore_unknown: bool) -> None:  # noqa: FBT001
        # The base copies every flag of every task here, and a task's again when it is named. Once will do.
        super().__init__(initial, Lexicon(), ignore_unknown)  # type: ignore[no-untyped-call]
        self.contexts = contexts

    def handle(self, token: str) -> None:
        if isinstance(token, _Value) and self.current_state != "unknown":
            self._strictly(self._take_value, token)
            return
        flag: Any = self.flag
        if flag and flag.optional and self.waiting_for_flag_value and token in self.contexts:
            self.see_context(token)  # the next task, not the flag's value
            return
        missing = bool(self.context.missing_positional_args)
        if missing and self.context.name in _ASKING and not token.startswith("-"):
            self._strictly(super().handle, token)
            return
        taken = self.waiting_for_flag_value and token not in self.context.flags
        if not missing or taken or not (token in self.contexts or token.startswith("-")):
            self._strictly(super().handle, token)
            return
        # A task's name or a flag is never the value of a positional.
        positionals, self.context.positional_args = self.context.positional_args, []
        context = self.context
        try:
            self._strictly(super().handle, token)
        finally:
            context.positional_args = positionals

    def _take_value(self, value: str) -> None:
        flag: Any = self.flag
        if not self.waiting_for_flag_value:
            self.error(f"{_spelt(flag)} takes no value")
        flag.value = value
        self.flag_got_value = True

    def complete_flag(self) -> None:
        flag = self.flag
        if flag and flag.takes_value and flag.raw_value is None and not flag.optional:
            self.error(f"{_spelt(flag)} needs a value")
        super().complete_flag()

    def complete_context(self) -> None:
        if self.context not in self.result:
            self.result.append(self.context)

    def switch_to_flag(self, flag: str, inverse: bool = False) -> None:  # noqa: FBT001, FBT002 - Invoke's
        known = self.context.flags.get(flag)
        if known is not None and known.takes_value and known.kind is not list and known.raw_value is not None:
            self.error(f"{flag} is given twice")
        super().switch_to_flag(flag, inverse=inverse)

    def error(self, msg: str) -> NoReturn:
        word = msg.removeprefix("No idea what '").removesuffix("' is!")
        if word == msg:
            raise Exit(f"error: {msg}", code=ExitCode.USAGE)
        if not word.startswith("-"):
            raise _no_task(word, self.contexts)
        near = nearest(word, [str(name) for name in self.context.flags])
        hint = f"did you mean {' or '.join(near)}?" if near else "--help behind a task shows what there is"
        having = [str(name) for name, task in self.contexts.items() if word in task.flags]
        if len(having) > _FEW:  # of its own kind then: a case has what other cases have
            having = [name for name in having if ("." in name) == ("." in str(self.context.name))]
        if having and len(having) <= _FEW and self.context.name:
            hint = f"it is a flag of {' and '.join(having)}"
        kind = f"a flag of {self.context.name or 'the command'}"
        raise Exit(f"error: {word!r} is not {kind}\n  {hint}", code=ExitCode.USAGE)

    def _strictly(self, action: Any, token: str) -> None:
        try:
            action(token)
        except ParseError as error:
            raise Exit(f"error: {error}; write a file as --json=FILE", code=ExitCode.USAGE) from error
        except ValueError as error:
            raise Exit(f"error: {token!r}: {error}", code=ExitCode.USAGE) from error


# The state machine library collects states per class and gives a subclass none of its base's.
_Machine._class_states = parser.ParseMachine._class_states  # noqa: SLF001
_Machine._class_transitions = parser.ParseMachine._class_transitions  # noqa: SLF001


def _spelt(flag: Any) -> str:
    return f"--{flag.name.strip('_').replace('_', '-')}"


def _no_task(word: str, tasks: Iterable[str]) -> Exit:
    """Return the error for a word that is no task, with what may have been meant."""
    known = [str(name) for name in tasks]
    near = nearest(word, known)
    hint = f"did you mean {' or '.join(near)}?" if near else "--list shows what there is"
    if word.startswith("xbuild-"):
        hint = "a task takes one STAGE; matrix --stages takes several, with commas between"
    return Exit(f"error: {word!r} is not a task\n  {hint}", code=ExitCode.USAGE)


_BEFORE_TASKS: Final = (("-f", "config"), ("-r", "search-root"), ("-c", "collection"))
"""Invoke's options that decide which tasks are found, and with which knobs."""
_LIST_FORMATS: Final = ("flat", "nested", "json")
_invokes_own: Final = parser.Parser.parse_argv
_invokes_cleanup: Final = Program.parse_cleanup


def _parse_cleanup(self: Program) -> None:
    """Do what Invoke's own help and list options ask for; a wrong word of theirs is wrong usage."""
    streams.install()
    before = [(flag, self.args[name].value) for flag, name in _BEFORE_TASKS if name in self.args]
    note_options([word for flag, value in before if value for word in (flag, str(value))])
    form = str(self.args["list-format"].value)
    if form not in _LIST_FORMATS:
        accepted = ", ".join(_LIST_FORMATS)
        raise Exit(f"error: --list-format {form!r}: {accepted} are accepted", code=ExitCode.USAGE)
    try:
        _invokes_cleanup(self)
    except ParseError as error:
        raise _no_task(str(self.args.help.value), self.parser.contexts) from error
    except Exit as end:
        if not end.message and not end.code and (lost := streams.loss()):  # of a list or a help text
            raise Exit(f"error: {lost}", code=lost.exit_code) from end
        if not end.message or end.code == ExitCode.USAGE:
            raise
        raise Exit(f"error: {end.message}", code=ExitCode.USAGE) from end


def _parse_argv(self: parser.Parser, argv: list[str]) -> parser.ParseResult:
    return _invokes_own(self, [_Word(word) if word.startswith("-") else word for word in argv])


def install() -> None:
    """Make Invoke parse with the machine of this module; safe to call twice."""
    parser.ParseMachine = _Machine  # type: ignore[misc]
    parser.Parser.parse_argv = _parse_argv  # type: ignore[method-assign]
    Program.parse_cleanup = _parse_cleanup  # type: ignore[method-assign]
