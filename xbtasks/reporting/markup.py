"""HTML that is well-formed and safe by construction: text is escaped unless an element made it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Markup", "element", "join", "visible"]

_VOID: Final = frozenset({"br", "link", "meta"})


class Markup(str):
    """A piece of HTML. Only :func:`element` and :func:`join` make one of text that they have escaped."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | bool) -> Markup:
    """Return an element; ``class_`` is ``class``, ``_`` in a name is ``-``, True and False are flags.

    A child that is no `Markup` is text.
    """
    words = [tag]
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            words.append(name)
        elif value is not False:
            words.append(f'{name}="{escape(visible(value))}"')
    opened = f"<{' '.join(words)}>"
    return Markup(opened if tag in _VOID else f"{opened}{join(children)}</{tag}>")


def join(children: Iterable[str]) -> Markup:
    """Return the children one after another."""
    return Markup(
        "".join(child if isinstance(child, Markup) else escape(visible(child)) for child in children)
    )


def visible(text: str) -> str:
    """Return ``text`` with each character that shows nothing, or turns what is around it, as its escape.

    Blanks and line ends stay.
    """
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
