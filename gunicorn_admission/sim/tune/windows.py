"""An access log cut into windows of time: who came, how many were inside, how long it took."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from attrs import evolve, frozen

from gunicorn_admission.classify import RequestClass
from gunicorn_admission.core.types import Priority
from gunicorn_admission.settings.partitions import OTHER
from gunicorn_admission.sim.tune.access_log import AccessLog

__all__ = ["Cell", "Traffic", "Window", "observe", "quantile"]

#: Widths of a window, in seconds; the log's stamps are whole seconds.
_WIDTHS: Final = (2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
_ENOUGH: Final = 30
_MOST_CLASSES: Final = 12
_GOLDEN: Final = (math.sqrt(5) - 1) / 2


class Cell:
    """
    What requests of one class did that ended in one window.

    Attributes:
        done: How many.
        spent: Sum of their seconds.
        logs, squares: Sums of the logarithms of these and of their squares.
    """

    __slots__ = ("done", "logs", "spent", "squares")

    def __init__(self) -> None:
        self.done = 0
        self.spent = self.logs = self.squares = 0.0


class Window:
    """
    One window.

    Attributes:
        start: Seconds since the epoch.
        arrivals: Requests that came, by class.
        busy: Mean number in threads.
        cells: What ended, by class.
    """

    __slots__ = ("arrivals", "busy", "cells", "start")

    def __init__(self, start: float) -> None:
        self.start = start
        self.arrivals: Counter[int] = Counter()
        self.busy = 0.0
        self.cells: dict[int, Cell] = {}

    @property
    def done(self) -> int:
        """Requests that ended."""
        return sum(cell.done for cell in self.cells.values())


@frozen(kw_only=True)
class Traffic:
    """
    What an access log says about load.

    Attributes:
        windows: In order; those in which nothing was are left out.
        width: Of each, in seconds.
        classes: Their names and rules; the small ones share the last.
        requests: How many.
        span: Seconds from the first arrival to the last end.
        dispersion: Variance over mean of the arrivals in a second; 1.0 for independent ones.
        times: Some hundred durations of quiet windows, in seconds, by class.
        slowest: 99th percentile of all durations.
    """

    windows: tuple[Window, ...]
    width: float
    classes: tuple[RequestClass, ...]
    requests: int
    span: float
    dispersion: float
    times: tuple[tuple[float, ...], ...]
    slowest: float

    @property
    def busiest(self) -> float:
        """Most requests in threads, as a mean of one window."""
        return max(window.busy for window in self.windows)


def quantile(values: Iterable[float], share: float) -> float:
    """Return the value that so large a share does not exceed; 0.0 of nothing."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


def observe(log: AccessLog) -> Traffic:
    """Cut a log into windows that hold enough requests to mean something."""
    seconds = _exact(log)
    classes, kinds = _fold(log, seconds)
    starts = [end - taken for end, taken in zip(log.ended, seconds, strict=True)]
    width = _width(starts, seconds)
    windows: dict[int, Window] = {}

    def window(index: int) -> Window:
        found = windows.get(index)
        if found is None:
            found = windows[index] = Window(index * width)
        return found

    served = [not refused for refused in log.refused]
    columns = zip(starts, log.ended, seconds, kinds, served, strict=True)
    for start, end, taken, kind, worked in columns:
        window(int(start // width)).arrivals[kind] += 1
        if not worked:
            continue  # a refusal comes at once and says nothing about the service
        at = start
        while at < end:
            index = int(at // width)
            until = min(end, (index + 1) * width)
            if until <= at:
                break  # no further with floats
            window(index).busy += (until - at) / width
            at = until
        cell = window(int(end // width)).cells.setdefault(kind, Cell())
        logarithm = math.log(max(taken, 1e-6))
        cell.done += 1
        cell.spent += taken
        cell.logs += logarithm
        cell.squares += logarithm * logarithm
    return Traffic(
        windows=tuple(windows[index] for index in sorted(windows)),
        width=width,
        classes=classes,
        requests=len(starts),
        span=max(log.ended) - min(starts),
        dispersion=_dispersion(starts),
        times=_times(log.ended, kinds, seconds, served, windows, width),
        slowest=quantile((t for t, worked in zip(seconds, served, strict=True) if worked), 0.99),
    )


def _exact(log: AccessLog) -> list[float]:
    """Durations with what was cut off below the smallest step, evenly spread."""
    step = log.resolution
    if step <= 1e-6:
        return [max(taken, step) for taken in log.seconds]
    return [taken + step * (place * _GOLDEN % 1) for place, taken in enumerate(log.seconds)]


def _fold(
    log: AccessLog, seconds: Sequence[float]
) -> tuple[tuple[RequestClass, ...], Sequence[int]]:
    """Keep the classes that take most time, and those with a rule."""
    spent: Counter[int] = Counter()
    for kind, taken in zip(log.kind, seconds, strict=True):
        spent[kind] += taken  # type: ignore[assignment]  # a Counter adds floats as well
    if len(log.classes) <= _MOST_CLASSES:
        return log.classes, log.kind
    own = [kind for kind, _ in spent.most_common() if log.classes[kind].partition != OTHER]
    kept = own[:_MOST_CLASSES]
    kept += [
        kind
        for kind, one in enumerate(log.classes)
        if kind not in kept and (one.rule or one.priority is not Priority.DEFAULT)
    ]
    place = {kind: index for index, kind in enumerate(kept)}
    last = log.classes[next(kind for kind in spent if kind not in place)]
    rest = evolve(last, partition=OTHER, priority=Priority.DEFAULT)
    classes = (*(log.classes[kind] for kind in kept), rest)
    return classes, [place.get(kind, len(kept)) for kind in log.kind]


def _width(starts: Sequence[float], seconds: Sequence[float]) -> float:
    usual = quantile(seconds, 0.9)
    for width in _WIDTHS:
        counts = Counter(int(start // width) for start in starts)
        if width >= 3 * usual and quantile(counts.values(), 0.75) >= _ENOUGH:
            return width
    return _WIDTHS[-1] if usual > _WIDTHS[2] else _WIDTHS[2]


def _dispersion(starts: Sequence[float]) -> float:
    """From one second to the next (von Neumann), so that a rate that drifts is no burst."""
    counts = Counter(map(math.floor, starts))
    apart = together = 0
    for second in range(min(counts) + 1, max(counts) - 1):  # the first and the last are parts
        one, two = counts[second], counts[second + 1]
        apart += (two - one) ** 2
        together += one + two
    return apart / together if together else 1.0


def _times(
    ends: Sequence[float],
    kinds: Sequence[int],
    seconds: Sequence[float],
    served: Sequence[bool],
    windows: Mapping[int, Window],
    width: float,
) -> tuple[tuple[float, ...], ...]:
    quiet = quantile((window.busy for window in windows.values()), 0.5)
    found: dict[int, list[float]] = {}
    for end, kind, taken, worked in zip(ends, kinds, seconds, served, strict=True):
        if worked and windows[int(end // width)].busy <= quiet:
            found.setdefault(kind, []).append(taken)
    return tuple(tuple(one[:: max(1, len(one) // 1000)]) for one in found.values())
