"""
When a refused sender may come back.

The time to drain what is too much at the rate at which slots become free, with jitter so
that those refused together do not return together. Never a constant: a constant turns one
burst into a periodic one. Source: RFC 9110 section 10.2.3 (delta-seconds).
"""

from __future__ import annotations

__all__ = ["drain_time_ns"]


def drain_time_ns(
    excess: int, service_ns: int, slots: int, bounds_ns: tuple[int, int], jitter: float
) -> int:
    """
    Time until the excess has been worked off, jittered.

    Args:
        excess: Requests waiting or refused beyond capacity, this one included.
        service_ns: Usual service time; 0 when unknown.
        slots: Requests served at once.
        bounds_ns: Smallest and largest result before jitter.
        jitter: Uniform in [0, 1); spreads the result over 0.5 to 1.5 times.

    Returns:
        Nanoseconds, never under half the lower bound.
    """
    drain = excess * service_ns // max(1, slots)
    low, high = bounds_ns
    return int(min(max(drain, low), high) * (0.5 + jitter))
