"""Estimate the queue from the smallest RTT, as TCP Vegas does."""

from __future__ import annotations

import math
from collections.abc import Callable

from gunicorn_admission.core.limits.base import BoundedLimit, check_fraction, check_whole

__all__ = ["VegasLimit"]


class VegasLimit(BoundedLimit):
    """
    Holds the estimated queue between about 3 and 6 requests per decade of the limit.

    The baseline is the smallest RTT since the last probe, so a single lucky request can
    hold the limit down until the next one, and a probe under load takes the loaded RTT
    for the baseline. Choose ``AdaptiveLimit`` where that matters.

    Args:
        initial: Limit before the first sample. Range: 1 to ``maximum``.
        maximum: Upper bound. Range: at least 1. The lower bound is 1.
        smoothing: Weight of the new limit against the old. Range: above 0, at most 1.
        probe_multiplier: The baseline is taken anew about every ``probe_multiplier x
            limit`` samples. Range: at least 1.
        jitter: Called at the first sample and at each probe; returns a factor in
            [0.5, 1) on the distance to the next probe, so that workers do not probe
            together. ``None`` takes it from the low digits of ``now_ns``, which differ
            between workers and come back in a replay.

    Raises:
        ConfigError: When an argument is outside its range.

    Thread safety: guarded by the limiter's lock.

    Source:
        Netflix concurrency-limits, VegasLimit, reproduced exactly for RTT above 0. The
        library raises on RTT 0 or less; here such a sample is ignored (misk #1304) unless
        it is a drop. And the result is clamped after smoothing too, since rounding alone
        can take it out of its bounds.
    """

    def __init__(
        self,
        initial: int = 20,
        *,
        maximum: int = 1000,
        smoothing: float = 1.0,
        probe_multiplier: int = 30,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        check_fraction("smoothing", smoothing)
        check_whole("probe_multiplier", probe_multiplier)
        super().__init__(initial=initial, minimum=1, maximum=maximum)
        self._smoothing = smoothing
        self._probe_multiplier = probe_multiplier
        self._jitter = jitter
        self._probe_factor: float | None = None
        self._samples_since_probe = 0
        self._baseline_ns = 0

    @property
    def baseline_ns(self) -> int:
        """RTT taken as free of queueing; 0 before the first sample."""
        return self._baseline_ns

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        """Probe, lower the baseline, or move the limit: one of the three a sample."""
        if rtt_ns <= 0:
            if dropped:  # needs no RTT to act on
                self._move(rtt_ns, inflight, dropped)
            return
        if self._probe_factor is None:
            self._probe_factor = self._draw(now_ns)
        self._samples_since_probe += 1
        distance = self._probe_factor * self._probe_multiplier * self._estimate
        if distance <= self._samples_since_probe:
            self._probe_factor = self._draw(now_ns)
            self._samples_since_probe = 0
            self._baseline_ns = rtt_ns
        elif self._baseline_ns == 0 or rtt_ns < self._baseline_ns:
            self._baseline_ns = rtt_ns
        else:
            self._move(rtt_ns, inflight, dropped)

    def _move(self, rtt_ns: int, inflight: int, dropped: bool) -> None:
        estimate = self._estimate
        unit = _unit(estimate)
        if dropped:  # counts even when app-limited
            target = self._smaller(estimate)
        elif inflight * 2 < estimate:
            return
        else:
            queue = math.ceil(estimate * (1 - self._baseline_ns / rtt_ns))
            if queue <= unit:
                target = estimate + 6 * unit
            elif queue < 3 * unit:
                target = estimate + unit
            elif queue > 6 * unit:
                target = self._smaller(estimate)
            else:
                return
        target = self._clamp(target)
        self._estimate = self._clamp((1 - self._smoothing) * estimate + self._smoothing * target)

    def _smaller(self, estimate: float) -> float:
        return estimate - _unit(estimate)

    def _draw(self, now_ns: int) -> float:
        if self._jitter is not None:
            return self._jitter()
        return 0.5 + now_ns % 1009 / 2018  # a prime, as clocks tick in round numbers


def _unit(estimate: float) -> int:
    # At least 1, or a limit under 10 could never move.
    return max(1, int(math.log10(int(estimate))))
