"""A controller in a test's hands: time stands still until it is moved, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gunicorn_admission.core.controller import Controller
from gunicorn_admission.core.events import EventKind
from gunicorn_admission.core.limits import FixedLimit
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import PartitionPolicy, Policy
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Mode, Outcome, Priority, Reason, State

__all__ = ["DEFAULT", "HIGH", "LOW", "MS", "S", "Driver", "Script"]

MS = 1_000_000
S = 1_000 * MS
HIGH, DEFAULT, LOW = Priority.HIGH, Priority.DEFAULT, Priority.LOW


class Script:
    """A limit that is whatever the test says, and remembers what it was told."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.samples: list[dict[str, Any]] = []

    @property
    def estimate(self) -> float:
        return self.limit + 0.25

    def on_sample(self, **sample: Any) -> None:
        self.samples.append(sample)

    def set_bounds(self, minimum: int, maximum: int) -> None:
        self.limit = max(minimum, min(maximum, self.limit))


class Driver:
    """
    Drives one controller, and checks after each step that its counts agree.

    Args:
        limit: A number for a fixed limit, or an algorithm.
        partitions: Classes known from the start.
        policy: Fields of ``Policy``; ``max_limit`` follows ``limit``, waits are 100 ms.
    """

    def __init__(
        self,
        limit: int | Limit = 4,
        *,
        partitions: Iterable[PartitionPolicy] = (),
        start_ns: int = 7 * S + 13,
        **policy: Any,
    ) -> None:
        policy.setdefault("max_limit", limit if isinstance(limit, int) else limit.limit)
        self.now_ns = start_ns
        algorithm = FixedLimit(limit) if isinstance(limit, int) else limit
        self.jitter = 0.5
        self.controller = Controller(Policy(**policy), algorithm, start_ns, lambda: self.jitter)
        for partition in partitions:
            self.controller.shares.define(partition)
        self.tickets: list[Ticket] = []

    def partition(self, name: str = "(all)") -> Partition:
        return self.controller.shares.get(name)

    def arrive(
        self,
        priority: Priority = DEFAULT,
        partition: str = "(all)",
        *,
        timeout: float | None = None,
        deadline: float | None = None,
        age: float = 0.0,
    ) -> Ticket:
        """Offer one request; durations in milliseconds."""
        ticket = Ticket(
            self.partition(partition),
            priority,
            self.now_ns - round(age * MS),
            None if timeout is None else round(timeout * MS),
            None if deadline is None else self.now_ns + round(deadline * MS),
        )
        self.tickets.append(ticket)
        self.controller.offer(ticket, self.now_ns)
        self.check()
        return ticket

    def fill(self, count: int, partition: str = "(all)") -> list[Ticket]:
        """Offer requests that must all be granted."""
        tickets = [self.arrive(partition=partition) for _ in range(count)]
        assert all(ticket.state is State.GRANTED for ticket in tickets)
        return tickets

    def finish(self, *tickets: Ticket, outcome: Outcome = Outcome.SUCCESS) -> None:
        for ticket in tickets:
            self.controller.finish(ticket, self.now_ns, outcome)
            self.check()

    def abandon(self, ticket: Ticket) -> None:
        self.controller.abandon(ticket, self.now_ns)
        self.check()

    def detach(self, ticket: Ticket) -> None:
        self.controller.detach(ticket, self.now_ns)
        self.check()

    def pass_time(self, milliseconds: float) -> None:
        """Move the clock without telling the controller."""
        self.now_ns += round(milliseconds * MS)

    def advance(self, milliseconds: float, step: float | None = None) -> None:
        """Move the clock and tick, once at the end or every ``step``."""
        end_ns = self.now_ns + round(milliseconds * MS)
        while step is not None and self.now_ns + round(step * MS) < end_ns:
            self.now_ns += round(step * MS)
            self.tick()
        self.now_ns = end_ns
        self.tick()

    def tick(self) -> None:
        self.controller.tick(self.now_ns)
        self.check()

    def serve(self, milliseconds: float, count: int = 20, partition: str = "(all)") -> None:
        """Let requests of that service time pass one by one, so that it becomes usual."""
        for _ in range(count):
            ticket = self.arrive(partition=partition)
            assert ticket.state is State.GRANTED
            self.advance(milliseconds)
            self.finish(ticket)

    def told(self) -> list[tuple[EventKind, str | None]]:
        """Take the events that observers would be told, without their numbers."""
        events, self.controller.events = self.controller.events, []
        return [(event.kind, event.partition) for event in events]

    def reasons(self, *tickets: Ticket) -> list[Reason | None]:
        """The reasons of refused tickets; ``None`` for those that were not refused."""
        return [t.reason if t.state is State.SHED else None for t in tickets]

    # -- what always holds -----------------------------------------------------------

    def check(self) -> None:
        """Fail when counts disagree or somebody waits in vain."""
        c = self.controller
        running = [t for p in c.shares for t in p.running]
        assert c.inflight == len(running) == sum(p.inflight for p in c.shares) >= 0
        assert all(t.state is State.GRANTED and not t.detached for t in running)
        assert all(len(p.running) == p.inflight for p in c.shares)
        assert all(t.partition is p for p in c.shares for t in p.running)
        waiting = list(c.waitlist)
        assert c.waiting == len(waiting) == len(c.waitlist) == sum(p.waiting for p in c.shares)
        assert all(t.state is State.WAITING for t in waiting)
        assert c.totals.arrivals == (
            sum(c.totals.granted) + sum(c.totals.shed.values()) + c.waiting
        )
        assert c.shares.held == sum(max(0, p.guarantee - p.inflight) for p in c.shares)
        assert 0 <= c.allowed <= max(0, c.policy.max_limit - len(c.streaming))
        if c.shared is None:  # whose room others may take or leave at any time
            assert not [t for t in waiting if c.admits(t.partition)], "waits although it may run"
        assert not waiting or c.mode is Mode.ENFORCE
