"""
The lock around the controller, for those who handle tickets themselves.

Lock: one ``threading.Lock`` guards the controller and all tickets. It is held for a few
hundred bytecodes at most; nothing is called out under it but ``Condition.notify``. Each
waiter has a ``Condition`` of its own on that lock and is woken by whoever decided on it,
which is a direct hand-off: the slot is counted before the waiter runs, so nobody can take
it in between, and nobody wakes in vain. A shared condition with ``notify_all`` costs 15
times as much with 64 waiters.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable

from gunicorn_admission.core.controller import Controller
from gunicorn_admission.core.events import Event
from gunicorn_admission.core.limits.base import Limit
from gunicorn_admission.core.partition import Partition
from gunicorn_admission.core.policy import SECOND, PartitionPolicy, Policy
from gunicorn_admission.core.shared import SharedBound
from gunicorn_admission.core.ticket import Ticket
from gunicorn_admission.core.types import Outcome, Priority, State
from gunicorn_admission.limiter.observer import Observer, Observers
from gunicorn_admission.limiter.watchdog import Watchdog
from gunicorn_admission.settings.partitions import ALL

__all__ = ["TicketLimiter"]

_log = logging.getLogger("gunicorn_admission")
_WAITING, _GRANTED = State.WAITING, State.GRANTED
_everyone: weakref.WeakSet[TicketLimiter] = weakref.WeakSet()

Told = tuple[list[Ticket], list[Event]]


class TicketLimiter:
    """
    A limiter for adapters that have a waiting room of their own.

    Args:
        policy: The numbers to obey.
        limit: Makes the algorithm; called once, and again in a forked child.
        partitions: Classes that are known from the start.
        clock: Monotonic nanoseconds.
        observers: Told of transitions, outside the lock.

    Thread safety: every method may be called from any thread. After ``os.fork`` the child
    starts with fresh counts, a fresh lock and no waiters.
    """

    def __init__(
        self,
        policy: Policy,
        limit: Callable[[], Limit],
        partitions: Iterable[PartitionPolicy],
        clock: Callable[[], int],
        observers: Iterable[Observer],
    ) -> None:
        self._policy = policy
        self._make_limit = limit
        self._partition_policies = tuple(partitions)
        self._clock = clock
        self._observers = Observers(observers)
        #: Called by the watchdog in each of its rounds, without the lock.
        self.each_round: Callable[[], None] | None = None
        #: Tells how many connections are still sending their request.
        self.reading: Callable[[], int] = int
        self._reset()
        _everyone.add(self)
        # A fake clock has nobody to wait for; it calls back when it is moved.
        subscribe = getattr(clock, "subscribe", None)
        if subscribe is not None:
            subscribe(self.tick)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        # Seeded by the system, and so different in each worker after a fork.
        jitter = random.Random().random
        self._controller = Controller(self._policy, self._make_limit(), self._clock(), jitter)
        for partition in self._partition_policies:
            self._controller.shares.define(partition)
        self._lost: deque[Ticket] = deque()
        self._watchdog = Watchdog(self._watch, "admission-watchdog")

    def partition(self, name: str | None) -> Partition:
        """Return a traffic class by name, made on first use."""
        found = self._controller.shares.find(name or ALL)
        if found is None:
            with self._lock:
                found = self._controller.shares.get(name or ALL)
        return found

    def offer(self, ticket: Ticket, now_ns: int) -> State:
        """
        Decide on an arrival.

        A ticket that has to wait is decided later: ``ticket.decided`` is then called, in
        any thread, without the lock; or somebody sits in :meth:`wait`.

        Returns:
            The state that the arrival led to: GRANTED, SHED or WAITING. Go by this one:
            ``ticket.state`` may have moved on by now, and ``decided`` been called for it.
        """
        controller = self._controller
        with self._lock:
            controller.offer(ticket, now_ns)
            state = ticket.state
            first = state is _WAITING and controller.waiting == 1
            told = self._take() if controller.changed or controller.events else None
        if self._watchdog.parked:
            self._watchdog.wake()
        elif first:
            self._watchdog.hurry()
        if told is not None:
            self._settle(told)
        return state

    def wait(self, ticket: Ticket) -> None:
        """Block until a waiting ticket has been decided."""
        told: Told = [], []
        try:
            with self._lock:
                condition = ticket.wake = threading.Condition(self._lock)
                try:
                    while ticket.state is _WAITING:
                        now_ns = self._clock()
                        if now_ns >= ticket.expires_ns:
                            self._controller.expire(now_ns)
                        else:
                            seconds = (ticket.expires_ns - now_ns) / SECOND
                            condition.wait(min(seconds, threading.TIMEOUT_MAX))
                except BaseException:
                    # KeyboardInterrupt, SystemExit of a worker's abort: leave no trace.
                    self._controller.abandon(ticket, self._clock())
                    raise
                finally:
                    ticket.wake = None
                    told = self._take()
        finally:
            self._settle(told)

    def finish(self, ticket: Ticket, outcome: Outcome) -> None:
        """End a granted ticket; harmless when it has ended already."""
        controller = self._controller
        with self._lock:
            controller.finish(ticket, self._clock(), outcome)
            told = self._take() if controller.changed or controller.events else None
        if told is not None:
            self._settle(told)

    def finish_and_take(self, ticket: Ticket, outcome: Outcome) -> Ticket | None:
        """
        End a granted ticket, and return one that this has granted, if any.

        The caller then runs that one itself; it is not told through ``decided``. A thread
        that goes on with the next request saves waking another.
        """
        controller = self._controller
        with self._lock:
            controller.finish(ticket, self._clock(), outcome)
            if not (controller.changed or controller.events):
                return None
            changed, events = self._take()
        following = next((t for t in changed if t.state is _GRANTED and t.decided), None)
        if following is not None:
            changed.remove(following)
        self._settle((changed, events))
        return following

    def detach(self, ticket: Ticket) -> None:
        """End the slot of a response that goes on; its thread stays counted."""
        with self._lock:
            self._controller.detach(ticket, self._clock())
            told = self._take()
        self._settle(told)

    def abandon(self, ticket: Ticket) -> None:
        """The client of a ticket left before it ran; harmless when it has ended already."""
        with self._lock:
            self._controller.abandon(ticket, self._clock())
            told = self._take()
        self._settle(told)

    def reclassify(
        self,
        ticket: Ticket,
        partition: str,
        priority: Priority | None = None,
        *,
        force: bool = True,
    ) -> bool:
        """
        Count a granted ticket under the class that it turned out to belong to.

        Returns:
            Whether that class had room; with ``force`` it is counted there in any case.
        """
        group = self.partition(partition)
        with self._lock:
            done = True
            if ticket.state is _GRANTED:
                done = self._controller.reclassify(ticket, group, self._clock(), force)
                if done:
                    ticket.priority = group.policy.priority if priority is None else priority
            told = self._take()
        self._settle(told)
        return done

    def share(self, bound: SharedBound) -> None:
        """Obey a bound that others have a part in; before the first request, and not in a fork."""
        with self._lock:
            self._controller.shared = bound

    def bypassed(self) -> None:
        """Count a request that is exempt from admission."""
        with self._lock:
            self._controller.totals.bypassed += 1

    def reclaim(self, ticket: Ticket) -> None:
        """
        End a ticket whose permit was lost: never released, or never handed to the caller.

        The garbage collector calls it, maybe in a thread that holds the lock at that very
        moment, so the work is left to the next tick.
        """
        self._lost.append(ticket)

    def observe(self, observer: Observer) -> None:
        """Tell one more observer from now on."""
        self._observers.add(observer)

    # -- time and telling ------------------------------------------------------------

    def tick(self) -> None:
        """Do what is due: expiry, intervals, ages, lost permits."""
        lost = []
        with self._lock:
            now_ns = self._clock()
            while self._lost:
                ticket = self._lost.popleft()
                if ticket.state is _WAITING:
                    self._controller.abandon(ticket, now_ns)
                elif ticket.state is _GRANTED:
                    lost.append(ticket.partition.name)
                    self._controller.totals.leaked += 1
                    self._controller.finish(ticket, now_ns, Outcome.IGNORE)
            self._controller.tick(now_ns)
            told = self._take()
        self._settle(told)
        for name in lost:
            _log.warning(
                "a permit of class %s was dropped without release; use it as a context manager",
                name,
            )

    def _watch(self) -> float | None:
        """One round of the watchdog; seconds until the next, ``None`` when all is quiet."""
        if self.each_round is not None:
            self.each_round()
        self.tick()
        controller = self._controller
        if not (controller.inflight or controller.waiting or controller.congestion.overloaded):
            return None
        now_ns = self._clock()
        return (controller.next_tick_ns(now_ns) - now_ns) / SECOND

    def _take(self) -> Told:
        """Take what must be told once the lock is left."""
        controller = self._controller
        told = controller.changed, controller.events
        controller.changed, controller.events = [], []
        return told

    def _settle(self, told: Told) -> None:
        changed, events = told
        for ticket in changed:
            if ticket.decided is not None:
                try:
                    ticket.decided(ticket)
                except Exception:
                    _log.exception("a waiting request could not be told its decision")
        if events:
            self._observers.tell(events)


def _after_fork() -> None:
    for limiter in list(_everyone):
        limiter._controller.disown()
        limiter._reset()


os.register_at_fork(after_in_child=_after_fork)
