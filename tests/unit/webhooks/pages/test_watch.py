"""Lag past an objective, failing events and dead letters, read from the rows of the deliveries."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import update

from gunicorn_admission.webhooks.fanout.routing import RoutedEvent, Routing
from gunicorn_admission.webhooks.fanout.subscriptions import Subscriptions
from gunicorn_admission.webhooks.pages import Condition, Pager, Severity
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries, events
from gunicorn_admission.webhooks.store.statements import insert
from tests.unit.webhooks.pages.conftest import Clock, Memory


def store_event(store: Store, event_id: str) -> None:
    def work(connection: Any) -> None:
        values = {
            "source": "stripe",
            "event_id": event_id,
            "id_source": "body",
            "received_at": store.now(),
            "key_id": "k",
            "headers": [],
            "size": 2,
            "body_sha256": b"",
            "body": b"{}",
        }
        seq = connection.execute(
            insert(connection, events).values(**values).returning(events.c.seq)
        ).scalar_one()
        routed = RoutedEvent(
            seq=seq, source="stripe", event_id=event_id, type=None, body=b"{}", headers=[],
            received_at=store.now(),
        )  # fmt: skip
        Routing(store).route(connection, [routed])

    store.write(work)


def _set(store: Store, **values: Any) -> None:
    store.write(lambda connection: connection.execute(update(deliveries).values(**values)))


@pytest.fixture
def subscriptions(store: Store) -> Subscriptions:
    found = Subscriptions(store)
    found.create("entitlements", objective=30)
    return found


def test_an_event_older_than_the_objective_makes_one_page(
    store: Store, subscriptions: Subscriptions, clock: Clock, channel: Memory
) -> None:
    store_event(store, "evt_1")
    clock.now += 20
    pager = Pager(store, [channel])
    assert pager.tick() == 0
    store_event(store, "evt_2")
    clock.now += 20
    assert pager.tick() == 1
    assert channel.texts[-1] == (
        "entitlements LAGS stripe/evt_1: unfinished for 40s, objective 30s; "
        "entitlements lags 40.0 s"
    )
    clock.now += 20
    assert pager.tick() == 0, "the second one is counted, and told after a pause"
    _set(store, state="completed", finished_at=clock.micros)
    clock.now += 10
    assert pager.tick() == 1
    assert channel.texts[-1].startswith("RESOLVED entitlements LAGS stripe/evt_1")
    assert channel.told[-1].count == 2


@pytest.mark.parametrize(("mode", "told"), [("paused", 1), ("disabled", 0)])
def test_a_paused_consumer_is_expected_back_and_a_disabled_one_is_not(
    store: Store,
    subscriptions: Subscriptions,
    clock: Clock,
    channel: Memory,
    mode: str,
    told: int,
) -> None:
    subscriptions.set_mode("entitlements", mode)
    store_event(store, "evt_1")
    clock.now += 31
    assert Pager(store, [channel]).tick() == told


def test_its_pages_have_the_severity_and_runbook_of_the_subscription(
    store: Store, subscriptions: Subscriptions, clock: Clock, channel: Memory
) -> None:
    subscriptions.update("entitlements", severity="critical", runbook="https://wiki/entitlements")
    store_event(store, "evt_1")
    clock.now += 31
    pager = Pager(store, [channel])
    pager.tick()
    assert channel.told[-1].page.severity is Severity.CRITICAL
    assert channel.texts[-1].endswith("; see https://wiki/entitlements")
    subscriptions.update("entitlements", severity="none")
    clock.now += 10
    pager.tick()
    assert channel.texts[-1].startswith("RESOLVED "), "nobody is to be told any more"
    _set(store, state="dead", finished_at=clock.micros, attempts=12)
    clock.now += 10
    assert pager.tick() == 0


def test_failing_is_three_attempts_in_vain_and_names_no_text_of_the_error(
    store: Store, subscriptions: Subscriptions, clock: Clock, channel: Memory
) -> None:
    store_event(store, "evt_1")
    pager = Pager(store, [channel])
    _set(store, attempts=2, last_error="ValueError: card 4242")
    assert pager.tick() == 0
    _set(store, attempts=3)
    clock.now += 10
    assert pager.tick() == 1
    assert channel.texts[-1] == "entitlements FAILS stripe/evt_1: 3 attempts, last ValueError"


def test_dead_letters_are_one_page_until_they_are_gone(
    store: Store, subscriptions: Subscriptions, clock: Clock, channel: Memory
) -> None:
    store_event(store, "evt_1")
    store_event(store, "evt_2")
    pager = Pager(store, [channel])
    _set(store, attempts=12, state="dead", finished_at=clock.micros, last_error="KeyError: 'x'")
    assert pager.tick() == 1
    notice = channel.told[-1]
    assert (notice.page.condition, notice.count) == (Condition.DEAD, 2)
    assert notice.text.startswith(
        "entitlements DEAD-LETTERED stripe/evt_1: 12 attempts, last KeyError"
    )
    _set(store, state="pending", attempts=0, finished_at=None)
    clock.now += 10
    assert pager.tick() == 1
    assert channel.texts[-1].startswith("RESOLVED ")
