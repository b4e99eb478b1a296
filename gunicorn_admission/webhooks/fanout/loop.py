"""
A consumer's own threads: one that claims and keeps leases alive, and those that run handlers.

Nothing here is shared with another consumer but the store, so one that hangs or fails holds up
none of the others.

One lock, that of ``_changed``, protects the queue and the sets of leases; it is never held over a
call to the store or to a handler.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from typing import Final

from attrs import evolve

from gunicorn_admission.webhooks.fanout.claims import Lease
from gunicorn_admission.webhooks.fanout.runner import Runner
from gunicorn_admission.webhooks.store import StoreError

__all__ = ["Loop"]

_log = logging.getLogger("gunicorn_admission.fanout")

#: What a thread has waiting beside it: about as much as it does in this time, in seconds.
_AHEAD: Final = 0.5
_MOST_AHEAD: Final = 100
#: When no thread has become free for so long, what waits is handed back, in seconds.
_PATIENCE: Final = 1.0
_SHORTEST_POLL: Final = 0.05


class Loop:
    """
    Runs one consumer until it is stopped.

    Args:
        runner: What to run.
        threads: How many handlers at once; ``None`` for the consumer's own ``concurrency``.
        poll: Longest pause between looks into an empty subscription, in seconds.

    Thread safety: guarded by its lock.
    """

    def __init__(self, runner: Runner, *, threads: int | None = None, poll: float = 1.0) -> None:
        self.runner = runner
        self._size = threads or runner.consumer.concurrency
        self._poll = poll
        self._changed = threading.Condition()
        self._queue: deque[Lease] = deque()
        self._held: dict[str, Lease] = {}  # queued and running, by token
        self._begun: dict[str, float] = {}  # running, with when that was
        self._stopping = False
        self._mean = math.inf  # seconds a handler takes, smoothed; not known yet
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Start the threads."""
        name = self.runner.consumer.name
        targets = [(self._control, "claims")]
        targets += [(self._work, str(number)) for number in range(self._size)]
        for target, suffix in targets:
            thread = threading.Thread(target=target, name=f"{name}-{suffix}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Claim nothing more, hand back what has not begun, and finish what has."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def join(self, deadline: float) -> bool:
        """Wait until ``deadline`` (``time.monotonic``). Returns whether all threads have ended."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def running(self) -> list[Lease]:
        """Return what handlers have in hand now."""
        with self._changed:
            return [self._held[token] for token in self._begun if token in self._held]

    # -- the thread that claims ------------------------------------------------------------

    def _control(self) -> None:
        pause, next_look = _SHORTEST_POLL, 0.0
        next_beat = time.monotonic() + self._beat_every()
        while True:
            with self._changed:
                now = time.monotonic()
                due = next_look if self._wanted() else next_beat
                if self._queue:
                    due = min(due, now + _PATIENCE)
                if not self._stopping and (wait := min(due, next_beat) - now) > 0:
                    self._changed.wait(wait)
                stopping, wanted = self._stopping, self._wanted()
                hung = self._hangs()
                idle = not self._held
            now = time.monotonic()
            try:
                if now >= next_beat:
                    next_beat = now + self._beat_every()
                    self._beat()
                if stopping:
                    self._hand_back()
                    if idle or not self._wait_for_end(next_beat):
                        return
                elif hung:
                    self._hand_back()  # somebody else may be free
                elif wanted and now >= next_look:
                    found = self._look(wanted)
                    next_beat = min(next_beat, time.monotonic() + self._beat_every())
                    pause = _SHORTEST_POLL if found else min(2 * pause, self._poll)
                    next_look = 0.0 if found else now + pause
            except Exception as error:
                plain = error if isinstance(error, StoreError) else repr(error)
                _log.warning(
                    "%s: no claim, the store says: %s", self.runner.consumer.name, plain,
                    exc_info=not isinstance(error, StoreError),
                )  # fmt: skip
                pause = min(max(2 * pause, 0.2), 5.0)
                next_look = time.monotonic() + pause

    def _wanted(self) -> int:
        """How many to claim; 0 while there is enough in hand. Call it with the lock."""
        ahead = 0
        # Where a crash leaves it to a person, nothing waits that could be caught up in one.
        if self.runner.consumer.on_uncertain == "retry" and not self._is_busy():
            ahead = min(_MOST_AHEAD, int(self._size * _AHEAD / max(self._mean, 0.001)))
        target = self._size + ahead
        missing = target - len(self._held)
        return missing if 2 * missing >= target or len(self._queue) == 0 < missing else 0

    def _is_busy(self) -> bool:
        """Whether no thread has become free for a while."""
        return (
            len(self._begun) == self._size
            and time.monotonic() - max(self._begun.values()) > _PATIENCE
        )

    def _hangs(self) -> bool:
        """Whether something waits here for threads that do not become free."""
        return bool(self._queue) and self._is_busy()

    def _look(self, wanted: int) -> bool:
        taken = self.runner.claim(wanted)
        if taken.leases:
            with self._changed:
                for lease in taken.leases:
                    self._held[lease.token] = lease
                    self._queue.append(lease)
                self._changed.notify_all()
        return taken.seen > 0 or taken.is_backfilling

    def _beat_every(self) -> float:
        with self._changed:
            shortest = min((lease.length_us for lease in self._held.values()), default=3_000_000)
        return shortest / 3e6

    def _beat(self) -> None:
        timeout, now = self.runner.consumer.timeout, time.monotonic()
        with self._changed:
            late = {
                token
                for token, begun in self._begun.items()
                if timeout is not None and now - begun > timeout
            }
            alive = [lease for token, lease in self._held.items() if token not in late]
        if not alive:
            return
        at = self.runner.store.now()
        lost = self.runner.extend(alive)
        with self._changed:
            for lease in alive:
                if lease.token in self._held and lease.token not in lost:
                    self._held[lease.token] = evolve(lease, until=at + lease.length_us)
            self._queue = deque(lease for lease in self._queue if lease.token not in lost)
            for token in lost - self._begun.keys():
                self._held.pop(token, None)

    def _hand_back(self) -> None:
        with self._changed:
            unbegun = list(self._queue)
            self._queue.clear()
            for lease in unbegun:
                self._held.pop(lease.token, None)
            self._changed.notify_all()
        for lease in unbegun:
            self.runner.hand_back(lease)

    def _wait_for_end(self, next_beat: float) -> bool:
        """Wait for handlers until the next beat. Returns whether one still runs."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held, max(0.0, next_beat - time.monotonic()))
            return bool(self._held)

    # -- the threads that run handlers -----------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or self._stopping)
                if not self._queue:
                    return
                lease = self._queue.popleft()
                lease = self._held.get(lease.token, lease)
                begun = self._begun[lease.token] = time.monotonic()
                self._changed.notify_all()
            try:
                self.runner.run(lease)
            except BaseException:
                _log.exception("%s: left to its lease", self.runner.consumer.name)
            with self._changed:
                took = time.monotonic() - begun
                before = took if math.isinf(self._mean) else self._mean
                self._mean = before + 0.2 * (took - before)
                self._held.pop(lease.token, None)
                self._begun.pop(lease.token, None)
                self._changed.notify_all()
