"""
Path patterns of route rules: what they may look like, which is more specific, which overlap.

``/a`` covers ``/a`` and everything below it, ``=/a`` that path only; ``*`` stands for
any text inside one segment and a segment ``**`` for any rest of at least one character.
A pattern with a star covers whole paths. Matching itself lives in ``classify``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, TypeVar
from urllib.parse import unquote_to_bytes

from attrs import frozen

from gunicorn_admission.errors import ConfigError

__all__ = ["REST", "Pattern", "Segment", "overlap", "parse_pattern"]

Segment = tuple[str, ...]
"""Literal pieces between stars: ``abc`` is ``("abc",)``, ``a*b`` is ``("a", "b")``."""

REST: Final[Segment] = ()
"""The segment ``**``."""

_EXPECTED: Final = "a path such as '/reports', '=/reports', '/users/*/orders' or '/static/**'"
_T = TypeVar("_T")


@frozen
class Pattern:
    """
    A parsed path pattern. Compare and hash by meaning: the text as written is left out.

    Attributes:
        exact: Covers exactly one path.
        segments: Between slashes, decoded the way gunicorn decodes ``PATH_INFO``.
        text: As the user wrote it.
    """

    exact: bool
    segments: tuple[Segment, ...]
    text: str

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pattern):
            return NotImplemented
        return (self.exact, self.segments) == (other.exact, other.segments)

    def __hash__(self) -> int:
        return hash((self.exact, self.segments))

    @property
    def starred(self) -> bool:
        """Whether it has a star anywhere."""
        return any(len(segment) != 1 for segment in self.segments)

    @property
    def specificity(self) -> tuple[bool, int, bool, int]:
        """
        Sort key; the larger one decides about a path that two patterns cover.

        Exact, then the number of literal characters, then no ``**``, then fewer stars. It
        depends on the pattern only, never on the order of rules.
        """
        literal = sum(1 + sum(map(len, segment)) for segment in self.segments)
        stars = sum(len(segment) - 1 for segment in self.segments if segment)
        return self.exact, literal, REST not in self.segments, -stars

    @property
    def literal_path(self) -> str | None:
        """The one path or prefix that it names, without a last slash; ``None`` with a star."""
        return None if self.starred else "".join(f"/{segment[0]}" for segment in self.segments)


def parse_pattern(text: str, field: str = "routes") -> Pattern:
    """
    Return the meaning of one pattern.

    Args:
        text: See the module; ``%xx`` and non-ASCII text mean the bytes that a client sends.
        field: Name of the setting, for the error.

    Raises:
        ConfigError: It is not a path pattern.

    Thread safety: pure.
    """

    def refuse(hint: str) -> ConfigError:
        return ConfigError(field, text, _EXPECTED, hint)

    if not isinstance(text, str):
        raise refuse("a pattern is text")
    exact = text.startswith("=")
    path = text[1:] if exact else text
    if not path.startswith("/"):
        raise refuse(f"start it with a slash: {'=' * exact}/{path}")
    if re.search(r"[?#\s\x00-\x1f\x7f]", path):
        raise refuse("only the path is matched: no query, fragment, space or control character")
    if "%2f" in path.lower():
        raise refuse("%2F reaches the application as a slash; write a slash")
    if exact and "*" in path:
        raise refuse("an exact path has no star; leave out the '='")
    # '/a/' and '/a' are one prefix; an exact path keeps its last slash.
    names = path[1:].split("/") if exact else path.strip("/").split("/") if path != "/" else []
    if not exact and (path.startswith("//") or path.endswith("//")):
        raise refuse("one slash is enough")
    if "" in names[: -1 if exact else None]:
        raise refuse("one slash between segments is enough")
    if {".", ".."} & set(names):
        raise refuse("write the path without dot segments")
    if any("**" in name and name != "**" for name in names) or names.count("**") > 1:
        raise refuse("'**' is a whole segment, once in a pattern; '*' stays inside one segment")
    return Pattern(exact, tuple(REST if n == "**" else _pieces(n) for n in names), text)


def _pieces(name: str) -> Segment:
    # The server shows a path as its bytes in latin-1 (PEP 3333), so a rule must too.
    return tuple(unquote_to_bytes(piece).decode("latin-1") for piece in name.split("*"))


def overlap(one: Pattern, two: Pattern) -> bool:
    """
    Tell whether some path is covered by both and neither is the more specific.

    Starred patterns are compared like two regular languages: their stars may meet. Equal
    patterns overlap; an exact path or prefix differs from any other one.
    """
    if one == two:
        return True
    if one.specificity != two.specificity or not one.starred:
        return False
    return _meet(one.segments, two.segments, REST, _segments_meet)


def _segments_meet(one: Segment, two: Segment) -> bool:
    return _meet("*".join(one), "*".join(two), "*", str.__eq__)


def _meet(one: Sequence[_T], two: Sequence[_T], star: _T, same: Callable[[_T, _T], bool]) -> bool:
    """Tell whether two sequences with stars have an instance in common; len(one) x len(two)."""
    end = len(one), len(two)
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        i, j = here = todo.pop()
        if here == end:
            return True
        if here in seen:
            continue
        seen.add(here)
        more_one, more_two = i < end[0], j < end[1]
        if (more_one and one[i] == star) or (more_two and two[j] == star):
            # A star ends, or swallows what the other one has next.
            if more_one:
                todo.append((i + 1, j))
            if more_two:
                todo.append((i, j + 1))
        elif more_one and more_two and same(one[i], two[j]):
            todo.append((i + 1, j + 1))
    return False
