"""Markdown pages as their tests read them: headings, links, tables, code blocks and what marks them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.workplace import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PAGES", "Block", "Page", "read_page"]

PAGES: Final = tuple(sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")]))
_MARK: Final = re.compile(r"<!-- ([a-z]+): (.*) -->")
_LINK: Final = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A table (``rows`` without header and rule) or a code block (``text``), with the mark in front of it."""

    kind: str
    mark: str
    line: int
    language: str = ""
    text: str = ""
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()

    def column(self, number: int) -> tuple[str, ...]:
        """Return a column's cells, without the marks of code."""
        return tuple(row[number].strip("`") for row in self.rows)

    def codes(self, number: int) -> tuple[tuple[str, ...], ...]:
        """Return the pieces of code in each cell of a column."""
        return tuple(tuple(re.findall(r"`([^`]*)`", row[number])) for row in self.rows)


@dataclass(frozen=True)
class Page:
    """A page: its headings as anchors, where its links go, and its tables and code blocks."""

    path: Path
    anchors: tuple[str, ...]
    links: tuple[str, ...]
    blocks: tuple[Block, ...]

    def block(self, mark: str) -> Block:
        """Return the one block marked so."""
        (found,) = (block for block in self.blocks if block.mark == mark)
        return found


def anchor(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip().removeprefix("|").removesuffix("|")
    return tuple(cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner))


def read_page(path: Path) -> Page:
    """Return what stands on a page."""
    anchors: list[str] = []
    links: list[str] = []
    blocks: list[Block] = []
    lines = path.read_text(encoding="utf-8").split("\n")
    at, mark = 0, ""
    while at < len(lines):
        line = lines[at]
        start = at
        if found := _MARK.fullmatch(line.strip()):
            mark = f"{found[1]}: {found[2]}"
            at += 1
            continue
        if line.lstrip().startswith("```"):
            end = next(n for n in range(at + 1, len(lines)) if lines[n].strip() == "```")
            text = "\n".join(lines[at + 1 : end])
            blocks.append(Block("code", mark, start + 1, line.strip().removeprefix("```"), text))
            at, mark = end + 1, ""
            continue
        if line.startswith("|"):
            end = next((n for n in range(at, len(lines)) if not lines[n].startswith("|")), len(lines))
            table = tuple(_cells(each) for each in lines[at:end])
            assert set("".join(table[1])) == {"-"}, f"{path}:{start + 1}: a table without a header"
            assert all(len(row) == len(table[0]) for row in table), f"{path}:{start + 1}: a ragged table"
            blocks.append(Block("table", mark, start + 1, header=table[0], rows=table[2:]))
            links += _LINK.findall("\n".join(lines[at:end]))
            at, mark = end, ""
            continue
        if heading := re.match(r"#{1,6} (.*)", line):
            anchors.append(anchor(heading[1]))
        if line.strip():
            assert not mark, f"{path}:{start + 1}: the mark {mark} stands before no table and no block"
        links += _LINK.findall(re.sub(r"`[^`]*`", "", line))
        at += 1
    return Page(path, tuple(anchors), tuple(links), tuple(blocks))
