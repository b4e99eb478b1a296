"""Who waits, for how long, and who is served next: the waiting half of the controller."""

from __future__ import annotations

from collections.abc import Callable

from gunicorn_admission.core.congestion import OVERLOADED_PLACES
from gunicorn_admission.core.events import Event
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.occupancy import Occupancy
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import Policy
from gunicorn_admission.core.retry_after import drain_time_ns
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Mode, Priority, Reason, State
from gunicorn_admission.core.waitlist import Waitlist

__all__ = ["Queueing"]

_WAITING, _SHED = State.WAITING, State.SHED
_ENFORCE = Mode.ENFORCE
_NEVER = 1 << 63
_NO_PLACE = (Reason.OVERLOADED, Reason.PREDICTED_WAIT, Reason.QUEUE_FULL)


class Queueing(Occupancy):
    """
    Tickets without a slot, and the loop that hands slots to them.

    Args:
        policy, limit, now_ns: See :class:`~gunicorn_admission.core.occupancy.Occupancy`.
        jitter: Returns a uniform float in [0, 1), for Retry-After.

    Attributes:
        mode: Live; see :class:`~gunicorn_admission.core.types.Mode`.
        closed: Nobody may wait any more; what finds a free slot still runs.
        waiting: Number of tickets in the waitlist.
        changed: Waiting tickets that were decided and whose owners must be told.
        events: Transitions that observers must be told.
        expires_at_ns: Nobody who waits expires before that.

    Thread safety: none of its own; guarded by the limiter's lock.
    """

    def __init__(
        self, policy: Policy, limit: Limit, now_ns: int, jitter: Callable[[], float]
    ) -> None:
        super().__init__(policy, limit, now_ns)
        self.waitlist = Waitlist()
        self.waiting = 0
        self.changed: list[Ticket] = []
        self.events: list[Event] = []
        self.expires_at_ns = _NEVER
        self._jitter = jitter
        self.mode = policy.mode
        self.closed = False

    @staticmethod
    def hopeless(ticket: Ticket, now_ns: int, wait_ns: int = 0) -> bool:
        """Whether it could not end in time any more, even if it ran after that wait."""
        usual_ns = ticket.partition.rtt_ns
        return ticket.deadline_ns is not None and now_ns + wait_ns + usual_ns > ticket.deadline_ns

    def why_refuse(self, ticket: Ticket, now_ns: int) -> Reason | None:
        """Why an arrival that cannot run now may not wait either; ``None`` when it may."""
        partition, congestion, priority = ticket.partition, self.congestion, ticket.priority
        if self.paused:
            return Reason.PAUSED
        if self.closed:
            return Reason.STOPPING
        if partition.stalled or self.stalls.is_hung(partition, now_ns):
            return Reason.STALLED
        if self.hopeless(ticket, now_ns):
            return Reason.DEADLINE
        patience_ns = self.patience_ns(ticket)
        if patience_ns <= 0:
            return Reason.OVERLOADED
        # More than the limit run after it has shrunk, and where nothing is refused: there
        # they stand for those who would wait.
        over = max(0, self.inflight - self.allowed)
        if (
            congestion.overloaded
            and priority is Priority.DEFAULT
            and ticket.timeout_ns is None
            and (self.waitlist.count(priority) if self.mode is _ENFORCE else over)
            >= OVERLOADED_PLACES
        ):
            return Reason.OVERLOADED
        # Little's law: slots are freed at the rate inflight / service time.
        ahead, own = self.waitlist.ahead(priority), partition.inflight
        wait_ns = 0
        if own < partition.room or self.inflight >= self.allowed:
            wait_ns = (ahead + over + 1) * congestion.rtt_ns // max(1, self.inflight)
        if own >= partition.room:
            ahead = min(ahead, partition.waiting) + own - partition.room
            wait_ns = max(wait_ns, (ahead + 1) * partition.rtt_ns // max(1, own))
        if self.hopeless(ticket, now_ns, wait_ns):
            return Reason.DEADLINE
        if congestion.overloaded:
            # Half as much again, for who waits in vain has lost twice.
            wait_ns += wait_ns // 2
        if now_ns - ticket.arrived_ns + wait_ns > patience_ns:
            return Reason.PREDICTED_WAIT
        if self.mode is not _ENFORCE:
            return Reason.QUEUE_FULL if over >= self.policy.max_queue else None
        if self.waiting >= self.policy.max_queue:
            victim = self.waitlist.victim(priority)
            if victim is None:
                return Reason.QUEUE_FULL
            self.drop_waiter(victim, Reason.EVICTED)
        return None

    def patience_ns(self, ticket: Ticket) -> int:
        """How long a ticket may expect to wait; the caller's own bound replaces the policy's."""
        if ticket.timeout_ns is None:
            return self._until_lost_ns(ticket) or self.congestion.patience_ns(ticket.priority)
        if ticket.priority is Priority.LOW:
            return min(ticket.timeout_ns, self.congestion.patience_ns(ticket.priority))
        return ticket.timeout_ns

    def longest_wait_ns(self, ticket: Ticket) -> int:
        """How long a ticket really waits before it is given up."""
        if ticket.timeout_ns is None:
            lost_ns = self._until_lost_ns(ticket)
            return lost_ns or self.congestion.longest_wait_ns(ticket.priority)
        if ticket.priority is Priority.LOW:
            return min(ticket.timeout_ns, self.congestion.longest_wait_ns(ticket.priority))
        return ticket.timeout_ns

    @staticmethod
    def _until_lost_ns(ticket: Ticket) -> int | None:
        """
        How long an event may wait whose refusal would cost more than itself: until its sender
        gives up on it.

        That is one of high priority whose sender never comes again, or would end the
        subscription now.
        """
        partition = ticket.partition
        most = partition.policy.max_refusals
        is_last = most is not None and partition.refused_in_a_row + 1 >= most
        if ticket.priority is not Priority.HIGH or (partition.policy.retries and not is_last):
            return None
        return ticket.deadline_ns and ticket.deadline_ns - ticket.arrived_ns

    def standing(self, now_ns: int) -> int:
        """Length of the queue, as far as it is one: with all waits under the target it is not."""
        if self.mode is not Mode.ENFORCE:
            return 0 if self.paused else max(0, self.inflight - self.allowed)
        oldest_ns = self.waitlist.oldest_ns()
        if oldest_ns is None or now_ns - oldest_ns <= self.congestion.target_ns:
            return 0
        return self.waiting

    def enqueue(self, ticket: Ticket) -> None:
        ticket.state = _WAITING
        self.waiting += 1
        ticket.partition.waiting += 1
        self.waitlist.add(ticket)
        self.set_expiry(ticket)

    def set_expiry(self, ticket: Ticket) -> None:
        ticket.expires_ns = ticket.arrived_ns + self.longest_wait_ns(ticket)
        if ticket.deadline_ns is not None:
            hopeless_ns = ticket.deadline_ns - ticket.partition.rtt_ns + 1
            ticket.expires_ns = min(ticket.expires_ns, hopeless_ns)
        self.expires_at_ns = min(self.expires_at_ns, ticket.expires_ns)

    def leave(self, ticket: Ticket) -> None:
        """Take a ticket from the waitlist because it has been decided."""
        self.waitlist.remove(ticket)
        self.waiting -= 1
        ticket.partition.waiting -= 1
        self.changed.append(ticket)
        if ticket.wake is not None:
            ticket.wake.notify()

    def shed(self, ticket: Ticket, reason: Reason) -> None:
        ticket.state = _SHED
        ticket.reason = reason
        ticket.retry_after_ns = self.refuse(ticket.partition, ticket.priority, reason)

    def refuse(self, partition: Partition, priority: Priority, reason: Reason) -> int:
        """Count a refusal; returns when a retry has a chance."""
        self.turn_away(priority, reason)
        partition.shed += 1
        partition.refused_in_a_row += 1
        self.totals.count_shed(priority, reason)
        return drain_time_ns(
            self.waiting + max(0, self.inflight - self.allowed) + 1,
            self.congestion.rtt_ns,
            self.allowed,
            self.policy.retry_after_ns,
            self._jitter(),
        )

    def refuse_late(self, ticket: Ticket) -> bool:
        """Refuse an arrival that has waited elsewhere for too long; ``monitor`` only counts it."""
        if self.mode is _ENFORCE:
            self.totals.arrivals += 1
            self.shed(ticket, Reason.EXPIRED)
            return True
        if self.mode is Mode.MONITOR:
            self.totals.count_would_shed(ticket.priority, Reason.EXPIRED)
        return False

    def turn_away_unseen(
        self, partition: Partition, priority: Priority, now_ns: int
    ) -> tuple[Reason, int] | None:
        """
        Refuse an arrival for overload without a ticket.

        Returns:
            The reason and when to retry; ``None`` where more has to be looked at, and the
            arrival is to be offered.
        """
        plain = self.mode is Mode.ENFORCE and partition.policy.max_refusals is None
        if (
            not (plain and self.congestion.overloaded)
            or self.inflight < self.allowed
            or now_ns >= self.congestion.rolls_at_ns
            or now_ns >= self.expires_at_ns
            or partition.frozen_at_ns
            or self.paused
            or self.closed
            or priority is Priority.HIGH
            or (priority is Priority.DEFAULT and self.waitlist.count(priority) < OVERLOADED_PLACES)
        ):
            return None
        self.totals.arrivals += 1
        return Reason.OVERLOADED, self.refuse(partition, priority, Reason.OVERLOADED)

    def disown(self) -> None:
        """Decide on all tickets, uncounted and untold: those of a parent are not a child's."""
        for ticket in (*self.streaming, *(t for p in self.shares for t in p.running)):
            ticket.state = State.ENDED
        for ticket in self.waitlist:
            ticket.state, ticket.reason, ticket.retry_after_ns = _SHED, Reason.STOPPING, 0

    def turn_away(self, priority: Priority, reason: Reason) -> None:
        """Note that there was no place for a request, as a sign of overload."""
        if reason in _NO_PLACE and priority is not Priority.LOW:
            self.congestion.queue.turned_away += 1

    def drop_waiter(self, ticket: Ticket, reason: Reason) -> None:
        self.leave(ticket)
        self.shed(ticket, reason)

    def grant_waiting(self, now_ns: int) -> None:
        """Fill every free slot; runs after whatever may have freed one."""
        if now_ns >= self.expires_at_ns:
            self.expire(now_ns)
        while self.waiting and self.inflight < self.allowed:
            ticket = self.waitlist.next(
                lambda partition: self._usable(partition, now_ns),
                lambda oldest: self._turned(oldest, now_ns),
            )
            if ticket is None:
                return
            if self.hopeless(ticket, now_ns):
                self.drop_waiter(ticket, Reason.DEADLINE)
                continue
            if not self.claim(ticket.partition, now_ns):
                return  # somebody else was quicker; the next tick asks again
            self.leave(ticket)
            self.occupy(ticket, now_ns)

    def expire(self, now_ns: int) -> None:
        """Refuse those who have waited as long as they may, or for a class that hangs."""
        self.expires_at_ns = _NEVER
        for ticket in tuple(self.waitlist):
            if now_ns >= ticket.expires_ns:
                late = self.hopeless(ticket, now_ns)
                self.drop_waiter(ticket, Reason.DEADLINE if late else Reason.EXPIRED)
            elif ticket.partition.stalled or self.stalls.is_hung(ticket.partition, now_ns):
                self.drop_waiter(ticket, Reason.STALLED)
            else:
                self.expires_at_ns = min(self.expires_at_ns, ticket.expires_ns)

    def _usable(self, partition: Partition, now_ns: int) -> bool:
        return self.admits(partition) and (
            self.shared is None or self.shared.has_room(partition.name, now_ns)
        )

    def _turned(self, oldest: Ticket, now_ns: int) -> bool:
        congestion = self.congestion
        waited_ns = now_ns - oldest.arrived_ns
        return congestion.overloaded and waited_ns > congestion.longest_wait_ns(oldest.priority)
