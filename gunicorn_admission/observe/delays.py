"""Reading a histogram of queue delays: quantiles, and a few samples that stand for all."""

from __future__ import annotations

from collections.abc import Sequence

from gunicorn_admission.core.statistics import DELAY_BUCKETS

__all__ = ["quantile", "samples"]


def quantile(delays: Sequence[int], q: float) -> float:
    """
    The delay that a share ``q`` of all requests did not exceed.

    Inside a bucket the requests count as spread evenly, so an answer is as fine as its bucket.
    What lies above the last bound reads as that bound: at least this long.

    Args:
        delays: Counts per :data:`~gunicorn_admission.core.statistics.DELAY_BUCKETS` bound, and
            one for the rest.
        q: From 0 to 1.

    Returns:
        Seconds; 0.0 when nothing was counted.

    Thread safety: pure.
    """
    rank = q * sum(delays)
    lower = 0.0
    for count, upper in zip(delays, DELAY_BUCKETS, strict=False):
        if count and rank <= count:
            return lower + (upper - lower) * rank / count
        rank -= count
        lower = upper
    return lower if sum(delays) else 0.0


def samples(delays: Sequence[int], most: int) -> list[float]:
    """
    At most ``most`` delays, in seconds, whose percentiles are those of the histogram.

    Up to ``most`` requests are represented one by one; of more, evenly spaced quantiles.

    Thread safety: pure.
    """
    n = min(sum(delays), most)
    return [quantile(delays, (i + 0.5) / n) for i in range(n)]
