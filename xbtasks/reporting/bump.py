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
    sides = (("Before", before), ("After", after))
    yield from table(
        ("", "Run", "Command", "Host", "Verdict"),
        ((name, code(r.run), code(r.command), code(r.host), r.verdict) for name, r in sides),
    )
    yield ""
    if comparison.changes:
        yield from table(("", "Of", "What", "Before", "After", "Detail"), map(_cells, comparison.changes))
        yield ""
    yield f"Cases compared: {comparison.cases}, artifacts compared: {comparison.artifacts}."


def _cells(change: Change) -> Sequence[str]:
    names = [*_named("lost", change.lost), *_named("gained", change.gained)]
    detail = "<br>".join(filter(None, (*names, code(change.detail))))
    sign = f"{_SIGNS[change.trend]} {change.trend}"
    return sign, code(change.subject), code(change.what), code(change.before), code(change.after), detail


def _named(word: str, names: Sequence[str]) -> Iterator[str]:
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        yield f"{word} {', '.join(map(code, names[:_MOST_NAMES]))}{more}"
