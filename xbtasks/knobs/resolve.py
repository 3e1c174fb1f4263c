"""Resolves the knobs: finds the strongest text for each, and parses and bounds it once (SPEC 2).

Precedence is flag > hosts file > ``XB_*`` variable > user file > ``config/invoke.yaml`` > default. The
value that wins is parsed; values that lose are not, so a flag can mend a bad variable. Unknown keys in a
file are errors, unknown ``XB_*`` variables are warnings.

A value is refused with blanks around it, an empty variable or file value leaves its knob unset, and
an empty flag is an error: ``--stage-dir "$UNSET"`` must not fall back to the default in silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from xbtasks.errors import UsageError
from xbtasks.knobs import cards, references, values
from xbtasks.knobs.files import nearest, read_knob_file
from xbtasks.knobs.settings import Origin, Settings, Source
from xbtasks.knobs.table import KNOBS, Knob, knob
from xbtasks.knobs.values import BadValue, home_directory, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xbtasks.knobs.files import Entry
    from xbtasks.knobs.references import HostSpec

__all__ = ["default_user_file", "resolve", "unknown_variables"]

_T = TypeVar("_T")


@dataclass(frozen=True)
class _Given:
    """The text that won for a knob, and where it stood."""

    text: str
    origin: Origin


class _Reader:
    """Turns winning texts into values; an error names the knob, the origin and what is accepted."""

    def __init__(self, given: Mapping[str, _Given]) -> None:
        self._given = given

    def optional(self, name: str, parse: Callable[[str], _T]) -> _T | None:
        """Return the value of ``name``, or None if nothing sets it."""
        given = self._given.get(name)
        if given is None:
            return None
        try:
            return parse(given.text)
        except BadValue as error:
            raise UsageError(
                f"{name} from {given.origin.label}: {shown(given.text)} is not accepted; "
                f"accepted: {knob(name).accepts}",
                hint=error.hint,
            ) from None

    def required(self, name: str, parse: Callable[[str], _T]) -> _T:
        """Return the value of ``name``, or its literal default."""
        value = self.optional(name, parse)
        return parse(knob(name).default) if value is None else value

    def local_path(self, name: str) -> Path | None:
        """Return the path that ``name`` gives; one from a file must not depend on the current directory."""
        path = self.optional(name, values.parse_local_path)
        if path is None or path.is_absolute():
            return path
        origin = self._given[name].origin
        if origin.source in (Source.HOSTS_FILE, Source.USER_FILE, Source.PROJECT_FILE):
            raise UsageError(f"{name} from {origin.label}: a path in a file must be absolute or under ~/")
        return path


def default_user_file(environ: Mapping[str, str]) -> Path:
    """Return the user file's place: ``$XDG_CONFIG_HOME/xbtasks.yaml``, else ``~/.config/xbtasks.yaml``."""
    base = Path(environ.get("XDG_CONFIG_HOME", ""))
    return (base if base.is_absolute() else home_directory() / ".config") / "xbtasks.yaml"


def resolve(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    *,
    user_file: Path | None,
    explicit_user_file: bool,
    project_file: Path | None,
    host_file: Mapping[str, Entry] | None = None,
) -> Settings:
    """Return the settings of this run.

    ``flags`` maps knob names to what Invoke parsed: None (and False) is "not given". ``host_file`` is what a
    hosts file says of the host. Of ``environ`` only ``XB_*`` is read. ``user_file`` may be missing unless it
    is explicit (``inv -f``); ``project_file`` is ``config/invoke.yaml``, if there is one.

    Raises:
        UsageError: a value, a file or a combination is wrong; one line says which and why.
    """
    user = _read_file(user_file, required=explicit_user_file)
    project = _read_file(project_file, required=False)
    _refuse_stored_host(user if explicit_user_file else {}, project, user_file, project_file)
    files = {
        Source.HOSTS_FILE: host_file or {},
        Source.USER_FILE: user,
        Source.PROJECT_FILE: project,
    }
    given: dict[str, _Given] = {}
    for entry in KNOBS:
        found = _find(entry, flags, environ, files)
        if found is not None:
            given[entry.name] = found
    unknown = set(flags) - {entry.name for entry in KNOBS}
    if unknown:
        raise TypeError(f"flags that are no knobs: {sorted(unknown)}")
    return _settings(given, unknown_variables(environ))


def _settings(given: Mapping[str, _Given], warnings: tuple[str, ...]) -> Settings:
    read = _Reader(given)
    host = read.optional("host", references.parse_host)
    mode = read.optional("mode", values.parse_mode)
    if mode is None:
        mode = values.Mode.LOCAL if host is None else values.Mode.SSH
    if mode is values.Mode.LOCAL and host is not None:
        warnings = (*warnings, _ignored_host(host, given["mode"].origin, given["host"].origin))
        host = None
    return Settings(
        mode=mode,
        host=host,
        repo=read.local_path("repo"),
        dockerfile=read.required("dockerfile", values.parse_local_path),
        platform=read.optional("platform", values.parse_platform),
        image=read.optional("image", references.parse_image_tag),
        workload_image=read.optional("workload_image", references.parse_image_reference),
        stage_dir=read.optional("stage_dir", values.parse_staging_directory),
        remote_ctx=read.required("remote_ctx", values.parse_remote_path),
        engine=read.required("engine", values.parse_engine),
        builder=read.optional("builder", values.parse_builder),
        ssh_config=read.local_path("ssh_config") or values.parse_local_path(knob("ssh_config").default),
        host_keys=read.required("host_keys", values.parse_host_keys),
        connect_timeout=read.required("connect_timeout", lambda text: values.parse_seconds(text, 3600)),
        timeout=read.required("timeout", lambda text: values.parse_seconds(text, 86400)),
        build_timeout=read.required("build_timeout", lambda text: values.parse_seconds(text, 604800)),
        banner_re=read.required("banner_re", values.parse_regex),
        yes=read.required("yes", values.parse_boolean),
        npu=read.required("npu", lambda text: values.parse_integer(text, 0, 255)),
        chip=read.required("chip", lambda text: values.parse_integer(text, 0, 15)),
        vnpu=read.required("vnpu", lambda text: values.parse_integer(text, 0, 99)),
        aicore=read.required("aicore", values.parse_percent),
        mem=read.optional("mem", values.parse_mib),
        gpu=read.required("gpu", cards.parse_gpu),
        gpus=read.required("gpus", cards.parse_gpus),
        sm=read.optional("sm", values.parse_percent),
        profile=read.optional("profile", values.parse_profile),
        max_glibc=read.optional("max_glibc", values.parse_glibc),
        origins=tuple(
            given[entry.name].origin if entry.name in given else Origin(entry.name, Source.DEFAULT, "default")
            for entry in KNOBS
        ),
        warnings=warnings,
    )


def _ignored_host(host: HostSpec, mode: Origin, named: Origin) -> str:
    """Return the warning that a host is ignored, or refuse if it was named more strongly than the mode."""
    if named.source < mode.source:
        raise UsageError(
            f"host from {named.label} is {host}, but mode from {mode.label} is local",
            hint="give --mode ssh to run there, or leave the host out",
        )
    return f"host {host} from {named.label} is ignored: mode from {mode.label} is local"


def _find(
    entry: Knob,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    files: Mapping[Source, Mapping[str, Entry]],
) -> _Given | None:
    """Return the strongest text that is given for a knob."""
    flag = _flag_text(entry, flags.get(entry.name))
    if flag is not None:
        return _Given(flag, Origin(entry.name, Source.FLAG, f"flag {entry.flag or entry.name}"))
    variable = environ.get(entry.env, "")
    for source in (Source.HOSTS_FILE, Source.VARIABLE, Source.USER_FILE, Source.PROJECT_FILE):
        if source is Source.VARIABLE and variable:
            return _Given(variable, Origin(entry.name, source, entry.env))
        found = files.get(source, {}).get(entry.name)
        if found is not None and found.text:
            return _Given(found.text, Origin(entry.name, source, found.place))
    return None


def _flag_text(entry: Knob, value: object) -> str | None:
    """Return a flag's text, or None where Invoke says that it wasn't given.

    Raises:
        TypeError: Invoke would never give such a value.
    """
    match value:
        case None | False:
            return None
        case True if entry.boolean:
            return "yes"
        case True | "":
            raise UsageError(f"flag {entry.flag}: a value is missing; accepted: {entry.accepts}")
        case str():
            return value
        case int():
            return str(value)
        case [*items] if entry.name == "gpus" and all(isinstance(item, str) for item in items):
            return ",".join(str(item) for item in items) or None
        case _:
            raise TypeError(f"flag {entry.flag} has a {type(value).__name__}")


def _read_file(path: Path | None, *, required: bool) -> dict[str, Entry]:
    return {} if path is None else read_knob_file(path, _label(path), required=required)


def _label(path: Path) -> str:
    """Return how a person knows ``path``: with ``~``, or from the project's root."""
    if path.parts[-2:] == ("config", "invoke.yaml"):
        return "config/invoke.yaml"
    home = home_directory()
    short = path.is_relative_to(home) and home != home.parent
    text = f"~/{path.relative_to(home)}" if short else str(path)
    return text if text.isprintable() and len(text) <= 200 else shown(text)


def _refuse_stored_host(
    user: Mapping[str, Entry], project: Mapping[str, Entry], user_file: Path | None, project_file: Path | None
) -> None:
    """Refuse a host in the project's own file, or in an explicit file that lies inside the project."""
    stored = project.get("host")
    if stored is None and user_file is not None and project_file is not None:
        root = project_file.resolve().parent.parent
        if user_file.resolve().is_relative_to(root):
            stored = user.get("host")
    if stored is not None:
        raise UsageError(
            f"{stored.place}: host is never read from a file inside the project",
            hint="use --host, XB_HOST or ~/.config/xbtasks.yaml",
        )


def unknown_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a warning for each ``XB_*`` name that is no knob, with the nearest one; values are not read."""
    known = {entry.env for entry in KNOBS}
    unknown = sorted(name for name in environ if name.startswith("XB_") and name not in known)
    if not unknown:
        return ()
    spellings = {entry.name.upper(): entry.env for entry in KNOBS}
    spellings |= {env.removeprefix("XB_"): env for env in known}
    lines = []
    for name in unknown:
        close = nearest(name.removeprefix("XB_"), spellings)
        label = name if name.isidentifier() and name.isascii() and len(name) <= 60 else shown(name)
        lines.append(
            f"{label} is not a knob; " + (f"did you mean {close}?" if close else "`inv knobs` lists them")
        )
    return tuple(lines)
