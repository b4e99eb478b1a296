"""Timestamps in the forms of the senders, and the window around now."""

from __future__ import annotations

import time

import pytest

from gunicorn_admission.webhooks.providers.facts import Tolerance
from gunicorn_admission.webhooks.providers.outcome import Reason, Refusal
from gunicorn_admission.webhooks.providers.timestamps import (
    check_fresh,
    from_iso,
    from_milliseconds,
    from_seconds,
)

NO_NUMBERS = ["", "-1", "+1", " 1", "1_0", "1.5", "1e3", "0x1", "٣", "²", "9" * 16, "1\n"]


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_whole_number(text: str) -> None:
    assert from_seconds(text) is None
    assert from_milliseconds(text) is None


def test_numbers() -> None:
    assert from_seconds("1614265330") == 1614265330.0
    assert from_milliseconds("1693657560001") == 1693657560.001


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2022-07-13T20:30:59Z", 1657744259.0),
        ("2022-07-13T22:30:59+02:00", 1657744259.0),
        ("2022-07-13T20:30:59", 1657744259.0),
        ("2022-07-13T20:30:59.5Z", 1657744259.5),
        ("2022-07-13T20:30:59.037339943Z", 1657744259.037339),
    ],
)
def test_iso_8601(text: str, seconds: float) -> None:
    assert from_iso(text) == seconds


@pytest.mark.parametrize(
    "text",
    [None, "", "now", "2022-13-01", "0000-01-01", "٢٠٢٢-07-13", "2022-07-13T20:30:59Z" + "0" * 40],
)
def test_what_is_no_iso_8601(text: str | None) -> None:
    assert from_iso(text) is None


def test_without_a_zone_it_is_utc_wherever_we_are(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        assert from_iso("2022-07-13T20:30:59") == 1657744259.0
    time.tzset()


def test_ages_at_the_edges_of_the_calendar() -> None:
    for text in ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"):
        assert isinstance(from_iso(text), float)


def test_both_directions_have_their_own_bound() -> None:
    tolerance = Tolerance(max_age=300.0, max_future=10.0)
    for inside in (700.0, 1000.0, 1010.0):
        check_fresh(inside, 1000.0, tolerance)
    with pytest.raises(Refusal) as old:
        check_fresh(699.0, 1000.0, tolerance)
    assert (old.value.refused.reason, old.value.refused.age) == (Reason.TOO_OLD, 301.0)
    with pytest.raises(Refusal) as ahead:
        check_fresh(1011.0, 1000.0, tolerance)
    assert (ahead.value.refused.reason, ahead.value.refused.age) == (Reason.IN_THE_FUTURE, -11.0)


def test_without_bound_any_age_will_do() -> None:
    for timestamp in (0.0, 1e15):
        check_fresh(timestamp, 1000.0, Tolerance())
