"""
Is there overload, and how long may a request wait because of it?

Overload begins when the queue does not shrink any more (``standing.py``), or when CoDel
finds that all waited too long while it hardly shrinks. It ends when neither of them says
so, nor all slots are taken half of the time.

Until it begins everybody may wait ``max_wait``, so that bursts pass. After that waiting
only makes answers late, so patience shrinks: DEFAULT to twice the target (CoDel's
shed-late rule), HIGH to about one service time, LOW to nothing.
"""

from __future__ import annotations

from gunicorn_admission.core.codel import CoDel
from gunicorn_admission.core.policy import MILLISECOND, Policy
from gunicorn_admission.core.saturation import Saturation
from gunicorn_admission.core.standing import StandingQueue
from gunicorn_admission.core.types import Priority

__all__ = ["OVERLOADED_PLACES", "Congestion"]

#: Places for DEFAULT requests in the queue of an overloaded limiter. Two keep DEFAULT ahead
#: of LOW (with none, both only get the slots that happen to be free on arrival); more only
#: make those who wait expire.
OVERLOADED_PLACES = 2
_SHORTEST_TARGET = 5 * MILLISECOND
_LONGEST_TARGET = 50 * MILLISECOND
_HIGH_PATIENCE = 100 * MILLISECOND
_INTERVALS_TARGET = 20  # as 100 ms are to 5 ms, RFC 8289 section 4.4
_WEIGHT = 4  # the mean moves by 1/2**4 of the difference


class Congestion:
    """
    The overload flag, the usual service time and the patience that follow from them.

    Args:
        policy: Supplies target, interval and the waits.
        now_ns: Present time.

    Attributes:
        overloaded: A queue stands.
        target_ns: Queue delay that is tolerated.
        rtt_ns: Moving mean of the service time over all classes; 0 before the first.
        rolls_at_ns: When ``roll`` has something to do.
    """

    __slots__ = (
        "_policy",
        "codel",
        "overloaded",
        "queue",
        "rolls_at_ns",
        "rtt_ns",
        "saturation",
        "target_ns",
    )

    def __init__(self, policy: Policy, now_ns: int) -> None:
        self._policy = policy
        self.codel = CoDel(policy.interval_ns, now_ns)
        self.saturation = Saturation(policy.interval_ns, now_ns)
        self.queue = StandingQueue(now_ns)
        self.overloaded = False
        self.rtt_ns = 0
        self.target_ns = policy.target_ns or _SHORTEST_TARGET
        self.rolls_at_ns = self.queue.ends_ns

    def sample(self, rtt_ns: int) -> None:
        """Take the service time of one successful request."""
        mean = self.rtt_ns
        if not mean:
            self.rtt_ns = rtt_ns
        elif rtt_ns <= 4 * mean:
            self.rtt_ns = mean + (rtt_ns - mean >> _WEIGHT)
        else:
            self.rtt_ns = mean + (3 * mean >> _WEIGHT)

    def roll(self, now_ns: int, waiting: int) -> bool:
        """Close what has ended; whether ``overloaded`` changed."""
        queue, codel, saturation = self.queue, self.codel, self.saturation
        queue.roll(now_ns, waiting)
        if now_ns >= codel.ends_ns:
            if self._policy.target_ns is None:
                self.target_ns = min(max(self.rtt_ns // 4, _SHORTEST_TARGET), _LONGEST_TARGET)
                interval_ns = max(self._policy.interval_ns, _INTERVALS_TARGET * self.target_ns)
                codel.interval_ns = interval_ns
            codel.roll(now_ns, self.target_ns)
        saturation.roll(now_ns)
        self.rolls_at_ns = min(queue.ends_ns, codel.ends_ns)
        before = self.overloaded
        if before:
            self.overloaded = queue.standing or saturation.sustained or codel.overloaded
        else:
            self.overloaded = queue.standing or (codel.overloaded and queue.lingering)
        return self.overloaded is not before

    def patience_ns(self, priority: Priority) -> int:
        """How long a request may be expected to wait for it to be let in; 0 for not at all."""
        policy = self._policy
        if priority is Priority.LOW:
            return 0 if self.overloaded else policy.low_max_wait_ns
        if not self.overloaded:
            return policy.max_wait_ns
        patience = 2 * self.target_ns
        if priority is Priority.HIGH:
            patience = max(patience, self.rtt_ns, _HIGH_PATIENCE)
        return min(patience, policy.max_wait_ns)

    def longest_wait_ns(self, priority: Priority) -> int:
        """
        How long a request that was let in may really wait.

        HIGH is turned away on arrival if at all. Once in, it stays: a short pause of the
        machine must not throw out all that waited through it.
        """
        if priority is Priority.HIGH:
            return self._policy.max_wait_ns
        return self.patience_ns(priority)
