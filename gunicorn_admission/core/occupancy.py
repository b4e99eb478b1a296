"""Who holds slots, and how many may be held: the counting half of the controller."""

from __future__ import annotations

from gunicorn_admission.core.congestion import Congestion
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import Policy
from gunicorn_admission.core.shared import SharedBound
from gunicorn_admission.core.shares import Shares
from gunicorn_admission.core.stall import Stalls
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.totals import Totals
from gunicorn_admission.core.types import State

__all__ = ["Occupancy"]

_GRANTED = State.GRANTED


class Occupancy:
    """
    Slots, and the bounds they are held to.

    Args:
        policy: The numbers to obey.
        limit: The algorithm that learns how many may run at once.
        now_ns: Present time on the caller's monotonic clock.

    Attributes:
        allowed: How many may run now: the limit, plus requests that hang (they hold
            threads but use no capacity), never above the hard bound.
        inflight: Slots held.
        streaming: Tickets whose slot has ended but whose response goes on, in a thread.
        learned: The algorithm's limit that ``allowed`` was computed from.
        pinned: A limit set by hand, or ``None`` for the algorithm's.
        shared: A bound beyond this limiter, or ``None``.

    Thread safety: none of its own; guarded by the limiter's lock.
    """

    def __init__(self, policy: Policy, limit: Limit, now_ns: int) -> None:
        self.policy = policy
        self.limit = limit
        self.pinned: int | None = None
        self.paused = False
        self.shared: SharedBound | None = None
        self.inflight = 0
        self.streaming: set[Ticket] = set()
        self.shares = Shares(policy.max_limit, policy.class_cap)
        self.stalls = Stalls(policy, self.shares)
        self.congestion = Congestion(policy, now_ns)
        self.totals = Totals()
        self.allowed = self.learned = 0
        self.relimit(now_ns)

    def relimit(self, now_ns: int) -> None:
        """Recompute ``allowed`` after anything it depends on has changed."""
        self.learned = self.limit.limit
        limit = self.learned if self.pinned is None else self.pinned
        hard = max(0, self.policy.max_limit - len(self.streaming))
        allowed = 0 if self.paused else min(limit + self.stalls.idle_inflight(now_ns), hard)
        if allowed == self.allowed:
            return
        self.allowed = allowed
        self.shares.rebalance(allowed)
        if self.inflight >= allowed and not self.paused:
            self.congestion.saturation.full(now_ns)
        else:
            self.congestion.saturation.free(now_ns)

    def admits(self, partition: Partition) -> bool:
        """Whether one more request of that class may run now, as far as is known here."""
        return (
            self.inflight < self.allowed
            and partition.inflight < partition.room
            and (not self.shares.held or self.shares.admits(partition, self.inflight))
        )

    def claim(self, partition: Partition, now_ns: int) -> bool:
        """Take what a slot for that class needs beyond this limiter; false if there is none."""
        return self.shared is None or self.shared.take(partition.name, now_ns)

    def occupy_unclaimed(self, ticket: Ticket, now_ns: int) -> None:
        """Give a slot to a ticket because nobody is refused, whatever the bounds say."""
        if self.shared is not None:
            self.shared.force(ticket.partition.name)
        self.occupy(ticket, now_ns)

    def occupy(self, ticket: Ticket, now_ns: int) -> None:
        """Give a slot to a ticket, for which :meth:`claim` has succeeded."""
        partition, totals = ticket.partition, self.totals
        ticket.state = _GRANTED
        ticket.granted_ns = now_ns
        ticket.delay_ns = delay_ns = now_ns - ticket.arrived_ns
        self.inflight = ticket.inflight = inflight = self.inflight + 1
        if partition.guarantee and partition.inflight < partition.guarantee:
            self.shares.held -= 1
        partition.inflight += 1
        partition.running[ticket] = None
        partition.granted += 1
        partition.refused_in_a_row = 0
        totals.granted[ticket.priority] += 1
        totals.delay(delay_ns)
        self.congestion.codel.observe(delay_ns)
        if partition.frozen_at_ns:
            self.relimit(now_ns)
        if inflight >= self.allowed and not self.paused:
            self.congestion.saturation.full(now_ns)

    def vacate(self, ticket: Ticket, now_ns: int) -> None:
        """Take the slot of a ticket back."""
        partition = ticket.partition
        if self.inflight == self.allowed:
            self.congestion.saturation.free(now_ns)
        self.inflight -= 1
        partition.inflight -= 1
        del partition.running[ticket]
        if self.shared is not None:
            self.shared.give(partition.name)
        if partition.inflight < partition.guarantee:
            self.shares.held += 1
        if partition.stuck and ticket in partition.stuck:
            partition.stuck.remove(ticket)
            self.relimit(now_ns)

    def detach(self, ticket: Ticket, now_ns: int) -> None:
        """End the slot of a response that goes on (a stream); its thread stays counted."""
        if ticket.state is _GRANTED and not ticket.detached:
            self.vacate(ticket, now_ns)
            ticket.detached = True
            self.streaming.add(ticket)
            self.relimit(now_ns)

    def reclassify(
        self, ticket: Ticket, partition: Partition, now_ns: int, force: bool = True
    ) -> bool:
        """
        Count a granted ticket under another class, once more is known about it.

        Args:
            ticket, partition, now_ns: Which, where to, and the present time.
            force: Also where that class has no room; else false is returned then.
        """
        old = ticket.partition
        if partition is old or ticket.state is not _GRANTED:
            return True
        if ticket.detached:
            ticket.partition = partition
            return True
        if not force and partition.inflight >= partition.room:
            return False
        if self.shared is not None and not self.shared.move(
            old.name, partition.name, now_ns, force=force
        ):
            return False
        ticket.partition = partition
        old.inflight -= 1
        del old.running[ticket]
        old.stuck.discard(ticket)
        if old.inflight < old.guarantee:
            self.shares.held += 1
        if partition.inflight < partition.guarantee:
            self.shares.held -= 1
        partition.inflight += 1
        partition.running[ticket] = None
        self.relimit(now_ns)
        return True
