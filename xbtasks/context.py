"""The build context on the host: one folder per input digest, complete before it gets its name."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, cast

from xbtasks.errors import CannotJudge, UsageError
from xbtasks.host.programs import program
from xbtasks.host.step import Section, Step
from xbtasks.host.transfer import StreamPayload, progress_lines

if TYPE_CHECKING:
    import tarfile
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from xbtasks.checkout.stages import Discovery
    from xbtasks.host.step import Payload, SectionReply
    from xbtasks.plan import StagePlan

__all__ = ["archive", "pack", "read_state", "send_step", "state_section"]


def archive(files: Iterable[tuple[str, Path]], say: Callable[[str], None]) -> StreamPayload:
    """Return a gzipped tar of ``files`` (path in the context, file here) that depends on nothing else.

    It lies in a temporary file that has no name, and goes with the payload. ``say`` is told how far the
    sending of a large one is. Links stay links; owners and times are left out, as BuildKit leaves them out.
    Of the mode only the owner's exec bit counts, as in git: what is built doesn't depend on the umask of
    whoever checked it out.

    Raises:
        CannotJudge: a file can't be read, or there is no room for the archive.
    """
    import gzip
    import tarfile
    import tempfile

    try:
        packed = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - it goes with the payload
    except OSError as error:
        raise _no_room(error) from error
    try:
        with (
            gzip.GzipFile(filename="", fileobj=packed, mode="wb", compresslevel=6, mtime=0) as stream,
            tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name, path in files:
                tar.add(path, name, recursive=False, filter=_anonymous)
        return StreamPayload.of(packed, progress_lines("the build context", say))
    except OSError as error:
        packed.close()
        if error.filename is None:
            raise _no_room(error) from error
        raise CannotJudge(f"build input {error.filename} can't be read: {error.strerror}") from error


def pack(discovery: Discovery, stage: StagePlan, say: Callable[[str], None]) -> StreamPayload:
    """Return the build context of ``stage`` from its checkout, as :func:`archive` does.

    Raises:
        CannotJudge: its inputs are no longer those of the plan, so that others would lie under their digest;
            or it can't be packed.
    """
    from xbtasks.checkout.stages import context_files, discover, find_stage, input_digest

    payload = archive(context_files(find_stage(discovery, stage.stage), discovery.repo), say)
    try:
        now = find_stage(discover(discovery.repo, discovery.dockerfile), stage.stage)
        digests = tuple((each, input_digest(now, each, discovery.repo)) for each in now.platforms)
    except UsageError:
        digests = ()
    if digests != stage.digests:
        payload.file.close()
        raise CannotJudge(
            f"the checkout was changed while this ran: {stage.stage} has other inputs by now",
            hint="run it again; a git worktree of its own keeps a run apart from your edits",
        )
    return payload


def _no_room(error: OSError) -> CannotJudge:
    message = f"the build context can't be packed in a temporary file here: {error.strerror}"
    return CannotJudge(message, hint="TMPDIR names another place")


def state_section(directory: str, digest: str, deadline: int) -> Section:
    """Ask where the context of ``digest`` lies and whether it is there."""
    return Section("context", program("context_state", directory, digest), deadline)


def read_state(answer: SectionReply) -> tuple[str, bool]:
    """Return the folder's absolute path on the host and whether it is there.

    Raises:
        CannotJudge: the host has no home directory.
    """
    lines = answer.text.splitlines()
    if not answer.ok or len(lines) != 2:
        raise CannotJudge(
            f"no place for the build context: {answer.error_text.strip()}", hint="set XB_REMOTE_CTX"
        )
    return lines[0], lines[1] == "present"


def send_step(directory: str, payload: Payload, deadline: int) -> Step:
    """Return the step that unpacks an archive as ``directory``."""
    section = Section("put-context", program("put_context", directory), deadline, payload=True)
    return Step("context", (section,), payload=payload)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o755 if member.mode & 0o100 or not member.isreg() else 0o644
    return member
