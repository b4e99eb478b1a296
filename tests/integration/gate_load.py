"""A process that works off events under a gate, in two threads, until nothing is left."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from typing import Any
from uuid import uuid4

from sqlalchemy import Column, MetaData, String, Table

from gunicorn_admission.webhooks.gates import Kind, Ledger
from gunicorn_admission.webhooks.store import Store

__all__ = ["CONSUMER", "EVENTS", "LEASE_US", "STEPS", "effects", "run"]

CONSUMER = "usage"
EVENTS = [f"evt_{number}" for number in range(60)]
LEASE_US = 30_000_000
THREADS = 2
STEPS = ("reserving", "reserved", "in the effect", "completing", "completed", "failing", "failed")

#: What the work is for; without a key, so that an effect that happens twice is seen.
effects = Table("test_effect", MetaData(), Column("event_id", String(64)))


class Killer:
    def __init__(self, step: str | None) -> None:
        self._step = step
        self._seen = 0
        self._lock = threading.Lock()

    def at(self, step: str) -> None:
        with self._lock:
            self._seen += step == self._step
            if self._seen == 2:
                os.kill(os.getpid(), signal.SIGKILL)


def work(store: Store, ledger: Ledger, now: int, event_id: str, killer: Killer) -> bool:
    """Make one attempt; whether there may be more to do."""
    key: dict[str, Any] = {"consumer": CONSUMER, "source": "load", "event_id": event_id}
    lease = uuid4().hex
    with store.transaction() as connection:
        decision = ledger.admit(connection, lease=lease, lease_until=now + LEASE_US, now=now, **key)
        killer.at("reserving")
    if decision.kind is not Kind.ADMITTED:
        return decision.kind is Kind.IN_PROGRESS
    killer.at("reserved")
    if random.random() < 0.5:
        with store.transaction() as connection:
            assert ledger.fail(connection, lease=lease, now=now, **key)
            killer.at("failing")
        killer.at("failed")
        return True
    with store.transaction() as connection:
        connection.execute(effects.insert().values(event_id=event_id))
        killer.at("in the effect")
        assert ledger.complete(connection, lease=lease, now=now, **key)
        killer.at("completing")
    killer.at("completed")
    return False


def run(url: str, now: int, step: str | None = None) -> None:
    """
    Be the process.

    Its clock stands at ``now``, in microseconds. With a ``step`` it kills itself there, the
    second time that it comes to it.
    """
    killer, failures = Killer(step), []

    def loop() -> None:
        try:
            left = list(EVENTS)
            while left:
                random.shuffle(left)
                left = [each for each in left if work(store, ledger, now, each, killer)]
        except BaseException as error:
            failures.append(error)
            raise

    with Store(url) as store:
        ledger = Ledger()
        threads = [threading.Thread(target=loop) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    sys.exit(1 if failures else 0)
