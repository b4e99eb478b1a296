"""Timestamps as senders write them, and whether one is near enough to now."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from gunicorn_admission.webhooks.providers.facts import Tolerance
from gunicorn_admission.webhooks.providers.outcome import Reason, Refusal

__all__ = ["check_fresh", "from_iso", "from_milliseconds", "from_seconds"]

# Digits of today's milliseconds and a few to spare. int() alone takes '1_0' and Arabic digits.
_DIGITS: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_LONGEST_ISO: Final = 40


def from_seconds(text: str) -> float | None:
    """Return whole seconds since the epoch, or ``None`` where the text is no such number."""
    return float(text) if _DIGITS.fullmatch(text) else None


def from_milliseconds(text: str) -> float | None:
    """Return seconds since the epoch from milliseconds, or ``None``."""
    return float(text) / 1000 if _DIGITS.fullmatch(text) else None


def from_iso(text: str | None) -> float | None:
    """Return seconds since the epoch from ISO 8601, in UTC where no zone is given, or ``None``."""
    if text is None or len(text) > _LONGEST_ISO:
        return None
    try:
        when = datetime.fromisoformat(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        return when.timestamp()
    except (ValueError, OverflowError):
        return None


def check_fresh(timestamp: float, now: float, tolerance: Tolerance) -> None:
    """
    Check a signed timestamp against now; both in seconds since the epoch.

    Call this when the signature has been found good and not before: else an answer tells
    strangers about the clock, and a genuine late delivery looks like a forged one.

    Raises:
        Refusal: It is too old or too far ahead.
    """
    age = now - timestamp
    if tolerance.max_age is not None and age > tolerance.max_age:
        raise Refusal(Reason.TOO_OLD, age=age)
    if tolerance.max_future is not None and -age > tolerance.max_future:
        raise Refusal(Reason.IN_THE_FUTURE, age=age)
