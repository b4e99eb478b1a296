"""A worker with its threads: nobody waits for another, leases are kept, what hangs is given up."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, select

from gunicorn_admission.webhooks.fanout import Consumers, Event, Subscriptions, Worker
from gunicorn_admission.webhooks.fanout.runner import Runner
from gunicorn_admission.webhooks.fanout.tally import Gauges, count_outcome
from gunicorn_admission.webhooks.metrics import Metrics, recorder
from gunicorn_admission.webhooks.store import Store, StoreError
from gunicorn_admission.webhooks.store.schema import deliveries
from tests.fanning import put, states

T = TypeVar("T")


def until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


@contextmanager
def working(store: Store, consumers: Consumers, **options: Any) -> Iterator[Worker]:
    worker = Worker(store, consumers, poll=0.05, **options)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()
        assert worker.join(30)


class Gate:
    """A handler that hangs until it is let go, but for what is in ``quick``."""

    def __init__(self, *quick: str) -> None:
        self.quick = quick
        self.open = threading.Event()
        self.calls: list[str] = []

    def __call__(self, event: Event) -> None:
        self.calls.append(event.event_id)
        if event.event_id not in self.quick:
            assert self.open.wait(50)


def how_many(store: Store, name: str) -> Counter[str]:
    return Counter(states(store, name).values())


def test_consumer_that_hangs_delays_no_other(any_store: Store) -> None:
    hangs, ids = Gate(), [f"e{n}" for n in range(30)]
    consumers, seen = Consumers(), list[str]()
    consumers.consumer("analytics", concurrency=2)(hangs)
    consumers.consumer("entitlements", concurrency=2)(lambda event: seen.append(event.event_id))
    for name in ("analytics", "entitlements"):
        Subscriptions(any_store).create(name)
    with working(any_store, consumers):
        put(any_store, *ids)
        until(lambda: how_many(any_store, "entitlements")["completed"] == 30)
        assert how_many(any_store, "analytics")["completed"] == 0
        hangs.open.set()
        until(lambda: how_many(any_store, "analytics")["completed"] == 30)
    assert sorted(seen) == sorted(ids)
    assert sorted(hangs.calls) == sorted(ids)


def test_lease_is_kept_while_its_handler_runs(any_store: Store) -> None:
    slow = Gate()
    consumers = Consumers()
    consumers.consumer("it")(slow)
    Subscriptions(any_store).create("it", lease="2s")
    put(any_store, "a")

    def ends() -> int:
        with any_store.read() as connection:
            return connection.scalar(select(deliveries.c.visible_at)) or 0

    with working(any_store, consumers), working(any_store, consumers):
        until(lambda: slow.calls)
        first = ends()
        until(lambda: ends() > first + 2_000_000)  # longer than one lease, and nobody took it
        slow.open.set()
        until(lambda: how_many(any_store, "it")["completed"])
    assert slow.calls == ["a"]


def test_attempt_that_exceeds_its_timeout_loses_its_lease(any_store: Store) -> None:
    hangs, quick = Gate(), Gate("a")
    first, second = Consumers(), Consumers()
    first.consumer("it", timeout="100ms")(hangs)
    second.consumer("it")(quick)
    Subscriptions(any_store).create("it", lease="1s")
    put(any_store, "a")
    counts: Counter[str] = Counter()
    with working(
        any_store, first, observe=lambda _, outcome, times: counts.update({outcome: times})
    ):
        until(lambda: hangs.calls)
        with working(any_store, second):
            until(lambda: how_many(any_store, "it")["completed"])
        hangs.open.set()
        until(lambda: counts["fenced"])
    assert quick.calls == ["a"]
    assert how_many(any_store, "it") == {"completed": 1}


def test_what_waits_behind_a_hanging_handler_is_left_to_others(any_store: Store) -> None:
    quick = [f"q{n}" for n in range(20)]
    hangs, free = Gate(*quick), Gate("hang", *quick, "x", "y")
    first, second = Consumers(), Consumers()
    first.consumer("it")(hangs)
    second.consumer("it")(free)
    Subscriptions(any_store).create("it")
    put(any_store, *quick)
    with working(any_store, first):
        until(lambda: how_many(any_store, "it")["completed"] == 20)  # it takes several at once now
        put(any_store, "hang", "x", "y")
        until(lambda: "hang" in hangs.calls)
        until(lambda: how_many(any_store, "it") == {"completed": 20, "leased": 1, "pending": 2})
        with working(any_store, second):
            until(lambda: how_many(any_store, "it")["completed"] == 22)
        hangs.open.set()
    assert sorted(free.calls) == ["x", "y"]
    with any_store.read() as connection:
        assert set(connection.scalars(select(deliveries.c.attempts))) == {1}


class Failing(Store):
    """A store that does not answer while ``down`` is above 0."""

    down = 0

    def write(self, work: Callable[[Connection], T], *, timeout: float | None = None) -> T:
        if self.down > 0:
            self.down -= 1
            raise StoreError("PostgreSQL is not reachable")
        return super().write(work, timeout=timeout)


def test_worker_outlives_a_store_that_is_away(
    sqlite_store_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    consumers = Consumers()
    consumers.consumer("it")(lambda event: None)
    with Failing(sqlite_store_url) as store:
        Subscriptions(store).create("it")
        put(store, "a")
        store.down = 2
        with working(store, consumers):
            until(lambda: how_many(store, "it")["completed"])
    assert "not reachable" in caplog.text


def test_effect_that_has_happened_is_acknowledged_as_soon_as_that_can_be(
    sqlite_store_url: str,
) -> None:
    calls, pauses = list[str](), list[float]()
    consumers = Consumers()
    with Failing(sqlite_store_url) as store:

        @consumers.consumer("it")
        def handler(event: Event) -> None:
            calls.append(event.event_id)
            store.down = 3

        Subscriptions(store).create("it")
        put(store, "a")
        Runner(store, consumers["it"], sleep=pauses.append).step()
        assert states(store, "it") == {"a": "completed"}
    assert calls == ["a"]
    assert pauses == [0.05, 0.1, 0.2]


def test_acknowledging_ends_with_the_lease(sqlite_store_url: str) -> None:
    now = [1_800_000_000.0]
    consumers = Consumers()
    counts: Counter[str] = Counter()
    with Failing(sqlite_store_url, clock=lambda: now[0]) as store:

        @consumers.consumer("it")
        def handler(event: Event) -> None:
            store.down = 10**6

        def sleep(seconds: float) -> None:
            now[0] += 10 * seconds

        Subscriptions(store).create("it", lease="60s")
        put(store, "a")
        watch = lambda _, outcome, times: counts.update({outcome: times})  # noqa: E731
        Runner(store, consumers["it"], sleep=sleep, observe=watch).step()
        assert states(store, "it") == {"a": "leased"}
    assert counts["fenced"] == 1


def test_gauges_follow_the_backlog(sqlite_store_url: str) -> None:
    metrics = Metrics()
    consumers = Consumers()
    consumers.consumer("it")(lambda event: None)
    with Store(sqlite_store_url) as store:
        Subscriptions(store).create("it")
        put(store, "a", "b")
        gauges = Gauges(store, metrics)
        gauges.tick()
        assert metrics.measured().gauges["backlog", ("it", "pending")] == 2
        assert metrics.measured().gauges["oldest_unacked_age", ("it",)] > 0
        Worker(store, consumers).drain()
        gauges.tick()
    assert metrics.measured().gauges == {
        ("backlog", ("it", "pending")): 0,
        ("oldest_unacked_age", ("it",)): 0,
    }


def test_outcomes_are_counted() -> None:
    place = "deliveries", ("counted-in-a-test", "completed")
    before = recorder.measured().counters.get(place, 0)
    count_outcome("counted-in-a-test", "completed", 3)
    assert recorder.measured().counters[place] == before + 3
