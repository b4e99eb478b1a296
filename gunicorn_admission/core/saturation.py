"""
Time spent at the limit: whether an overload is still on.

A limit that leaves the dependency a little slack always admits somebody without delay,
which clears CoDel's flag although arrivals exceed capacity by far. But then the limit is
hit most of the time.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Saturation"]

_INTERVALS = 3
_HALF = 0.5


class Saturation:
    """
    Share of the last three intervals during which every allowed slot was taken.

    Args:
        interval_ns: Length of one interval.
        now_ns: Start of the first.

    Attributes:
        sustained: It was at least half.
    """

    __slots__ = ("_full_ns", "_full_since_ns", "_opened_ns", "_past", "interval_ns", "sustained")

    def __init__(self, interval_ns: int, now_ns: int) -> None:
        self.interval_ns = interval_ns
        self.sustained = False
        self._opened_ns = now_ns
        self._full_since_ns = -1
        self._full_ns = 0
        self._past: deque[float] = deque(maxlen=_INTERVALS)

    def full(self, now_ns: int) -> None:
        """The last free slot was taken."""
        if self._full_since_ns < 0:
            self._full_since_ns = now_ns

    def free(self, now_ns: int) -> None:
        """A slot is free again."""
        if self._full_since_ns >= 0:
            self._full_ns += now_ns - max(self._full_since_ns, self._opened_ns)
            self._full_since_ns = -1

    def roll(self, now_ns: int) -> None:
        """Close the interval if it has ended."""
        span = now_ns - self._opened_ns
        if span < self.interval_ns:
            return
        if self._full_since_ns >= 0:
            self._full_ns += now_ns - max(self._full_since_ns, self._opened_ns)
        share = min(1.0, self._full_ns / span)
        # A late roll stands for all the intervals it covers.
        self._past.extend([share] * min(_INTERVALS, span // self.interval_ns))
        self._full_ns = 0
        self._opened_ns = now_ns
        mean = sum(self._past) / _INTERVALS
        self.sustained = mean >= _HALF
