"""
From a URL rule of Werkzeug to the path patterns that cover the same paths.

``/users/<int:id>`` becomes ``/users/*`` and a ``path`` converter ``**``. What a converter
accepts is not looked at, so a pattern may cover more than its rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from werkzeug.routing import Rule

from gunicorn_admission.settings.patterns import REST, Pattern, Segment

__all__ = ["NOWHERE", "below", "nowhere", "patterns_of", "probe"]

NOWHERE: Final = "(after routing)"
"""Text of the patterns without paths."""

# Arguments may hold anything, slashes too, so variables are found before the path is split.
_VARIABLE: Final = re.compile(r"<(?:([a-zA-Z_][a-zA-Z0-9_]*)(?:\(.*?\))?:)?[a-zA-Z_]\w*>")
_STAR, _REST = "\0", "\1"  # no rule contains them


def patterns_of(
    rule: Rule, converters: Mapping[str, Callable[..., Any]], mount: str = ""
) -> tuple[Pattern, ...]:
    """
    Return the patterns of a rule; none where a pattern cannot say it.

    That is the case with two ``path`` converters, or with one that shares its segment with
    other text.

    Args:
        rule: Bound to a map.
        converters: Those of the map, by name.
        mount: What the server's path has in front of the application's.
    """

    def star(variable: re.Match[str]) -> str:
        converter = converters.get(variable[1] or "default")
        return _STAR if getattr(converter, "part_isolating", True) else _REST

    path = _VARIABLE.sub(star, rule.rule)
    if rule.merge_slashes:
        path = re.sub("/{2,}", "/", path)
    names = (mount + path)[1:].split("/")
    spellings = [names]
    if not rule.strict_slashes and len(names) > 1 and not names[-1]:
        spellings.append(names[:-1])
    elif not rule.strict_slashes and names[-1]:
        spellings.append([*names, ""])
    try:
        return tuple(_pattern([_segment(name) for name in spelling]) for spelling in spellings)
    except ValueError:
        return ()


def probe(pattern: Pattern) -> str:
    """Return a path that the pattern covers, to ask which other patterns cover it too."""
    return "".join("/" + ("x" if s == REST else "x".join(s)) for s in pattern.segments)


def below(mount: str, pattern: Pattern) -> Pattern:
    """Return the pattern as it is seen in front of the mount."""
    if not mount:
        return pattern
    segments = tuple(_segment(name) for name in mount[1:].split("/"))
    text = f"{'=' * pattern.exact}{mount}{pattern.text.removeprefix('=')}"
    return Pattern(pattern.exact, (*segments, *pattern.segments), text)


def nowhere(name: str) -> Pattern:
    """Return a pattern without paths, for a rule that only defines its class."""
    # A path is shown as latin-1 (PEP 3333), so no request can have this sign in it.
    return Pattern(True, (("\u2205",), (name,)), NOWHERE)


def _segment(name: str) -> Segment:
    if name == _REST:
        return REST
    if _REST in name:
        raise ValueError(name)
    # The server shows a path as its bytes in latin-1; unlike in settings, % is just a sign.
    return tuple(piece.encode().decode("latin-1") for piece in name.split(_STAR))


def _pattern(segments: list[Segment]) -> Pattern:
    if segments.count(REST) > 1:
        raise ValueError(segments)
    shown = "".join(f"/{'**' if segment == REST else '*'.join(segment)}" for segment in segments)
    exact = all(len(segment) == 1 for segment in segments)
    return Pattern(exact, tuple(segments), f"={shown}" if exact else shown)
