"""
Does the queue shrink at all?

A burst arrives at once and is then worked off: in nearly every short slice of time the
queue gets shorter, whatever its length. Under overload it grows in nearly every slice, or
stays at its bound while others are turned away. So eight slices in a row tell the two
apart long before the queue delay could: with bursts of 32 at half load, one slice in
seven sees a burst, and seven of eight by chance once in a hundred thousand.
"""

from __future__ import annotations

from collections import deque

from gunicorn_admission.core.policy import MILLISECOND

__all__ = ["SLICE_NS", "StandingQueue"]

SLICE_NS = 25 * MILLISECOND
_SLICES = 8
_MOST = 7
_HALF = 4


class StandingQueue:
    """
    Whether the queue failed to shrink, slice by slice.

    Args:
        now_ns: Start of the first slice.

    Attributes:
        standing: It failed to in at least seven of the last eight slices.
        lingering: It failed to in at least half of them.
        turned_away: Arrivals refused for want of a place in this slice; counted by whoever
            refuses them.
        ends_ns: End of the present slice.
    """

    __slots__ = ("_past", "_waiting", "ends_ns", "lingering", "standing", "turned_away")

    def __init__(self, now_ns: int) -> None:
        self.ends_ns = now_ns + SLICE_NS
        self.turned_away = 0
        self.standing = self.lingering = False
        self._waiting = 0
        self._past: deque[bool] = deque(maxlen=_SLICES)

    def roll(self, now_ns: int, waiting: int) -> None:
        """
        Close the slice if it has ended.

        Args:
            now_ns: Present time.
            waiting: Length of the queue now.
        """
        if now_ns < self.ends_ns:
            return
        stood = waiting > 0 and waiting >= self._waiting
        self._past.append(stood or self.turned_away > 0)
        # A late roll stands for all the slices it covers; who was turned away, for one.
        late = (now_ns - self.ends_ns) // SLICE_NS
        self._past.extend([stood] * min(late, _SLICES))
        self._waiting = waiting
        self.turned_away = 0
        self.ends_ns = now_ns + SLICE_NS
        failures = sum(self._past)
        self.standing = failures >= _MOST
        self.lingering = failures >= _HALF
