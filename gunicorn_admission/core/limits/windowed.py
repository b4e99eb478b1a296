"""Give a limit one sample a time window instead of one a request."""

from __future__ import annotations

import math

from gunicorn_admission.core.limits.base import Limit, check_fraction, check_whole
from gunicorn_admission.errors import ConfigError

__all__ = ["WindowedLimit"]

_FASTEST_SAMPLE_NS = 100_000  # published threshold: 100 microseconds
_KEPT_RTTS = 1_000  # bounds memory where a percentile needs the single values


class WindowedLimit:
    """
    Gathers samples over a window and hands their summary to another limit.

    The summary is the average (or a percentile) of the RTTs, the largest inflight, and
    whether anything was dropped. A window closes with the first request that finishes
    after its end; the next one lasts twice the smallest RTT of this one, within
    ``min_window_ns`` and ``max_window_ns``.

    Published behaviour to know before choosing it: a window with fewer than
    ``window_size`` samples is thrown away and not carried on, so a worker that serves
    less than ``window_size`` requests a window never adapts. Requests faster than
    100 microseconds are not looked at, dropped or not. With a percentile, a window looks
    at its first 1,000 requests only.

    Args:
        inner: The limit that decides.
        min_window_ns: Shortest window. Unit: nanoseconds. Range: > 0.
        max_window_ns: Longest window. Unit: nanoseconds. Range: at least ``min_window_ns``.
        window_size: Samples that make a window count. Range: at least 1.
        percentile: Fraction of the RTTs at or below the one that is handed on, for
            example 0.9. Range: above 0, at most 1. ``None`` hands on the average.

    Raises:
        ConfigError: When an argument is outside its range or ``inner`` is no limit.

    Thread safety: guarded by the limiter's lock.

    Source:
        Netflix concurrency-limits, WindowedLimit with its average and percentile sample
        windows, reproduced exactly. Where its percentile index falls below the first
        sample, the library raises; here the first sample is taken.
    """

    def __init__(
        self,
        inner: Limit,
        *,
        min_window_ns: int = 10**9,
        max_window_ns: int = 10**9,
        window_size: int = 10,
        percentile: float | None = None,
    ) -> None:
        if isinstance(inner, type) or not isinstance(inner, Limit):  # a class has them all too
            raise ConfigError(
                "inner", inner, "a limit", "pass an instance, for example Gradient2Limit()"
            )
        check_whole("min_window_ns", min_window_ns)
        check_whole("max_window_ns", max_window_ns)
        if min_window_ns > max_window_ns:
            raise ConfigError(
                "min_window_ns",
                min_window_ns,
                f"an integer from 1 to {max_window_ns} (max_window_ns)",
                "lower min_window_ns or raise max_window_ns",
            )
        check_whole("window_size", window_size)
        if percentile is not None:
            check_fraction("percentile", percentile)
        self._inner = inner
        self._min_window_ns = min_window_ns
        self._max_window_ns = max_window_ns
        self._window_size = window_size
        self._percentile = percentile
        self._closes_ns = 0
        self._window = _Window(percentile)

    def __repr__(self) -> str:
        """The limit inside, for logs."""
        return f"WindowedLimit({self._inner!r})"

    @property
    def limit(self) -> int:
        """Concurrency that the inner limit allows now."""
        return self._inner.limit

    @property
    def estimate(self) -> float:
        """Estimate of the inner limit."""
        return self._inner.estimate

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        """Add to the window; if this request ends it, hand the summary on."""
        if rtt_ns < _FASTEST_SAMPLE_NS:
            return
        window = self._window
        window.add(rtt_ns, inflight, dropped)
        if now_ns <= self._closes_ns:
            return
        self._window = _Window(self._percentile)
        length_ns = max(self._min_window_ns, 2 * window.shortest_ns)
        self._closes_ns = now_ns + min(self._max_window_ns, length_ns)
        if window.count >= self._window_size:
            self._inner.on_sample(
                now_ns=now_ns,
                rtt_ns=window.rtt_ns(),
                inflight=window.inflight,
                dropped=window.dropped,
            )

    def set_bounds(self, minimum: int, maximum: int) -> None:
        """Move the bounds of the inner limit; see :meth:`Limit.set_bounds`."""
        self._inner.set_bounds(minimum, maximum)


class _Window:
    """What was seen since the last window closed."""

    def __init__(self, percentile: float | None) -> None:
        self._percentile = percentile
        self._rtts: list[int] = []  # filled for a percentile only
        self._total_ns = 0
        self.shortest_ns = 0
        self.count = 0
        self.inflight = 0
        self.dropped = False

    def add(self, rtt_ns: int, inflight: int, dropped: bool) -> None:
        if self._percentile is not None:
            if len(self._rtts) == _KEPT_RTTS:
                return
            self._rtts.append(rtt_ns)
        self._total_ns += rtt_ns
        self.shortest_ns = min(self.shortest_ns, rtt_ns) if self.count else rtt_ns
        self.count += 1
        self.inflight = max(self.inflight, inflight)
        self.dropped = self.dropped or dropped

    def rtt_ns(self) -> int:
        if self._percentile is None:
            return self._total_ns // self.count
        # Half up, as the library rounds; the built-in round() goes to even.
        rank = math.floor(self.count * self._percentile + 0.5)
        return sorted(self._rtts)[max(0, rank - 1)]
