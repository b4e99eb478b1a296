"""
Spans of time over which a ceiling holds, and the window of one that an instant falls into.

Calendar windows begin at local midnight (or the full hour) of a named zone. They tile the time
line: each begins where the one before ended, on the days of 23 and 25 hours too.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from attrs import field, frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import DurationLike, format_duration, parse_duration

__all__ = ["CALENDAR", "SLICES", "Span", "Window", "parse_span"]

CALENDAR: Final = ("hour", "day", "week", "month")

#: A rolling window is counted in so many slices. A slice counts until all of it is older than
#: the window: so the ceiling holds in every window, and room comes back up to 1/60 late.
SLICES: Final = 60

_HOUR: Final = timedelta(hours=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = 1_000_000
_LONGEST: Final = {
    # With the hour that is repeated in autumn; a zone may shift by less, none by more.
    "hour": 2 * 3600 * _SECOND,
    "day": 25 * 3600 * _SECOND,
    "week": (7 * 24 + 1) * 3600 * _SECOND,
    "month": (31 * 24 + 1) * 3600 * _SECOND,
}


@frozen
class Window:
    """
    One window of a span.

    Attributes:
        starts_at: Microseconds since the epoch; with the ceiling, its identity.
        ends_at: The first instant after it, or ``None`` where it never ends.
        key: The local time it begins at: ``2026-11-30``, ``2026-W49``, ``2026-11``. That of a
            part begins with that of the whole, so a bill of months can be held against days.
    """

    starts_at: int
    ends_at: int | None
    key: str


@frozen
class Span:
    """
    Over which time a ceiling holds.

    Attributes:
        per: ``hour``, ``day``, ``week`` (from Monday), ``month``, ``rolling`` or ``total``.
        zone: IANA name, of the calendar ones.
        length_us: Of a rolling one, in microseconds.

    Thread safety: immutable.
    """

    per: str
    zone: str | None = None
    length_us: int | None = None
    _tz: ZoneInfo | None = field(default=None, eq=False, repr=False, init=False)

    def __attrs_post_init__(self) -> None:
        if self.zone is not None:
            object.__setattr__(self, "_tz", ZoneInfo(self.zone))

    def __str__(self) -> str:
        """``day America/New_York``, ``rolling 1h`` or ``total``; :func:`parse_span` reads it."""
        if self.length_us is not None:
            return f"rolling {format_duration(self.length_us / _SECOND)}"
        return f"{self.per} {self.zone}" if self.zone else self.per

    @property
    def longest_us(self) -> int | None:
        """The longest that a window can last, in microseconds; ``None`` is without end."""
        return self.length_us or _LONGEST.get(self.per)

    def window_at(self, now: int) -> Window:
        """Return the window (of a rolling one, the slice) that ``now`` falls into."""
        if self.length_us is not None:
            slice_us = self._slice_us(self.length_us)
            start = now - now % slice_us
            return Window(start, start + slice_us, f"{_at(start):%Y-%m-%dT%H:%M:%S.%f}Z")
        if self._tz is None:
            return Window(0, None, "total")
        return _calendar(self.per, self._tz, now)

    def counts_from(self, window: Window, now: int) -> int:
        """Return the earliest ``starts_at`` whose spend still counts at ``now``."""
        if self.length_us is None:
            return window.starts_at
        # A slice's last microsecond is younger than the length.
        return now - self.length_us - self._slice_us(self.length_us) + 2

    def frees_at(self, starts_at: int, ends_at: int | None) -> int | None:
        """Return when the spend of a window no longer counts, or ``None``: never."""
        if self.length_us is None or ends_at is None:
            return ends_at
        return ends_at - 1 + self.length_us

    def period_at(self, now: int) -> str:
        """Return the name of the period, for pages: one page for each."""
        if self.length_us is None:
            return self.window_at(now).key
        return f"{_at(now - now % self.length_us):%Y-%m-%dT%H:%M:%S}Z+{self}"

    @staticmethod
    def _slice_us(length_us: int) -> int:
        return -(-length_us // SLICES)


def parse_span(per: object, zone: object = None) -> Span:
    """
    Return the span of ``per="day", zone="Europe/Berlin"``, ``per="total"``, or of a duration
    (``"24h"``, a ``timedelta``), which is a rolling window; or that of a span's own text.

    Raises:
        ConfigError: No such span or zone, or a zone where none can be.
    """
    if isinstance(per, str):
        word, _, rest = per.strip().partition(" ")
        if word == "rolling":
            per = rest
        elif rest and zone is None:
            per, zone = word, rest
    if per in CALENDAR:
        return Span(str(per), _zone("UTC" if zone is None else zone))
    if zone is not None:
        raise ConfigError(
            "zone", zone, "none here", f"only {', '.join(CALENDAR)} begin by a local clock"
        )
    if per == "total":
        return Span("total")
    return Span("rolling", length_us=_length(per))


def _length(per: object) -> int:
    expected = f"{', '.join(CALENDAR)}, total, or a duration of 1s to 8784h such as '24h'"
    hint = "a duration is a rolling window"
    if not isinstance(per, DurationLike) or (isinstance(per, str) and not re.search(r"\d", per)):
        raise ConfigError("per", per, expected, hint)
    length_us = round(parse_duration(per, "per") * _SECOND)
    if not _SECOND <= length_us <= 8784 * 3600 * _SECOND:
        raise ConfigError("per", per, expected, hint)
    return length_us


def _zone(name: object) -> str:
    try:
        return ZoneInfo(str(name)).key
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        raise ConfigError(
            "zone", name, "an IANA time zone such as America/New_York",
            "names are case-sensitive; abbreviations such as EST have no daylight saving",
        ) from None  # fmt: skip


def _at(now: int) -> datetime:
    return _EPOCH + timedelta(microseconds=now)


def _us(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def _calendar(per: str, zone: ZoneInfo, now: int) -> Window:
    """
    Find the boundaries on both sides.

    A boundary is an instant that the wall clock's time (midnight, the full hour) names, not a
    distance from now: so it is the same from whichever instant one looks.
    """
    local = _at(now).astimezone(zone).replace(tzinfo=None)
    found: dict[int, datetime] = {}
    for step in range(-3, 4):
        wall = _floor(per, local, step)
        instant = _us(wall.replace(tzinfo=zone))
        # The last of several names of one instant: days that a zone left out name the next.
        found[instant] = wall
        if per == "hour":  # the hour that is repeated in autumn begins twice
            again = _us(wall.replace(tzinfo=zone, fold=1))
            if again > instant:
                found[again] = wall
    starts_at = max(instant for instant in found if instant <= now)
    ends_at = min(instant for instant in found if instant > now)
    return Window(starts_at, ends_at, _key(per, found[starts_at], _at(starts_at).astimezone(zone)))


def _floor(per: str, local: datetime, step: int) -> datetime:
    """Return the wall time of the boundary at or before ``local``, ``step`` periods on."""
    hour = local.replace(minute=0, second=0, microsecond=0)
    if per == "hour":
        return hour + step * _HOUR
    day = hour.replace(hour=0)
    if per == "day":
        return day + timedelta(days=step)
    if per == "week":
        return day + timedelta(days=7 * step - day.weekday())
    months = day.year * 12 + day.month - 1 + step
    return day.replace(year=months // 12, month=months % 12 + 1, day=1)


def _key(per: str, wall: datetime, start: datetime) -> str:
    if per == "hour":
        return f"{wall:%Y-%m-%dT%H}{start:%z}"
    if per == "week":
        year, week, _ = wall.isocalendar()
        return f"{year}-W{week:02}"
    return f"{wall:%Y-%m-%d}" if per == "day" else f"{wall:%Y-%m}"
