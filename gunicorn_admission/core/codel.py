"""
CoDel's question, asked of a pool of threads: does a queue stand, or does it drain?

The smallest queue delay within an interval tells a burst (it reaches zero in between)
from a standing queue (it does not). Source: RFC 8289 sections 4.2 and 5; folly's Codel.
Unlike those it rolls by time and not only when something is dequeued, so the answer is
never older than one interval: an interval without a sample says that nothing queues.
"""

from __future__ import annotations

__all__ = ["CoDel"]


class CoDel:
    """
    Minimum queue delay per interval.

    Args:
        interval_ns: How long the delay must stay above the target.
        now_ns: Start of the first interval.

    Attributes:
        overloaded: In the last complete interval at least two requests were admitted and
            every one of them had waited longer than the target.
    """

    __slots__ = ("_count", "_min_ns", "ends_ns", "interval_ns", "overloaded")

    def __init__(self, interval_ns: int, now_ns: int) -> None:
        self.interval_ns = interval_ns
        self.ends_ns = now_ns + interval_ns
        self.overloaded = False
        self._min_ns = 0
        self._count = 0

    def observe(self, delay_ns: int) -> None:
        """Take the queue delay of one admitted request; ``roll`` must have been called first."""
        if self._count == 0 or delay_ns < self._min_ns:
            self._min_ns = delay_ns
        self._count += 1

    def roll(self, now_ns: int, target_ns: int) -> None:
        """Close the interval if it has ended; empty intervals clear the flag."""
        if now_ns < self.ends_ns:
            return
        if now_ns >= self.ends_ns + self.interval_ns:
            # At least one whole interval passed in silence after this one.
            self.overloaded = False
        else:
            self.overloaded = self._count >= 2 and self._min_ns > target_ns
        self._count = 0
        self.ends_ns = now_ns + self.interval_ns
