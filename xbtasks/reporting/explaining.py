"""What a check or a case means, for a person."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING

from xbtasks.explanations import Explanation, Topic
from xbtasks.typed import as_typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xbtasks.reporting.console import Console

__all__ = ["explained_document", "show_explained"]

_LABEL = 10


def explained_document(found: Topic | Explanation | Sequence[Topic]) -> dict[str, object]:
    """Return what ``inv explain`` found, as JSON values."""
    match found:
        case Topic():
            return {"schema": 1, "topics": [found.document()], "checks": []}
        case Explanation():
            return {"schema": 1, "topics": [], "checks": [found.document()]}
        case _:
            return {"schema": 1, "topics": [each.document() for each in found], "checks": []}


def show_explained(found: Topic | Explanation | Sequence[Topic], console: Console) -> None:
    """Print one check, one topic with its checks, or a list of topics."""
    match found:
        case Topic():
            _show_topic(found, console)
        case Explanation():
            _show_check(found, console)
        case _:
            _show_list(found, console)


def _show_list(found: Sequence[Topic], console: Console) -> None:
    wide = max(len(each.id) for each in found)
    for each in found:
        console.say(f"{each.id:{wide}}  {each.title} ({len(each.checks)} checks)")
    console.say()
    console.say("`inv explain ID` tells of one; a check is ID.NAME, such as nvidia.case2.sm-limit")


def _show_topic(found: Topic, console: Console) -> None:
    console.say(f"{found.id}  {found.title}")
    console.say()
    for label, text in (
        ("runs", found.runs),
        ("needs", found.needs),
        ("proves", found.proves),
        ("changes", found.changes),
        ("takes", found.takes),
    ):
        console.say(_labelled(label, text))
    console.say()
    wide = max((len(check.id) for check in found.checks), default=0) + 2
    for check in found.checks:
        console.say(_labelled(check.id, check.means, wide))
    console.say()
    console.say(f"`inv explain {found.checks[0].id if found.checks else found.id}` tells more of a check")


def _show_check(found: Explanation, console: Console) -> None:
    console.say(found.id)
    console.say()
    console.say(_labelled("means", found.means))
    console.say(_labelled("why", found.why))
    for place, cause in enumerate(found.causes):
        console.say(_labelled("causes" if place == 0 else "", f"- {cause}"))
    console.say(_labelled("next", found.next))
    console.say(_labelled("see", found.see))


def _labelled(label: str, text: str, wide: int = _LABEL) -> str:
    """Return a text with a label before it, wrapped beside the label."""
    room = max(30, min(110, shutil.get_terminal_size((110, 24)).columns) - wide)
    lines = textwrap.wrap(as_typed(text), room, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"{label if place == 0 else '':{wide}}{line}" for place, line in enumerate(lines))
