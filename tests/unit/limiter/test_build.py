"""From settings to the parts of a limiter that stands alone."""

from __future__ import annotations

import pytest

from gunicorn_admission.core.limits import AdaptiveLimit, FixedLimit, WindowedLimit
from gunicorn_admission.core.policy import Policy
from gunicorn_admission.limiter import Limiter
from gunicorn_admission.limiter.build import build, limit_factory
from gunicorn_admission.settings import Settings


def test_with_nothing_set_it_adapts() -> None:
    parts = build(Settings())
    assert isinstance(parts.limit(), AdaptiveLimit)
    assert parts.policy.max_limit == 64
    assert parts.policy.class_cap is None


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        (Settings(limit=5), 5),
        (Settings(max_limit=7), 7),
        (Settings(threads=9), 9),
        (Settings(limit=5, threads=9), 5),
    ],
)
def test_where_the_bound_comes_from(settings: Settings, most: int) -> None:
    parts = build(settings)
    assert parts.limit().limit <= most
    assert parts.policy.max_limit == most


def test_no_class_is_capped_unless_told() -> None:
    assert build(Settings(partition_by="endpoint")).policy.class_cap is None
    assert build(Settings(partition_by="endpoint", cap=3)).policy.class_cap == 3


@pytest.mark.parametrize("algorithm", ["adaptive", "aimd", "gradient2", "vegas"])
def test_every_algorithm_starts_within_the_bounds(algorithm: str) -> None:
    policy = Policy(max_limit=12, min_limit=2)
    limit = limit_factory(algorithm, None, policy)()
    assert 2 <= limit.limit <= 12
    for i in range(2000):
        limit.on_sample(
            now_ns=i * 10_000_000, rtt_ns=1_000_000, inflight=limit.limit, dropped=i % 3 == 0
        )
        assert 1 <= limit.limit <= 12


def test_each_call_makes_a_fresh_one() -> None:
    factory = limit_factory("gradient2", None, Policy(max_limit=4))
    assert factory() is not factory()
    assert isinstance(factory(), WindowedLimit)


def test_a_number_is_a_fixed_limit_within_the_bound() -> None:
    limit = limit_factory("fixed", 9, Policy(max_limit=4))()
    assert isinstance(limit, FixedLimit)
    assert limit.limit == 4


def test_a_policy_given_alone_bounds_the_algorithm_too() -> None:
    limiter = Limiter(policy=Policy(max_limit=6, min_limit=3))
    seen = limiter.statistics()
    assert seen.max_limit == 6
    assert seen.estimate <= 6
