"""Ceilings that consumers declare, and what an operator does about them, through a worker."""

from __future__ import annotations

from typing import Any

import pytest

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout import Consumers, Event, Subscriptions, Worker
from gunicorn_admission.webhooks.fanout.tally import Gauges
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, configure
from gunicorn_admission.webhooks.gates.audit import audit_ledger
from gunicorn_admission.webhooks.gates.gate import load_gate
from gunicorn_admission.webhooks.gates.permits import release
from gunicorn_admission.webhooks.gates.standings import standings
from gunicorn_admission.webhooks.metrics import Metrics
from gunicorn_admission.webhooks.store import Store
from tests.fanning import put, states

DAILY = Ceiling(2, "requests", per="day", zone="America/New_York")


def worker(store: Store, calls: list[str], **options: Any) -> Worker:
    consumers = Consumers()

    @consumers.consumer("usage", **options)
    def handle(event: Event) -> None:
        calls.append(event.event_id)

    return Worker(store, consumers)


def hard(store: Store) -> list[int | None]:
    with store.read() as connection:
        gate = load_gate(connection, "usage")
    assert gate is not None
    return [bound.ceiling.hard for bound in gate.bounds]


def test_a_declared_ceiling_is_met_and_released(store: Store) -> None:
    Subscriptions(store).create("usage")
    put(store, "evt_1", "evt_2", "evt_3", "evt_4")
    calls: list[str] = []
    it = worker(store, calls, cost=1, ceilings=[DAILY])
    it.drain()
    assert calls == ["evt_1", "evt_2"]
    assert states(store, "usage")["evt_3"] == "refused"
    store.write(
        lambda connection: release(
            connection, consumer="usage", source="stripe", event_id="evt_3", now=store.now(),
            actor="ann", beyond=True,
        )
    )  # fmt: skip
    it.drain()
    assert calls == ["evt_1", "evt_2", "evt_3"]
    assert states(store, "usage")["evt_4"] == "refused"


def test_raising_the_ceiling_wakes_deferred_deliveries(store: Store) -> None:
    Subscriptions(store).create("usage")
    put(store, "evt_1", "evt_2", "evt_3")
    calls: list[str] = []
    it = worker(store, calls, ceilings=[DAILY], at_ceiling="defer")
    it.drain()
    assert states(store, "usage")["evt_3"] == "deferred"
    more = GatePolicy([Ceiling(3, "requests", per="day", zone="America/New_York")])
    store.write(lambda connection: configure(connection, "usage", more, now=store.now()))
    it.drain()
    assert calls == ["evt_1", "evt_2", "evt_3"]


def test_a_restart_does_not_undo_an_operator(store: Store) -> None:
    Subscriptions(store).create("usage")
    worker(store, [], ceilings=[DAILY]).drain()
    other = GatePolicy([Ceiling(9, "requests", per="day", zone="America/New_York")])
    store.write(lambda connection: configure(connection, "usage", other, now=store.now()))
    worker(store, [], ceilings=[DAILY]).drain()
    worker(store, []).drain()  # declares nothing
    assert hard(store) == [9]
    worker(store, [], ceilings=[Ceiling(5, "requests")], at_ceiling="review").drain()
    assert hard(store) == [5]
    worker(store, [], ceilings=[]).drain()
    assert hard(store) == []


def test_a_number_is_of_the_only_unit(store: Store) -> None:
    Subscriptions(store).create("usage")
    put(store, "evt_1", "evt_2")
    calls: list[str] = []
    worker(store, calls, cost=40, ceilings=[Ceiling(70, "tokens")]).drain()
    assert calls == ["evt_1"]


def test_deferral_and_retention_are_held_against_each_other(store: Store) -> None:
    subscriptions = Subscriptions(store)
    subscriptions.create("usage", retention="24h")
    deferring = worker(store, [], ceilings=[DAILY], at_ceiling="defer")
    with pytest.raises(ConfigError, match=r"at_ceiling = 'defer'.*keep events at least"):
        deferring.start()
    subscriptions.update("usage", retention="25h")
    deferring.drain()
    with pytest.raises(ConfigError, match="keep events at least"):
        subscriptions.update("usage", retention="24h")
    assert subscriptions.update("usage", lease="2m").retention == 25 * 3600


def test_what_a_removed_subscription_had_reserved_is_released(store: Store) -> None:
    Subscriptions(store).create("usage", retry={"max_attempts": 5})
    it = worker(store, [], cost=1, ceilings=[DAILY])
    it.drain()  # sets the gate up
    put(store, "evt_1", "evt_2")
    held = it._runners[0].claim(1)  # and its worker is heard of no more
    assert len(held.leases) == 1
    Subscriptions(store).remove("usage")
    with store.read() as connection:
        gate = load_gate(connection, "usage")
        assert gate is not None
        (standing,) = standings(connection, gate, store.now())
        assert (standing.reserved, standing.settled) == (0, 0)
        assert audit_ledger(connection, now=store.now()) == []


def test_how_ceilings_stand_is_measured(store: Store) -> None:
    Subscriptions(store).create("usage")
    put(store, "evt_1", "evt_2", "evt_3")
    worker(store, [], ceilings=[DAILY]).drain()
    metrics = Metrics()
    Gauges(store, metrics).tick()
    labels = ("usage", "requests", "day America/New_York")
    gauges = metrics.measured().gauges
    assert gauges["spend_settled", labels] == gauges["spend_ceiling", labels] == 2
    assert gauges["spend_reserved", labels] == 0
