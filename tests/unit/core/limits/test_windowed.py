"""WindowedLimit: when windows close, what they hand on, and what they throw away."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from gunicorn_admission.core.limits import AIMDLimit, Gradient2Limit, WindowedLimit

MILLISECOND = 1_000_000
SECOND = 1_000_000_000


class Heard(NamedTuple):
    now_ns: int
    rtt_ns: int
    inflight: int
    dropped: bool


class Listener(AIMDLimit):
    """Keeps what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Heard] = []

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        self.heard.append(Heard(now_ns, rtt_ns, inflight, dropped))


@pytest.fixture
def inner() -> Listener:
    return Listener()


def feed(
    limit: WindowedLimit,
    now_ns: int,
    rtt_ns: int = 20 * MILLISECOND,
    *,
    inflight: int = 1,
    dropped: bool = False,
) -> None:
    limit.on_sample(
        now_ns=now_ns, rtt_ns=rtt_ns, inflight=inflight, dropped=dropped, partition="checkout"
    )


def one_window(
    inner: Listener, rtts: list[int], percentile: float | None = None, *, dropped: int = 0
) -> Heard:
    """What is handed on for these RTTs; the last ``dropped`` of them were drops."""
    limit = WindowedLimit(inner, window_size=len(rtts), percentile=percentile)
    feed(limit, 1)  # the very first sample closes a window of one, too small if more are asked
    inner.heard.clear()
    for number, rtt_ns in enumerate(rtts, 1):
        last = number == len(rtts)
        feed(
            limit,
            3 * SECOND if last else number + 1,
            rtt_ns,
            dropped=number > len(rtts) - dropped,
        )
    (heard,) = inner.heard
    return heard


# The published vectors are 5000, 500 and 10 ns; scaled past the threshold of 100 us.
SCALE = 100_000


def test_average(inner: Listener) -> None:
    heard = one_window(inner, [5000 * SCALE, 500 * SCALE, 10 * SCALE])
    assert (heard.rtt_ns, heard.dropped) == (5510 * SCALE // 3, False)


def test_average_takes_in_the_dropped(inner: Listener) -> None:
    heard = one_window(inner, [5000 * SCALE, 500 * SCALE, 10 * SCALE, 5000 * SCALE], dropped=1)
    assert (heard.rtt_ns, heard.dropped) == (262_750_000, True)


@pytest.mark.parametrize(
    ("rtts", "percentile", "dropped", "expected"),
    [
        ([5000, 500, 10], 0.5, 0, 500),
        ([10, 5000, 5000], 0.5, 2, 5000),
        ([5000, 500, 10], 0.999, 0, 5000),
        ([5000, 500, 10], 0.1, 0, 10),  # index -1 in the library, which raises
        ([10, 500, 1000, 2000, 5000], 0.5, 0, 1000),  # 2.5 rounds up, not to even
    ],
)
def test_percentile(
    inner: Listener, rtts: list[int], percentile: float, dropped: int, expected: int
) -> None:
    heard = one_window(inner, [rtt * SCALE for rtt in rtts], percentile, dropped=dropped)
    assert heard.rtt_ns == expected * SCALE
    assert heard.dropped == bool(dropped)


def test_a_window_closes_with_the_first_sample_after_its_end(inner: Listener) -> None:
    limit = WindowedLimit(inner, window_size=2)
    feed(limit, 5 * SECOND)
    feed(limit, 6 * SECOND, inflight=7)
    assert inner.heard == []
    feed(limit, 6 * SECOND + 1, inflight=3)
    assert inner.heard == [Heard(6 * SECOND + 1, 20 * MILLISECOND, 7, False)]


def test_the_next_window_is_twice_the_smallest_rtt_within_the_bounds(inner: Listener) -> None:
    def lengths(smallest_ms: int) -> int:
        limit = WindowedLimit(
            inner,
            min_window_ns=50 * MILLISECOND,
            max_window_ns=400 * MILLISECOND,
            window_size=1,
        )
        feed(limit, 0, 900 * MILLISECOND)  # at 0 a window of no length is still open
        feed(limit, 1, smallest_ms * MILLISECOND)
        inner.heard.clear()
        now_ns = 1
        while not inner.heard:
            now_ns += MILLISECOND
            feed(limit, now_ns)
        return (now_ns - 1) // MILLISECOND - 1

    assert [lengths(ms) for ms in (10, 60, 150, 500)] == [50, 120, 300, 400]


def test_a_window_with_too_few_samples_is_thrown_away(inner: Listener) -> None:
    limit = WindowedLimit(inner)
    feed(limit, 1)
    for second in range(2, 60, 2):
        for number in range(9):
            feed(limit, second * SECOND + number, dropped=True)
    assert inner.heard == []


def test_ten_samples_are_enough(inner: Listener) -> None:
    limit = WindowedLimit(inner)
    feed(limit, 1)
    for number in range(9):
        feed(limit, 2 + number)
    feed(limit, 2 * SECOND)
    assert len(inner.heard) == 1


def test_under_100_microseconds_is_not_looked_at(inner: Listener) -> None:
    limit = WindowedLimit(inner, window_size=1)
    for rtt_ns in (-1, 0, 99_999):
        feed(limit, 1, rtt_ns, inflight=9, dropped=True)
    assert inner.heard == []
    feed(limit, 1, 100_000)
    assert inner.heard == [Heard(1, 100_000, 1, False)]


def test_a_percentile_window_keeps_its_first_thousand(inner: Listener) -> None:
    limit = WindowedLimit(inner, percentile=1.0)
    feed(limit, 1)
    for _ in range(1000):
        feed(limit, 2)
    feed(limit, 2 * SECOND, 90 * MILLISECOND, inflight=9, dropped=True)
    assert inner.heard == [Heard(2 * SECOND, 20 * MILLISECOND, 1, False)]


def test_speaks_for_the_inner_limit() -> None:
    inner = Gradient2Limit(30)
    limit = WindowedLimit(inner)
    assert (limit.limit, limit.estimate) == (30, 30.0)
    limit.set_bounds(1, 8)
    assert inner.limit == limit.limit == 8
    assert repr(limit) == f"WindowedLimit({inner!r})"
