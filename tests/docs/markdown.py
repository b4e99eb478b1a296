"""What the tests need of Markdown: fenced blocks, headings, links, inline code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Block", "anchors", "blocks", "inline_code", "links", "name", "pages"]

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)")
_MARK = re.compile(r"<!-- (.+) -->")
_HEADING = re.compile(r"#{1,6} (.+)")
_TARGET = re.compile(r"\]\(([^)\s]+)\)|src(?:set)?=\"([^\"]+)\"")
_CODE = re.compile(r"(`+)(.+?)\1")


class Block(NamedTuple):
    """
    One fenced block.

    Attributes:
        info: What stands behind the opening fence.
        text: Its lines, without the fence's indentation.
        line: Number of the opening fence, from 1.
        mark: Text of an HTML comment on the line in front of it, or ``""``.
    """

    info: str
    text: str
    line: int
    mark: str


def pages() -> list[Path]:
    """Every page that is run, README.md first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def name(path: Path) -> str:
    """A page as it is called in a test's name."""
    return str(path.relative_to(ROOT))


def _parse(text: str) -> tuple[list[Block], list[tuple[int, str]]]:
    """Return the blocks, and the lines outside of them with their numbers."""
    found: list[Block] = []
    outside: list[tuple[int, str]] = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        opening = _FENCE.fullmatch(line)
        if opening is None:
            outside.append((number, line))
            continue
        indent, fence, info = opening.groups()
        first = number
        while number < len(lines) and lines[number].strip() != fence:
            number += 1
        assert number < len(lines), f"line {first}: the block has no end"
        inside = [inner.removeprefix(indent) for inner in lines[first:number]]
        mark = _MARK.fullmatch(lines[first - 2].strip()) if first > 1 else None
        content = "".join(f"{inner}\n" for inner in inside)
        found.append(Block(info.strip(), content, first, mark[1] if mark else ""))
        number += 1
    return found, outside


def blocks(text: str) -> list[Block]:
    """
    Return all fenced blocks of a page.

    Raises:
        AssertionError: A block has no end, or is indented code, which would not be seen.
    """
    found, outside = _parse(text)
    for number, line in outside:
        assert not line.startswith(("    ", "\t")), f"line {number}: use a fenced block"
    return found


def prose(text: str) -> str:
    """Return a page without its fenced blocks."""
    return "\n".join(line for _, line in _parse(text)[1])


def inline_code(text: str) -> Iterator[str]:
    """Yield each piece of inline code."""
    for match in _CODE.finditer(prose(text)):
        yield match[2].strip()


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    found: set[str] = set()
    for line in prose(text).splitlines():
        if heading := _HEADING.fullmatch(line):
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).strip().lower()
            anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
            count = sum(known == anchor or known.startswith(f"{anchor}-#") for known in found)
            found.add(f"{anchor}-#{count}" if count else anchor)
    return {anchor.replace("-#", "-") for anchor in found}


def links(text: str) -> Iterator[str]:
    """Yield the target of every link and image."""
    plain = _CODE.sub("", prose(text))
    for match in _TARGET.finditer(plain):
        yield match[1] or match[2]
