"""
From a method and a path to the rule that decides, in a time bounded by the rules.

Paths come from anybody, so their length and shape must not cost much: exact paths are one
lookup, the rest a walk no deeper than the deepest rule, with regular expressions that do not
backtrack on the way.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from gunicorn_admission.settings.patterns import REST, Pattern, Segment
from gunicorn_admission.settings.rules import RouteRule

__all__ = ["RouteTable"]

_T = TypeVar("_T")


class RouteTable(Generic[_T]):
    """
    Rules compiled for matching, each with the value that it stands for.

    Args:
        entries: Rules and values. The more specific pattern decides, whatever the order;
            between two equally specific ones the earlier.

    Thread safety: immutable after construction.
    """

    __slots__ = ("_any", "_by_method")

    def __init__(self, entries: Iterable[tuple[RouteRule, _T]]) -> None:
        entries = sorted(entries, key=lambda entry: entry[0].pattern.specificity, reverse=True)
        methods = {method for rule, _ in entries for method in rule.methods or ()}
        self._any: Final = _for_method(entries, None)
        self._by_method: Final = {method: _for_method(entries, method) for method in methods}

    def match(self, method: str, path: str) -> _T | None:
        """
        Return the value of the rule that decides about a request, or ``None`` without one.

        Args:
            method: In any case.
            path: As in ``PATH_INFO``, starting with a slash.
        """
        return self._by_method.get(method.upper(), self._any).match(path)


def _for_method(entries: Iterable[tuple[RouteRule, _T]], method: str | None) -> _Matcher[_T]:
    return _Matcher(
        (rule.pattern, value)
        for rule, value in entries
        if rule.methods is None or method in rule.methods
    )


class _Node(Generic[_T]):
    """
    One literal segment, with the prefix that ends here and the starred patterns that go on.

    A rank is the place of a pattern among all: the lowest one that matches decides.
    """

    __slots__ = ("alternatives", "children", "offset", "rank", "starred", "value")

    def __init__(self, offset: int) -> None:
        self.children: dict[str, _Node[_T]] = {}
        self.offset = offset  # characters of the path that lie behind
        self.rank = sys.maxsize
        self.value: _T | None = None
        self.starred: list[tuple[int, _T]] = []
        self.alternatives: re.Pattern[str] | None = None

    def compile(self, expressions: list[str]) -> None:
        """Keep one expression for all; an empty group's number tells which one matched."""
        self.alternatives = re.compile("|".join(f"{e}\\Z()" for e in expressions), re.DOTALL)


class _Matcher(Generic[_T]):
    """The rules that hold for one method, from patterns in order of rank."""

    __slots__ = ("_depth", "_exact", "_root")

    def __init__(self, entries: Iterable[tuple[Pattern, _T]]) -> None:
        self._exact: dict[str, _T] = {}
        self._root: _Node[_T] = _Node(0)
        self._depth = 1
        starred: dict[_Node[_T], list[str]] = {}
        for rank, (pattern, value) in enumerate(entries):
            if pattern.exact:
                self._exact.setdefault(pattern.literal_path or "", value)
                continue
            node, rest = self._descend(pattern.segments)
            if rest:
                node.starred.append((rank, value))
                starred.setdefault(node, []).append("".join(f"/{_segment(s)}" for s in rest))
            elif node.value is None:
                node.rank, node.value = rank, value
        for node, expressions in starred.items():
            node.compile(expressions)

    def _descend(self, segments: tuple[Segment, ...]) -> tuple[_Node[_T], tuple[Segment, ...]]:
        node = self._root
        for place, segment in enumerate(segments):
            if len(segment) != 1:
                return node, segments[place:]
            name = segment[0]
            child = node.children.get(name)
            if child is None:
                child = node.children[name] = _Node(node.offset + 1 + len(name))
            node, self._depth = child, max(self._depth, place + 2)
        return node, ()

    def match(self, path: str) -> _T | None:
        found = self._exact.get(path)
        if found is not None:
            return found
        lowest = sys.maxsize
        node = self._root
        # No more names than the deepest rule has, however many slashes a client sends.
        names = iter(path.split("/", self._depth)[1:])
        while True:
            if node.rank < lowest:
                lowest, found = node.rank, node.value
            if node.alternatives and (match := node.alternatives.match(path, node.offset)):
                rank, value = node.starred[(match.lastindex or 1) - 1]
                if rank < lowest:
                    lowest, found = rank, value
            child = node.children.get(next(names, ""))
            if child is None:
                return found
            node = child


def _segment(segment: Segment) -> str:
    """
    Return a regular expression for one segment.

    The leftmost place of each piece between stars is as good as any other, so nothing is
    tried twice (atomic groups): time is linear in the path where plain ``.*`` pieces would
    let a client choose a path that costs a power of its length.
    """
    if segment == REST:
        return ".+"
    if len(segment) == 1:
        return re.escape(segment[0])
    if not any(segment):
        return "[^/]++"
    first, *middle, last = map(re.escape, segment)
    pieces = "".join(f"(?>[^/]*?{piece})" for piece in middle)
    return f"{first}{pieces}(?>[^/]*{last}(?![^/]))"
