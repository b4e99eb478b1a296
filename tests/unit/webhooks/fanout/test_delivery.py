"""Deliveries, step by step under a fake clock: claim, run, acknowledge; no thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout import (
    Consumers,
    Event,
    GiveUp,
    RetryIn,
    Spent,
    Subscriptions,
    Worker,
)
from gunicorn_admission.webhooks.fanout.runner import Runner
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, configure
from gunicorn_admission.webhooks.pages.watch import watch
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import attempts, audit, deliveries, ledger, pages
from tests.fanning import WallClock, put, states


class Fleet:
    """A consumer ``it``, what it was called with, and what was counted."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.consumers = Consumers()
        self.calls: list[str] = []
        self.counts: Counter[str] = Counter()
        self.failing: dict[str, list[BaseException]] = {}
        self.result: object = None

    def __call__(self, event: Event, *_: Connection) -> object:
        self.calls.append(event.event_id)
        errors = self.failing.get(event.event_id, [])
        if errors:
            raise errors.pop(0)
        return self.result

    def worker(self, **settings: Any) -> Worker:
        consumers = Consumers()
        consumers.consumer("it", **settings)(self)
        return Worker(self.store, consumers, observe=self.count)

    def runner(self, **settings: Any) -> Runner:
        consumers = Consumers()
        consumers.consumer("it", **settings)(self)
        return Runner(self.store, consumers["it"], observe=self.count)

    def count(self, consumer: str, outcome: str, times: int) -> None:
        self.counts[outcome] += times


@pytest.fixture
def fleet(store: Store) -> Iterator[Fleet]:
    Subscriptions(store).create("it", retry={"max_attempts": 3, "base": "10s"}, lease="60s")
    yield Fleet(store)


def row(store: Store, table: Any, **where: Any) -> Any:
    with store.read() as connection:
        query = select(table).where(*(table.c[name] == value for name, value in where.items()))
        return connection.execute(query).one()


def set_gate(store: Store, *ceilings: Ceiling, **policy: Any) -> None:
    gate = GatePolicy(ceilings, **policy)
    store.write(lambda connection: configure(connection, "it", gate, now=store.now()))


def test_delivers_each_event_once(fleet: Fleet) -> None:
    put(fleet.store, "a", "b", "c")
    worker = fleet.worker()
    assert worker.drain() == 3
    assert worker.drain() == 0
    assert fleet.calls == ["a", "b", "c"]
    assert set(states(fleet.store, "it").values()) == {"completed"}
    assert fleet.counts == {"admitted": 3, "completed": 3}
    kept = row(fleet.store, attempts, seq=1)
    assert (kept.number, kept.outcome, kept.error) == (1, "completed", None)


def test_handler_sees_the_event_as_it_came(fleet: Fleet, store: Store) -> None:
    seen: list[Event] = []
    consumers = Consumers()
    consumers.consumer("it")(seen.append)
    put(store, "a", body=b'{"n": 1}', traceparent="00-1-2-01", source_time=5)
    Worker(store, consumers).drain()
    (event,) = seen
    assert event.body == b'{"n": 1}'
    assert event.json() == {"n": 1}
    assert event.headers == (("Content-Type", "application/json"),)
    assert (event.source, event.event_id, event.type) == ("stripe", "a", "invoice.paid")
    assert (event.received_at, event.source_time) == (store.now(), 5)
    assert (event.attempt, event.traceparent) == (1, "00-1-2-01")
    assert event.idempotency_key == "it:stripe:a"
    assert "body" not in repr(event)  # it may be logged


def test_failure_is_retried_after_a_pause_and_ends_as_a_dead_letter(
    fleet: Fleet, clock: WallClock, caplog: pytest.LogCaptureFixture
) -> None:
    put(fleet.store, "bad", "good")
    fleet.failing["bad"] = [ValueError("one"), ValueError("two"), ValueError("three")]
    worker = fleet.worker()
    worker.drain()
    failed = row(fleet.store, deliveries, seq=1)
    assert (failed.state, failed.attempts) == ("pending", 1)
    assert failed.last_error == "ValueError: one"
    assert clock.now * 1e6 <= failed.visible_at <= (clock.now + 10) * 1e6
    assert states(fleet.store, "it")["good"] == "completed"
    for _ in range(2):
        clock.advance(3600)
        worker.drain()
    assert fleet.calls == ["bad", "good", "bad", "bad"]
    assert states(fleet.store, "it")["bad"] == "dead"
    assert row(fleet.store, deliveries, seq=1).last_error == "ValueError: three"
    assert row(fleet.store, ledger, event_id="bad").state == "dead"
    assert fleet.counts == {"admitted": 4, "completed": 1, "failed": 3, "dead": 1}
    fleet.store.write(lambda connection: watch(connection, fleet.store.now()))
    page = row(fleet.store, pages, condition="dead")
    assert (page.consumer, page.event_id) == ("it", "bad")
    assert "dead letter" in caplog.text
    clock.advance(3600)
    assert worker.drain() == 0


@pytest.mark.parametrize("error", [GiveUp("no such customer"), KeyError("x")])
def test_no_retry(fleet: Fleet, error: Exception) -> None:
    put(fleet.store, "a")
    fleet.failing["a"] = [error]
    fleet.worker(no_retry=(LookupError,)).drain()
    assert states(fleet.store, "it") == {"a": "dead"}


def test_handler_chooses_the_pause(fleet: Fleet, clock: WallClock) -> None:
    put(fleet.store, "a")
    fleet.failing["a"] = [RetryIn("90s", "slow down")]
    worker = fleet.worker()
    worker.drain()
    clock.advance(89)
    assert worker.drain() == 0
    clock.advance(1)
    assert worker.drain() == 1
    assert states(fleet.store, "it") == {"a": "completed"}


def test_exit_in_a_handler_ends_the_attempt_only(fleet: Fleet) -> None:
    put(fleet.store, "a", "b")
    fleet.failing["a"] = [SystemExit(3)]
    fleet.worker().drain()
    assert states(fleet.store, "it") == {"a": "pending", "b": "completed"}


def test_interrupt_is_recorded_and_goes_on(fleet: Fleet) -> None:
    put(fleet.store, "a")
    fleet.failing["a"] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        fleet.worker().drain()
    assert states(fleet.store, "it") == {"a": "pending"}


# -- modes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "count"), [("paused", 500), ("disabled", 5)])
def test_stands_still_and_delivers_all_of_it_after_resume(
    fleet: Fleet, mode: str, count: int
) -> None:
    book = Subscriptions(fleet.store)
    book.set_mode("it", mode)
    ids = [f"e{n}" for n in range(count)]
    put(fleet.store, *ids)
    worker = fleet.worker()
    assert worker.drain() == 0
    book.resume("it")
    assert worker.drain() == count
    assert fleet.calls == ids


def test_shadow_records_and_has_no_effect(fleet: Fleet, clock: WallClock) -> None:
    book = Subscriptions(fleet.store)
    book.set_mode("it", "shadow")
    set_gate(fleet.store, Ceiling(1, "requests", per="day"))
    put(fleet.store, "a", "b")
    worker = fleet.worker(cost=lambda event: 1)
    assert worker.drain() == 2
    assert states(fleet.store, "it") == {"a": "skipped", "b": "skipped"}
    assert row(fleet.store, ledger, event_id="a").state == "skipped"
    assert fleet.calls == []
    book.resume("it")
    put(fleet.store, "c")
    worker.drain()
    assert fleet.calls == ["c"]


def test_subscription_that_is_removed_ends_the_deliveries(fleet: Fleet) -> None:
    put(fleet.store, "a")
    worker = fleet.worker()
    Subscriptions(fleet.store).remove("it")
    assert worker.drain() == 0


def test_consumer_without_subscription_is_told_so(fleet: Fleet) -> None:
    consumers = Consumers()
    consumers.consumer("itt")(fleet)
    with pytest.raises(ConfigError, match="subscriptions create itt; did you mean 'it'"):
        Worker(fleet.store, consumers).start()


# -- leases ----------------------------------------------------------------------------------


def test_lease_of_a_dead_worker_ends(fleet: Fleet, clock: WallClock) -> None:
    put(fleet.store, "a")
    dead = fleet.runner()
    assert len(dead.claim(5).leases) == 1  # and is heard of no more
    worker = fleet.worker()
    assert worker.drain() == 0
    clock.advance(59)
    assert worker.drain() == 0
    clock.advance(1)
    assert worker.drain() == 1
    assert row(fleet.store, deliveries, seq=1).attempts == 2
    assert fleet.counts["expired"] == 1


def test_zombie_is_fenced(fleet: Fleet, clock: WallClock) -> None:
    put(fleet.store, "a")
    zombie = fleet.runner()
    (lease,) = zombie.claim(1).leases
    clock.advance(61)
    fleet.worker().drain()
    done = row(fleet.store, deliveries, seq=1)
    zombie.run(lease)  # its effect happens, its result does not count
    fleet.failing["a"] = [ValueError()]
    zombie.run(lease)
    assert row(fleet.store, deliveries, seq=1) == done
    assert fleet.counts["fenced"] == 2
    assert zombie.extend([lease]) == {lease.token}


def test_zombie_in_the_middle_is_fenced_too(fleet: Fleet, clock: WallClock) -> None:
    """Not only after the other one has finished: also while it is at work."""
    put(fleet.store, "a")
    zombie, heir = fleet.runner(), fleet.runner()
    (old,) = zombie.claim(1).leases
    clock.advance(61)
    (new,) = heir.claim(1).leases
    zombie.run(old)
    assert states(fleet.store, "it") == {"a": "leased"}
    heir.run(new)
    assert states(fleet.store, "it") == {"a": "completed"}


def test_heartbeat_keeps_a_lease(fleet: Fleet, clock: WallClock) -> None:
    put(fleet.store, "a")
    slow = fleet.runner()
    (lease,) = slow.claim(1).leases
    worker = fleet.worker()
    for _ in range(5):
        clock.advance(40)
        assert slow.extend([lease]) == set()
        assert worker.drain() == 0
    slow.run(lease)
    assert states(fleet.store, "it") == {"a": "completed"}


def test_what_was_not_begun_is_handed_back_without_an_attempt(fleet: Fleet) -> None:
    put(fleet.store, "a", "b")
    stopping = fleet.runner()
    for lease in stopping.claim(2).leases:
        stopping.hand_back(lease)
    assert row(fleet.store, deliveries, seq=1).attempts == 0
    worker = fleet.worker()
    assert worker.drain() == 2
    assert row(fleet.store, ledger, event_id="a").attempts == 1
    assert row(fleet.store, deliveries, seq=1).attempts == 1


def test_hand_back_costs_nothing_where_attempts_are_charged(fleet: Fleet) -> None:
    set_gate(fleet.store, Ceiling(1, "requests", per="day"), charge="attempt")
    put(fleet.store, "a")
    stopping = fleet.runner()
    (lease,) = stopping.claim(1).leases
    stopping.hand_back(lease)
    fleet.worker().drain()
    assert fleet.calls == ["a"]


def test_event_that_kills_its_workers_dies_alone(fleet: Fleet, clock: WallClock) -> None:
    """What was claimed together with it is not taken along again and again."""
    put(fleet.store, "killer", "b", "c")

    def crash() -> None:
        """Run until the killer is in hand, then be heard of no more."""
        runner = fleet.runner()
        while leases := runner.claim(10).leases:
            for lease in leases:
                if lease.event.event_id == "killer":
                    return
                runner.run(lease)

    for _ in range(4):
        crash()
        clock.advance(61)
    fleet.worker().drain()
    assert states(fleet.store, "it") == {"killer": "dead", "b": "completed", "c": "completed"}
    assert row(fleet.store, deliveries, seq=1).last_error == "its worker died in attempt 3"
    assert "killer" not in fleet.calls
    assert row(fleet.store, deliveries, seq=2).attempts == 2


def test_uncertain_effect_waits_for_a_person(fleet: Fleet, clock: WallClock) -> None:
    put(fleet.store, "a")
    fleet.runner(on_uncertain="review").claim(1)
    clock.advance(61)
    worker = fleet.worker(on_uncertain="review")
    worker.drain()
    clock.advance(10**6)
    worker.drain()
    assert states(fleet.store, "it") == {"a": "uncertain"}
    assert fleet.calls == []


# -- effects in the store ----------------------------------------------------------------------


def note(event: Event, connection: Connection) -> None:
    connection.execute(
        audit.insert(),
        {"at": 0, "actor": "it", "action": "effect", "subject": event.event_id, "detail": {}},
    )


def effects(store: Store) -> list[str]:
    with store.read() as connection:
        query = select(audit.c.subject).where(audit.c.action == "effect").order_by(audit.c.id)
        return list(connection.scalars(query))


def test_effect_is_committed_with_its_acknowledgement(fleet: Fleet, store: Store) -> None:
    consumers = Consumers()
    consumers.consumer("it", transactional=True)(note)
    put(store, "a")
    Worker(store, consumers).drain()
    assert effects(store) == ["a"]


def test_effect_of_a_failed_attempt_is_undone(fleet: Fleet, store: Store) -> None:
    def half(event: Event, connection: Connection) -> None:
        note(event, connection)
        raise ValueError("after the effect")

    consumers = Consumers()
    consumers.consumer("it", transactional=True)(half)
    put(store, "a")
    Worker(store, consumers).drain()
    assert effects(store) == []
    assert states(store, "it") == {"a": "pending"}


def test_effect_of_a_zombie_is_undone(fleet: Fleet, store: Store, clock: WallClock) -> None:
    consumers = Consumers()
    consumers.consumer("it", transactional=True)(note)
    put(store, "a")
    zombie = Runner(store, consumers["it"])
    (lease,) = zombie.claim(1).leases
    clock.advance(61)
    Worker(store, consumers).drain()
    zombie.run(lease)
    assert effects(store) == ["a"]


# -- the gate ------------------------------------------------------------------------------------


def test_refused_once_and_no_attempt(fleet: Fleet, clock: WallClock) -> None:
    set_gate(fleet.store, Ceiling(2, "requests", per="day"))
    put(fleet.store, "a", "b", "c")
    worker = fleet.worker()
    worker.drain()
    clock.advance(60)
    worker.drain()
    assert fleet.calls == ["a", "b"]
    assert states(fleet.store, "it")["c"] == "refused"
    assert row(fleet.store, deliveries, seq=3).attempts == 0
    assert fleet.counts["refused"] == 1
    page = row(fleet.store, pages)
    assert (page.condition, page.consumer, page.event_id) == ("refused", "it", "c")
    assert page.detail["ceiling"]["hard"] == 2


def test_deferred_over_several_windows(fleet: Fleet, clock: WallClock) -> None:
    set_gate(fleet.store, Ceiling(1, "requests", per="day"), at_ceiling="defer")
    put(fleet.store, "a", "b", "c", "d")
    worker = fleet.worker()
    for day in range(4):
        worker.drain()
        assert len(fleet.calls) == day + 1
        clock.advance(24 * 3600)
    assert set(states(fleet.store, "it").values()) == {"completed"}
    with fleet.store.read() as connection:
        assert set(connection.scalars(select(deliveries.c.attempts))) == {1}


def test_review_waits_for_a_person(fleet: Fleet, clock: WallClock) -> None:
    set_gate(fleet.store, Ceiling(1, "requests", per="day"), at_ceiling="review")
    put(fleet.store, "a", "b")
    worker = fleet.worker()
    worker.drain()
    clock.advance(10 * 24 * 3600)
    worker.drain()
    assert states(fleet.store, "it") == {"a": "completed", "b": "review"}


def test_cost_is_computed_from_the_event(fleet: Fleet) -> None:
    set_gate(fleet.store, Ceiling(100, "tokens", per="day"))
    for event_id, size in (("a", 60), ("b", 60), ("c", 40)):
        put(fleet.store, event_id, body={"tokens": size})
    worker = fleet.worker(cost=lambda event: {"tokens": event.json()["tokens"]})
    worker.drain()
    assert states(fleet.store, "it") == {"a": "completed", "b": "refused", "c": "completed"}


def test_real_cost_is_settled(fleet: Fleet) -> None:
    set_gate(fleet.store, Ceiling(100, "tokens", per="day"), charge="actual", cost={"tokens": 40})
    fleet.result = Spent({"tokens": 70})
    put(fleet.store, "a", "b")
    fleet.worker().drain(1)
    assert states(fleet.store, "it") == {"a": "completed", "b": "refused"}


@pytest.mark.parametrize("cost", [lambda event: 1 / 0, lambda event: 1.5, {"bytes": 1}])
def test_cost_that_cannot_be_is_a_failed_attempt(fleet: Fleet, clock: WallClock, cost: Any) -> None:
    set_gate(fleet.store, Ceiling(100, "tokens", per="day"))
    put(fleet.store, "a")
    worker = fleet.worker(cost=cost)
    for _ in range(3):
        worker.drain()
        clock.advance(3600)
    assert states(fleet.store, "it") == {"a": "dead"}
    assert fleet.calls == []


def test_completed_event_that_is_delivered_again_is_a_no_op(fleet: Fleet) -> None:
    put(fleet.store, "a")
    worker = fleet.worker()
    worker.drain()
    again = {"state": "pending", "finished_at": None, "visible_at": 0}
    fleet.store.write(lambda connection: connection.execute(update(deliveries).values(again)))
    worker.drain()
    assert fleet.calls == ["a"]
    assert fleet.counts["deduplicated"] == 1
    assert states(fleet.store, "it") == {"a": "completed"}


# -- order ---------------------------------------------------------------------------------------


def test_next_of_a_key_waits_until_the_earlier_is_finished(fleet: Fleet, clock: WallClock) -> None:
    Subscriptions(fleet.store).update("it", order_by="body.customer")
    for event_id, customer in (("a1", "a"), ("a2", "a"), ("b1", "b"), ("x", None), ("a3", "a")):
        put(fleet.store, event_id, body={"customer": customer})
    fleet.failing["a1"] = [ValueError(), ValueError()]
    worker = fleet.worker()
    worker.drain()
    assert fleet.calls == ["a1", "b1", "x"]
    for _ in range(2):
        clock.advance(3600)
        worker.drain()
    assert fleet.calls == ["a1", "b1", "x", "a1", "a1", "a2", "a3"]


def test_dead_letter_lets_its_key_go_on(fleet: Fleet) -> None:
    Subscriptions(fleet.store).update("it", order_by="body.customer")
    put(fleet.store, "a1", "a2", body={"customer": "a"})
    fleet.failing["a1"] = [GiveUp()]
    fleet.worker().drain()
    assert states(fleet.store, "it") == {"a1": "dead", "a2": "completed"}


def test_leased_one_holds_its_key(fleet: Fleet) -> None:
    Subscriptions(fleet.store).update("it", order_by="body.customer")
    put(fleet.store, "a1", "a2", body={"customer": "a"})
    slow = fleet.runner()
    (lease,) = slow.claim(10).leases
    worker = fleet.worker()
    assert worker.drain() == 0
    slow.run(lease)
    assert worker.drain() == 1
    assert fleet.calls == ["a1", "a2"]


def test_order_holds_over_a_backfill(store: Store) -> None:
    put(store, *(f"a{n}" for n in range(55)), body={"customer": "a"})
    Subscriptions(store).create("it", order_by="body.customer", start_at="earliest")
    put(store, "new", body={"customer": "a"})
    fleet = Fleet(store)
    worker = fleet.worker()
    while Subscriptions(store).get("it").is_backfilling:
        worker.step()
    worker.drain()
    assert fleet.calls == [*(f"a{n}" for n in range(55)), "new"]
