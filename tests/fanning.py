"""Events in a store and what became of them, for tests of the fan-out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from gunicorn_admission.webhooks.fanout import RoutedEvent, Routing
from gunicorn_admission.webhooks.store import Store
from gunicorn_admission.webhooks.store.schema import deliveries, events

__all__ = ["WallClock", "delivered", "event_row", "put", "states"]


class WallClock:
    """Seconds since the epoch, under a test's control."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def event_row(event_id: str, now: int, **values: Any) -> dict[str, Any]:
    """The columns of an event, as an intake writes them."""
    body = values.pop("body", {})
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return {
        "source": "stripe",
        "event_id": event_id,
        "id_source": "body",
        "type": "invoice.paid",
        "received_at": now,
        "key_id": "k1",
        "headers": [["Content-Type", "application/json"]],
        "size": len(raw),
        "body_sha256": hashlib.sha256(raw).digest(),
        "body": raw,
        **values,
    }


def insert_and_route(
    connection: Connection, routing: Routing, rows: Sequence[dict[str, Any]]
) -> list[int]:
    """Do what an intake does in its transaction; the numbers of the events."""
    numbers = []
    for row in rows:
        key = connection.execute(events.insert().values(row)).inserted_primary_key
        assert key is not None
        numbers.append(int(key[0]))
        routing.route(
            connection,
            [
                RoutedEvent(
                    seq=numbers[-1],
                    source=row["source"],
                    event_id=row["event_id"],
                    type=row["type"],
                    body=row["body"],
                    headers=[(name, value) for name, value in row["headers"]],
                    received_at=row["received_at"],
                )
            ],
        )
    return numbers


def put(store: Store, *event_ids: str, **values: Any) -> list[int]:
    """Store and route events; their numbers."""
    routing = Routing(store)
    rows = [event_row(event_id, store.now(), **values) for event_id in event_ids]
    return store.write(lambda connection: insert_and_route(connection, routing, rows))


def states(store: Store, name: str) -> dict[str, str]:
    """State of each event at a subscription."""
    with store.read() as connection:
        rows = connection.execute(
            select(events.c.event_id, deliveries.c.state)
            .join(deliveries, deliveries.c.seq == events.c.seq)
            .where(deliveries.c.subscription == name)
            .order_by(events.c.seq)
        )
        return {row.event_id: row.state for row in rows}


def delivered(store: Store, name: str) -> list[str]:
    """Ids of the events that a subscription has or had, in order."""
    return list(states(store, name))
