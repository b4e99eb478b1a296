"""FixedLimit: the same number whatever happens, except where the bounds forbid it."""

from __future__ import annotations

from gunicorn_admission.core.limits import FixedLimit


def test_no_sample_moves_it() -> None:
    limit = FixedLimit(10)
    for dropped in (False, True):
        limit.on_sample(now_ns=1, rtt_ns=60_000_000_000, inflight=10, dropped=dropped)
    assert (limit.limit, limit.estimate) == (10, 10.0)


def test_gives_way_to_bounds_and_comes_back() -> None:
    limit = FixedLimit(10)
    limit.set_bounds(1, 4)
    assert limit.limit == 4
    limit.set_bounds(12, 20)
    assert limit.limit == 12
    limit.set_bounds(1, 64)
    assert limit.limit == 10


def test_shows_its_number() -> None:
    assert repr(FixedLimit(10)) == "FixedLimit(10)"
