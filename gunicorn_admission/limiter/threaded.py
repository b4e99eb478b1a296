"""
The limiter as a caller sees it: permits, statistics, live changes.

The lock and its rules are in ``tickets.py``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

from attrs import evolve

from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.policy import SECOND, PartitionPolicy, Policy
from gunicorn_admission.core.snapshot import snapshot
from gunicorn_admission.core.statistics import Statistics
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Mode, Priority, Reason, State
from gunicorn_admission.errors import ConfigError, Rejected
from gunicorn_admission.limiter.build import build
from gunicorn_admission.limiter.front_door import FrontDoor
from gunicorn_admission.limiter.observer import Observer
from gunicorn_admission.limiter.permit import Permit
from gunicorn_admission.settings import Settings

__all__ = ["Limiter"]

_WAITING, _GRANTED = State.WAITING, State.GRANTED


class Limiter(FrontDoor):
    """
    Bounds how many callers run at once, and decides who of the others may wait.

    Args:
        settings: What the user has set; ``None`` for the defaults.
        clock: Monotonic nanoseconds. Tests pass :class:`gunicorn_admission.testing.FakeClock`.
        observers: Told of transitions, outside the lock.
        policy, limit, partitions: Ready-made numbers in place of those that ``settings``
            would give; adapters that know their server use them.

    Raises:
        ConfigError: A setting cannot work.

    Thread safety: every method may be called from any thread. After ``os.fork`` the child
    starts with fresh counts, a fresh lock and no waiters.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        clock: Callable[[], int] = time.monotonic_ns,
        observers: Iterable[Observer] = (),
        policy: Policy | None = None,
        limit: Callable[[], Limit] | None = None,
        partitions: Iterable[PartitionPolicy] = (),
    ) -> None:
        if policy is None or limit is None:
            built = build(settings or Settings(), policy)
            policy = built.policy
            limit = limit or built.limit
            partitions = (*built.partitions, *partitions)
        super().__init__(policy, limit, partitions, clock, observers)

    # -- permits ---------------------------------------------------------------------

    def acquire(
        self,
        *,
        priority: Priority | None = None,
        partition: str | None = None,
        timeout: float | None = None,
        deadline: float | None = None,
    ) -> Permit:
        """
        Take a slot, waiting for one if that is allowed and promising.

        Args:
            priority: ``None`` for that of the partition.
            partition: Traffic class; ``None`` for the one class of everybody.
            timeout: Longest wait in seconds; 0 does not wait. ``None`` for the policy's,
                which depends on priority and overload. LOW never waits longer than
                ``low_max_wait``.
            deadline: Seconds from now within which the call must have *ended*; refused at
                once when that is hopeless.

        Returns:
            A permit to be released, best as a context manager.

        Raises:
            Rejected: Refused, with the reason and when to retry.
        """
        permit = self._ask(priority, partition, timeout, deadline)
        if permit._ticket.state is _GRANTED:
            return permit
        raise self.rejection(permit._ticket)

    def try_acquire(
        self,
        *,
        priority: Priority | None = None,
        partition: str | None = None,
        timeout: float | None = 0.0,
        deadline: float | None = None,
    ) -> Permit | None:
        """Take a slot like :meth:`acquire`, by default without waiting; ``None`` if refused."""
        permit = self._ask(priority, partition, timeout, deadline)
        return permit if permit._ticket.state is _GRANTED else None

    def _ask(
        self,
        priority: Priority | None,
        partition: str | None,
        timeout: float | None,
        deadline: float | None,
    ) -> Permit:
        now_ns = self._clock()
        group = self.partition(partition)
        ticket = Ticket(
            group,
            group.policy.priority if priority is None else priority,
            now_ns,
            None if timeout is None else _nanoseconds("timeout", timeout),
            None if deadline is None else now_ns + _nanoseconds("deadline", deadline),
        )
        # Made before the slot is given: an exception that a signal raises from here on
        # leaves a permit behind, which is reclaimed, and not a slot that nobody knows of.
        permit = Permit(self, ticket)
        if self.offer(ticket, now_ns) is _WAITING:
            self.wait(ticket)
        return permit

    @staticmethod
    def rejection(ticket: Ticket) -> Rejected:
        """The exception that stands for a refused ticket."""
        reason = ticket.reason or Reason.OVERLOADED
        retry_after = ticket.retry_after_ns / SECOND
        return Rejected(reason, ticket.priority, retry_after, ticket.partition.name)

    # -- what is seen and set from outside -------------------------------------------

    @property
    def policy(self) -> Policy:
        """The numbers it obeys."""
        return self._policy

    def statistics(self) -> Statistics:
        """Return a consistent snapshot; cheap enough for every second, not every request."""
        with self._lock:
            taken = snapshot(self._controller, self._clock())
            shared = self._controller.shared
        if shared is None:
            return evolve(taken, reading=self.reading())
        return evolve(
            taken,
            reading=self.reading(),
            node_limit=shared.bound(),
            node_inflight=shared.total(),
        )

    def set_limit(self, limit: int | None) -> None:
        """
        Hold the limit at a number from now on, or give it back to the algorithm.

        Growing lets waiters run at once; shrinking never blocks, what runs drains.

        Raises:
            ConfigError: Not an integer from 1 to ``policy.max_limit``.
        """
        most = self._policy.max_limit
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= most
        ):
            raise ConfigError(
                "limit",
                limit,
                f"an integer from 1 to {most}, or None",
                "None returns to the algorithm; more needs more threads",
            )
        self._change(lambda now_ns: self._controller.set_limit(limit, now_ns))

    def set_mode(self, mode: Mode | str) -> None:
        """
        Change between ``enforce``, ``monitor`` and ``off``.

        Raises:
            ConfigError: Not one of these.
        """
        try:
            chosen = Mode(mode)
        except ValueError:
            names = ", ".join(m.value for m in Mode)
            raise ConfigError("mode", mode, f"one of {names}", "monitor refuses nothing") from None
        self._change(lambda now_ns: self._controller.set_mode(chosen, now_ns))

    def pause(self) -> None:
        """Refuse every arrival until :meth:`resume`; what runs goes on."""
        self._change(lambda now_ns: self._controller.set_paused(True, now_ns))

    def resume(self) -> None:
        """Admit again after :meth:`pause`."""
        self._change(lambda now_ns: self._controller.set_paused(False, now_ns))

    def close(self) -> None:
        """Refuse those who wait, and let nobody wait any more; free slots are still given."""
        self._change(self._controller.close)

    def _change(self, change: Callable[[int], None]) -> None:
        with self._lock:
            change(self._clock())
            told = self._take()
        self._settle(told)


def _nanoseconds(name: str, seconds: float) -> int:
    """Convert a duration given by a caller; never rounds down to less than was asked."""
    if not 0 <= seconds < math.inf:
        raise ConfigError(
            name, seconds, "seconds, 0 or more and finite", "0 does not wait; every wait ends"
        )
    return math.ceil(seconds * SECOND)
