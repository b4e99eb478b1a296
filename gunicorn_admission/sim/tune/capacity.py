"""
Where a service ends: the knee of slowdown over the number inside.

Behind a pool of c connections nothing is slowed until about c are inside; from there on
Little's law says how much. A log of a service that was never busy has no such knee, and then
nothing can be said but "at least".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from attrs import frozen

from gunicorn_admission.sim.tune.windows import Window

__all__ = ["Capacity", "capacity_of", "throughput"]

#: Requests that make a mean, and those that show what can be done.
_SETTLED: Final = 10
_SHOW: Final = 100
_BINS: Final = 24
_CONTENTION: Final = (0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12)
#: Slowdown that is one, and the part of it that load must explain.
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


class _Point(NamedTuple):
    """Windows with about as many inside: slowdown as a logarithm, work done, requests."""

    busy: float
    slow: float
    worked: float
    done: int
    weight: float


def capacity_of(
    windows: Sequence[Window], means: Sequence[float], width: float, given: int | None
) -> tuple[Capacity, float]:
    """
    Find the knee.

    Args:
        windows: What was seen, each ``width`` seconds wide.
        means: Usual seconds of each class.
        given: What the user knows; then only the contention is looked for.

    Returns:
        The capacity, and the logarithm of what the means are too short by.
    """
    most = max(window.busy for window in windows)
    points = list(_points(windows, means, width))
    return _least_squares(points, most, given) if points else (_unseen(most, given), 0.0)


def _points(windows: Sequence[Window], means: Sequence[float], width: float) -> Iterator[_Point]:
    settled = [window for window in windows if window.done >= _SETTLED]
    if not settled:
        return
    # Equal steps of busyness, so that the few windows that tell most are not lost in the rest.
    low = min(window.busy for window in settled)
    high = max(window.busy for window in settled)
    step = max((high - low) / _BINS, 1e-9)
    groups: dict[int, list[Window]] = {}
    for window in settled:
        groups.setdefault(int((window.busy - low) / step), []).append(window)
    for group in groups.values():
        cells = [pair for window in group for pair in window.cells.items()]
        usual = sum(cell.done * means[kind] for kind, cell in cells)
        spent = sum(cell.spent for _, cell in cells)
        if spent > 0:
            yield _Point(
                busy=sum(window.busy for window in group) / len(group),
                slow=math.log(spent / usual),
                worked=usual / width / len(group),
                done=sum(cell.done for _, cell in cells),
                # The square root: many windows are more than one, but not so much more.
                weight=math.sqrt(len(group)),
            )


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


def _unseen(most: float, given: int | None) -> Capacity:
    floor = max(1, math.ceil(most + 2 * math.sqrt(most)))
    known, connections = given is not None, given or floor
    return Capacity(connections=connections, contention=0.0, known=known, explained=0.0, slow=0.0)


def _least_squares(
    points: Sequence[_Point], most: float, given: int | None
) -> tuple[Capacity, float]:
    """Least squares over all knees; also by how much the means must be longer for it."""
    weight = sum(point.weight for point in points)
    mean = sum(p.slow * p.weight for p in points) / weight
    around = sum(p.weight * (p.slow - mean) ** 2 for p in points)
    none = _unseen(most, given)
    best = (around, none.connections, 0.0, 0.0, mean)
    inside = [max(0.1, round(point.busy, 1)) for point in points]  # so that few are worked out
    for connections in [given] if given else _candidates(points, most):
        for contention in _CONTENTION:
            expected = [
                math.log(busy / throughput(busy, connections, contention)) for busy in inside
            ]
            pairs = list(zip(points, expected, strict=True))
            offset = _moderate(sum(p.weight * (p.slow - e) for p, e in pairs) / weight)
            error = sum(p.weight * (p.slow - e - offset) ** 2 for p, e in pairs)
            if error < best[0]:
                best = (error, connections, contention, max(expected), offset)
    error, connections, contention, knee, offset = best
    explained = max(0.0, 1 - error / around) if around > 0 else 0.0
    seen = explained >= _EXPLAINED and knee >= math.log(_KNEE)
    if not seen and given is None:
        connections, contention, offset = none.connections, 0.0, mean
    found = Capacity(
        connections=connections,
        contention=contention,
        known=seen or given is not None,
        explained=explained,
        slow=math.sqrt(around / weight),
    )
    return found, _moderate(offset)


def _moderate(offset: float) -> float:
    return min(0.2, max(-0.3, offset))


def _candidates(points: Sequence[_Point], most: float) -> list[int]:
    """Numbers worth trying: no less than was worked on, a twentieth apart where they are large."""
    # And a little less, since the work that ends in a window is a matter of chance.
    worked = max((point.worked for point in points if point.done >= _SHOW), default=0.0)
    found, at = [], float(max(1, math.ceil(0.9 * worked)))
    while at <= most + 1:
        found.append(round(at))
        at = max(at + 1, at * 1.05)
    return found
