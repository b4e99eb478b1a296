"""What may go goes, and nothing else; beside a redrive too."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import JSON, Table, insert, select, update

from gunicorn_admission.cli.verbs import root
from gunicorn_admission.errors import ConfigError
from gunicorn_admission.webhooks.purge import Age, purge
from gunicorn_admission.webhooks.store import Store, schema

DAY = 86_400
NOW = 1_800_000_000


class Rows:
    """A store with rows of a given age, in days before now."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._number = 0

    def add(self, table: Table, **values: Any) -> None:
        required = {
            column.name: [] if isinstance(column.type, JSON) else column.type.python_type()
            for column in table.c
            if not column.nullable and column.server_default is None and not column.primary_key
        }
        with self.store.transaction() as connection:
            connection.execute(insert(table).values(required | values))

    def source(self, name: str, provider: str) -> None:
        self.add(schema.sources, name=name, provider=provider)

    def subscription(self, name: str, retention: float = 1, **more: Any) -> None:
        self.add(schema.subscriptions, name=name, retention_us=retention * DAY * 10**6, **more)

    def event(self, age: float, source: str = "github", size: int = 0) -> int:
        self._number += 1
        received_at = self.time(age)
        self.add(
            schema.events,
            seq=self._number,
            source=source,
            event_id=f"evt_{self._number}",
            received_at=received_at,
            size=size,
        )
        return self._number

    def delivery(self, seq: int, name: str, state: str = "completed", done: bool = True) -> None:
        self.add(
            schema.deliveries,
            seq=seq,
            subscription=name,
            state=state,
            finished_at=1 if done else None,
        )
        self.add(schema.attempts, seq=seq, subscription=name)

    def record(self, event_id: str, age: float, state: str, source: str = "github") -> None:
        key = {"consumer": "analytics", "source": source, "event_id": event_id}
        self.add(schema.ledger, **key, state=state, updated_at=self.time(age))

    @staticmethod
    def time(age: float) -> int:
        return round((NOW - age * DAY) * 1e6)

    def left(self, table: Table, column: str) -> list[Any]:
        with self.store.read() as connection:
            return list(connection.scalars(select(table.c[column]).order_by(table.c[column])))

    @property
    def events(self) -> list[int]:
        return self.left(schema.events, "seq")


@pytest.fixture
def rows(any_store_url: str) -> Iterator[Rows]:
    with Store(any_store_url, clock=lambda: NOW) as store:
        rows = Rows(store)
        rows.source("github", "github")
        yield rows


def test_an_event_goes_with_all_that_hangs_on_it(rows: Rows) -> None:
    rows.subscription("analytics")
    for age in (31, 29):
        rows.delivery(rows.event(age, size=7), "analytics")
    purged = purge(rows.store)
    assert purged.removed == {"webhook_event": 1, "webhook_delivery": 1, "webhook_attempt": 1}
    assert (purged.size, purged.dead_letters, purged.held) == (7, 0, {})
    assert rows.events == [2]
    assert rows.left(schema.deliveries, "seq") == rows.left(schema.attempts, "seq") == [2]
    assert purge(rows.store).removed == {}


def test_a_dry_run_says_the_same_and_removes_nothing(rows: Rows) -> None:
    rows.subscription("analytics")
    rows.delivery(rows.event(31, size=7), "analytics", "dead")
    rows.record("evt_9", 91, "completed")
    planned = purge(rows.store, dry_run=True)
    assert rows.events == [1]
    assert rows.left(schema.ledger, "event_id") == ["evt_9"]
    assert planned == purge(rows.store)
    assert planned.dead_letters == 1
    assert planned.removed["webhook_ledger"] == 1


def test_what_somebody_is_not_done_with_stays_and_is_named(rows: Rows) -> None:
    rows.subscription("analytics")
    rows.subscription("entitlements")
    for seq in (rows.event(400), rows.event(300)):
        rows.delivery(seq, "analytics")
        rows.delivery(seq, "entitlements", "pending", done=False)
    rows.event(200)
    assert purge(rows.store).held == {"entitlements": 2}
    assert rows.events == [1, 2]


def test_retention_of_each_subscription_counts(rows: Rows) -> None:
    rows.subscription("analytics", retention=40)
    rows.subscription("entitlements")
    for age in (41, 39, 35):
        rows.delivery(rows.event(age), "entitlements")
    rows.delivery(1, "analytics")
    rows.delivery(2, "analytics")
    purge(rows.store)
    assert rows.events == [2]


def test_a_backfill_that_is_under_way_finds_its_events(rows: Rows) -> None:
    seqs = [rows.event(50) for _ in range(4)]
    rows.subscription("new", backfill_next=seqs[1], backfill_end=seqs[3])
    purge(rows.store)
    assert rows.events == seqs[1:3]


def test_an_event_stays_while_its_sender_may_deliver_it_again(rows: Rows) -> None:
    rows.source("stripe", "stripe")  # lists its events for 30 days
    for source in ("github", "stripe"):
        for age in (2, 5, 30.5, 31.5):
            rows.event(age, source)
    purge(rows.store, Age(events=3 * DAY))
    # A redelivery is asked for up to 3 days late at GitHub, and a day more is for the clocks.
    assert [rows.time(age) for age in (30.5, 5, 2, 2)] == sorted(
        rows.left(schema.events, "received_at")
    )


def test_events_of_a_source_that_is_gone_stay_as_long_as_records(rows: Rows) -> None:
    rows.event(89, "gone")
    rows.event(91, "gone")
    purge(rows.store)
    assert rows.events == [1]


def test_the_ledger_outlives_the_event(rows: Rows) -> None:
    rows.event(400)
    rows.subscription("analytics")
    rows.delivery(1, "analytics", "pending", done=False)
    rows.record("evt_1", 400, "completed")  # the event is still there
    for name, age, state in (
        ("closed", 91, "completed"),
        ("refused", 91, "refused"),
        ("young", 89, "completed"),
        ("open", 400, "reserved"),
        ("waits", 400, "review"),
    ):
        rows.record(name, age, state)
    purge(rows.store)
    assert rows.left(schema.ledger, "event_id") == ["evt_1", "open", "waits", "young"]


def test_the_ledger_outlives_what_the_sender_may_deliver_and_what_is_retained(rows: Rows) -> None:
    rows.source("paddle", "paddle")  # replays for 90 days
    rows.record("a", 90.5, "completed", "paddle")
    rows.record("b", 91.5, "completed", "paddle")
    purge(rows.store)
    assert rows.left(schema.ledger, "event_id") == ["a"]
    rows.record("c", 199, "completed")
    rows.subscription("analytics", retention=200)
    purge(rows.store)
    assert rows.left(schema.ledger, "event_id") == ["a", "c"]


def test_nonces_and_pages_that_are_over(rows: Rows) -> None:
    for age in (89, 91):
        rows.add(schema.nonces, source="github", nonce=f"{age}", seen_at=rows.time(age))
        rows.add(schema.pages, key=f"{age}", last_at=rows.time(age), resolved_at=rows.time(age))
        rows.add(schema.notices, page=f"{age}", channel="log")
    rows.add(schema.pages, key="open", last_at=rows.time(400))
    removed = purge(rows.store).removed
    assert removed == {"webhook_nonce": 1, "webhook_page": 1, "webhook_notice": 1}
    assert rows.left(schema.pages, "key") == ["89", "open"]
    assert rows.left(schema.notices, "page") == ["89"]


def test_many_rows_go_in_short_writes(rows: Rows) -> None:
    with rows.store.transaction() as connection:
        required = {"source": "github", "received_at": 1, "id_source": "", "key_id": ""}
        required |= {"headers": [], "size": 1, "body": b"", "body_sha256": b""}
        many = [required | {"event_id": f"{number:04}"} for number in range(450)]
        connection.execute(insert(schema.events), many)
        key = {"consumer": "c", "source": "github", "state": "dead"}
        many = [key | {"event_id": f"{n:04}", "created_at": 1, "updated_at": 1} for n in range(450)]
        connection.execute(insert(schema.ledger), many)
    batches: list[int] = []
    purged = purge(rows.store, progress=batches.append)
    assert batches == [200, 200, 50] * 2
    assert purged.removed == {"webhook_event": 450, "webhook_ledger": 450}
    assert purged.size == 450


def test_what_is_redriven_meanwhile_stays(rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    rows.subscription("analytics")
    for _ in range(3):
        rows.delivery(rows.event(50), "analytics", "dead")
    write = rows.store.write

    def late(work: Any) -> Any:
        """Between looking and removing, somebody redrives the second."""
        monkeypatch.setattr(rows.store, "write", write)
        with rows.store.transaction() as connection:
            changed = update(schema.deliveries).where(schema.deliveries.c.seq == 2)
            connection.execute(changed.values(finished_at=None, state="pending"))
        return write(work)

    monkeypatch.setattr(rows.store, "write", late)
    assert purge(rows.store).removed["webhook_event"] == 2
    assert rows.events == [2]


def test_a_provider_that_is_not_installed_stops_it(rows: Rows) -> None:
    rows.source("acme", "acme")
    rows.event(1000)
    with pytest.raises(ConfigError, match="acme"):
        purge(rows.store)
    assert rows.events == [1]


def test_a_store_without_anything(any_store: Store) -> None:
    assert purge(any_store).removed == {}


def test_records_are_not_shorter_than_events() -> None:
    with pytest.raises(ConfigError, match="at least as long as events"):
        Age(events=100 * DAY)


def run(store: Store, *arguments: str) -> Any:
    url = store.url.render_as_string(hide_password=False)
    return CliRunner().invoke(root, ["purge", "--url", url, *arguments])


def test_command(rows: Rows) -> None:
    rows.subscription("analytics")
    rows.delivery(rows.event(20000, size=7), "analytics", "dead")
    assert run(rows.store, "--dry-run").output.startswith("Would remove 1 rows of webhook_event.")
    done = run(rows.store, "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.output)
    assert document["removed"]["webhook_event"] == 1
    assert document["size"] == 7
    assert run(rows.store).output == "Nothing is old enough.\n"
    assert run(rows.store, "--events", "100d").exit_code == 2
    rows.delivery(rows.event(20000), "analytics", "pending", done=False)
    held = run(rows.store)
    assert (held.exit_code, held.output) == (1, "1 events stay: analytics is not done with them.\n")
