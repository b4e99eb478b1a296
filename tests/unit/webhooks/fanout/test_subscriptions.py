"""Subscriptions: what they accept, what they collect, and where they begin."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.fanout.backfill import STEP, backfill, backfill_step
from gunicorn_admission.webhooks.fanout.retry import RetryPolicy
from gunicorn_admission.webhooks.fanout.routing import Routing
from gunicorn_admission.webhooks.fanout.subscription import Subscription
from gunicorn_admission.webhooks.fanout.subscriptions import Subscriptions
from gunicorn_admission.webhooks.gates import Ceiling, GatePolicy, configure
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import audit, subscriptions
from tests.fanning import delivered, event_row, insert_and_route, put


@pytest.fixture
def sqlite_store(sqlite_store_url: str) -> Iterator[Store]:
    """Where the engine does not matter."""
    with Store(sqlite_store_url) as opened:
        yield opened


def test_collects_what_its_filter_wants(any_store: Store) -> None:
    book = Subscriptions(any_store)
    book.create("invoices", filter={"type": [{"prefix": "invoice."}]})
    book.create("all")
    put(any_store, "a")
    put(any_store, "b", type="charge.failed")
    assert delivered(any_store, "invoices") == ["a"]
    assert delivered(any_store, "all") == ["a", "b"]


@pytest.mark.parametrize("mode", ["shadow", "paused", "disabled"])
def test_every_mode_goes_on_collecting(any_store: Store, mode: str) -> None:
    book = Subscriptions(any_store)
    book.create("it")
    assert book.set_mode("it", mode).mode.value == mode
    put(any_store, "a")
    assert delivered(any_store, "it") == ["a"]


def test_change_of_filter_holds_from_now_on(any_store: Store) -> None:
    book = Subscriptions(any_store)
    book.create("it")
    routing = Routing(any_store)  # one that has the old filter in memory
    for event_id, changes in (("a", {"filter": {"source": ["github"]}}), ("b", {"lease": "5s"})):
        rows = [event_row(event_id, any_store.now())]
        any_store.write(lambda connection, rows=rows: insert_and_route(connection, routing, rows))
        book.update("it", **changes)
    assert delivered(any_store, "it") == ["a"]
    assert book.get("it").lease == 5


def test_begins_with_what_comes_next(any_store: Store) -> None:
    put(any_store, "old")
    Subscriptions(any_store).create("it")
    put(any_store, "new")
    assert backfill(any_store, "it") == 0
    assert delivered(any_store, "it") == ["new"]


@pytest.mark.parametrize(
    ("start_at", "expected"),
    [
        ("earliest", ["a", "b", "c", "new"]),
        ("seq:{b}", ["b", "c", "new"]),
        ("stripe/c", ["c", "new"]),
        ("seq:{after}", ["new"]),
    ],
)
def test_begins_earlier(any_store: Store, start_at: str, expected: list[str]) -> None:
    numbers = put(any_store, "a", "b", "c")
    start_at = start_at.format(b=numbers[1], after=numbers[2] + 1)
    Subscriptions(any_store).create("it", start_at=start_at)
    put(any_store, "new")  # comes before the backfill, which must not double it
    assert backfill(any_store, "it") == len(expected) - 1
    assert delivered(any_store, "it") == expected
    assert backfill(any_store, "it") == 0


@pytest.mark.parametrize(
    ("start_at", "says"),
    [
        ("yesterday", "SOURCE/EVENT_ID"),
        ("seq:x", "SOURCE/EVENT_ID"),
        ("seq:99", "the last event is 0"),
        ("stripe/nope", "no such event"),
    ],
)
def test_start_that_does_not_exist(sqlite_store: Store, start_at: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Subscriptions(sqlite_store).create("it", start_at=start_at)
    assert Subscriptions(sqlite_store).all() == []


def test_backfill_goes_on_where_it_was_left(any_store: Store) -> None:
    put(any_store, *(f"e{n}" for n in range(STEP + 5)))
    Subscriptions(any_store).create("it", start_at="earliest")

    def step() -> int:
        return any_store.write(lambda connection: backfill_step(connection, "it", any_store.now()))

    assert step() == STEP
    assert Subscriptions(any_store).get("it").is_backfilling
    assert step() == 5
    assert not Subscriptions(any_store).get("it").is_backfilling
    assert step() == -1


def test_backfill_heeds_the_filter_and_the_order(any_store: Store) -> None:
    put(any_store, "a", body={"customer": 1})
    put(any_store, "b", body={"customer": 2}, source="github")
    Subscriptions(any_store).create(
        "it", filter={"source": ["stripe"]}, order_by="body.customer", start_at="earliest"
    )
    assert backfill(any_store, "it") == 1
    assert delivered(any_store, "it") == ["a"]


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"filter": {"nope": [1]}}, "filter.nope"),
        ({"mode": "activ"}, "mode"),
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts"),
        ({"retry": {"max_attempts": True}}, "retry.max_attempts"),
        ({"retry": {"base": "0s"}}, "retry.base"),
        ({"retry": {"attempts": 3}}, "retry.attempts"),
        ({"retention": "1s"}, "retention"),
        ({"lease": "10ms"}, "lease"),
        ({"objective": "soon"}, "objective"),
        ({"severity": "fatal"}, "severity"),
        ({"runbook": "wiki/analytics"}, "runbook"),
        ({"runbook": "https://wiki/a\nb"}, "runbook"),
        ({"order_by": "customer"}, "order_by"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_fault_is_named(sqlite_store: Store, values: dict[str, Any], field: str) -> None:
    book = Subscriptions(sqlite_store)
    with pytest.raises(ConfigError) as caught:
        book.create("it", **values)
    assert caught.value.field == field
    if field != "mode":
        book.create("it")
        with pytest.raises(ConfigError):
            book.update("it", **values)


@pytest.mark.parametrize("name", ["", "A", "a b", "-a", "a/b", "x" * 65])
def test_name_that_cannot_be(sqlite_store: Store, name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        Subscriptions(sqlite_store).create(name)
    with pytest.raises(ConfigError, match="name"):
        Subscriptions(sqlite_store).ensure(name)


def test_taken_and_missing_names(any_store: Store) -> None:
    book = Subscriptions(any_store)
    with pytest.raises(ConfigError, match="there is none yet"):
        book.get("analytics")
    made = book.create("analytics")
    with pytest.raises(ConfigError, match="not taken"):
        book.create("analytics")
    with pytest.raises(ConfigError, match="did you mean 'analytics'"):
        book.pause("analytic")
    assert book.ensure("analytics", lease="5s") == made
    assert book.ensure("other", lease="5s").lease == 5
    assert [one.name for one in book.all()] == ["analytics", "other"]


def test_values_survive_the_store(any_store: Store) -> None:
    wanted = Subscription(
        name="it",
        filter={"body": {"n": [{"numeric": [">", 1.5]}]}},
        mode="shadow",  # type: ignore[arg-type]
        retry=RetryPolicy(max_attempts=3, base="1s", cap="1m"),  # type: ignore[arg-type]
        retention="90h",  # type: ignore[arg-type]
        lease="1500ms",  # type: ignore[arg-type]
        objective="2m",  # type: ignore[arg-type]
        severity="none",
        runbook="https://wiki/it",
        order_by="body.n",
    )
    any_store.write(lambda connection: connection.execute(subscriptions.insert(), wanted.as_row()))
    assert Subscriptions(any_store).get("it") == wanted


def test_modes_and_changes_are_noted(any_store: Store) -> None:
    book = Subscriptions(any_store, actor="ann")
    book.create("it")
    book.pause("it")
    book.pause("it")  # nothing new: nothing to note
    book.resume("it")
    book.update("it", retry=RetryPolicy(max_attempts=2))
    book.disable("it")
    with any_store.read() as connection:
        rows = connection.execute(select(audit).order_by(audit.c.id)).all()
    assert {row.actor for row in rows} == {"ann"}
    assert [row.action for row in rows] == [
        "subscription.create",
        "subscription.paused",
        "subscription.active",
        "subscription.update",
        "subscription.disabled",
    ]
    assert rows[3].detail["retry"]["max_attempts"] == 2


def test_retention_that_cannot_hold_what_is_deferred(any_store: Store) -> None:
    gate = GatePolicy([Ceiling(1, "requests", per="day")], at_ceiling="defer")
    any_store.write(lambda connection: configure(connection, "it", gate, now=any_store.now()))
    book = Subscriptions(any_store)
    with pytest.raises(ConfigError, match="keep events at least that long"):
        book.create("it", retention="12h")
    book.create("it", retention="2d")
    with pytest.raises(ConfigError, match="keep events at least that long"):
        book.update("it", retention="12h")
    assert book.get("it").retention == 2 * 24 * 3600


def test_removal_takes_its_deliveries_along(any_store: Store) -> None:
    book = Subscriptions(any_store)
    book.create("it")
    book.create("other")
    put(any_store, "a", "b")
    assert book.remove("it") == 2
    assert delivered(any_store, "it") == []
    assert delivered(any_store, "other") == ["a", "b"]
    with pytest.raises(ConfigError):
        book.remove("it")


def test_no_event_falls_between(any_store: Store) -> None:
    """Intakes run all the while; each event is either backfilled or routed, and never twice."""
    book = Subscriptions(any_store)
    routing = Routing(any_store)
    count, names = 60, [f"s{n}" for n in range(6)]
    ready = threading.Barrier(3)

    def intake(thread: int) -> None:
        ready.wait(10)
        for n in range(count):
            rows = [event_row(f"t{thread}-{n}", any_store.now())]
            any_store.write(
                lambda connection, rows=rows: insert_and_route(connection, routing, rows)
            )

    def change() -> None:
        ready.wait(10)
        for name in names:
            book.create(name, start_at="earliest")
            backfill(any_store, name)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(intake, 0), pool.submit(intake, 1), pool.submit(change)]:
            done.result(40)
    expected = {f"t{thread}-{n}" for thread in range(2) for n in range(count)}
    for name in names:
        assert set(delivered(any_store, name)) == expected
