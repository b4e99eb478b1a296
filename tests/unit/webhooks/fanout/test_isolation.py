"""A consumer that is blocked delays no other: real threads, compared within one run."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator
from statistics import median

import pytest

from gunicorn_admission.webhooks.fanout import Consumers, Event, Subscriptions, Worker
from gunicorn_admission.webhooks.store import Store
from tests.fanning import put, states

PATIENCE = 30.0


class Shop:
    """Entitlements, whose work is timed, and analytics, which can be held up in a handler."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.entitled: queue.Queue[tuple[str, float]] = queue.Queue()
        self.analysed: queue.Queue[str] = queue.Queue()
        self.is_held = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        consumers = Consumers()

        @consumers.consumer("entitlements")
        def entitle(event: Event) -> None:
            self.entitled.put((event.event_id, time.monotonic()))

        @consumers.consumer("analytics")
        def analyse(event: Event) -> None:
            if not self.may_go_on.is_set():
                self.is_held.set()
                assert self.may_go_on.wait(PATIENCE)
            self.analysed.put(event.event_id)

        self.worker = Worker(store, consumers, poll=0.005)

    def lag(self, event_id: str) -> float:
        """Seconds from the event to its effect at entitlements."""
        before = time.monotonic()
        put(self.store, event_id)
        done, at = self.entitled.get(timeout=PATIENCE)
        assert done == event_id
        return at - before

    def hold(self, event_id: str) -> None:
        """Leave analytics hanging in the handler of an event."""
        self.may_go_on.clear()
        self.is_held.clear()
        put(self.store, event_id)
        assert self.is_held.wait(PATIENCE)
        assert self.entitled.get(timeout=PATIENCE)[0] == event_id

    def let_go(self, *event_ids: str) -> None:
        self.may_go_on.set()
        assert {self.analysed.get(timeout=PATIENCE) for _ in event_ids} == set(event_ids)


@pytest.fixture
def shop(any_store: Store) -> Iterator[Shop]:
    book = Subscriptions(any_store)
    for name in ("entitlements", "analytics"):
        book.create(name)
    it = Shop(any_store)
    it.worker.start()
    yield it
    it.may_go_on.set()
    it.worker.stop()
    assert it.worker.join(PATIENCE)


def test_while_one_hangs_with_a_growing_backlog_the_other_does_all(shop: Shop) -> None:
    ids = [f"evt_{number}" for number in range(100)]
    shop.hold("evt_held")
    put(shop.store, *ids)
    assert [shop.entitled.get(timeout=PATIENCE)[0] for _ in ids] == ids
    assert "completed" not in states(shop.store, "analytics").values()
    shop.let_go("evt_held", *ids)


def test_the_lag_of_one_is_the_same_while_the_other_hangs(shop: Shop) -> None:
    free: list[float] = []
    blocked: list[float] = []
    for number in range(40):  # in turns, so that a busy machine slows both alike
        shop.lag(f"first_{number}")
        shop.let_go(f"first_{number}")
        free.append(shop.lag(f"free_{number}"))
        shop.let_go(f"free_{number}")
        shop.hold(f"held_{number}")
        blocked.append(shop.lag(f"blocked_{number}"))
        shop.let_go(f"held_{number}", f"blocked_{number}")
    # A consumer that waits for another waits for what never comes; half as much again is noise.
    assert median(blocked) < 1.5 * median(free), (median(blocked), median(free))
