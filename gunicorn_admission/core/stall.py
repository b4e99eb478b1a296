"""
Calls that never end teach a limiter nothing, so their age has to.

Two stages for each class. *Frozen*: it was busy and silent for so long that chance is no
explanation, so it may hold what it holds and no more. *Stalled*: its oldest requests are
far past their usual time; all of its arrivals are refused but for a probe a second, and
the first request that comes back in good time ends it.

With n requests in flight and a mean service time m, the gap between completions is about
m/n, and the chance of silence for a time t about exp(-t n / m). At t = 20 m / n that is
2e-9, which is the bound used here.
"""

from __future__ import annotations

from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import MILLISECOND, SECOND, Policy
from gunicorn_admission.core.shares import Shares

__all__ = ["PROBE_INTERVAL_NS", "Stalls"]

PROBE_INTERVAL_NS = SECOND
_SILENCE = 20
_SHORTEST_NS = 50 * MILLISECOND
#: A class never seen to finish anything has no usual time; be slow to judge it.
_UNKNOWN = 3


class Stalls:
    """
    Which classes hang, judged by silence and age.

    Args:
        policy: Supplies ``stall_after_ns`` and the size of the pool.
        shares: The classes to watch.

    Attributes:
        fewest: A class that holds fewer slots is left alone: a few slow requests and
            nobody else to finish in between look just the same, and cost little.
        stuck: Requests past the stall age, as of the last ``review``.
    """

    __slots__ = ("_after_ns", "_shares", "fewest", "stuck")

    def __init__(self, policy: Policy, shares: Shares) -> None:
        self._after_ns = policy.stall_after_ns
        self._shares = shares
        self.fewest = max(2, min(4, policy.max_limit // 4))
        self.stuck = 0

    def age_bound_ns(self, partition: Partition) -> int:
        """Age at which a running request of that class counts as stuck."""
        if not partition.rtt_ns:
            return _UNKNOWN * self._after_ns
        return max(self._after_ns, 10 * partition.rtt_ns)

    def quiet_bound_ns(self, partition: Partition) -> int:
        """Silence after which a busy class is frozen."""
        rtt_ns = partition.rtt_ns
        if not rtt_ns:
            return self._after_ns
        by_chance = max(_SILENCE * rtt_ns // max(1, partition.inflight), 5 * rtt_ns // 2)
        return max(by_chance, _SHORTEST_NS)

    def freeze(self, partition: Partition, now_ns: int) -> bool:
        """Freeze a class that has gone silent at what it holds; whether it just was."""
        if partition.frozen_at_ns or partition.inflight < self.fewest:
            return False
        if now_ns - partition.quiet_since_ns < self.quiet_bound_ns(partition):
            return False
        partition.frozen_at_ns = now_ns
        partition.room = min(partition.cap, partition.inflight)
        return True

    def is_hung(self, partition: Partition, now_ns: int) -> bool:
        """Whether a frozen class was silent for twice the bound: no use to wait for it."""
        quiet_ns = now_ns - partition.quiet_since_ns
        return bool(partition.frozen_at_ns) and quiet_ns >= 2 * self.quiet_bound_ns(partition)

    def may_probe(self, partition: Partition, now_ns: int) -> bool:
        """Whether one request of a stalled class is let through now, to look."""
        if now_ns < partition.next_probe_ns or partition.inflight >= partition.cap:
            return False
        partition.next_probe_ns = now_ns + PROBE_INTERVAL_NS
        return True

    def thaw(self, partition: Partition, age_ns: int, now_ns: int) -> bool:
        """
        Take a completion of a frozen class; whether that ends its freeze.

        A request older than the stall age may have come back because its driver gave up,
        so it only calls for a probe at once; what ends a stall is one that was quick.
        """
        if partition.stalled:
            if age_ns >= self.age_bound_ns(partition):
                partition.next_probe_ns = now_ns
                return False
            partition.stalled = False
        partition.frozen_at_ns = 0
        partition.room = partition.cap
        return True

    def review(self, now_ns: int) -> list[Partition]:
        """Look at the age of what runs; returns the classes that are stalled from now on."""
        fresh: list[Partition] = []
        self.stuck = 0
        for partition in self._shares:
            old = 0
            bound_ns = self.age_bound_ns(partition)
            for ticket in partition.running:
                if now_ns - ticket.granted_ns < bound_ns:
                    break
                old += 1
            self.stuck += old
            if old < max(2, (partition.inflight + 1) // 2) or partition.stalled:
                continue
            partition.stalled = True
            partition.frozen_at_ns = partition.frozen_at_ns or now_ns
            partition.room = min(partition.cap, partition.inflight)
            partition.next_probe_ns = now_ns + PROBE_INTERVAL_NS
            fresh.append(partition)
        return fresh

    def hung_inflight(self, now_ns: int) -> int:
        """Slots held by hung classes: threads that are lost, but use no capacity."""
        return sum(p.inflight for p in self._shares if self.is_hung(p, now_ns))
