"""
Filters: a JSON pattern says which events a subscription wants.

A pattern looks like the event: an object for an object, and at the end of each path a list of
what is accepted there. All names must match, one item of each list is enough. Where the event has
an array, one element that matches is enough. The form is that of EventBridge, which people know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.webhooks.fanout.fields import FIELDS, Fields
from gunicorn_admission.webhooks.fanout.operators import COMPARISONS, OPERATORS, Test, read_test
from gunicorn_admission.webhooks.providers.payload import Json

__all__ = ["Filter"]

_OR: Final = "$or"
_DEEPEST: Final = 32
_Match = Callable[[Json, bool], bool]


class Filter:
    """
    A pattern, checked and made ready.

    Args:
        pattern: An object with members among ``source``, ``type``, ``headers``, ``body`` and
            ``$or``; ``{}`` matches every event.

    Raises:
        ConfigError: It can never work; its field is the path to the fault.

    Thread safety: immutable.
    """

    def __init__(self, pattern: Mapping[str, Json]) -> None:
        self.pattern = pattern
        self._match = _members(pattern, "filter", 0, top=True)

    def matches(self, fields: Fields) -> bool:
        """Return whether an event is wanted."""
        return self._match(fields, True)


def _compile(part: Json, at: str, depth: int) -> _Match:
    if isinstance(part, Mapping):
        if not part:
            raise ConfigError(at, {}, "names and lists", 'write [{"exists": true}] for "any"')
        return _members(part, at, depth)
    tests = _tests(part, at)
    return lambda value, there: _passes(tests, value, there)


def _members(pattern: Json, at: str, depth: int, *, top: bool = False) -> _Match:
    """Compile an object: all of its members must match."""
    members: list[tuple[str, _Match]] = []
    ways: list[_Match] = []
    for name, part in _checked(pattern, at, depth, top).items():
        if name == _OR:
            ways += (
                _members(way, f"{at}.{_OR}[{n}]", depth + 1, top=top)
                for n, way in enumerate(_alternatives(part, at))
            )
        else:
            if top and name == "headers" and isinstance(part, Mapping):
                part = {str(header).lower(): value for header, value in part.items()}
            members.append((name, _compile(part, f"{at}.{name}", depth + 1)))

    def match(value: Json, there: bool) -> bool:
        if isinstance(value, list) and value:
            return any(match(element, True) for element in value)
        inside = value if isinstance(value, Mapping) else {}
        return all(test(inside.get(name), name in inside) for name, test in members) and (
            not ways or any(way(inside, there) for way in ways)
        )

    return match


def _checked(pattern: Json, at: str, depth: int, top: bool) -> Mapping[str, Json]:
    if not isinstance(pattern, Mapping):
        raise ConfigError(
            at, pattern, "an object of names and lists", 'write {"type": ["invoice.paid"]}'
        )
    if depth > _DEEPEST:
        raise ConfigError(at, "...", f"at most {_DEEPEST} levels", "look less deep")
    for name, part in pattern.items():
        if top and name not in (*FIELDS, _OR):
            raise ConfigError(
                f"{at}.{name}", part, f"one of {', '.join(FIELDS)}, {_OR}",
                f"{did_you_mean(name, FIELDS)} What is inside the event goes under body",
            )  # fmt: skip
        if not top and _is_operator(name, part):
            raise ConfigError(
                at, pattern, "a list around an operator", f'write [{{"{name}": ...}}]'
            )
    return pattern


def _is_operator(name: str, part: Json) -> bool:
    """Whether a member of an object is an operator that lacks its list, and no name in an event."""
    if not isinstance(part, list):
        return name in OPERATORS and not isinstance(part, Mapping)
    return name in OPERATORS and ("-" in name or part[:1] in ([sign] for sign in COMPARISONS))


def _alternatives(value: Json, at: str) -> list[Json]:
    if not isinstance(value, list) or not value:
        raise ConfigError(
            f"{at}.{_OR}", value, "a list of patterns, one at least",
            'write {"$or": [{"type": ["a"]}, {"source": ["b"]}]}',
        )  # fmt: skip
    return value


def _tests(part: Json, at: str) -> tuple[Test, ...]:
    items = part if isinstance(part, list) else [part]
    if not items:
        raise ConfigError(at, [], "one item at least", "an empty list would match nothing")
    return tuple(read_test(item, f"{at}[{n}]") for n, item in enumerate(items))


def _passes(tests: tuple[Test, ...], value: Json, there: bool) -> bool:
    if isinstance(value, list):  # an empty array counts as absent
        values = [(element, True) for element in value] or [(None, False)]
    else:
        values = [(value, there)]
    return any(test(element, present) for element, present in values for test in tests)
