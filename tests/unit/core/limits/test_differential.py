"""
Each algorithm against a second, naive reading of its published formulae.

The naive ones keep the whole history and recompute from it; equality is to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from gunicorn_admission.core.limits import (
    AIMDLimit,
    Gradient2Limit,
    VegasLimit,
    WindowedLimit,
)


class Sample(NamedTuple):
    rtt_ns: int
    inflight: int
    dropped: bool
    gap_ns: int = 1


repeatable = settings(deadline=None, derandomize=True, max_examples=100)

# All decades from nanoseconds to the minute; and close together, where the rules differ.
decades = st.tuples(st.integers(1, 9_999), st.integers(0, 7))
rtts = decades.map(lambda pair: pair[0] * 10 ** pair[1]) | st.integers(10_000_000, 40_000_000)
samples = st.builds(Sample, rtts, st.integers(0, 60), st.booleans(), st.integers(0, 400_000_000))
runs = st.lists(samples, min_size=1, max_size=120)
fractions = st.floats(0.01, 1.0)


class Bounds(NamedTuple):
    initial: int
    minimum: int
    maximum: int


bounds = st.lists(st.integers(1, 64), min_size=3, max_size=3).map(
    lambda numbers: Bounds(sorted(numbers)[1], min(numbers), max(numbers))
)


def between(low: float, value: float, high: float) -> float:
    return low if value < low else high if value > high else value


def naive_aimd(run: list[Sample], at: Bounds, keep: float, timeout_ns: int) -> list[int]:
    limits = [at.initial]
    for sample in run:
        now = limits[-1]
        if sample.dropped or sample.rtt_ns > timeout_ns:
            now = int(now * keep)
        elif 2 * sample.inflight >= now:
            now += 1
        limits.append(int(between(at.minimum, now, at.maximum)))
    return limits[1:]


@repeatable
@given(run=runs, at=bounds, keep=st.floats(0.01, 0.99), timeout_ns=rtts)
def test_aimd(run: list[Sample], at: Bounds, keep: float, timeout_ns: int) -> None:
    limit = AIMDLimit(
        at.initial,
        minimum=at.minimum,
        maximum=at.maximum,
        backoff_ratio=keep,
        timeout_ns=timeout_ns,
    )
    assert [int(estimate) for estimate in estimates(limit, run)] == naive_aimd(
        run, at, keep, timeout_ns
    )


def naive_gradient2(
    run: list[Sample], at: Bounds, queue: int, smoothing: float, window: int, tolerance: float
) -> list[tuple[float, float]]:
    states = [(float(at.initial), 0.0)]
    factor = 2 / (window + 1)
    for number, sample in enumerate(run, 1):
        estimate, average = states[-1]
        if number <= 10:
            average = float(sum(past.rtt_ns for past in run[:number])) / number
        else:
            average = average * (1 - factor) + sample.rtt_ns * factor
        after = average * 0.95 if average / sample.rtt_ns > 2 else average
        if sample.inflight >= estimate / 2:
            gradient = between(0.5, tolerance * average / sample.rtt_ns, 1.0)
            wanted = gradient * estimate + queue
            estimate = (1 - smoothing) * estimate + smoothing * wanted
            estimate = between(at.minimum, estimate, at.maximum)
        states.append((estimate, after))
    return states[1:]


@repeatable
@given(
    run=runs,
    at=bounds,
    queue=st.integers(1, 10),
    smoothing=fractions,
    window=st.integers(1, 1000),
    tolerance=st.floats(1.0, 3.0),
)
def test_gradient2(
    run: list[Sample], at: Bounds, queue: int, smoothing: float, window: int, tolerance: float
) -> None:
    limit = Gradient2Limit(
        at.initial,
        minimum=at.minimum,
        maximum=at.maximum,
        queue_size=queue,
        smoothing=smoothing,
        long_window=window,
        rtt_tolerance=tolerance,
    )
    expected = naive_gradient2(run, at, queue, smoothing, window, tolerance)
    for sample, (estimate, average) in zip(run, expected, strict=True):
        feed(limit, sample, 0)
        assert (limit.estimate, limit.baseline_ns) == (estimate, average)


def naive_vegas(
    run: list[Sample], initial: int, maximum: int, smoothing: float, multiplier: int, jitter: float
) -> list[tuple[float, int]]:
    states: list[tuple[float, int]] = []
    estimate, best, since_probe = float(initial), None, 0
    for sample in run:
        since_probe += 1
        probing = jitter * multiplier * estimate <= since_probe
        if probing:
            since_probe = 0
        if probing or best is None or sample.rtt_ns < best:
            best = sample.rtt_ns
            states.append((estimate, best))
            continue
        unit = max(1, len(str(int(estimate))) - 1)
        queued = estimate * (1 - best / sample.rtt_ns)
        used = 2 * sample.inflight >= estimate
        # The rules count whole requests: a queue of 3.2 is one of 4, thus above 3.
        if sample.dropped or (used and queued > 6 * unit):
            step = -unit
        elif used and queued <= unit:
            step = 6 * unit
        elif used and queued <= 3 * unit - 1:
            step = unit
        else:
            states.append((estimate, best))
            continue
        wanted = between(1, estimate + step, maximum)
        estimate = between(1, (1 - smoothing) * estimate + smoothing * wanted, maximum)
        states.append((estimate, best))
    return states


# Limits of three digits and more, where a unit is more than 1 and the marks lie apart.
busy = st.builds(Sample, st.integers(20_000_000, 22_000_000), st.just(5_000), st.just(False))


@repeatable
@given(
    run=runs | st.lists(busy, max_size=100),
    at=bounds | st.just(Bounds(500, 1, 2_000)),
    smoothing=fractions,
    multiplier=st.integers(1, 40),
    jitter=st.floats(0.5, 0.99),
)
def test_vegas(
    run: list[Sample], at: Bounds, smoothing: float, multiplier: int, jitter: float
) -> None:
    limit = VegasLimit(
        at.initial,
        maximum=at.maximum,
        smoothing=smoothing,
        probe_multiplier=multiplier,
        jitter=lambda: jitter,
    )
    expected = naive_vegas(run, at.initial, at.maximum, smoothing, multiplier, jitter)
    for sample, (estimate, best) in zip(run, expected, strict=True):
        feed(limit, sample, 0)
        assert (limit.estimate, limit.baseline_ns) == (estimate, best)


def naive_windows(
    run: list[Sample],
    shortest_ns: int,
    longest_ns: int,
    enough: int,
    summary: Callable[[list[int]], int],
) -> list[Sample]:
    delivered, gathered, closes_ns, now_ns = [], [], 0, 0
    for sample in run:
        now_ns += sample.gap_ns
        if sample.rtt_ns < 100_000:
            continue
        gathered.append(sample)
        if now_ns > closes_ns:
            rtt_list = [one.rtt_ns for one in gathered]
            closes_ns = now_ns + int(between(shortest_ns, 2 * min(rtt_list), longest_ns))
            if len(gathered) >= enough:
                delivered.append(
                    Sample(
                        summary(rtt_list),
                        max(one.inflight for one in gathered),
                        any(one.dropped for one in gathered),
                        now_ns,
                    )
                )
            gathered = []
    return delivered


@repeatable
@given(
    run=st.lists(samples, min_size=20, max_size=100),
    shortest_ms=st.integers(1, 500),
    longest_ms=st.integers(500, 3000),
    enough=st.integers(1, 12),
    percent=st.none() | st.integers(1, 100),
)
def test_windowed(
    run: list[Sample], shortest_ms: int, longest_ms: int, enough: int, percent: int | None
) -> None:
    def summary(rtt_list: list[int]) -> int:
        if percent is None:
            return sum(rtt_list) // len(rtt_list)
        place = int(len(rtt_list) * (percent / 100) + 0.5)  # half up, counted from 1
        return sorted(rtt_list)[max(place, 1) - 1]

    heard: list[Sample] = []

    class Listener(AIMDLimit):
        def on_sample(
            self,
            *,
            now_ns: int,
            rtt_ns: int,
            inflight: int,
            dropped: bool,
            partition: str | None = None,
        ) -> None:
            heard.append(Sample(rtt_ns, inflight, dropped, now_ns))

    limit = WindowedLimit(
        Listener(),
        min_window_ns=shortest_ms * 1_000_000,
        max_window_ns=longest_ms * 1_000_000,
        window_size=enough,
        percentile=None if percent is None else percent / 100,
    )
    now_ns = 0
    for sample in run:
        now_ns += sample.gap_ns
        feed(limit, sample, now_ns)
    assert heard == naive_windows(
        run, shortest_ms * 1_000_000, longest_ms * 1_000_000, enough, summary
    )


def feed(
    limit: AIMDLimit | Gradient2Limit | VegasLimit | WindowedLimit, sample: Sample, now_ns: int
) -> None:
    limit.on_sample(
        now_ns=now_ns, rtt_ns=sample.rtt_ns, inflight=sample.inflight, dropped=sample.dropped
    )


def estimates(limit: AIMDLimit, run: list[Sample]) -> list[float]:
    seen = []
    for sample in run:
        feed(limit, sample, 0)
        seen.append(limit.estimate)
    return seen
