"""A comparison as GitHub's Markdown: the answer to a pull request that changes a pin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xbtasks.reporting.markdown import code, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xbtasks.compare import Change, Comparison

__all__ = ["render"]

_SIGNS: Final = {"worse": "❌", "better": "✅", "changed": "✏️"}
_MOST_NAMES: Final = 20


def render(comparison: Comparison) -> str:
    """Return ``comparison`` as Markdown."""
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    before, after = comparison.before, comparison.after
    trends = [change.trend for change in comparison.changes]
    counts = ", ".join(f"{trends.count(trend)} {trend}" for trend in _SIGNS if trend in trends)
    yield f"## {before.verdict} → {after.verdict}: {counts or 'no difference'}"
    yield ""
    if before.simulated or after.simulated:
        yield "> [!WARNING]"
        yield "> **SIMULATED**: no accelerator was involved on the simulated side."
        yield ""
    if len(comparison.places) == 1:
        yield code(comparison.places[0])
        yield ""
    sides = (("Before", before), ("After", after))
    yield from table(
        ("", "Run", "Command", "Host", "Verdict"),
        ((name, code(r.run), code(r.command), code(r.host), r.verdict) for name, r in sides),
    )
    yield ""
    if comparison.changes:
        several = len(comparison.places) > 1
        heads = ("", *(("Stage",) if several else ()), "Of", "What", "Before", "After", "Detail")
        yield from table(heads, (_cells(change, several=several) for change in comparison.changes))
        yield ""
    yield f"Cases compared: {comparison.cases}, artifacts compared: {comparison.artifacts}."


def _cells(change: Change, *, several: bool) -> Sequence[str]:
    names = [*_named("lost", change.lost), *_named("gained", change.gained)]
    detail = "<br>".join(filter(None, (*names, code(change.detail))))
    sign = f"{_SIGNS[change.trend]} {change.trend}"
    texts = (change.subject, change.what, change.before, change.after)
    return (sign, *((code(change.place),) if several else ()), *map(code, texts), detail)


def _named(word: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        yield f"{word} {', '.join(map(code, names[:_MOST_NAMES]))}{more}"
