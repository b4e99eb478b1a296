"""One consumer at work: claim, call the handler, acknowledge. Without any thread of its own."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from random import Random, SystemRandom
from typing import Any

from sqlalchemy import Connection

from gunicorn_admission.webhooks.fanout.acknowledge import complete, extend, fail, hand_back
from gunicorn_admission.webhooks.fanout.backfill import backfill_step
from gunicorn_admission.webhooks.fanout.claims import Claim, Lease, claim, look_ahead
from gunicorn_admission.webhooks.fanout.consumers import Consumer
from gunicorn_admission.webhooks.fanout.outcome import LeaseLost, Spent
from gunicorn_admission.webhooks.fanout.states import State
from gunicorn_admission.webhooks.gates import Ledger
from gunicorn_admission.webhooks.store import Store, StoreError

__all__ = ["Observe", "Runner", "ignore"]

_log = logging.getLogger("gunicorn_admission.fanout")

#: Told the consumer, an outcome and how often it was.
Observe = Callable[[str, str, int], None]


def ignore(consumer: str, outcome: str, times: int) -> None:
    """Nobody counts."""


class Runner:
    """
    Runs one consumer.

    Args:
        store: Where the deliveries are.
        consumer: Whom to call.
        ledger: The gate.
        observe: Told each outcome: ``admitted``, ``completed``, ``deduplicated``, ``refused``,
            ``deferred``, ``review``, ``failed``, ``dead``, ``skipped``, ``expired``,
            ``uncertain``, ``fenced``.
        random: Draws the jitter of backoffs.
        sleep: Waits, in seconds, where the store does not answer.

    Thread safety: all methods may be called from any thread.
    """

    def __init__(
        self,
        store: Store,
        consumer: Consumer,
        *,
        ledger: Ledger | None = None,
        observe: Observe = ignore,
        random: Random | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.store = store
        self.consumer = consumer
        self._ledger = Ledger() if ledger is None else ledger
        self._observe = observe
        self._random = random or SystemRandom()
        self._sleep = sleep

    def step(self, limit: int = 1) -> int:
        """
        Claim, run and acknowledge in the calling thread.

        Returns:
            How many deliveries were taken in hand; 0 means that none is due.
        """
        taken = self.claim(limit)
        for lease in taken.leases:
            self.run(lease)
        return taken.seen

    def claim(self, limit: int) -> Claim:
        """Take up to ``limit`` deliveries that are due, and go on with a backfill."""
        store, consumer = self.store, self.consumer
        costs: Mapping[int, Any] | None = None
        if callable(consumer.cost):
            with store.read() as connection:
                ahead = look_ahead(connection, consumer, store.now(), limit)
            if ahead is not None:
                costs = {seq: _cost(consumer, event) for seq, event in ahead.items()}
        taken = store.write(
            lambda connection: claim(connection, self._ledger, consumer, store.now(), limit, costs)
        )
        for outcome, times in taken.counts.items():
            self._tell(outcome, times)
        if taken.is_backfilling:
            store.write(lambda connection: backfill_step(connection, consumer.name, store.now()))
        return taken

    def run(self, lease: Lease) -> None:
        """Call the handler with a delivery and record how it ended."""
        try:
            if self.consumer.transactional:
                with self.store.transaction() as connection:
                    result = self.consumer.handler(lease.event, connection)
                    self._complete(connection, lease, result)
            else:
                result = self.consumer.handler(lease.event)
                self._insist(lease, lambda connection: self._complete(connection, lease, result))
        except LeaseLost as error:
            _log.warning("%s", error)
            self._tell("fenced")
        except BaseException as error:  # also SystemExit: it ends the attempt, not the worker
            self._failed(lease, error)
            if isinstance(error, KeyboardInterrupt):
                raise
        else:
            self._tell("completed")
            _log.debug("%s completed %s", lease.event.consumer, _name(lease))

    def hand_back(self, lease: Lease) -> None:
        """Give back a delivery whose handler was not called."""
        try:
            self.store.write(
                lambda connection: hand_back(connection, self._ledger, lease, self.store.now())
            )
        except (LeaseLost, StoreError):
            pass  # its lease ends by itself

    def extend(self, leases: list[Lease]) -> set[str]:
        """Keep leases for longer. Returns the tokens of those that were lost."""

        def work(connection: Connection) -> set[str]:
            now = self.store.now()
            return {
                lease.token
                for lease in sorted(leases, key=lambda lease: lease.seq)
                if not extend(connection, self._ledger, lease, now, now + lease.length_us)
            }

        return self.store.write(work)

    def _complete(self, connection: Connection, lease: Lease, result: object) -> None:
        actual = result.amounts if isinstance(result, Spent) else None
        complete(connection, self._ledger, lease, self.store.now(), actual)

    def _failed(self, lease: Lease, error: BaseException) -> None:
        try:
            state = self._insist(
                lease,
                lambda connection: fail(
                    connection,
                    self._ledger,
                    lease,
                    self.store.now(),
                    error,
                    no_retry=self.consumer.no_retry,
                    random=self._random,
                ),
            )
        except LeaseLost as lost:
            _log.warning("%s", lost)
            self._tell("fenced")
            return
        self._tell("failed")
        words = f"{lease.event.consumer} failed {_name(lease)}, attempt {lease.event.attempt}"
        if state is State.DEAD:
            self._tell("dead")
            _log.error("%s: dead letter", words, exc_info=error)
        else:
            _log.warning("%s: %s", words, type(error).__name__, exc_info=error)

    def _insist(self, lease: Lease, work: Callable[[Connection], Any]) -> Any:
        """
        Write the end of an attempt, again and again while the store does not answer.

        The handler has run: to give up at once would run it twice. After as long as a lease
        lasts there is none left to keep.
        """
        pause, end = 0.05, self.store.now() + lease.length_us
        while True:
            try:
                return self.store.write(work)
            except StoreError as error:
                if self.store.now() >= end:
                    raise LeaseLost(
                        f"{lease.event.consumer} could not acknowledge {_name(lease)}: {error}"
                    ) from error
                self._sleep(pause)
                pause = min(2 * pause, 2.0)

    def _tell(self, outcome: str, times: int = 1) -> None:
        self._observe(self.consumer.name, outcome, times)


def _cost(consumer: Consumer, event: Any) -> Any:
    try:
        return consumer.cost_of(event)
    except Exception as error:
        return error


def _name(lease: Lease) -> str:
    return f"{lease.event.source}/{lease.event.event_id}"
