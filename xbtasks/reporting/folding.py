"""The log of a CI engine: sections that fold, and failures where people look first.

GitHub Actions obeys lines of a program's output that look like commands (``::name …::`` at the beginning of
a line, ``##[name]`` anywhere), so text of others could give it some. Therefore commands are switched off,
with a random word that nobody can know, before any text is printed, and on again only for our own. GitLab
has no commands but section marks, which need control characters; those never get through.
"""

from __future__ import annotations

import os
import secrets
import time
from typing import TYPE_CHECKING, Final

from xbtasks.checks import Verdict
from xbtasks.reporting.console import Console
from xbtasks.reporting.text import one_line
from xbtasks.typed import as_typed

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping
    from typing import TextIO

    from xbtasks.result import Result

__all__ = ["GitHubLog", "GitLabLog", "ci_log", "for_stderr"]

_MOST_ANNOTATIONS: Final = 10
"""GitHub shows no more errors of a step."""


class GitHubLog(Console):
    """The log of a step of GitHub Actions."""

    def __init__(self, out: TextIO | None = None, hide: re.Pattern[str] | None = None) -> None:
        super().__init__(out, hide)
        self._word = ""

    def begin(self, title: str) -> None:
        """Begin a group."""
        self._command(f"::group::{_data(title)}")

    def end(self) -> None:
        """End the group."""
        self._command("::endgroup::")

    def announce(self, result: Result) -> None:
        """Make an annotation of whatever failed or could not be judged, as many as are shown."""
        for title, text in _problems(result)[:_MOST_ANNOTATIONS]:
            self._command(f"::error title={_property(title)}::{_data(text)}")

    def close(self) -> None:
        """Switch commands on again, for whatever comes next in the step."""
        with self._writing:
            self._resume()

    def _command(self, line: str) -> None:
        with self._writing:
            self._resume()
            print(line, file=self.out, flush=True)

    def _write(self, text: str) -> None:
        with self._writing:
            if not self._word:
                self._word = secrets.token_hex(16)
                print(f"::stop-commands::{self._word}", file=self.out)
            print(text, file=self.out, flush=True)

    def _resume(self) -> None:
        if self._word:
            print(f"::{self._word}::", file=self.out, flush=True)
            self._word = ""  # it can be read now, so it is good for nothing any more


class GitLabLog(Console):
    """The log of a job of GitLab."""

    def __init__(self, out: TextIO | None = None, hide: re.Pattern[str] | None = None) -> None:
        super().__init__(out, hide)
        self._section = ""
        self._count = 0

    def begin(self, title: str) -> None:
        """Begin a collapsed section."""
        self._count += 1
        self._section = f"xbtasks_{self._count}_{secrets.token_hex(4)}"
        mark = f"section_start:{int(time.time())}:{self._section}[collapsed=true]"
        self._write(f"\x1b[0K{mark}\r\x1b[0K{one_line(title)}")

    def end(self) -> None:
        """End the section."""
        self._write(f"\x1b[0Ksection_end:{int(time.time())}:{self._section}\r\x1b[0K")


def ci_log(
    environ: Mapping[str, str], out: TextIO, hide: re.Pattern[str] | None
) -> GitHubLog | GitLabLog | None:
    """Return the log of the CI engine that runs us, or None."""
    if out.isatty():
        return None
    if environ.get("GITHUB_ACTIONS") == "true":
        return GitHubLog(out, hide)
    return GitLabLog(out, hide) if environ.get("GITLAB_CI") == "true" else None


def for_stderr(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Return one line for stderr, beside the log: on GitHub Actions ASCII in which no command is found."""
    line = one_line(text)
    if environ.get("GITHUB_ACTIONS") != "true":
        return line
    return line.encode("ascii", "replace").decode("ascii").replace("##[", "## [").replace("::", ": :")


def _problems(result: Result) -> list[tuple[str, str]]:
    """Return a title and a text of all that went wrong, what is known to be broken first."""
    builds = [
        (f"build: {_where(each.stage, each.host)}", each.reason)
        for each in result.builds
        if each.outcome == "failed"
    ]
    cases = {
        verdict: [
            (f"{case.id} {verdict}: {_where(case.stage, case.host)}", case.reason or case.title)
            for case in result.cases
            if case.verdict is verdict
        ]
        for verdict in (Verdict.FAIL, Verdict.ERROR)
    }
    errors = [("xbtasks", text) for _, text in result.errors]
    return [*builds, *cases[Verdict.FAIL], *errors, *cases[Verdict.ERROR]]


def _where(stage: str, host: str) -> str:
    return f"{stage} on {host}" if host else stage


def _data(text: str) -> str:
    return one_line(as_typed(text)).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
