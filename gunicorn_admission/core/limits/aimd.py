"""Additive increase, multiplicative decrease: reacts to losses, not to delay."""

from __future__ import annotations

from gunicorn_admission.core.limits.base import BoundedLimit, check_fraction, check_whole

__all__ = ["AIMDLimit"]


class AIMDLimit(BoundedLimit):
    """
    Adds one slot per good sample and gives back a tenth on a drop or a timeout.

    Use it where overload shows as errors rather than as delay. It sees a slow-down
    only once requests are slower than ``timeout_ns``.

    Args:
        initial: Limit before the first sample. Range: ``minimum`` to ``maximum``.
        minimum: Lower bound. Range: at least 1.
        maximum: Upper bound. Range: at least ``minimum``.
        backoff_ratio: What is kept of the limit on a drop. Range: above 0, below 1.
        timeout_ns: A slower request counts as a drop. Unit: nanoseconds. Range: > 0.

    Raises:
        ConfigError: When an argument is outside its range.

    Thread safety: guarded by the limiter's lock.

    Source:
        Netflix concurrency-limits, AIMDLimit, reproduced exactly for RTT above 0. The
        library takes an RTT of 0 for a success; here it is not a sample. A drop needs
        no RTT, so it counts with any.
    """

    def __init__(
        self,
        initial: int = 20,
        *,
        minimum: int = 20,
        maximum: int = 200,
        backoff_ratio: float = 0.9,
        timeout_ns: int = 5_000_000_000,
    ) -> None:
        check_fraction("backoff_ratio", backoff_ratio, below_one=True)
        check_whole("timeout_ns", timeout_ns)
        super().__init__(initial=initial, minimum=minimum, maximum=maximum)
        self._backoff_ratio = backoff_ratio
        self._timeout_ns = timeout_ns

    def on_sample(
        self,
        *,
        now_ns: int,
        rtt_ns: int,
        inflight: int,
        dropped: bool,
        partition: str | None = None,
    ) -> None:
        """Step down on a drop or timeout, else up by one if the limit was used."""
        limit = self.limit  # published AIMD keeps an integer, so each step is cut
        if dropped or rtt_ns > self._timeout_ns:
            limit = int(limit * self._backoff_ratio)
        elif rtt_ns > 0 and inflight * 2 >= limit:  # else app-limited: nothing was tested
            limit += 1
        self._estimate = self._clamp(float(limit))
