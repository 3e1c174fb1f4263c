"""The tasks of the root collection."""

from __future__ import annotations

from typing import Final

from xbtasks.backends import BACKENDS
from xbtasks.errors import ExitCode
from xbtasks.knobs.table import Group
from xbtasks.tasks.command import BUSY_OK, NO_THROTTLE, OUTPUTS, REDACT, RUN, STAGE, Call, Option, command

__all__ = ["TASKS"]

_REBUILD = Option("rebuild", "build even when the image is up to date", switch=True)
_ADOPT = Option("adopt", "take over files and tags that xbtasks did not make; they are kept", switch=True)
_EVERYTHING = (Group.HOST, Group.BUILD, Group.ASCEND, Group.NVIDIA)


@command(
    Option("backend", f"only the stages of this backend: {' or '.join(BACKENDS)}"),
    groups=(Group.HOST, Group.BUILD),
)
def stages(call: Call) -> ExitCode:
    """List the builder stages: pin, platforms, built or not."""
    from xbtasks.planning import discover_stages, of_backend
    from xbtasks.reporting.listing import show_stages, stage_documents
    from xbtasks.session import built_states

    discovery = discover_stages(call.settings)
    chosen = of_backend(discovery, call.text("backend"))
    built = built_states(call.settings, discovery, chosen, call.console)
    call.document(stage_documents(discovery, chosen, built))
    show_stages(discovery, chosen, built, call.console)
    return ExitCode.PASSED


@command(
    Option("base", "the branch, tag or commit to compare with (default: origin/main, else what there is)"),
    Option("commit", "a commit to look at instead of the working tree"),
    Option("exit_code", "end with 1 when there is a stage to verify, as git diff does", switch=True),
    Option("commands", "print the commands to run and nothing else", switch=True),
    groups=(Group.CHECKOUT,),
)
def changed(call: Call) -> ExitCode:
    """Say which stages this branch touches, and what to run.

    From the merge base to the working tree: staged, unstaged and untracked files count. With --commit, to
    that commit alone.
    """
    from xbtasks.tasks.changes import show_changed

    return show_changed(call)


@command(groups=_EVERYTHING)
def knobs(call: Call) -> ExitCode:
    """List every setting and where its value came from."""
    from xbtasks.knobs.settings import describe
    from xbtasks.reporting.listing import show_knobs

    rows = describe(call.settings)
    call.document({"schema": 1, "knobs": [row.document() for row in rows]})
    show_knobs(rows, call.console)
    return ExitCode.PASSED


@command(REDACT, *OUTPUTS, groups=_EVERYTHING)
def preflight(call: Call) -> ExitCode:
    """Show what the host can do; changes nothing."""
    from xbtasks.tasks.running import run_plan

    return run_plan(call, "preflight", [])


@command(STAGE, _REBUILD, _ADOPT, REDACT, *OUTPUTS, groups=_EVERYTHING)
def build(call: Call) -> ExitCode:
    """Build one stage and stage its artifacts."""
    from xbtasks.tasks.running import named_stages, run_plan

    return run_plan(call, "build", named_stages(call), build=True)


@command(
    STAGE,
    Option("cases", "the cases to run, such as 1 or 1,2 (default: all; a case without its cards is skipped)"),
    _REBUILD,
    _ADOPT,
    NO_THROTTLE,
    BUSY_OK,
    REDACT,
    *OUTPUTS,
    groups=_EVERYTHING,
)
def verify(call: Call) -> ExitCode:
    """Build if out of date, run the cases: one verdict."""
    from xbtasks.tasks.running import case_numbers, named_stages, run_plan

    return run_plan(call, "verify", named_stages(call), cases=case_numbers(call), build=True)


@command(
    Option("stages", "the stages, by name or shell pattern, with commas between (default: all)"),
    Option("cases", "the cases, such as 1 or 1,2 (default: all)"),
    Option("hosts", "hosts of the hosts file, by name or shell pattern (default: all)"),
    Option("hosts_file", "a YAML file of hosts, outside the project (default: the host of the knobs)"),
    Option("jobs", "how many stages at once, over all hosts (default: 4 a host)"),
    Option("dry_run", "show what would be built, sent, run and asked, and do nothing", switch=True),
    Option("fail_fast", "begin nothing more once a check failed", switch=True),
    Option("changed", "only the stages that this branch touches, as the task changed tells", switch=True),
    Option("base", "what --changed compares with (default: origin/main, else what there is)"),
    Option("emit", "write the jobs for a CI engine and run nothing: github, gitlab or json"),
    Option("continue_", "an earlier matrix, as report names it: run only what has no verdict yet"),
    _REBUILD,
    _ADOPT,
    NO_THROTTLE,
    BUSY_OK,
    REDACT,
    *OUTPUTS,
    groups=_EVERYTHING,
)
def matrix(call: Call) -> ExitCode:
    """Verify many stages side by side, on several hosts.

    One plan (--dry-run shows it), one question, one summary; --emit writes CI jobs instead.
    """
    from xbtasks.tasks.matrices import run_matrix

    return run_matrix(call)


@command(Option("directory", RUN, positional=True), *OUTPUTS)
def replay(call: Call) -> ExitCode:
    """Judge a recorded run again, with no host."""
    from xbtasks.tasks.running import replay_directory

    return replay_directory(call)


@command(Option("name", "a check, a case, a backend, or preflight (default: a list)", positional=True))
def explain(call: Call) -> ExitCode:
    """Say what a check means, and what to do if it is red."""
    from xbtasks.explanations import named, topics
    from xbtasks.reporting.explaining import explained_document, show_explained

    found = named(call.text("name")) if call.text("name") else topics()
    call.document(explained_document(found))
    show_explained(found, call.console)
    return ExitCode.PASSED


@command(
    Option("all", "also the staging directories' artifacts, images and build contexts", switch=True),
    groups=_EVERYTHING,
    json=False,
)
def clean(call: Call) -> ExitCode:
    """Remove what xbtasks left on the host.

    Containers; with --all its images, contexts and staged files too.
    """
    from xbtasks.tasks.running import clean_host

    return clean_host(call)


@command(
    Option("cases", "the cases to run, such as 1,2,3 (default: 1, which needs no card)"),
    Option("yes", "for scripts that say so everywhere; the demo never asks", switch=True),
    _REBUILD,
    *OUTPUTS,
)
def demo(call: Call) -> ExitCode:
    """Verify the sample's stages on the simulated host."""
    from xbtasks.tasks.running import run_demo

    return run_demo(call)


@command(
    Option("directory", RUN, positional=True),
    Option("output", "the file to write (default: xbtasks-<run id>.tar.gz in the current directory)"),
    json=False,
)
def bundle(call: Call) -> ExitCode:
    """Pack a run for a bug report, hosts and users replaced."""
    from xbtasks.tasks.running import bundle_directory

    return bundle_directory(call)


@command(Option("options", "options for pytest, such as '-k frame'"), json=False)
def test(call: Call) -> ExitCode:
    """Run the project's own tests.

    What they need is installed into .venv on the first run.
    """
    from xbtasks.tasks.development import run_tests

    return run_tests(call.text("options"))


TASKS: Final = (
    *(stages, changed, knobs, preflight, build, verify, matrix),
    *(explain, replay, bundle, clean, demo, test),
)
"""The tasks at the root, in the order of ``--list``."""
