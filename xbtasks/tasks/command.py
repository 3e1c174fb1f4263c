"""How a task is made: flags from the knob table, one way to report errors, exit codes instead of Exit."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from invoke.tasks import Task

from xbtasks.errors import ExitCode, Interrupted, UsageError, XbError, reason_of
from xbtasks.interrupts import raised
from xbtasks.knobs.table import KNOBS, Group, knobs_for
from xbtasks.source import SOURCE
from xbtasks.tasks.executor import report_exit, user_file
from xbtasks.typed import as_typed, note_call, note_options, note_task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from xbtasks.knobs.files import Entry
    from xbtasks.knobs.settings import Settings
    from xbtasks.reporting.console import Console
    from xbtasks.result import Result

__all__ = ["BUSY_OK", "NO_THROTTLE", "OUTPUTS", "REDACT", "RUN", "STAGE", "Call", "Option", "command"]


@dataclass(frozen=True)
class Option:
    """A flag or positional of a task that is no knob; ``switch`` is for one without a value."""

    name: str
    help: str
    switch: bool = False
    positional: bool = False


_PLACING = frozenset({Group.CHECKOUT, Group.HOST, Group.BUILD})
"""What the flags serve that say where a task works: on which checkout and host, under which names there."""
_BACKENDS = frozenset({Group.ASCEND.value, Group.NVIDIA.value})
_KNOB_NAMES = frozenset(knob.name for knob in KNOBS)
_PROJECT_FILE = SOURCE / "config/invoke.yaml" if SOURCE else None

STAGE = Option("stage", "builder stage of the Dockerfile, as the task stages lists it", positional=True)
"""The positional that names a stage."""
RUN = "a run's id or the beginning of it, last, last~1 or a folder"
"""What names a past run, in the words of a flag's help."""
NO_THROTTLE = Option("no_throttle", "don't measure the rate of compute (saves half a minute)", switch=True)
"""The switch that leaves out the rate of compute."""
BUSY_OK = Option("busy_ok", "share a card with whoever computes on it", switch=True)
"""The switch that shares a busy card."""
REDACT = Option("redact", "replace hosts and users in the evidence and in what is written", switch=True)
"""The switch that redacts evidence and outputs."""
OUTPUTS = (
    Option("junit", "write the result to this file as JUnit XML, for CI"),
    Option("markdown", "write the result to this file as GitHub's Markdown"),
    Option("html", "write the result to this file as one HTML page"),
)
"""Further forms of a result, for each task that hands one to :meth:`Call.publish`; modules of reporting/."""
_JSON = Option("json", "one JSON document on stdout and text on stderr; --json=FILE writes it to a file")


class Call:
    """One call of a task: what was typed, the settings it resolves to, and where output goes."""

    def __init__(self, name: str, given: Mapping[str, Any]) -> None:
        self.name = name
        self._given = given
        self._settings: Settings | None = None
        self._console: Console | None = None
        self.documented = False

    def text(self, name: str) -> str:
        """Return the value of an option, or an empty text."""
        value = self._given.get(name)
        return "" if value is None or isinstance(value, bool) else str(value)

    def switch(self, name: str) -> bool:
        """Return whether a switch was given."""
        return bool(self._given.get(name))

    @property
    def wants_json(self) -> bool:
        """Whether ``--json`` was given, with a file or without."""
        return self._given.get("json") is not None

    @property
    def settings(self) -> Settings:
        """The knobs, resolved once; warnings are printed then.

        Raises:
            UsageError: a knob or a file is wrong.
        """
        if self._settings is None:
            self._settings = self.settings_for({})
            for warning in self._settings.warnings:
                _warn(warning)
        return self._settings

    def settings_for(self, host_file: Mapping[str, Entry]) -> Settings:
        """Return the knobs for a host of a hosts file; a flag is stronger than what the file says.

        Raises:
            UsageError: a knob or a file is wrong.
        """
        from xbtasks.knobs.resolve import default_user_file, resolve

        explicit = user_file()
        return resolve(
            {name: value for name, value in self._given.items() if name in _KNOB_NAMES},
            os.environ,
            user_file=Path(explicit) if explicit else default_user_file(os.environ),
            explicit_user_file=bool(explicit),
            project_file=_PROJECT_FILE if _PROJECT_FILE and _PROJECT_FILE.is_file() else None,
            host_file=host_file,
        )

    @property
    def console(self) -> Console:
        """Where text for people goes: stdout, or stderr when stdout carries the JSON document."""
        if self._console is None:
            from xbtasks.reporting.console import Console
            from xbtasks.reporting.folding import ci_log

            out: TextIO = sys.stderr if self._given.get("json") is True else sys.stdout
            hide = self.settings.banner_re
            self._console = ci_log(os.environ, out, hide) or Console(out, hide)
        return self._console

    def close(self) -> None:
        """Leave the place that text goes to as it was found."""
        if self._console is not None:
            self._console.close()

    @property
    def outputs(self) -> dict[str, str]:
        """The files that were asked for, by form; ``json`` only where it goes to a file."""
        names = ("json", *(option.name for option in OUTPUTS))
        return {name: value for name in names if isinstance(value := self._given.get(name), str)}

    def require_values(self) -> None:
        """Return when no option was given an empty value, as of a variable that isn't set.

        Raises:
            UsageError: one was: that must not mean a default, or all.
        """
        empty = next(
            (name for name, value in self._given.items() if value == "" and name not in _KNOB_NAMES), ""
        )
        if empty:
            raise UsageError(f"--{empty.strip('_').replace('_', '-')}: a value is missing")

    def require_backends(self, backends: Collection[str]) -> None:
        """Return when every flag that was given is about one of ``backends``, or about none.

        Raises:
            UsageError: one is a setting of other backends' cases, and would do nothing.
        """
        for each in KNOBS:
            served = [group.value for group in each.groups]
            if self._given.get(each.name) and _BACKENDS.issuperset(served) and not {*served} & {*backends}:
                whose = " and ".join(served)
                raise UsageError(f"{each.flag} is for stages of {whose}, and none of them is chosen")

    def check_outputs(self) -> None:
        """Return when every output that was asked for can be written.

        Raises:
            UsageError: a file can't be written, or is named twice.
        """
        if self.outputs:
            from xbtasks.reporting.outputs import check_outputs

            self.documented = True  # so that an error in the next line isn't tried to be written there
            check_outputs(self.outputs)
            self.documented = False

    @staticmethod
    def _leave(result: Result) -> None:
        """Leave the result where who started several runs as one looks for it, if nothing lies there yet."""
        folder = os.environ.get("XBTASKS_RUN_FOLDER", "")
        target = Path(folder) / "result.json"
        if not folder.startswith("/") or target.exists():
            return
        from xbtasks.files import write_atomically

        try:
            target.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            write_atomically(str(target), json.dumps(result.to_json(), indent=1) + "\n")
        except (OSError, XbError) as error:
            _warn(f"{target} can't be written: {reason_of(error)}")

    def publish(self, result: Result, *, summary: bool = True) -> ExitCode:
        """Write ``result`` in every form that was asked for and return the exit code of the call.

        That is the result's own, or a worse one: an output that can't be written is an error, and the
        others are written all the same. With ``summary`` the job summary of GitHub Actions gets it too.
        """
        from xbtasks.result import worst_exit

        self.documented = True
        self._leave(result)
        files = {form: name for form, name in self.outputs.items() if form != "json"}
        problems: list[XbError] = []
        if files:
            from xbtasks.reporting.outputs import write_outputs

            problems += write_outputs(result, files)
        if summary and os.environ.get("GITHUB_STEP_SUMMARY"):
            from xbtasks.reporting.outputs import append_step_summary

            trouble = append_step_summary(result, os.environ)
            if trouble:
                _warn(trouble)
        try:
            self.document(result.to_json())
        except XbError as error:
            problems.append(error)
        for problem in problems:
            _print_error(problem)
        codes = [problem.exit_code for problem in problems]
        return worst_exit([result.exit_code, *codes]) if codes else result.exit_code

    def document(self, document: object) -> None:
        """Put the JSON document where ``--json`` wants it, if it was given.

        Raises:
            UsageError: the file can't be written.
        """
        self.documented = True
        wanted = self._given.get("json")
        if wanted is None:
            return
        text = json.dumps(document, indent=1) + "\n"
        if wanted is True:
            # The same document, in which no log of GitHub's finds "##[", its old mark of a command.
            sys.stdout.write(text.replace("##[", "##\\u005b"))
            sys.stdout.flush()
            return
        from xbtasks.files import write_atomically

        write_atomically(str(wanted), text)


class _Task(Task[Any]):
    """A task that nothing changes once it is made, so that Invoke's copies of collections cost nothing."""

    def __deepcopy__(self, memo: object) -> _Task:
        del memo
        return self


def command(
    *options: Option, groups: Iterable[Group] = (), json: bool = True
) -> Callable[[Callable[[Call], ExitCode]], Task[Any]]:
    """Return a decorator that makes a task of a function from a call to an exit code.

    The task has ``options``, the flags of the knobs of ``groups``, and ``--json`` unless that is False.
    """
    knobs = knobs_for(*groups) if groups else ()
    flags = (*options, *((_JSON,) if json else ()))
    parameters = [Parameter("context", Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [
        Parameter(flag.name, Parameter.KEYWORD_ONLY, default=False if flag.switch else None) for flag in flags
    ]
    parameters += [
        Parameter(knob.name, Parameter.KEYWORD_ONLY, default=False if knob.boolean else None)
        for knob in knobs
    ]
    placing = {knob.name: knob.flag for knob in knobs if _PLACING.intersection(knob.groups) and knob.flag}
    helps = {flag.name: flag.help for flag in flags}
    helps |= {knob.name: f"{knob.help} ({knob.env}; default {knob.default_text})" for knob in knobs}

    def decorate(function: Callable[[Call], ExitCode]) -> Task[Any]:
        module = function.__module__.rpartition(".")[2]
        name = function.__name__ if module == "root" else f"{module}.{function.__name__}"
        note_task(name, frozenset(placing.values()))

        def body(_context: object, **given: Any) -> None:
            call = Call(name, given)
            if given.get("redact"):  # they name what is not to be told
                note_options(())
                note_call({})
            else:
                note_call({flag: str(given[key]) for key, flag in placing.items() if given.get(key)})
            code = _guarded(function, call)
            call.close()
            report_exit(code)

        body.__name__ = function.__name__
        body.__doc__ = function.__doc__
        body.__module__ = function.__module__
        body.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return _Task(
            body,
            positional=[flag.name for flag in flags if flag.positional],
            optional=["json"] if json else [],
            auto_shortflags=False,
            help=helps,
        )

    return decorate


def _guarded(function: Callable[[Call], ExitCode], call: Call) -> ExitCode:
    """Return the exit code of a call, whatever happens in it; errors are one line and what to do next."""
    try:
        with raised():
            call.check_outputs()
            call.require_values()
            return function(call)
    except KeyboardInterrupt:
        return _failed(call, Interrupted("interrupted"))
    except XbError as error:
        return _failed(call, error)
    except Exception as error:  # noqa: BLE001 - the last line of defence: never a verdict, never silent
        import traceback

        traceback.print_exc()
        return _failed(call, XbError(f"internal error, please report it with the lines above: {error!r}"))


def _failed(call: Call, error: XbError) -> ExitCode:
    """Say what went wrong, in the outputs too where nothing was written yet."""
    _print_error(error)
    if not call.documented:
        from xbtasks.result import error_result

        call.publish(error_result(call.name, error))
    return error.exit_code


def _warn(text: str) -> None:
    print(f"warning: {as_typed(text)}", file=sys.stderr)


def _print_error(error: XbError) -> None:
    from xbtasks.reporting.folding import for_stderr

    print(f"error: {for_stderr(as_typed(error.message))}", file=sys.stderr)
    if error.hint:
        print(f"  {for_stderr(as_typed(error.hint))}", file=sys.stderr)
