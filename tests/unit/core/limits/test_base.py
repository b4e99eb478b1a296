"""Bounds and arguments: what cannot work is refused when it is written, and says why."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from gunicorn_admission.core.limits import (
    AIMDLimit,
    BoundedLimit,
    FixedLimit,
    Gradient2Limit,
    Limit,
    VegasLimit,
    WindowedLimit,
)
from gunicorn_admission.errors import ConfigError

REFUSED: list[tuple[Callable[..., object], dict[str, Any], str]] = [
    (FixedLimit, {"limit": 0}, "limit"),
    (FixedLimit, {"limit": 2.5}, "limit"),
    (FixedLimit, {"limit": True}, "limit"),
    (AIMDLimit, {"initial": 0, "minimum": 0}, "minimum"),
    (AIMDLimit, {"minimum": 30, "maximum": 29}, "minimum"),
    (AIMDLimit, {"minimum": 1, "maximum": 0}, "maximum"),
    (AIMDLimit, {"initial": 19}, "initial"),
    (AIMDLimit, {"initial": 201}, "initial"),
    (AIMDLimit, {"initial": "20"}, "initial"),
    (AIMDLimit, {"backoff_ratio": 1.0}, "backoff_ratio"),
    (AIMDLimit, {"backoff_ratio": 0.0}, "backoff_ratio"),
    (AIMDLimit, {"timeout_ns": 0}, "timeout_ns"),
    (AIMDLimit, {"timeout_ns": 5.0}, "timeout_ns"),
    (VegasLimit, {"initial": 1001}, "initial"),
    (VegasLimit, {"maximum": 0}, "maximum"),
    (VegasLimit, {"smoothing": 0.0}, "smoothing"),
    (VegasLimit, {"smoothing": 1.01}, "smoothing"),
    (VegasLimit, {"probe_multiplier": 0}, "probe_multiplier"),
    (Gradient2Limit, {"minimum": 21}, "initial"),
    (Gradient2Limit, {"queue_size": 0}, "queue_size"),
    (Gradient2Limit, {"smoothing": float("nan")}, "smoothing"),
    (Gradient2Limit, {"smoothing": "0.2"}, "smoothing"),
    (Gradient2Limit, {"long_window": 0}, "long_window"),
    (Gradient2Limit, {"rtt_tolerance": 0.99}, "rtt_tolerance"),
    (Gradient2Limit, {"rtt_tolerance": float("inf")}, "rtt_tolerance"),
    (Gradient2Limit, {"rtt_tolerance": float("nan")}, "rtt_tolerance"),
    (Gradient2Limit, {"rtt_tolerance": "1.5"}, "rtt_tolerance"),
    (WindowedLimit, {"inner": 20}, "inner"),
    (WindowedLimit, {"inner": FixedLimit}, "inner"),
    (WindowedLimit, {"inner": FixedLimit(1), "min_window_ns": 0}, "min_window_ns"),
    (WindowedLimit, {"inner": FixedLimit(1), "min_window_ns": 10**9 + 1}, "min_window_ns"),
    (WindowedLimit, {"inner": FixedLimit(1), "max_window_ns": 1.0}, "max_window_ns"),
    (WindowedLimit, {"inner": FixedLimit(1), "window_size": 0}, "window_size"),
    (WindowedLimit, {"inner": FixedLimit(1), "percentile": 90}, "percentile"),
    (WindowedLimit, {"inner": FixedLimit(1), "percentile": 0.0}, "percentile"),
]


@pytest.mark.parametrize(("build", "arguments", "field"), REFUSED)
def test_bad_argument_is_named(
    build: Callable[..., object], arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        build(**arguments)
    assert refused.value.field == field
    assert refused.value.value is arguments.get(field, 20)  # 20 is the default of `initial`
    assert "Hint: " in str(refused.value)


@pytest.mark.parametrize(
    ("build", "arguments"),
    [
        (FixedLimit, {"limit": 1}),
        (AIMDLimit, {"initial": 20, "minimum": 20, "maximum": 20}),
        (VegasLimit, {"initial": 1, "maximum": 1, "smoothing": 1, "probe_multiplier": 1}),
        (Gradient2Limit, {"initial": 1, "minimum": 1, "rtt_tolerance": 1, "long_window": 1}),
        (WindowedLimit, {"inner": FixedLimit(1), "percentile": 1.0, "window_size": 1}),
        (WindowedLimit, {"inner": FixedLimit(1), "min_window_ns": 1, "max_window_ns": 1}),
    ],
)
def test_the_edges_of_each_range_are_accepted(
    build: Callable[..., Limit], arguments: dict[str, Any]
) -> None:
    assert build(**arguments).limit >= 1


def test_a_limit_of_your_own_needs_no_base_class() -> None:
    class Mine:
        limit = 4
        estimate = 4.0

        def on_sample(self, **sample: object) -> None: ...

        def set_bounds(self, minimum: int, maximum: int) -> None: ...

    assert isinstance(Mine(), Limit)
    assert not isinstance(object(), Limit)


def test_new_bounds_bring_the_estimate_inside() -> None:
    limit = AIMDLimit(30)
    limit.set_bounds(1, 8)
    assert (limit.limit, limit.estimate) == (8, 8.0)
    limit.set_bounds(12, 64)
    assert limit.limit == 12


def test_refused_bounds_change_nothing() -> None:
    limit = AIMDLimit(30, minimum=20, maximum=40)
    for minimum, maximum in [(0, 40), (41, 40), (1, 2.0)]:
        with pytest.raises(ConfigError):
            limit.set_bounds(minimum, maximum)  # type: ignore[arg-type]
    assert repr(limit) == "AIMDLimit(estimate=30.0, minimum=20, maximum=40)"


def test_the_base_decides_nothing_itself() -> None:
    with pytest.raises(TypeError, match="on_sample"):
        BoundedLimit(initial=1, minimum=1, maximum=1)  # type: ignore[abstract]


@pytest.mark.parametrize(
    ("build", "defaults"),
    [
        (
            AIMDLimit,
            {
                "initial": 20,
                "minimum": 20,
                "maximum": 200,
                "backoff_ratio": 0.9,
                "timeout_ns": 5_000_000_000,
            },
        ),
        (
            VegasLimit,
            {
                "initial": 20,
                "maximum": 1000,
                "smoothing": 1.0,
                "probe_multiplier": 30,
                "jitter": None,
            },
        ),
        (
            Gradient2Limit,
            {
                "initial": 20,
                "minimum": 20,
                "maximum": 200,
                "queue_size": 4,
                "smoothing": 0.2,
                "long_window": 600,
                "rtt_tolerance": 1.5,
            },
        ),
        (
            WindowedLimit,
            {
                "inner": inspect.Parameter.empty,
                "min_window_ns": 10**9,
                "max_window_ns": 10**9,
                "window_size": 10,
                "percentile": None,
            },
        ),
    ],
)
def test_defaults_are_the_published_ones(
    build: Callable[..., object], defaults: dict[str, object]
) -> None:
    parameters = inspect.signature(build).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == defaults
