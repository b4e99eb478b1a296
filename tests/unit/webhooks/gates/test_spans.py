"""Windows: by local clocks, of any length, and without end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.gates.spans import CALENDAR, SLICES, Span, parse_span

HOUR = 3_600_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Half hours, days that a zone left out (Apia), clocks that change at midnight (Cairo, Havana,
#: Sao Paulo) and by half an hour (Lord Howe).
ZONES = (
    "UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe",
    "Pacific/Apia", "Africa/Cairo", "America/Havana", "America/Sao_Paulo", "America/St_Johns",
    "Asia/Kathmandu", "Antarctica/Troll",
)  # fmt: skip


def us(text: str, zone: str = "UTC") -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return (moment.astimezone(UTC) - EPOCH) // timedelta(microseconds=1)


def hours(span: Span, now: int) -> float:
    window = span.window_at(now)
    assert window.ends_at is not None
    return (window.ends_at - window.starts_at) / HOUR


@pytest.mark.parametrize(
    ("zone", "day", "length"),
    [
        ("America/New_York", "2026-03-08", 23),
        ("America/New_York", "2026-11-01", 25),
        ("Europe/Berlin", "2026-03-29", 23),
        ("Europe/Berlin", "2026-10-25", 25),
        ("Australia/Lord_Howe", "2026-04-05", 24.5),
        ("Australia/Lord_Howe", "2026-10-04", 23.5),
        ("Africa/Cairo", "2026-04-24", 23),  # has no midnight
        ("America/Havana", "2026-11-01", 25),  # has midnight twice
        ("Asia/Kolkata", "2026-03-08", 24),
    ],
)
def test_days_of_other_than_24_hours(zone: str, day: str, length: float) -> None:
    span = parse_span("day", zone)
    noon = us(f"{day}T12:00", zone)
    assert hours(span, noon) == length
    assert span.window_at(noon).key == day


def test_a_day_that_a_zone_left_out() -> None:
    span = parse_span("day", "Pacific/Apia")  # 2011-12-30 did not happen there
    window = span.window_at(us("2011-12-29T12:00", "Pacific/Apia"))
    assert window.ends_at is not None
    assert (window.key, span.window_at(window.ends_at).key) == ("2011-12-29", "2011-12-31")
    assert hours(span, window.starts_at) == hours(span, window.ends_at) == 24


def test_hours_that_come_twice_are_two_windows() -> None:
    span = parse_span("hour", "America/New_York")
    first = span.window_at(us("2026-11-01T05:30"))
    second = span.window_at(us("2026-11-01T06:30"))
    assert (first.key, second.key) == ("2026-11-01T01-0400", "2026-11-01T01-0500")
    assert first.ends_at == second.starts_at


def test_names_begin_with_the_name_of_the_whole() -> None:
    now = us("2026-11-30T14:05")
    keys = {per: parse_span(per).window_at(now).key for per in CALENDAR}
    assert keys == {
        "hour": "2026-11-30T14+0000", "day": "2026-11-30", "week": "2026-W49", "month": "2026-11",
    }  # fmt: skip
    assert parse_span("5m").window_at(now).key.startswith("2026-11-30T14:05:00")


@given(
    zone=st.sampled_from(ZONES),
    per=st.sampled_from(CALENDAR),
    now=st.integers(us("1990-01-01T00:00"), us("2037-01-01T00:00")),
)
def test_windows_tile_the_time_line(zone: str, per: str, now: int) -> None:
    span = parse_span(per, zone)
    window = span.window_at(now)
    assert window.ends_at is not None and span.longest_us is not None
    assert window.starts_at <= now < window.ends_at
    assert window.ends_at - window.starts_at <= span.longest_us
    # The same from everywhere in it, and no gap to its neighbours.
    for inside in (window.starts_at, (window.starts_at + now) // 2, window.ends_at - 1):
        assert span.window_at(inside) == window
    assert span.window_at(window.ends_at).starts_at == window.ends_at
    assert span.window_at(window.starts_at - 1).ends_at == window.starts_at


@given(
    zone=st.sampled_from(ZONES),
    now=st.integers(us("1990-01-01T00:00"), us("2037-01-01T00:00")),
)
def test_a_day_is_all_instants_of_one_local_date(zone: str, now: int) -> None:
    window = parse_span("day", zone).window_at(now)
    assert window.ends_at is not None
    local = (EPOCH + timedelta(microseconds=now)).astimezone(ZoneInfo(zone))
    last = (EPOCH + timedelta(microseconds=window.ends_at - 1)).astimezone(ZoneInfo(zone))
    assert window.key == f"{local:%Y-%m-%d}" == f"{last:%Y-%m-%d}"


@given(
    length=st.integers(1_000_000, 40 * 24 * HOUR),
    spent=st.integers(0, 10**15),
    later=st.integers(0, 50 * 24 * HOUR),
)
def test_rolling_counts_all_of_the_window_and_little_more(
    length: int, spent: int, later: int
) -> None:
    span = Span("rolling", length_us=length)
    slice_ = span.window_at(spent)
    now = spent + later
    counts = slice_.starts_at >= span.counts_from(span.window_at(now), now)
    if later < length:
        assert counts
    if later >= length + length // SLICES + 1:
        assert not counts
    frees_at = span.frees_at(slice_.starts_at, slice_.ends_at)
    assert frees_at is not None
    assert counts == (now < frees_at)


def test_total_has_no_end() -> None:
    span = parse_span("total")
    assert span.window_at(1) == span.window_at(10**18)
    assert span.longest_us is None and span.frees_at(0, None) is None


@pytest.mark.parametrize(
    ("per", "zone"),
    [("day", "America/New_York"), ("24h", None), (timedelta(minutes=5), None), ("total", None)],
)
def test_a_span_is_read_from_its_own_text(per: str, zone: str | None) -> None:
    span = parse_span(per, zone)
    assert parse_span(str(span)) == span


@pytest.mark.parametrize(
    ("per", "zone", "says"),
    [
        ("fortnight", None, "hour, day, week, month, total"),
        ("daily", "UTC", "none here"),
        ("24h", "UTC", "begin by a local clock"),
        ("day", "New York", "IANA"),
        ("day", "America/Nowhere", "IANA"),
        ("day", "../etc/passwd", "IANA"),
        ("10ms", None, "1s to"),
        ("-1h", None, "duration"),
        (True, None, "duration"),
        (None, None, "duration"),
        (float("nan"), None, "duration"),
    ],
)
def test_what_cannot_be(per: object, zone: object, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_span(per, zone)
