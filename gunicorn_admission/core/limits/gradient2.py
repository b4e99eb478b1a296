"""Compare each RTT with its long-term average."""

from __future__ import annotations

from gunicorn_admission.core.limits.base import (
    BoundedLimit,
    check_fraction,
    check_number,
    check_whole,
)

__all__ = ["Gradient2Limit"]

_WARM_UP = 10  # samples whose plain mean starts the average
_DRIFT = 2.0  # a baseline this many times the RTT is out of date...
_DECAY = 0.95  # ...and is pulled down by this factor a sample


class Gradient2Limit(BoundedLimit):
    """
    Shrinks by the gradient of long-term to current RTT and adds a fixed queue.

    Two published properties to know before choosing it. The queue is added at any
    gradient, and the long-term average takes in the RTT of overload, so under demand
    that does not end the limit climbs to ``maximum`` (concurrency-limits pull request
    134). And drops are not looked at: a timeout is only a long RTT.

    Args:
        initial: Limit before the first sample. Range: ``minimum`` to ``maximum``.
        minimum: Lower bound. Range: at least 1.
        maximum: Upper bound. Range: at least ``minimum``.
        queue_size: Slots added at each step, the queue that is tolerated. Range: at
            least 1.
        smoothing: Weight of the new limit against the old. Range: above 0, at most 1.
        long_window: Length of the long-term average. Unit: samples. Range: at least 1.
        rtt_tolerance: RTT may be this many times the average before the limit shrinks.
            Range: at least 1.

    Raises:
        ConfigError: When an argument is outside its range.

    Thread safety: guarded by the limiter's lock.

    Source:
        Netflix concurrency-limits, Gradient2Limit, reproduced exactly for RTT above 0;
        an RTT of 0 or less is ignored.
    """

    def __init__(
        self,
        initial: int = 20,
        *,
        minimum: int = 20,
        maximum: int = 200,
        queue_size: int = 4,
        smoothing: float = 0.2,
        long_window: int = 600,
        rtt_tolerance: float = 1.5,
    ) -> None:
        check_whole("queue_size", queue_size)
        check_fraction("smoothing", smoothing)
        check_whole("long_window", long_window)
        check_number("rtt_tolerance", rtt_tolerance, 1.0)  # below it, it shrinks on any RTT
        super().__init__(initial=initial, minimum=minimum, maximum=maximum)
        self._queue_size = queue_size
        self._smoothing = smoothing
        self._rtt_tolerance = rtt_tolerance
        self._long_rtt = _ExponentialAverage(long_window)

    @property
    def baseline_ns(self) -> float:
        """Long-term average RTT; 0.0 before the first sample."""
        return self._long_rtt.value

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        """Move the baseline always, the limit only when it was used."""
        if rtt_ns <= 0:
            return
        baseline_ns = self._long_rtt.add(rtt_ns)
        if baseline_ns / rtt_ns > _DRIFT:
            self._long_rtt.value *= _DECAY  # from the next sample on: this one has its own
        estimate = self._estimate
        if inflight < estimate / 2:
            return
        gradient = max(0.5, min(1.0, self._rtt_tolerance * baseline_ns / rtt_ns))
        target = estimate * gradient + self._queue_size
        # Smoothed before it is clamped, and in this order: parity is to the last bit.
        self._estimate = self._clamp(estimate * (1 - self._smoothing) + target * self._smoothing)


class _ExponentialAverage:
    """Plain mean of the first samples, then an exponential average."""

    def __init__(self, window: int) -> None:
        self._factor = 2.0 / (window + 1)
        self._count = 0
        self._sum = 0.0
        self.value = 0.0

    def add(self, sample: float) -> float:
        if self._count < _WARM_UP:
            self._count += 1
            self._sum += sample
            self.value = self._sum / self._count
        else:
            self.value = self.value * (1 - self._factor) + sample * self._factor
        return self.value
