"""Shadow: seen and not done, held against the intake, promoted, rolled back."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from sqlalchemy import delete

from gunicorn_admission.cli.verbs import root
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout import Consumers, Event, Mode, Subscriptions, Worker
from gunicorn_admission.webhooks.fanout.replay import replay
from gunicorn_admission.webhooks.fanout.selection import Selection
from gunicorn_admission.webhooks.fanout.shadow import promote, rollback, shadow_diff
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries
from tests.unit.webhooks.pages.test_watch import store_event

NAME = "analytics"


@pytest.fixture
def done() -> list[str]:
    return []


@pytest.fixture
def worker(any_store: Store, done: list[str]) -> Worker:
    Subscriptions(any_store).create(NAME, mode="shadow")
    consumers = Consumers()

    @consumers.consumer(NAME)
    def handle(event: Event) -> None:
        done.append(event.event_id)

    return Worker(any_store, consumers)


def test_in_shadow_all_is_seen_and_nothing_is_done(
    any_store: Store, worker: Worker, done: list[str]
) -> None:
    for number in range(3):
        store_event(any_store, f"evt_{number}")
    before = shadow_diff(any_store, NAME)
    assert (before.events, before.waiting, before.agrees) == (3, 3, False)
    worker.drain()
    after = shadow_diff(any_store, NAME)
    assert (after.events, after.acknowledged, after.agrees) == (3, 3, True)
    assert done == []


def test_an_event_that_was_lost_in_between_is_named(any_store: Store, worker: Worker) -> None:
    store_event(any_store, "evt_1")
    store_event(any_store, "evt_2")
    any_store.write(lambda connection: connection.execute(delete(deliveries)).rowcount)
    store_event(any_store, "evt_3")
    worker.drain()
    found = shadow_diff(any_store, NAME)
    assert (found.acknowledged, found.missing) == (1, 2)
    assert found.missing_events == ("stripe/evt_1", "stripe/evt_2")
    with pytest.raises(ConfigError, match="2 events are missing"):
        promote(any_store, NAME)
    promote(any_store, NAME, force=True)


def test_a_filter_that_changed_is_seen(any_store: Store, worker: Worker) -> None:
    store_event(any_store, "evt_1")
    worker.drain()
    Subscriptions(any_store).update(NAME, filter={"source": ["github"]})
    found = shadow_diff(any_store, NAME)
    assert (found.events, found.unexpected, found.unexpected_events) == (0, 1, ("stripe/evt_1",))


def test_promoted_it_has_effects_from_then_on_and_earlier_ones_on_request(
    any_store: Store, worker: Worker, done: list[str]
) -> None:
    store_event(any_store, "evt_1")
    worker.drain()
    promote(any_store, NAME)
    store_event(any_store, "evt_2")
    worker.drain()
    assert done == ["evt_2"]
    replay(any_store, NAME, Selection(source="stripe"))
    worker.drain()
    assert sorted(done) == ["evt_1", "evt_2"]


def test_rolled_back_it_collects_and_repeats_nothing_when_it_returns(
    any_store: Store, worker: Worker, done: list[str]
) -> None:
    promote(any_store, NAME)
    store_event(any_store, "evt_1")
    worker.drain()
    rollback(any_store, NAME)
    store_event(any_store, "evt_2")
    assert worker.drain() == 0
    Subscriptions(any_store).set_mode(NAME, Mode.ACTIVE)
    replay(any_store, NAME, Selection(source="stripe"))
    worker.drain()
    assert done == ["evt_1", "evt_2"]


def test_only_what_is_in_shadow_can_be_promoted(any_store: Store, worker: Worker) -> None:
    promote(any_store, NAME)
    with pytest.raises(ConfigError, match="it is active"):
        promote(any_store, NAME)


def test_the_verbs(any_store_url: str) -> None:
    url = ["--url", any_store_url]
    with Store(any_store_url) as store:
        Subscriptions(store).create(NAME, mode="shadow")
        store_event(store, "evt_1")
    found = CliRunner().invoke(root, ["shadow", "diff", NAME, "--json", *url])
    assert (found.exit_code, json.loads(found.output)["waiting"]) == (1, 1)
    refused = CliRunner().invoke(root, ["shadow", "promote", NAME, *url])
    assert (refused.exit_code, "--force" in refused.output) == (2, True)
    forced = CliRunner().invoke(root, ["shadow", "promote", NAME, "--force", *url])
    assert (forced.exit_code, "is active" in forced.output) == (0, True)
    back = CliRunner().invoke(root, ["shadow", "rollback", NAME, *url])
    assert (back.exit_code, "is disabled" in back.output) == (0, True)
    unknown = CliRunner().invoke(root, ["shadow", "diff", "analitics", *url])
    assert (unknown.exit_code, "analytics" in unknown.output) == (2, True)
