"""What has happened since the start, counted where it is decided."""

from __future__ import annotations

from bisect import bisect_left

from gunicorn_admission.core.policy import SECOND
from gunicorn_admission.core.statistics import DELAY_BUCKETS
from gunicorn_admission.core.types import Priority, Reason

__all__ = ["Totals"]

_BUCKETS_NS = tuple(int(bound * SECOND) for bound in DELAY_BUCKETS)
_FIRST_NS = _BUCKETS_NS[0]


class Totals:
    """Plain integers, guarded by the limiter's lock, that only ever grow."""

    __slots__ = (
        "abandoned",
        "arrivals",
        "bypassed",
        "delay_buckets",
        "delay_sum_ns",
        "granted",
        "leaked",
        "released_twice",
        "shed",
        "would_shed",
    )

    def __init__(self) -> None:
        self.arrivals = self.abandoned = self.bypassed = 0
        self.released_twice = self.leaked = 0
        self.granted = [0, 0, 0]
        self.shed: dict[tuple[Priority, Reason], int] = {}
        self.would_shed: dict[tuple[Priority, Reason], int] = {}
        self.delay_buckets = [0] * (len(DELAY_BUCKETS) + 1)
        self.delay_sum_ns = 0

    def delay(self, delay_ns: int) -> None:
        """Count one queue delay in the histogram."""
        if delay_ns <= _FIRST_NS:
            self.delay_buckets[0] += 1
        else:
            self.delay_buckets[bisect_left(_BUCKETS_NS, delay_ns)] += 1
        self.delay_sum_ns += delay_ns

    def count_shed(self, priority: Priority, reason: Reason) -> None:
        """Count one refusal."""
        key = priority, reason
        self.shed[key] = self.shed.get(key, 0) + 1

    def count_would_shed(self, priority: Priority, reason: Reason) -> None:
        """Count one refusal that monitor mode did not carry out."""
        key = priority, reason
        self.would_shed[key] = self.would_shed.get(key, 0) + 1
