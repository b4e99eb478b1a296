"""
Calls that never end teach a limiter nothing, so their age has to.

Two stages for each class. *Frozen*: it was busy and silent for so long that chance is no
explanation, so it may hold what it holds and no more. *Stalled*: its oldest requests are
far past their usual time; all of its arrivals are refused but for a probe now and then, and
the first request that comes back in good time ends it.

With n requests in flight and a mean service time m, the gap between completions is about
m/n, and the chance of silence for a time t about exp(-t n / m). At t = 20 m / n that is
2e-9, which is the bound used here. n changes, so the time that each request has run in
silence is added up: one that is slow by itself says nothing about those that join it.

Requests that are stuck already say nothing new. They are left out, or a class that works
again would be judged by what it lost: threads may stay stuck for ever.
"""

from __future__ import annotations

from gunicorn_admission.core.partition import PROBE_INTERVAL_NS, Partition
from gunicorn_admission.core.policy import MILLISECOND, SECOND, Policy
from gunicorn_admission.core.shares import Shares

__all__ = ["PROBE_INTERVAL_NS", "PROBE_LONGEST_NS", "SHORTEST_SILENCE_NS", "Stalls"]

PROBE_LONGEST_NS = 8 * SECOND
_SILENCE = 20
_FADING = 6  # by 1/2**6 in each review, and so to a half in about 20 s
SHORTEST_SILENCE_NS = 50 * MILLISECOND
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
        """Silence after which a class that is as busy as now hangs."""
        rtt_ns = partition.rtt_ns
        if not rtt_ns:
            return self._after_ns
        live = partition.inflight - len(partition.stuck)
        return max(_SILENCE * rtt_ns // max(1, live), self._shortest_ns(partition))

    def _shortest_ns(self, partition: Partition) -> int:
        # Requests that began together and take equally long are silent for that long.
        rtt_ns = partition.rtt_ns
        if not rtt_ns:
            return self._after_ns
        return max(5 * rtt_ns // 2, SHORTEST_SILENCE_NS, partition.slow_ns)

    def freeze(self, partition: Partition, now_ns: int) -> bool:
        """Freeze a class that has gone silent at what it holds; whether it just was."""
        if partition.frozen_at_ns or partition.inflight - len(partition.stuck) < self.fewest:
            return False
        shortest_ns = self._shortest_ns(partition)
        if now_ns - partition.quiet_since_ns < shortest_ns:
            return False
        running = work_ns = 0
        for ticket in partition.running:
            if ticket in partition.stuck:
                continue
            running += 1
            silence_ns = now_ns - max(ticket.granted_ns, partition.quiet_since_ns)
            if running == self.fewest and silence_ns < shortest_ns:
                return False
            work_ns += silence_ns
        if work_ns < _SILENCE * partition.rtt_ns:
            return False
        partition.frozen_at_ns = now_ns
        partition.hung_at_ns = now_ns + self.quiet_bound_ns(partition)
        partition.room = min(partition.cap, partition.inflight)
        return True

    def is_hung(self, partition: Partition, now_ns: int) -> bool:
        """Whether a frozen class was silent for as long again: no use to wait for it."""
        return bool(partition.frozen_at_ns) and now_ns >= partition.hung_at_ns

    def may_probe(self, partition: Partition, now_ns: int) -> bool:
        """Whether one request of a stalled class is let through now, to look."""
        if now_ns < partition.next_probe_ns or partition.inflight >= partition.cap:
            return False
        partition.next_probe_ns = now_ns + partition.probe_wait_ns
        if partition.stalled:
            # A probe that hangs too holds a thread that the others need.
            partition.probe_wait_ns = min(2 * partition.probe_wait_ns, PROBE_LONGEST_NS)
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
            partition.revived_ns = now_ns
            partition.probe_wait_ns = PROBE_INTERVAL_NS
        partition.frozen_at_ns = 0
        partition.room = partition.cap
        return True

    def review(self, now_ns: int) -> list[Partition]:
        """Look at the age of what runs; returns the classes that are stalled from now on."""
        fresh: list[Partition] = []
        self.stuck = 0
        for partition in self._shares:
            bound_ns = self.age_bound_ns(partition)
            partition.slow_ns -= partition.slow_ns >> _FADING
            stuck = partition.stuck
            stuck.clear()
            fresh_stuck = 0
            for ticket in partition.running:
                if now_ns - ticket.granted_ns < bound_ns:
                    break
                stuck.add(ticket)
                fresh_stuck += ticket.granted_ns >= partition.revived_ns
            self.stuck += len(stuck)
            judged = partition.inflight - len(stuck) + fresh_stuck
            if fresh_stuck < max(2, (judged + 1) // 2) or partition.stalled:
                continue
            partition.stalled = True
            if not partition.frozen_at_ns:
                partition.frozen_at_ns = partition.hung_at_ns = now_ns
            partition.room = 0  # what comes back late is not replaced, but by probes
            partition.next_probe_ns = now_ns + PROBE_INTERVAL_NS
            fresh.append(partition)
        return fresh

    def idle_inflight(self, now_ns: int) -> int:
        """Slots held by hung classes and stuck requests: lost threads that use no capacity."""
        return sum(
            p.inflight if p.stalled or self.is_hung(p, now_ns) else len(p.stuck)
            for p in self._shares
            if p.inflight
        )
