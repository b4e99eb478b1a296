"""Durations as people write them (``5ms``, ``1.5s``, ``2m``, a number of seconds) and back."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final

from gunicorn_admission.errors import ConfigError

__all__ = ["DurationLike", "format_duration", "parse_duration", "to_ns"]

DurationLike = float | int | str | timedelta
"""What a setting that is a duration accepts; bare numbers are seconds."""

_UNITS: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_TEXT: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)", re.ASCII)
_EXPECTED: Final = "a duration of 0 or more such as 0.005, '5ms', '1.5s' or '2m'"


def parse_duration(value: DurationLike, field: str = "duration") -> float:
    """
    Return a duration in seconds.

    Args:
        value: A ``timedelta``, a number of seconds, or text with one of the units
            ``us ms s m h d``; text without a unit is seconds.
        field: Name of the setting, for the error.

    Raises:
        ConfigError: It is negative, not finite, or not a duration at all.

    Thread safety: pure.
    """
    seconds = math.nan
    hint = f"use a number of seconds or one number with a unit ({', '.join(_UNITS)})"
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, bool):
        hint = "a switch is not a duration; 0 means no time at all"
    elif isinstance(value, (int, float)):
        try:
            seconds = float(value)
        except OverflowError:
            hint = "it is too large"
    elif isinstance(value, str):
        match = _TEXT.fullmatch(value.strip().lower())
        if match:
            number, unit = match.groups()
            if unit in _UNITS or not unit:
                seconds = float(number) * _UNITS.get(unit, 1.0)
            else:
                hint = f"{unit!r} is no unit; known are {', '.join(_UNITS)}"
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ConfigError(field, value, _EXPECTED, hint)
    return seconds


def format_duration(seconds: float) -> str:
    """
    Return text that :func:`parse_duration` reads as the same duration.

    Args:
        seconds: 0 or more.
    """
    if not seconds:
        return "0s"
    for unit, size in (("h", 3600.0), ("m", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        number = f"{seconds / size:.6f}".rstrip("0").rstrip(".")
        if seconds >= size and float(number) * size == seconds:
            return number + unit
    from decimal import Decimal  # rare, and costs 5 ms

    return f"{Decimal(repr(seconds)):f}s"


def to_ns(seconds: float) -> int:
    """Return seconds as whole nanoseconds, the unit of the core."""
    return round(seconds * 1_000_000_000)
