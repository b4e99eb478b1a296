"""
The state machine of one limiter: offer, finish, tick, and the loop that grants.

All methods are called under the limiter's lock with the present time. Waiting tickets that
were decided by a call are left in ``changed``, what observers should hear in ``events``;
whoever holds the lock takes both before leaving it and tells them afterwards.

Invariants: an admission happens only below the limit, below its class's cap and outside of
what is held back for others; every ticket is decided once and ended once; nobody waits
while a slot it may use is free; arrivals = granted + shed + waiting.
"""

from __future__ import annotations

from collections.abc import Callable

from gunicorn_admission.core.congestion import OVERLOADED_PLACES
from gunicorn_admission.core.events import Event, EventKind
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import MILLISECOND, SECOND, Policy
from gunicorn_admission.core.queueing import Queueing
from gunicorn_admission.core.stall import SHORTEST_SILENCE_NS
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Mode, Outcome, Priority, Reason, State

__all__ = ["Controller"]

_WAITING, _GRANTED, _SHED, _ENDED = State.WAITING, State.GRANTED, State.SHED, State.ENDED
_SUCCESS, _DROP = Outcome.SUCCESS, Outcome.DROP
_ENFORCE = Mode.ENFORCE
_TICK_WAITING_NS = 10 * MILLISECOND
_REVIEW_NS = SECOND // 2


class Controller(Queueing):
    """
    Decides who runs, who waits and who is refused.

    Args:
        policy: The numbers to obey.
        limit: The algorithm that learns how many may run at once.
        now_ns: Present time on the caller's monotonic clock.
        jitter: Returns a uniform float in [0, 1), for Retry-After.

    Attributes:
        starved: So many threads are stuck that the pool cannot do its work.

    Thread safety: none of its own; guarded by the limiter's lock.
    """

    def __init__(
        self, policy: Policy, limit: Limit, now_ns: int, jitter: Callable[[], float]
    ) -> None:
        super().__init__(policy, limit, now_ns, jitter)
        self.starved = False
        self._reviews_at_ns = now_ns

    # -- arrival ---------------------------------------------------------------------

    def offer(self, ticket: Ticket, now_ns: int) -> None:
        """Decide on an arrival: it leaves NEW for GRANTED, WAITING or SHED."""
        self.totals.arrivals += 1
        if now_ns >= self.congestion.rolls_at_ns:
            self._roll(now_ns)
        partition = ticket.partition
        held = partition.inflight
        if held >= self.stalls.fewest and now_ns - partition.quiet_since_ns >= SHORTEST_SILENCE_NS:
            self.stalls.freeze(partition, now_ns)
        # The ordinary case first and by itself: this runs for every request.
        if (
            self.inflight < self.allowed
            and held < partition.room
            and not self.shares.held
            and not partition.stalled
            and ticket.deadline_ns is None
            and (self.shared is None or self.shared.take(partition.name, now_ns))
        ):
            self.occupy(ticket, now_ns)
        else:
            self._consider(ticket, now_ns)

    def _consider(self, ticket: Ticket, now_ns: int) -> None:
        partition = ticket.partition
        if partition.stalled or (ticket.deadline_ns is not None and self.hopeless(ticket, now_ns)):
            admitted = self._probes(ticket, now_ns)
        else:
            admitted = self.admits(partition)
        if admitted and self.claim(partition, now_ns):
            self.occupy(ticket, now_ns)
            return
        if now_ns >= self.expires_at_ns:
            self.expire(now_ns)
        most = partition.policy.max_refusals
        if most is not None and partition.refused_in_a_row + 1 >= most:
            ticket.priority = Priority.HIGH
        reason = self.why_refuse(ticket, now_ns)
        if self.mode is not _ENFORCE:
            if reason is not None and self.mode is Mode.MONITOR:
                self.totals.count_would_shed(ticket.priority, reason)
                self.turn_away(ticket.priority, reason)
            self.occupy_unclaimed(ticket, now_ns)
        elif reason is None:
            self.enqueue(ticket)
        else:
            self.shed(ticket, reason)

    def _probes(self, ticket: Ticket, now_ns: int) -> bool:
        # Also for a class slower than its deadline: else nobody would learn that it is not.
        return (
            self.inflight < self.allowed
            and (ticket.deadline_ns is None or now_ns < ticket.deadline_ns)
            and self.stalls.may_probe(ticket.partition, now_ns)
        )

    # -- the end of a request --------------------------------------------------------

    def abandon(self, ticket: Ticket, now_ns: int) -> None:
        """The client of a ticket left before it ran; one decided otherwise is left alone."""
        if ticket.state is _WAITING:
            self.totals.abandoned += 1
            self.drop_waiter(ticket, Reason.ABANDONED)
        elif ticket.state is _GRANTED and not ticket.detached:
            # Not a completion: it says nothing about whether its class hangs.
            self.totals.abandoned += 1
            ticket.state = _ENDED
            self.vacate(ticket, now_ns)
            self._refresh(now_ns)

    def finish(self, ticket: Ticket, now_ns: int, outcome: Outcome) -> None:
        """End a granted ticket; ending it again only counts the mistake."""
        if ticket.state is not _GRANTED:
            self.totals.released_twice += 1
            return
        ticket.state = _ENDED
        partition = ticket.partition
        if ticket.detached:
            self.streaming.discard(ticket)
            self.relimit(now_ns)
        else:
            self.vacate(ticket, now_ns)
        if outcome is _SUCCESS:
            self._learn(ticket, now_ns)
        elif outcome is _DROP:
            self.limit.on_sample(
                now_ns=now_ns,
                rtt_ns=now_ns - ticket.granted_ns,
                inflight=ticket.inflight,
                dropped=True,
                partition=partition.name,
            )
        if outcome is not _DROP:
            partition.quiet_since_ns = now_ns
        if partition.frozen_at_ns:
            if outcome is not _DROP:
                self._thaw(ticket, now_ns)
            self.relimit(now_ns)
        elif self.limit.limit != self.learned:
            self.relimit(now_ns)
        if self.waiting:
            self.grant_waiting(now_ns)

    def detach(self, ticket: Ticket, now_ns: int) -> None:
        """End the slot of a response that goes on (a stream); its thread stays counted."""
        if ticket.state is _GRANTED and not ticket.detached:
            super().detach(ticket, now_ns)
            partition = ticket.partition
            partition.quiet_since_ns = now_ns
            if partition.frozen_at_ns:
                self._thaw(ticket, now_ns)
            self._refresh(now_ns)

    def reclassify(
        self, ticket: Ticket, partition: Partition, now_ns: int, force: bool = True
    ) -> bool:
        """Count a granted ticket under another class, which may make room in its old one."""
        moved = super().reclassify(ticket, partition, now_ns, force)
        self.grant_waiting(now_ns)
        return moved

    def _learn(self, ticket: Ticket, now_ns: int) -> None:
        partition = ticket.partition
        policy = partition.policy
        end_ns = ticket.sampled_at_ns or now_ns
        rtt_ns = end_ns - ticket.granted_ns - ticket.blocked_ns
        if rtt_ns <= 0 or not policy.sampled or (policy.stream and not ticket.sampled_at_ns):
            return
        if rtt_ns < self.policy.stall_after_ns or rtt_ns < self.stalls.age_bound_ns(partition):
            # What is older says when a hang ended, not how long a request takes.
            self.congestion.sample(rtt_ns)
            self.limit.on_sample(
                now_ns=now_ns, rtt_ns=rtt_ns, inflight=ticket.inflight, dropped=False,
                partition=partition.name,
            )  # fmt: skip
            partition.sample(rtt_ns)
        else:
            partition.outlier(rtt_ns)

    def _thaw(self, ticket: Ticket, now_ns: int) -> None:
        partition = ticket.partition
        stalled = partition.stalled
        if self.stalls.thaw(partition, now_ns - ticket.granted_ns, now_ns) and stalled:
            self._tell(EventKind.RESUMED, now_ns, partition.name, inflight=partition.inflight)

    # -- time ------------------------------------------------------------------------

    def tick(self, now_ns: int) -> None:
        """Do what is due: intervals, expiry, ages. Needed while requests wait or run."""
        if now_ns >= self.congestion.rolls_at_ns:
            self._roll(now_ns)
        for partition in self.shares:
            self.stalls.freeze(partition, now_ns)
        if now_ns >= self._reviews_at_ns:
            self._reviews_at_ns = now_ns + _REVIEW_NS
            self._review(now_ns)
        self.relimit(now_ns)
        if self.waiting:
            self.expire(now_ns)
            self.grant_waiting(now_ns)

    def next_tick_ns(self, now_ns: int) -> int:
        """When ``tick`` should run next."""
        return now_ns + (_TICK_WAITING_NS if self.waiting else _REVIEW_NS)

    def _roll(self, now_ns: int) -> None:
        if not self.congestion.roll(now_ns, self.standing(now_ns)):
            return
        overloaded = self.congestion.overloaded
        self._tell(
            EventKind.OVERLOADED if overloaded else EventKind.RECOVERED,
            now_ns,
            limit=self.allowed,
            inflight=self.inflight,
            waiting=self.waiting,
            target_seconds=self.congestion.target_ns / SECOND,
        )
        if overloaded:
            # The newest keep the places that are left: they have the longest to live.
            for ticket in self.waitlist.beyond(Priority.DEFAULT, OVERLOADED_PLACES):
                if ticket.timeout_ns is None:
                    self.drop_waiter(ticket, Reason.OVERLOADED)

    def _review(self, now_ns: int) -> None:
        for partition in self.stalls.review(now_ns):
            data = {
                "inflight": partition.inflight,
                "oldest_seconds": partition.oldest_age_ns(now_ns) / SECOND,
            }
            self._tell(EventKind.STALLED, now_ns, partition.name, **data)
        stuck = self.stalls.stuck
        starved = stuck > 0 and self.policy.max_limit - stuck <= self.policy.min_limit
        if starved is not self.starved:
            self.starved = starved
            kind = EventKind.STARVED if starved else EventKind.REPLENISHED
            self._tell(kind, now_ns, stuck=stuck, max_limit=self.policy.max_limit)

    def _tell(
        self, kind: EventKind, now_ns: int, partition: str | None = None, **data: float
    ) -> None:
        self.events.append(Event(kind, now_ns, partition, data))

    # -- live changes ----------------------------------------------------------------

    def set_limit(self, limit: int | None, now_ns: int) -> None:
        """Pin the limit, or hand it back to the algorithm with ``None``."""
        self.pinned = limit
        self._tell(EventKind.LIMIT_SET, now_ns, limit=self.limit.limit if limit is None else limit)
        self._refresh(now_ns)

    def set_mode(self, mode: Mode, now_ns: int) -> None:
        """Change the mode; leaving ``enforce`` lets everybody run who waits."""
        self.mode = mode
        self.events.append(Event(EventKind.MODE_SET, now_ns, None, {"mode": mode.value}))
        if mode is not _ENFORCE:
            for ticket in tuple(self.waitlist):
                self.leave(ticket)
                self.occupy_unclaimed(ticket, now_ns)

    def set_paused(self, paused: bool, now_ns: int) -> None:
        """Refuse all arrivals, or stop doing so; what runs goes on."""
        self.paused = paused
        self._tell(EventKind.PAUSED if paused else EventKind.UNPAUSED, now_ns)
        if paused:
            self._refuse_waiting(Reason.PAUSED)
        self._refresh(now_ns)

    def close(self, now_ns: int) -> None:
        """Refuse those who wait and let nobody wait from now on."""
        if not self.closed:
            self.closed = True
            self._tell(EventKind.CLOSED, now_ns, waiting=self.waiting, inflight=self.inflight)
            self._refuse_waiting(Reason.STOPPING)

    def _refuse_waiting(self, reason: Reason) -> None:
        for ticket in tuple(self.waitlist):
            self.drop_waiter(ticket, reason)

    def _refresh(self, now_ns: int) -> None:
        self.relimit(now_ns)
        self.grant_waiting(now_ns)
