"""The images of the Ascend stages: the base image with a simulated CANN, as real ones have the real one.

The toolkit isn't the driver: it belongs to an image and is there whether or not a card is injected.
"""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Final

from xbtasks.sim.base_image import BASE_IMAGE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from xbtasks.sim.engine_api import EngineApi

__all__ = ["CANN_IMAGE", "MERGED_IMAGE", "ensure_images"]

CANN_IMAGE: Final = "xbtasks-sim/cann:1"
"""The tag that the sample Dockerfile's Ascend stages start from."""

MERGED_IMAGE: Final = "xbtasks-sim/cann:merged"
"""The same with a runtime that no preload library gets into, as in CANN 9.2 and later."""

_KINDS: Final = {CANN_IMAGE: "split", MERGED_IMAGE: "merged"}
_LABEL: Final = "xbtasks.cann"
_TOOLKIT: Final = "usr/local/Ascend/ascend-toolkit/latest"
_DRIVER: Final = "/usr/local/Ascend/driver/lib64"
_CHANGES: Final = (
    f"ENV ASCEND_HOME_PATH=/{_TOOLKIT}",
    f"ENV ASCEND_TOOLKIT_HOME=/{_TOOLKIT}",
    f"ENV LD_LIBRARY_PATH={_DRIVER}/common:{_DRIVER}/driver:/{_TOOLKIT}/lib64",
    f"ENV PYTHONPATH=/{_TOOLKIT}/python/site-packages",
)


def ensure_images(engine: EngineApi, compiled: Path, base: str, say: Callable[[str], None]) -> None:
    """Make the images unless the engine has exactly these.

    ``compiled`` is the folder of what ``build.sh`` made, ``base`` the digest of the base image.
    """
    version = f"{compiled.resolve().parent.name} {base}"
    for reference, kind in _KINDS.items():
        labels = engine.image_labels(reference)
        if labels is None or labels.get(_LABEL) != version:
            say(f"making {reference}, the base image with a simulated CANN")
            content = _pack(compiled / "toolkit" / kind)
            engine.derive_image(BASE_IMAGE, content, reference, (*_CHANGES, f'LABEL {_LABEL}="{version}"'))


def _pack(toolkit: Path) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(toolkit.resolve(), _TOOLKIT, filter=_plain)
    return packed.getvalue()


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member
