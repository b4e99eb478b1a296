"""
What a service is like, as far as its windows tell: usual times, their spread, capacity.

A request's slowdown is its time over the usual time of its class. Behind a pool of c
connections nothing is slowed until about c are inside; from there on Little's law says how
much. So slowdown over the number inside has a knee, and the knee is the capacity. A log of a
service that was never busy has none, and then nothing can be said but "at least".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Final, NamedTuple

from attrs import frozen

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.sim.tune.windows import Traffic, Window

__all__ = ["Capacity", "Fit", "fit", "misfit", "throughput"]

_FEWEST: Final = 30
_QUIET: Final = 1 / 3
_SETTLED: Final = 10  # requests that make a mean
_BINS: Final = 24
_CONTENTION: Final = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12)
_KNEE: Final = 1.25
_EXPLAINED: Final = 0.5
_MANY: Final = 150.0  # inside, from where on their number hardly varies


@frozen(kw_only=True)
class Capacity:
    """
    Where the service ends.

    Attributes:
        connections: Calls that are worked on at once.
        contention: What each call in excess of that adds to the time of a call.
        known: Whether the log shows it, or the user said it; else it is at least that.
        explained: Share of the differences in slowdown that load explains.
        slow: Spread of the slowdown, as a standard deviation of its logarithm.
    """

    connections: int
    contention: float
    known: bool
    explained: float
    slow: float


@frozen(kw_only=True)
class Fit:
    """
    A service that behaves like the one in the log.

    Attributes:
        means: Usual seconds of each class.
        mean: Of all together.
        sigma: Spread of their logarithm.
        capacity: See there.
    """

    means: tuple[float, ...]
    mean: float
    sigma: float
    capacity: Capacity

    @property
    def per_second(self) -> float:
        """Requests per second at best, of the mix in the log."""
        return self.capacity.connections / self.mean


class _Point(NamedTuple):
    busy: float
    slow: float
    weight: float


def fit(
    traffic: Traffic, windows: Sequence[Window] | None = None, connections: int | None = None
) -> Fit:
    """
    Fit a service to windows.

    Args:
        traffic: They belong to it.
        windows: Those that count, possibly some of them twice; all of them if not given.
        connections: What the user knows about the capacity.

    Raises:
        ConfigError: There are too few requests.

    Thread safety: pure.
    """
    chosen = traffic.windows if windows is None else windows
    total = sum(window.done for window in chosen)
    if total < _FEWEST:
        raise ConfigError(
            "access log", total, f"at least {_FEWEST} requests that were served",
            "let it run for longer; some thousand requests of a busy hour say most",
        )  # fmt: skip
    means, mean, sigma = _service(traffic, chosen, total)
    points = list(_points(chosen, means))
    most = max(window.busy for window in chosen)
    capacity = _capacity(points, most, connections)
    return Fit(means=means, mean=mean, sigma=sigma, capacity=capacity)


def _service(
    traffic: Traffic, windows: Sequence[Window], total: int
) -> tuple[tuple[float, ...], float, float]:
    """Means by class and of all, and the pooled spread, from the least busy windows."""
    ordered = sorted(windows, key=lambda window: window.busy)
    quiet: list[Window] = []
    count = 0
    for window in ordered:
        quiet.append(window)
        count += window.done
        if count >= total * _QUIET:
            break
    few, all_ = _sums(quiet), _sums(windows)
    overall = sum(s.spent for s in few.values()) / count
    means = []
    within = freedom = 0.0
    for kind in range(len(traffic.classes)):
        found = few.get(kind)
        if found is None or found.done < _SETTLED:
            found = all_.get(kind)
        if found is None:
            means.append(overall)
            continue
        means.append(found.spent / found.done)
        within += found.squares - found.logs**2 / found.done
        freedom += found.done - 1
    sigma = math.sqrt(max(0.0, within) / freedom) if freedom > 0 else 0.0
    done = [all_[kind].done if kind in all_ else 0 for kind in range(len(means))]
    mean = sum(n * each for n, each in zip(done, means, strict=True)) / total
    return tuple(means), mean, min(sigma, 2.0)


class _Sum(NamedTuple):
    done: int
    spent: float
    logs: float
    squares: float


def _sums(windows: Sequence[Window]) -> dict[int, _Sum]:
    found: dict[int, _Sum] = {}
    for window in windows:
        for kind, cell in window.cells.items():
            old = found.get(kind, _Sum(0, 0.0, 0.0, 0.0))
            found[kind] = _Sum(
                old.done + cell.done,
                old.spent + cell.spent,
                old.logs + cell.logs,
                old.squares + cell.squares,
            )
    return found


def _points(windows: Sequence[Window], means: Sequence[float]) -> Iterator[_Point]:
    """Slowdown over the number inside, in groups of windows with about as many inside."""
    single = [
        _Point(window.busy, sum(cell.spent for cell in window.cells.values()), usual)
        for window in windows
        if window.done >= _SETTLED
        and (usual := sum(cell.done * means[kind] for kind, cell in window.cells.items())) > 0
    ]
    single.sort()
    if not single:
        return
    # Equal steps of busyness, so that the few windows that tell most are not lost in the rest.
    low, high = single[0].busy, single[-1].busy
    step = max((high - low) / _BINS, 1e-9)
    groups: dict[int, list[_Point]] = {}
    for point in single:
        groups.setdefault(int((point.busy - low) / step), []).append(point)
    for group in groups.values():
        usual = sum(point.weight for point in group)
        spent = sum(point.slow for point in group)
        busy = sum(point.busy for point in group) / len(group)
        # The square root: many windows are more than one, but not so much more.
        yield _Point(busy, math.log(spent / usual), math.sqrt(len(group)))


@lru_cache(maxsize=100_000)
def throughput(busy: float, connections: int, contention: float) -> float:
    """
    Return how many of those inside are worked on, in units of the usual time.

    Args:
        busy: How many are inside on average; around that they vary like a Poisson variable.
        connections, contention: See :class:`Capacity`.
    """

    def at(inside: int) -> float:
        waiting = max(0, inside - connections)
        return min(inside, connections) / (1 + contention * waiting)

    if busy >= _MANY:
        return at(round(busy))
    chance, total, inside = math.exp(-busy), 0.0, 0
    top = busy + 6 * math.sqrt(busy) + 6
    while inside < top:
        total += chance * at(inside)
        inside += 1
        chance *= busy / inside
    return total


def _capacity(points: Sequence[_Point], most: float, given: int | None) -> Capacity:
    floor = max(1, math.ceil(most + 2 * math.sqrt(most)))
    weight = sum(point.weight for point in points)
    if not points or weight == 0:
        known = given is not None
        floor = given or floor
        return Capacity(connections=floor, contention=0.0, known=known, explained=0.0, slow=0.0)
    mean = sum(p.slow * p.weight for p in points) / weight
    around = sum(p.weight * (p.slow - mean) ** 2 for p in points)
    best = (around, given or floor, 0.0, 0.0)
    inside = [max(0.1, round(point.busy, 1)) for point in points]  # so that few are worked out
    for connections in [given] if given else _candidates(most):
        for contention in _CONTENTION:
            expected = [
                math.log(busy / throughput(busy, connections, contention)) for busy in inside
            ]
            pairs = list(zip(points, expected, strict=True))
            offset = sum(p.weight * (p.slow - e) for p, e in pairs) / weight
            offset = min(0.2, max(-0.3, offset))
            error = sum(p.weight * (p.slow - e - offset) ** 2 for p, e in pairs)
            if error < best[0]:
                best = (error, connections, contention, max(expected))
    error, connections, contention, knee = best
    explained = 1 - error / around if around > 0 else 0.0
    seen = explained >= _EXPLAINED and knee >= math.log(_KNEE)
    if not seen and given is None:
        connections, contention = floor, 0.0
    return Capacity(
        connections=connections,
        contention=contention,
        known=seen or given is not None,
        explained=max(0.0, explained),
        slow=math.sqrt(around / weight),
    )


def _candidates(most: float) -> list[int]:
    """Numbers worth trying: each of the small ones, a twentieth apart further up."""
    found, at = [], 1.0
    while at <= most + 1:
        found.append(round(at))
        at = max(at + 1, at * 1.05)
    return found


def misfit(traffic: Traffic) -> float:
    """
    Return how far the durations are from log-normal: Kolmogorov-Smirnov, 0 is perfect.

    Each class is compared with its own best log-normal; the busier classes weigh more.
    """
    worst = weight = 0.0
    for times in traffic.times:
        logs = sorted(math.log(max(one, 1e-6)) for one in times)
        if len(logs) < _SETTLED or logs[0] == logs[-1]:
            continue
        shape = NormalDist.from_samples(logs)
        far = max(
            abs(shape.cdf(value) - (place + 0.5) / len(logs)) for place, value in enumerate(logs)
        )
        worst += far * len(logs)
        weight += len(logs)
    return worst / weight if weight else 0.0
