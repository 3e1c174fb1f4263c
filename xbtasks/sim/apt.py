"""A private apt: downloads Debian packages without touching the system's package state.

It has its own configuration, package lists, cache and status file; the system's hooks don't run. What it
takes from the system is where packages come from (``apt-get indextargets``, never an address of our own),
how to reach it (``Acquire::*``: proxies and the like) and which keys vouch for it. Signatures are checked as
apt always does: a Debian release is also signed with the key of the release before it, so a machine that
trusts its own release can check the next one.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xbtasks.errors import CannotJudge, Refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["IndexTarget", "PrivateApt", "choose_repository", "own_settings", "parse_index_targets", "unpack"]

_TARGET_FORMAT: Final = "$(REPO_URI)\t$(RELEASE)\t$(COMPONENT)"
_KEYRINGS: Final = ("/usr/share/keyrings/debian-archive-keyring.gpg", "/etc/apt/trusted.gpg.d")
_KEY_SUFFIXES: Final = (".gpg", ".asc")
_SIGNED_BY: Final = re.compile(r"signed-by\s*[:=]\s*(/[^\s\],]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """One package list that the system's sources name: repository, suite and component."""

    uri: str
    release: str
    component: str


def parse_index_targets(text: str) -> tuple[IndexTarget, ...]:
    """Parse the lines that ``apt-get indextargets`` prints in our format; others are left out."""
    found: dict[IndexTarget, None] = {}
    for line in text.splitlines():
        fields = line.split("\t")
        if len(fields) == 3 and all(fields):
            found[IndexTarget(*fields)] = None
    return tuple(found)


def choose_repository(targets: Iterable[IndexTarget], codename: str) -> str | None:
    """Return the address of the repository that holds Debian's main packages, or None.

    The suite is ``codename``, or a name such as ``stable`` where the sources follow a moving release.
    Installation media are left out: they hold one release only.
    """
    mains = [t for t in targets if t.component == "main" and not t.uri.startswith("cdrom:")]
    for names in ((codename,), ("stable", "oldstable", "testing")):
        for target in mains:
            if target.release in names:
                return target.uri
    return None


def own_settings(dump: str) -> tuple[str, ...]:
    """Return the lines of ``apt-config dump`` that say how to reach a repository.

    Index targets are left out: the system may want translations or icons, this tool doesn't.
    """
    return tuple(
        line
        for line in dump.splitlines()
        if line.startswith("Acquire::")
        and not line.startswith(("Acquire::IndexTargets", "Acquire::Languages"))
    )


@dataclass(slots=True)
class PrivateApt:
    """Apt with its state in ``folder``; package lists are fetched once, when first needed.

    ``suites`` are the releases to take packages from; the first one is preferred. ``log`` gets what apt
    prints. Raises Refused where the system has no package source to learn from.
    """

    folder: Path
    suites: tuple[str, ...]
    codename: str
    architecture: str
    log: Path
    _environment: dict[str, str] = field(default_factory=dict, init=False)

    def download(self, packages: Sequence[str], into: Path) -> None:
        """Download ``packages`` (``name`` or ``name/suite``), without what they depend on, into a folder."""
        self._prepare()
        into.mkdir(parents=True)
        self._apt("download", *packages, cwd=into)

    def download_closure(self, packages: Sequence[str], into: Path) -> None:
        """Download ``packages`` and all that they depend on, as for an empty system, into a folder."""
        self._prepare()
        (into / "partial").mkdir(parents=True)
        options = (
            "--yes",
            "--no-install-recommends",
            "--download-only",
            "-o",
            f"Dir::Cache::archives={into}",
        )
        self._apt(*options, "install", *packages, cwd=into)

    def _prepare(self) -> None:
        if self._environment:
            return
        uri = _system_repository(self.codename)
        for name in ("lists/partial", "cache/archives/partial", "keys", "empty"):
            (self.folder / name).mkdir(parents=True)
        _collect_keys(self.folder / "keys", uri)
        (self.folder / "status").touch()
        lines = (f"deb [arch={self.architecture}] {uri} {suite} main\n" for suite in self.suites)
        (self.folder / "sources.list").write_text("".join(lines))
        config = self.folder / "apt.conf"
        config.write_text("\n".join((*own_settings(_output("apt-config", "dump")), *self._settings(), "")))
        self._environment = {**os.environ, "APT_CONFIG": str(config), "LC_ALL": "C"}
        self._apt("update", cwd=self.folder)

    def _settings(self) -> tuple[str, ...]:
        settings = {
            "Dir::Etc::main": "/dev/null",
            "Dir::Etc::parts": self.folder / "empty",
            "Dir::Etc::sourcelist": self.folder / "sources.list",
            "Dir::Etc::sourceparts": self.folder / "empty",
            "Dir::Etc::preferences": "/dev/null",
            "Dir::Etc::preferencesparts": self.folder / "empty",
            "Dir::Etc::trusted": "/dev/null",
            "Dir::Etc::trustedparts": self.folder / "keys",
            "Dir::State": self.folder,
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache": self.folder / "cache",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "APT::Architecture": self.architecture,
            "APT::Default-Release": self.suites[0],
            "APT::Get::Assume-Yes": "true",
            "APT::Sandbox::User": "root",  # apt's own user can't read a folder in a home directory
            "Dpkg::Use-Pty": "false",
        }
        return tuple(f'{name} "{value}";' for name, value in settings.items())

    def _apt(self, *arguments: str, cwd: Path) -> None:
        with self.log.open("ab") as log:
            log.write(f"$ apt-get {' '.join(arguments)}\n".encode())
            log.flush()
            start = log.tell()
            done = subprocess.run(
                ("apt-get", "--quiet", "--error-on=any", *arguments)
                if arguments[0] == "update"
                else ("apt-get", "--quiet", *arguments),
                cwd=cwd,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            said = _last_error(self.log.read_bytes()[start:].decode("utf-8", "replace"))
            raise CannotJudge(
                f"apt-get {arguments[0]} failed: {said}",
                hint=f"check the network and the package sources; all that apt said is in {self.log}",
            )


def unpack(packages: Iterable[Path], into: Path) -> None:
    """Unpack ``packages`` into a folder, running none of their scripts."""
    for package in packages:
        done = subprocess.run(
            ("dpkg-deb", "--extract", str(package), str(into)),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise CannotJudge(f"dpkg-deb could not unpack {package.name}: {_last_error(done.stderr)}")


def _system_repository(codename: str) -> str:
    arguments = ("apt-get", "indextargets", "--no-release-info", "--format", _TARGET_FORMAT)
    uri = choose_repository(parse_index_targets(_output(*arguments)), codename)
    if uri is None:
        raise Refused(
            f"the system's package sources name no Debian {codename} main repository",
            hint="add one under /etc/apt/sources.list.d, or give XB_HOST a machine that has docker",
        )
    return uri


def _collect_keys(into: Path, uri: str) -> None:
    """Copy the keys that the system trusts for ``uri``: Debian's, the general ones, the source's own."""
    candidates: dict[Path, None] = {}
    for keyring in map(Path, _KEYRINGS):
        if keyring.is_dir():
            candidates.update(dict.fromkeys(sorted(keyring.iterdir())))
        else:
            candidates[keyring] = None
    for text in _source_files():
        if uri.rstrip("/") in text:
            candidates.update(dict.fromkeys(Path(name) for name in _SIGNED_BY.findall(text)))
    for number, key in enumerate(candidates):
        if key.is_file() and (key.suffix in _KEY_SUFFIXES or key.suffix == ".pgp"):
            suffix = ".gpg" if key.suffix == ".pgp" else key.suffix
            shutil.copyfile(key, into / f"{number}-{key.stem}{suffix}")


def _source_files() -> Iterable[str]:
    folder = Path("/etc/apt/sources.list.d")
    for path in (Path("/etc/apt/sources.list"), *(sorted(folder.iterdir()) if folder.is_dir() else ())):
        if path.is_file():
            yield path.read_text(errors="replace")


def _output(*argv: str) -> str:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        raise CannotJudge(f"{' '.join(argv[:2])} failed: {_last_error(done.stderr)}")
    return done.stdout


def _last_error(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E:")]
    return (errors or lines or ["it printed nothing"])[-1 if not errors else 0]
