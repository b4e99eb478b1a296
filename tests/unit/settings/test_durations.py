"""Durations: what is accepted, what is refused and why, and that text survives the way back."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.settings.durations import (
    DurationLike,
    format_duration,
    parse_duration,
    to_ns,
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("5ms", 0.005),
        ("0.005", 0.005),
        (0.005, 0.005),
        ("1.5s", 1.5),
        ("2m", 120.0),
        ("1h", 3600.0),
        ("250us", 0.00025),
        (" 5 MS ", 0.005),
        (".5s", 0.5),
        ("3.", 3.0),
        (7, 7.0),
        (0, 0.0),
        ("0", 0.0),
        (timedelta(milliseconds=1500), 1.5),
    ],
)
def test_accepts_what_people_write(written: DurationLike, seconds: float) -> None:
    assert parse_duration(written) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "written",
    [
        "", "ms", "5 parsec", "1m30s", "-5ms", "1e3", "five", "5ms5", "5,5s", -1, -0.001,
        float("nan"), float("inf"), "9" * 400, 10**400, True, None, b"5ms", timedelta(seconds=-1),
    ],
)  # fmt: skip
def test_refuses_what_is_no_duration(written: DurationLike) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_duration(written, "max_wait")
    assert caught.value.field == "max_wait"
    assert caught.value.value is written
    assert caught.value.hint


def test_names_the_unknown_unit() -> None:
    with pytest.raises(ConfigError, match=r"'parsec' is no unit; known are us, ms, s, m, h, d"):
        parse_duration("5 parsec")


def test_a_switch_is_no_duration() -> None:
    with pytest.raises(ConfigError, match="a switch is not a duration"):
        parse_duration(True)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.005, "5ms"),
        (1.5, "1.5s"),
        (120.0, "2m"),
        (3600.0, "1h"),
        (0.00025, "250us"),
        (1_234_567.0, "1234567s"),
    ],
)
def test_formats_with_the_largest_fitting_unit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.floats(min_value=0, max_value=1e12, allow_subnormal=False))
def test_text_is_read_as_the_same_duration(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


def test_nanoseconds_are_rounded_not_cut() -> None:
    assert to_ns(0.1) == 100_000_000
    assert to_ns(0.29) == 290_000_000
