"""
What turns a value that a user wrote into the value that :class:`Settings` keeps.

A converter does not know the name of its field, and a validator does. So a converter
never raises: it hands its error on in place of the value, and the field's validator
(:func:`accepted`, :func:`within`) raises it under the full name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from attrs import Attribute

from gunicorn_admission.core.types import Mode
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import DurationLike, format_duration, parse_duration
from gunicorn_admission.settings.nearest import did_you_mean
from gunicorn_admission.settings.patterns import parse_pattern
from gunicorn_admission.settings.rules import RouteRule, RuleLike, parse_rule, parse_share

__all__ = [
    "ALGORITHMS",
    "PARTITIONINGS",
    "accepted",
    "caps",
    "integer",
    "limit",
    "mode",
    "optional_caps",
    "optional_integer",
    "optional_seconds",
    "optional_text",
    "partitioning",
    "paths",
    "routes",
    "seconds",
    "seconds_pair",
    "shares",
    "switch",
    "text",
    "within",
]

ALGORITHMS: Final = ("adaptive", "gradient2", "vegas", "aimd")
"""Names that ``limit`` accepts; an integer is a fixed limit."""

PARTITIONINGS: Final = ("endpoint", "route", "none")
"""What ``partition_by`` accepts."""

_V = TypeVar("_V")
_R = TypeVar("_R")


def _attempt(parse: Callable[[_V], _R], value: _V) -> _R:
    try:
        return parse(value)
    except ConfigError as error:
        return cast(_R, error)


def accepted(instance: object, attribute: Attribute[Any], value: object) -> None:
    """
    Raise the error that the converter of this field met, under the field's name.

    Raises:
        ConfigError: The value could not be converted.
    """
    if isinstance(value, ConfigError):
        raise ConfigError(attribute.name + value.field, value.value, value.expected, value.hint)


def within(
    low: float, high: float, hint: str, *, duration: bool = False
) -> Callable[[object, Attribute[Any], Any], None]:
    """
    Return a validator for a number, or ``None``, from ``low`` to ``high``.

    Args:
        low, high: Smallest and largest value.
        hint: What to do about a value outside.
        duration: Show the range as durations.
    """

    def validate(instance: object, attribute: Attribute[Any], value: Any) -> None:
        accepted(instance, attribute, value)
        if value is None or isinstance(value, str):
            return
        if not low <= value <= high:
            show = format_duration if duration else "{:,}".format
            kind = "a duration" if duration else "a number"
            raise ConfigError(
                attribute.name, value, f"{kind} from {show(low)} to {show(high)}", hint
            )

    return validate


def _integer(value: object) -> int:
    if isinstance(value, str) and value.strip().isdecimal():
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ConfigError("", value, "an integer", "write a whole number without a unit")
    return value


def integer(value: int) -> int:
    """Accept a whole number, or its digits as text."""
    return _attempt(_integer, value)


def optional_integer(value: int | None) -> int | None:
    """Accept what :func:`integer` does, and ``None``."""
    return None if value is None else integer(value)


def seconds(value: DurationLike) -> float:
    """Accept a duration."""
    return _attempt(lambda given: parse_duration(given, ""), value)


def optional_seconds(value: DurationLike | None) -> float | None:
    """Accept a duration or ``None``."""
    return None if value is None else seconds(value)


def seconds_pair(value: Iterable[DurationLike]) -> tuple[float, float]:
    """Accept a smallest and a largest duration."""

    def parse(given: object) -> tuple[float, float]:
        pair = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else []
        if len(pair) != 2:
            raise ConfigError(
                "", given, "two durations, smallest and largest, such as [1, 30]",
                "one constant would bring all refused clients back at the same moment",
            )  # fmt: skip
        return parse_duration(pair[0], "[0]"), parse_duration(pair[1], "[1]")

    return _attempt(parse, value)


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError("", value, "True or False", "write it without quotes")
    return value


def switch(value: bool) -> bool:
    """Accept a boolean and nothing that merely looks like one."""
    return _attempt(_switch, value)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise ConfigError("", value, "text", "use printable characters only")
    return value


def text(value: str) -> str:
    """Accept printable text."""
    return _attempt(_text, value)


def optional_text(value: str | None) -> str | None:
    """Accept printable text or ``None``."""
    return None if value is None else text(value)


def _choice(value: object, known: tuple[str, ...], also: str = "") -> str:
    name = value.strip().lower() if isinstance(value, str) else ""
    if name not in known:
        hint = did_you_mean(name, known) if name else f"known: {', '.join(known)}"
        raise ConfigError("", value, f"one of {', '.join(known)}{also}", hint)
    return name


def mode(value: str | Mode) -> str:
    """Accept a mode or its name; keep the name."""
    known = tuple(mode.value for mode in Mode)
    return _attempt(lambda v: v.value if isinstance(v, Mode) else _choice(v, known), value)


def partitioning(value: str) -> str:
    """Accept a way to form classes."""
    return _attempt(lambda given: _choice(given, PARTITIONINGS), value)


def limit(value: str | int) -> str | int:
    """Accept the name of an algorithm, or an integer for a fixed limit."""

    def parse(given: str | int) -> str | int:
        if isinstance(given, int) or (isinstance(given, str) and given.strip().isdecimal()):
            return _integer(given)
        if given == "fixed":
            raise ConfigError(
                "", given, f"an integer, or one of {', '.join(ALGORITHMS)}",
                "write the fixed limit itself, for example limit = 8",
            )  # fmt: skip
        return _choice(given, ALGORITHMS, " or an integer for a fixed limit")

    return _attempt(parse, value)


def paths(value: Iterable[str]) -> tuple[str, ...]:
    """Accept several path patterns."""

    def parse(given: Iterable[str]) -> tuple[str, ...]:
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise ConfigError("", given, "a list of paths", f"write [{given!r}]")
        patterns = tuple(given)
        for pattern in patterns:
            parse_pattern(pattern, "")
        return patterns

    return _attempt(parse, value)


def _mapping(value: object, example: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError("", value, f"a mapping such as {example}", "write a table of name: value")
    return value


def routes(value: Mapping[str, RuleLike]) -> Mapping[str, RouteRule]:
    """Accept a rule for each path pattern."""

    def parse(given: object) -> Mapping[str, RouteRule]:
        table = _mapping(given, "{'/payments': 'high'}")
        return MappingProxyType({path: parse_rule(path, rule, "") for path, rule in table.items()})

    return _attempt(parse, value)


def shares(value: Mapping[str, float]) -> Mapping[str, float]:
    """Accept a fraction for each class name."""

    def parse(given: object) -> Mapping[str, float]:
        table = _mapping(given, "{'/payments': 0.25}")
        return MappingProxyType({k: parse_share(v, f"[{k!r}]") for k, v in table.items()})

    return _attempt(parse, value)


def caps(value: Mapping[str, int]) -> Mapping[str, int]:
    """Accept a cap for each class name."""

    def parse(given: object) -> Mapping[str, int]:
        table = _mapping(given, "{'/payments': 8}")
        return MappingProxyType({name: _cap(cap, f"[{name!r}]") for name, cap in table.items()})

    return _attempt(parse, value)


def _cap(given: object, field: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ConfigError(
            field, given, "an integer from 1, or a mapping of class names to such",
            "None derives a cap so that no class may hold the whole pool",
        )  # fmt: skip
    return given


def optional_caps(
    value: int | Mapping[str, int] | None,
) -> int | Mapping[str, int] | None:
    """Accept one cap for all classes, or one for each class name, or ``None``."""

    def parse(given: object) -> int | Mapping[str, int]:
        if isinstance(given, Mapping):
            return MappingProxyType({k: _cap(v, f"[{k!r}]") for k, v in given.items()})
        return _cap(given, "")

    return None if value is None else _attempt(parse, value)
