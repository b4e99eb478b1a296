"""A request known to the controller: waiting for a slot, or holding one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.types import Priority, Reason, State

__all__ = ["Ticket", "Wakeable"]


class Wakeable(Protocol):
    """What wakes a waiting thread; ``threading.Condition`` in practice."""

    def notify(self, n: int = 1) -> None:
        """Wake the one thread that waits."""


class Ticket:
    """
    One request and what was decided about it.

    All fields are written under the limiter's lock; once ``state`` has left ``WAITING``
    the owner may read them without it.

    Attributes:
        priority, partition: Its class.
        arrived_ns: When its bytes arrived, as well as that is known.
        granted_ns, delay_ns: When the slot was given, and the queue delay until then.
        expires_ns: When it stops waiting.
        timeout_ns: The caller's own bound on waiting, or ``None`` for the policy's.
        deadline_ns: When the sender gives up, or ``None``.
        inflight: Permits held at its admission, itself included.
        state, reason, retry_after_ns: The decision.
        sampled_at_ns: When the first byte of the answer was ready; 0 while unknown.
        thread: Identifier of the thread that the application runs in; 0 before.
        blocked_ns: Time spent waiting for the client's bytes; not service time.
        wake: Notified, under the lock, once the ticket has been decided.
        decided: Called with the ticket after the lock is left, once decided.
    """

    __slots__ = (
        "__weakref__",
        "arrived_ns",
        "blocked_ns",
        "deadline_ns",
        "decided",
        "delay_ns",
        "detached",
        "expires_ns",
        "granted_ns",
        "inflight",
        "partition",
        "priority",
        "reason",
        "retry_after_ns",
        "sampled_at_ns",
        "state",
        "thread",
        "timeout_ns",
        "wake",
    )

    def __init__(
        self,
        partition: Partition,
        priority: Priority,
        arrived_ns: int,
        timeout_ns: int | None = None,
        deadline_ns: int | None = None,
        decided: Callable[[Ticket], None] | None = None,
    ) -> None:
        self.partition = partition
        self.priority = priority
        self.arrived_ns = arrived_ns
        self.timeout_ns = timeout_ns
        self.deadline_ns = deadline_ns
        self.decided = decided
        self.state = State.NEW
        self.sampled_at_ns = 0
        self.thread = 0
        self.blocked_ns = 0
        self.detached = False
        self.wake: Wakeable | None = None
        # Set with the decision; unset before it, so that reading too early is an error:
        # granted_ns, delay_ns, inflight (granted); reason, retry_after_ns (shed);
        # expires_ns (queued).
        self.reason: Reason | None
        self.granted_ns: int
        self.delay_ns: int
        self.inflight: int
        self.retry_after_ns: int
        self.expires_ns: int
